"""Figures 3, 4 and 5 of the EM-Log paper, rerun.

A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks".

    python -m papers.em_log

The paper compares EM-Log and EM-Log-Link with two-stage networks that it calls KMeans+LS, KMeans+GR, EM+LS and EM+Log;
RBF (Netlab) is the two-stage network of its rival papers. Figure 5 is drawn after two sweeps on Ripley's data with six kernels,
and its errors are not printed in the text. Means start at random in [-1, 1] and covariances at the identity, on standardized
features; the paper's text says so in one place and "a Gaussian distribution with zero mean" in another.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from kernelpool import RBFNetworkClassifier
from kernelpool.datasets import load_ripley, make_ellipses, make_ripley, make_strips, missing_reason

ROUND: dict[str, Any] = {"covariance_type": "spherical", "activation": "gaussian"}
LONG: dict[str, Any] = {"covariance_type": "full", "activation": "density", "kernel_prior": None}
PRINTED: dict[str, Any] = {**LONG, "solver": "newton", "patience": None}

NETWORKS: dict[str, dict[str, Any]] = {
    "Random+LS": {**ROUND, "hidden": "random", "training": "two_stage", "readout": "least_squares"},
    "KMeans+LS": {**ROUND, "hidden": "kmeans", "training": "two_stage", "readout": "least_squares"},
    "KMeans+GR": {**ROUND, "hidden": "kmeans", "training": "two_stage", "readout": "ridge", "strength": "gcv"},
    "RBF (Netlab)": {**ROUND, "hidden": "em", "training": "two_stage", "readout": "least_squares", "kernel_prior": None},
    "EM+LS": {**LONG, "hidden": "em", "training": "two_stage", "readout": "least_squares"},
    "EM+Log": {**LONG, "hidden": "em", "training": "two_stage", "readout": "logistic", "strength": 0.0},
    "EM-Log": {**PRINTED, "training": "em_log"},
    "EM-Log-Link": {**PRINTED, "training": "em_log_link"},
}
"""The paper's networks by its names. The last two make `max_iter` sweeps as printed, from a start such as `printed_start`."""


def unit_kernels(means: np.ndarray, covariance_type: str) -> SimpleNamespace:
    """Kernels of equal weight and, as the paper has it, with the identity for a covariance."""
    m, d = means.shape
    covariances = np.ones(m) if covariance_type == "spherical" else np.repeat(np.eye(d)[None], m, axis=0)
    return SimpleNamespace(means_=means, covariances_=covariances, weights_=np.full(m, 1 / m), covariance_type=covariance_type)


def printed_start(n_kernels: int, n_features: int, seed: int) -> SimpleNamespace:
    """Step 0: means at random in [-1, 1], covariances the identity."""
    return unit_kernels(np.random.default_rng(seed).uniform(-1, 1, (n_kernels, n_features)), "full")


def network(name: str, X: np.ndarray, n_kernels: int, seed: int, n_sweeps: int | None = None) -> RBFNetworkClassifier:
    """One of `NETWORKS` for standardized rows, with the paper's starts and widths.

    Centers found by k-means get G(a) = exp(-a² / 2), equation (1). With `n_sweeps`, EM makes as many from the printed start
    before or while the output layer is fitted.
    """
    settings = dict(NETWORKS[name])
    if name.startswith("KMeans"):
        centers = KMeans(n_kernels, n_init=1, random_state=seed).fit(X).cluster_centers_
        settings["hidden"] = unit_kernels(centers, "spherical")
    if n_sweeps is not None and name.startswith("EM"):
        settings |= {"hidden": printed_start(n_kernels, X.shape[1], seed), "max_iter": n_sweeps, "patience": None}
        if name in ("EM+LS", "EM+Log"):  # an output layer without memory, solved in each sweep: the last one counts
            settings["training"] = "em_log"
    return RBFNetworkClassifier(n_kernels, random_state=seed, **settings)


def ripley_errors(name: str, n_sweeps: int | None, n_starts: int) -> list[float]:
    """Test error in percent of one of `NETWORKS` on Ripley's data, six kernels, one number a start."""
    X, y = load_ripley(return_X_y=True)
    X_test, y_test = load_ripley(subset="test", return_X_y=True)
    scale = StandardScaler().fit(X)
    X, X_test = scale.transform(X), scale.transform(X_test)
    return [100 * (1 - network(name, X, 6, seed, n_sweeps).fit(X, y).score(X_test, y_test)) for seed in range(n_starts)]


def figure_5(n_starts: int = 20) -> dict[str, list[float]]:
    """Test error in percent on Ripley's data, six kernels, one number a start."""
    X, y = load_ripley(return_X_y=True)
    X_test, y_test = load_ripley(subset="test", return_X_y=True)
    scale = StandardScaler().fit(X)
    X, X_test = scale.transform(X), scale.transform(X_test)

    def errors(make: Any) -> list[float]:
        return [100 * (1 - make(seed).fit(X, y).score(X_test, y_test)) for seed in range(n_starts)]

    found = {
        f"{name}, 2 sweeps": errors(lambda s, n=name: network(n, X, 6, s, 2)) for name in NETWORKS if name.startswith("EM")
    }
    for link in ("EM-Log", "EM-Log-Link"):
        found[f"{link}, 2 sweeps, W = 0.25 I"] = errors(lambda s, n=link: network(n, X, 6, s, 2).set_params(solver="bound"))
        found[f"{link}, 200 sweeps, W = 0.25 I"] = errors(lambda s, n=link: network(n, X, 6, s, 200).set_params(solver="bound"))
        found[f"{link}, 200 sweeps"] = errors(lambda s, n=link: network(n, X, 6, s, 200))
    for name in ("Random+LS", "KMeans+LS", "KMeans+GR", "RBF (Netlab)", "EM+LS", "EM+Log"):
        found[name] = errors(lambda s, n=name: network(n, X, 6, s))
    for hidden in ("random", "kmeans"):
        for training in ("em_log", "em_log_link"):
            found[f"default, hidden={hidden!r}, training={training!r}"] = errors(
                lambda s, h=hidden, t=training: RBFNetworkClassifier(6, hidden=h, training=t, random_state=s)
            )
    return found


FIGURES_3_AND_4 = (
    ("KMeans+LS", "damped"),
    ("EM-Log", "newton"),
    ("EM-Log", "bound"),
    ("EM-Log-Link", "newton"),
    ("EM-Log-Link", "bound"),
    ("EM-Log-Link", "damped"),
    ("default", "damped"),
)


def figures_3_and_4(n_trials: int = 10) -> dict[str, list[tuple[int, int]]]:
    """Test errors (of 400 rows; of 200 rows) on draws of the two synthetic problems."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, solver in FIGURES_3_AND_4:
        label = name + {"newton": "", "bound": ", W = 0.25 I", "damped": ", damped" if name == "EM-Log-Link" else ""}[solver]
        found[label] = []
        for seed in range(n_trials):
            counts = []
            for draw, n, n_kernels, n_sweeps in ((make_ellipses, 200, 4, 10), (make_strips, 100, 6, 15)):
                X, y = draw(n, random_state=2 * seed)
                X_test, y_test = draw(2 * n, random_state=2 * seed + 1)
                scale = StandardScaler().fit(X)
                X, X_test = scale.transform(X), scale.transform(X_test)
                model = (
                    RBFNetworkClassifier(n_kernels, random_state=seed)
                    if name == "default"
                    else network(name, X, n_kernels, seed, n_sweeps).set_params(solver=solver)
                )
                counts.append(int((model.fit(X, y).predict(X_test) != y_test).sum()))
            found[label].append((counts[0], counts[1]))
    return found


def stopping(n_starts: int = 10) -> dict[str, list[float]]:
    """Test error in percent on Ripley's data: damped networks that stop by themselves, and after 200 sweeps in any case."""
    X, y = load_ripley(return_X_y=True)
    X_test, y_test = load_ripley(subset="test", return_X_y=True)
    found: dict[str, list[float]] = {}
    for activation, kernel_prior in (("density", None), ("normalized", "conjugate")):
        for training in ("em_log", "em_log_link"):
            for rule, patience in (("stopped", 10), ("200 sweeps", None)):
                model = RBFNetworkClassifier(
                    6, hidden="random", training=training, activation=activation, kernel_prior=kernel_prior
                ).set_params(patience=patience, max_iter=200)
                found[f"{activation}, {training}, {rule}"] = [
                    100 * (1 - model.set_params(random_state=seed).fit(X, y).score(X_test, y_test)) for seed in range(n_starts)
                ]
    return found


def fresh_draws(n_draws: int = 20) -> dict[str, list[float]]:
    """Test error in percent of the default on new draws of Ripley's problem, which no default was chosen by."""
    X_test, y_test = make_ripley(20_000, random_state=999)
    found: dict[str, list[float]] = {}
    for hidden in ("random", "kmeans"):
        for training in ("em_log", "em_log_link"):
            name = f"default, hidden={hidden!r}, training={training!r}"
            found[name] = []
            for i in range(n_draws):
                model = RBFNetworkClassifier(6, hidden=hidden, training=training, random_state=500 + i)
                model.fit(*make_ripley(250, random_state=1000 + i))
                found[name].append(100 * (1 - model.score(X_test, y_test)))
    return found


def main() -> None:
    """Print what the figures show."""
    print("Figures 3 and 4: rows of the test set in error (400 rows, 4 kernels, 10 sweeps; 200 rows, 6 kernels, 15 sweeps)")
    for name, counts in figures_3_and_4().items():
        third, fourth = np.array(counts).T
        print(f"  {name:28} mean {third.mean():6.1f} {fourth.mean():6.1f}   least {third.min():4d} {fourth.min():4d}")
    print("Twenty draws of 250 rows of Ripley's problem, six kernels: error on 20,000 new rows, percent")
    _tell(fresh_draws())
    reason = missing_reason("ripley_train") or missing_reason("ripley_test")
    if reason:
        print(reason)
        return
    print("Figure 5: test error on Ripley's data, six kernels, 20 starts, percent")
    _tell(figure_5())
    print("With and without the stopping rule: test error on Ripley's data, six kernels, ten random starts, percent")
    _tell(stopping())


def _tell(found: dict[str, list[float]]) -> None:
    for name, errors in found.items():
        print(f"  {name:50} mean {np.mean(errors):5.1f}   least {min(errors):5.1f}   most {max(errors):5.1f}")


if __name__ == "__main__":
    main()
