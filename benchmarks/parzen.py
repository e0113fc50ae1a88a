"""Full, edited and reduced Parzen networks: error, size and time, curves against random subsets, consistency, and speed.

Run all of it with ``python -m benchmarks parzen``; each part is a function of its own.
"""

import time
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier, bounds
from kernelpool.datasets import load_phoneme, load_ripley, load_satimage, make_clouds, missing_reason

SIZES = (12, 25, 50, 100, 200, 400)


def main():
    table()
    for name in ("phoneme", "satimage"):
        curve(name)
    consistency()
    speed()
    large()


# -- data --------------------------------------------------------------------------------------------------------------


def ripley():
    return (*load_ripley(return_X_y=True), *load_ripley(subset="test", return_X_y=True))


def clouds(n=5000):
    return (*make_clouds(n, random_state=0), *make_clouds(20_000, random_state=1))


def phoneme():
    X, X_test, y, y_test = halves(*load_phoneme(return_X_y=True))
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def satimage():
    X, X_test, y, y_test = halves(*load_satimage(dims=5, return_X_y=True))  # on LDA's own scale
    return X, y, X_test, y_test


def halves(X, y):
    return train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)


SETS = {"ripley": ripley, "clouds": clouds, "phoneme": phoneme, "satimage": satimage}
FILES = {"ripley": "ripley_test", "clouds": "wdbc", "phoneme": "phoneme", "satimage": "satimage"}


def rows_of(name):
    reason = missing_reason(FILES[name])
    if reason:
        print(f"{name} is left out: {reason}")
        return None
    return SETS[name]()


def timed(work):
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


# -- error, size, time -------------------------------------------------------------------------------------------------


def table(names=("ripley", "clouds", "phoneme"), kernels=("hypersphere", "gaussian")):
    """Full, edited, reduced, in one table; with the certificate of each on the test rows."""
    print("\nset      kernel       network            kernels  error %  predict ms  fit s  certified %")
    for name in names:
        rows = rows_of(name)
        for kernel in kernels if rows else ():
            X, y, X_test, y_test = rows
            full = ParzenClassifier(kernel, random_state=0).fit(X, y)
            edit = MultiEdit(ParzenClassifier(kernel, full.radius_), random_state=0)
            reduced = partial(ReducedParzenClassifier, kernel=kernel, random_state=0)
            networks = {
                "full": lambda X, y, kernel=kernel: ParzenClassifier(kernel, random_state=0).fit(X, y),
                "edited": lambda X, y, full=full, edit=edit: (
                    clone(full).set_params(radius=full.radius_).fit(*edit.fit_resample(X, y))
                ),
                "edited, 2 %": reduced(0.02, edit=True).fit,
                "reduced, 2 %": reduced(0.02).fit,
                "reduced, 10 %": reduced(0.1).fit,
                "herding, em, 2 %": reduced(0.02, method="herding", weights="em").fit,
                "auto": reduced("auto").fit,
            }
            if name == "phoneme":  # no small network comes within a point: it would try sizes for many minutes
                del networks["auto"]
            for label, fit in networks.items():
                network, fit_time = timed(partial(fit, X, y))
                network.predict(X_test[:10])
                _, predict_time = timed(partial(network.predict, X_test))
                certificate = bounds.certify(network, X_test, y_test)
                print(
                    f"{name:<9}{kernel:<13}{label:<19}{len(network.kernels_):>7}"
                    f"{100 * certificate.n_errors / certificate.n_rows:>9.2f}{1e3 * predict_time:>12.1f}{fit_time:>7.1f}"
                    f"{100 * certificate.error:>13.2f}",
                    flush=True,
                )


# -- error against size ------------------------------------------------------------------------------------------------


def curve(name, kernel="gaussian", sizes=SIZES, n_random=10, n_reduced=2):
    """Error against size, beside random subsets of the same size, whose radius is chosen on all training rows too."""
    rows = rows_of(name)
    if not rows:
        return None
    X, y, X_test, y_test = rows
    full = 1 - ParzenClassifier(kernel, random_state=0).fit(X, y).score(X_test, y_test)
    print(f"\n{name}, {kernel}: full network of {len(X)} kernels, {100 * full:.2f} %")
    print("kernels   reduced %  (worst)    herding, em %   random %   (best)")
    lines = []
    for size in sizes:
        fit = partial(ReducedParzenClassifier, size, kernel=kernel)
        reduced = [1 - fit(random_state=seed).fit(X, y).score(X_test, y_test) for seed in range(n_reduced)]
        herded = 1 - fit(method="herding", weights="em", random_state=0).fit(X, y).score(X_test, y_test)
        random = [random_error(kernel, size, seed, *rows) for seed in range(n_random)]
        lines.append((size, np.mean(reduced), max(reduced), herded, np.mean(random), min(random)))
        print(
            f"{size:>7}" + "".join(f"{100 * v:>{w}.2f}" for v, w in zip(lines[-1][1:], (12, 9, 17, 11, 9), strict=True)),
            flush=True,
        )
    return full, np.array(lines)


def random_error(kernel, size, seed, X, y, X_test, y_test):
    some = np.random.default_rng(seed).choice(len(X), size, replace=False)
    if len(np.unique(y[some])) < 2:
        return 0.5
    known = np.isin(y, y[some])
    network = ParzenClassifier(kernel, "validation", random_state=0).fit(X[some], y[some], X_val=X[known], y_val=y[known])
    return 1 - network.score(X_test, y_test)


# -- consistency -------------------------------------------------------------------------------------------------------


def consistency(sizes=(500, 1500, 5000, 15_000, 50_000), n_repeats=3):
    """The error falls towards Bayes, 9.65 % on clouds, as rows are added."""
    X_test, y_test = make_clouds(100_000, random_state=1000)
    print("\nclouds, error in % over the draws; Bayes 9.65\n   rows   hypersphere   gaussian")
    lines = []
    for n in sizes:
        errors = [
            [
                1
                - ParzenClassifier(kernel, random_state=0)
                .fit(*make_clouds(n, random_state=seed))
                .score(X_test[::s], y_test[::s])
                for seed in range(n_repeats)
            ]
            for kernel, s in (("hypersphere", 1), ("gaussian", 1 if n <= 5000 else 20))
        ]
        lines.append((n, *np.mean(errors, axis=1)))
        print(f"{n:>7}{100 * lines[-1][1]:>14.2f}{100 * lines[-1][2]:>11.2f}", flush=True)
    return np.array(lines)


def picture(path, curves, fall):
    """Draw what `curve` and `consistency` return: ``picture("parzen.png", {"phoneme": curve("phoneme")}, consistency())``."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(curves) + 1, figsize=(5 * (len(curves) + 1), 3.8), layout="constrained")
    for axes, (name, (full, lines)) in zip(panels, curves.items(), strict=False):
        size, reduced, _, herded, random, lucky = 100 * np.asarray(lines, float).T
        size = size / 100
        axes.fill_between(size, lucky, random, color="#bbbbbb", alpha=0.5, linewidth=0, label="random: mean to best of ten")
        axes.plot(size, herded, color="#5a9e5a", marker=".", label="herding, votes by EM")
        axes.plot(size, reduced, color="#2f6db5", marker="o", label="ReducedParzenClassifier")
        axes.axhline(100 * full, color="#e07b1a", linestyle="--", label="all kernels")
        finish(axes, size, title=name, xlabel="kernels", ylabel="test error, %")
    n, sphere, gauss = np.asarray(fall, float).T
    panels[-1].plot(n, 100 * sphere, color="#2f6db5", marker="o", label="hypersphere")
    panels[-1].plot(n, 100 * gauss, color="#5a9e5a", marker="o", label="gaussian")
    panels[-1].axhline(9.654, color="#444444", linestyle=":", label="best possible")
    finish(panels[-1], n, title="clouds, full network", xlabel="training rows", ylabel="test error, %")
    figure.savefig(path, dpi=90)


def finish(axes, ticks, **labels):
    axes.set(xscale="log", **labels)
    axes.set_xticks(ticks, [f"{int(tick):,}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


# -- speed -------------------------------------------------------------------------------------------------------------


def speed():
    """Ratios to scikit-learn's radius neighbours and imbalanced-learn's edited nearest neighbours, in one run."""
    print("\nprediction against RadiusNeighborsClassifier: same rows, same radius, same answers on covered rows")
    print("rows x kernels, features   theirs s   ours s   ratio   answers that differ")
    for n, d in ((5000, 2), (20_000, 2), (5000, 5), (5000, 20)):
        rng = np.random.default_rng(0)
        X, X_new = rng.normal(size=(n, d)), rng.normal(size=(n, d))
        y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
        radius = {2: 0.25, 5: 1.0, 20: 4.5}[d]
        ours = ParzenClassifier(radius=radius).fit(X, y)
        theirs = RadiusNeighborsClassifier(radius, outlier_label=0).fit(X, y)
        covered = ours.covered(X_new)
        expected, their_time = timed(partial(theirs.predict, X_new[covered]))
        found, our_time = timed(partial(ours.predict, X_new[covered]))
        label = f"{covered.sum()} x {n}, {d}"
        print(
            f"{label:<27}{their_time:>8.2f}{our_time:>9.3f}{their_time / our_time:>8.1f}{(found != expected).sum():>12}",
            flush=True,
        )
    try:
        from imblearn.under_sampling import EditedNearestNeighbours, RepeatedEditedNearestNeighbours
    except ImportError:
        print("imbalanced-learn is not installed: pip install imbalanced-learn")
        return
    X, y = make_clouds(20_000, random_state=0)
    X_test, y_test = make_clouds(20_000, random_state=1)
    print("\nediting 20,000 rows of clouds                    s    rows left   error % of a Parzen network of what is left")
    full = ParzenClassifier(random_state=0).fit(X, y)
    judge = ParzenClassifier(radius=full.radius_)
    for name, editor in {
        "no editing": None,
        "EditedNearestNeighbours": EditedNearestNeighbours(sampling_strategy="all"),
        "RepeatedEditedNearestNeighbours": RepeatedEditedNearestNeighbours(sampling_strategy="all"),
        "MultiEdit, 1 round": MultiEdit(judge, max_rounds=1, random_state=0),
        "MultiEdit": MultiEdit(judge, random_state=0),
    }.items():
        (X_left, y_left), seconds = ((X, y), 0.0) if editor is None else timed(partial(editor.fit_resample, X, y))
        error = 1 - ParzenClassifier(radius=full.radius_).fit(X_left, y_left).score(X_test, y_test)
        print(f"{name:<40}{seconds:>10.2f}{len(X_left):>13}{100 * error:>12.2f}", flush=True)


def large():
    """50,000 kernels to 500, and 100,000 rows against 100,000 kernels."""
    X, y = make_clouds(50_000, random_state=0)
    X_test, y_test = make_clouds(20_000, random_state=1)
    for edit in (False, True):
        network, seconds = timed(partial(ReducedParzenClassifier(500, edit=edit, random_state=0).fit, X, y))
        print(
            f"\n50,000 kernels to 500, edit={edit}: {seconds:.0f} s, error {100 * (1 - network.score(X_test, y_test)):.2f} %",
            flush=True,
        )
    X, y = make_clouds(100_000, random_state=0)
    X_test, y_test = make_clouds(100_000, random_state=1)
    for algorithm in ("tree", "blocks"):
        network = ParzenClassifier(radius=0.1, algorithm=algorithm).fit(X, y)
        score, seconds = timed(partial(network.score, X_test, y_test))
        print(
            f"100,000 rows against 100,000 kernels, {algorithm}: {seconds:.1f} s, error {100 * (1 - score):.2f} %", flush=True
        )
