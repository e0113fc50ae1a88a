"""Full, edited and reduced Parzen networks: error, size and time, curves against random subsets,
consistency, and speed.

Run all of it with ``python -m benchmarks parzen``, some parts with ``python -m benchmarks.parzen
table seeds``. Times are CPU seconds of one thread unless another unit is named, so that a busy
machine does not lengthen them.
"""

import sys
import time
import tracemalloc
from functools import partial

import numpy as np
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.neighbors import RadiusNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier, bounds
from kernelpool.datasets import make_clouds
from papers.data import load_phoneme, load_ripley, load_satimage, missing_reason

SIZES = (12, 25, 50, 100, 200, 400)


def main(*parts):
    for part in parts or PARTS:
        PARTS[part]()


# -- data ------------------------------------------------------------------------------------------


def ripley():
    return (*load_ripley(return_X_y=True), *load_ripley(subset="test", return_X_y=True))


def clouds(seed=0):
    return (*make_clouds(5000, random_state=seed), *make_clouds(20_000, random_state=1000 + seed))


def phoneme(seed=0):
    X, X_test, y, y_test = halves(*load_phoneme(return_X_y=True), seed)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), y, scaler.transform(X_test), y_test


def satimage():
    X, X_test, y, y_test = halves(*load_satimage(dims=5, return_X_y=True))  # on LDA's own scale
    return X, y, X_test, y_test


def halves(X, y, seed=0):
    return train_test_split(X, y, test_size=0.4, random_state=seed, stratify=y)


SETS = {"ripley": ripley, "clouds": clouds, "phoneme": phoneme, "satimage": satimage}
FILES = {"ripley": "ripley_test", "clouds": "wdbc", "phoneme": "phoneme", "satimage": "satimage"}


def rows_of(name):
    reason = missing_reason(FILES[name])
    if reason:
        print(f"{name} is left out: {reason}")
        return None
    return SETS[name]()


def timed(work):
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def error_of(network, X_test, y_test):
    return 100 * (1 - network.score(X_test, y_test))


# -- error, size, time -----------------------------------------------------------------------------


def table(names=("ripley", "clouds", "phoneme"), kernels=("hypersphere", "gaussian")):
    """Full, edited, reduced, in one table; with the certificate of each on the test rows."""
    print(
        "\nset      kernel       network            kernels  error %  predict ms  fit s  certified "
        "%"
    )
    for name in names:
        rows = rows_of(name)
        for kernel in kernels if rows else ():
            X, y, X_test, y_test = rows
            full = ParzenClassifier(kernel, "loo", standardize=False, random_state=0).fit(X, y)
            same = partial(ParzenClassifier, kernel, full.radius_)
            reduced = partial(ReducedParzenClassifier, kernel=kernel, random_state=0)
            networks = {
                "full": ParzenClassifier(kernel, "loo", standardize=False, random_state=0).fit,
                "edited once": partial(edited, same, 1),
                "edited": partial(edited, same, 100),
                "edited, 2 %": reduced(0.02, edit=True).fit,
                "reduced, 2 %": reduced(0.02).fit,
                "reduced, 10 %": reduced(0.1).fit,
            }
            for label, fit in networks.items():
                network, fit_time = timed(partial(fit, X, y))
                network.predict(X_test[:10])
                _, predict_time = timed(partial(network.predict, X_test))
                certificate = bounds.certify(network, X_test, y_test)
                print(
                    f"{name:<9}{kernel:<13}{label:<19}{len(network.kernels_):>7}{100 * certificate.n_errors / certificate.n_rows:>9.2f}{1e3 * predict_time:>12.1f}{fit_time:>7.1f}{100 * certificate.error:>13.2f}",
                    flush=True,
                )


def edited(network, max_iter, X, y):
    return network().fit(
        *MultiEdit(network(), max_iter=max_iter, random_state=0).fit_resample(X, y)
    )


def seeds(kernels=("hypersphere", "gaussian"), n_seeds=6):
    """Clouds, 2 % of 5,000 kernels: by how many points the error exceeds the full network's, over
    draws of the rows.
    """
    ways = {
        "default": {},
        "edit=True": {"edit": True},
        "edit=False": {"edit": False},
    }
    print(
        "\nclouds, 100 of 5,000 kernels, error in %: full, then points above it\nkernel       seed "
        "  full" + "".join(f"{w:>14}" for w in ways)
    )
    for kernel in kernels:
        excess = []
        for seed in range(n_seeds):
            X, y, X_test, y_test = clouds(seed)
            full = error_of(
                ParzenClassifier(kernel, "loo", standardize=False, random_state=seed).fit(X, y),
                X_test,
                y_test,
            )
            networks = [
                ReducedParzenClassifier(
                    0.02, kernel=kernel, standardize=False, random_state=seed, **way
                ).fit(X, y)
                for way in ways.values()
            ]
            excess.append([error_of(network, X_test, y_test) - full for network in networks])
            print(
                f"{kernel:<13}{seed:>4}{full:>7.2f}" + "".join(f"{v:>14.2f}" for v in excess[-1]),
                flush=True,
            )
        for label, found in (("mean", np.mean(excess, axis=0)), ("worst", np.max(excess, axis=0))):
            print(f"{kernel:<13}{label:>11}" + "".join(f"{v:>14.2f}" for v in found))


def auto(n_seeds=4, names=("clouds", "phoneme")):
    """The smallest network within a tolerance, found by cross-validation, and what it costs on test
    rows.
    """
    print(
        "\nn_kernels='auto'\nset      kernel       tolerance  kernels  error %   full %  excess  "
        "fit s"
    )
    tries = [
        ("clouds", kernel, 0.01, seed)
        for kernel in ("hypersphere", "gaussian")
        for seed in range(n_seeds)
    ]
    tries += [
        *(("phoneme", "gaussian", 0.08, seed) for seed in range(3)),
        ("phoneme", "gaussian", 0.01, 0),
    ]
    for name, kernel, tolerance, seed in (t for t in tries if t[0] in names):
        if rows_of(name) is None:
            continue
        X, y, X_test, y_test = SETS[name](seed)
        full = error_of(
            ParzenClassifier(kernel, "loo", standardize=False, random_state=seed).fit(X, y),
            X_test,
            y_test,
        )
        network = ReducedParzenClassifier(
            "auto",
            kernel=kernel,
            standardize=False,
            tolerance=tolerance,
            random_state=seed,
        )
        _, seconds = timed(partial(network.fit, X, y))
        error = error_of(network, X_test, y_test)
        print(
            f"{name:<9}{kernel:<13}{100 * tolerance:>9.0f}{len(network.kernels_):>9}{error:>9.2f}{full:>9.2f}{error - full:>8.2f}{seconds:>7.0f}",
            flush=True,
        )
    for seed in range(3) if "phoneme" in names and rows_of("phoneme") else ():
        X, y, X_test, y_test = phoneme(seed)
        coarse = QuadraticDiscriminantAnalysis()
        inside = 100 * (1 - cross_val_score(coarse, X, y).mean())
        outside = error_of(coarse.fit(X, y), X_test, y_test)
        print(
            f"phoneme, split {seed}, quadratic discriminant: cross-validation {inside:.1f} %, test "
            f"rows {outside:.1f} %"
        )


# -- error against size ----------------------------------------------------------------------------


def curve(name, kernel="gaussian", sizes=SIZES, n_random=10, n_reduced=2):
    """Error against size, beside random subsets of the same size, whose radius is chosen on all
    training rows too.
    """
    rows = rows_of(name)
    if not rows:
        return None
    X, y, X_test, y_test = rows
    full = 1 - ParzenClassifier(kernel, "loo", standardize=False, random_state=0).fit(X, y).score(
        X_test, y_test
    )
    print(f"\n{name}, {kernel}: full network of {len(X)} kernels, {100 * full:.2f} %")
    print("kernels   reduced %  (worst)   random %   (best)")
    lines = []
    for size in sizes:
        fit = partial(ReducedParzenClassifier, size, kernel=kernel)
        reduced = [
            1 - fit(random_state=seed).fit(X, y).score(X_test, y_test) for seed in range(n_reduced)
        ]
        random = [random_error(kernel, size, seed, *rows) for seed in range(n_random)]
        lines.append((size, np.mean(reduced), max(reduced), np.mean(random), min(random)))
        print(
            f"{size:>7}"
            + "".join(
                f"{100 * v:>{w}.2f}" for v, w in zip(lines[-1][1:], (12, 9, 11, 9), strict=True)
            ),
            flush=True,
        )
    return full, np.array(lines)


def random_error(kernel, size, seed, X, y, X_test, y_test):
    some = np.random.default_rng(seed).choice(len(X), size, replace=False)
    if len(np.unique(y[some])) < 2:
        return 0.5
    known = np.isin(y, y[some])
    network = ParzenClassifier(kernel, "loo", standardize=False, random_state=0).fit(
        X[some], y[some], X_val=X[known], y_val=y[known]
    )
    return 1 - network.score(X_test, y_test)


# -- consistency -----------------------------------------------------------------------------------


def consistency(sizes=(500, 1500, 5000, 15_000, 50_000), n_repeats=3):
    """The error falls towards Bayes, 9.65 % on clouds, as rows are added."""
    X_test, y_test = make_clouds(100_000, random_state=1000)
    print("\nclouds, error in % over the draws; Bayes 9.65\n   rows   hypersphere   gaussian")
    lines = []
    for n in sizes:
        errors = [
            [
                1
                - ParzenClassifier(kernel, "loo", standardize=False, random_state=0)
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
    """Draw what `curve` and `consistency` return: ``picture("parzen.png", {"phoneme":
    curve("phoneme")}, consistency())``.

    The guide's picture is that of phoneme and satimage.
    """
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(curves) + 1, figsize=(5 * (len(curves) + 1), 3.8), layout="constrained"
    )
    for i, (axes, (name, (full, lines))) in enumerate(zip(panels, curves.items(), strict=False)):
        size, reduced, _, random, lucky = 100 * np.asarray(lines, float).T
        size = size / 100
        axes.fill_between(
            size,
            lucky,
            random,
            color="#bbbbbb",
            alpha=0.5,
            linewidth=0,
            label="random: mean to best of ten",
        )
        axes.plot(size, reduced, color="#2f6db5", marker="o", label="ReducedParzenClassifier")
        axes.axhline(100 * full, color="#e07b1a", linestyle="--", label="all kernels")
        finish(
            axes, size, i == len(curves) - 1, title=name, xlabel="kernels", ylabel="test error, %"
        )
    n, sphere, gauss = np.asarray(fall, float).T
    panels[-1].plot(n, 100 * sphere, color="#2f6db5", marker="o", label="hypersphere")
    panels[-1].plot(n, 100 * gauss, color="#5a9e5a", marker="o", label="gaussian")
    panels[-1].axhline(9.654, color="#444444", linestyle=":", label="best possible")
    finish(
        panels[-1],
        n,
        True,
        title="clouds, full network",
        xlabel="training rows",
        ylabel="test error, %",
    )
    figure.savefig(path, dpi=90)


def finish(axes, ticks, legend, **labels):
    axes.set(xscale="log", **labels)
    axes.set_xticks(ticks, [f"{int(tick):,}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    if legend:
        axes.legend(frameon=False)


# -- speed -----------------------------------------------------------------------------------------


def speed():
    """Ratios to scikit-learn's radius neighbors and imbalanced-learn's edited nearest neighbors, in
    one run.
    """
    print(
        "\nprediction against RadiusNeighborsClassifier: same rows, same radius, same answers on "
        "covered rows"
    )
    print("rows x kernels, features   theirs s   ours s   ratio   answers that differ")
    for n, d in ((5000, 2), (20_000, 2), (5000, 5), (5000, 20)):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        X_new = rng.normal(size=(n, d))
        y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
        radius = {2: 0.25, 5: 1.0, 20: 4.5}[d]
        ours = ParzenClassifier("hypersphere", standardize=False, radius=radius).fit(X, y)
        theirs = RadiusNeighborsClassifier(radius, outlier_label=0).fit(X, y)
        covered = ours.in_support(X_new)
        expected, their_time = timed(partial(theirs.predict, X_new[covered]))
        found, our_time = timed(partial(ours.predict, X_new[covered]))
        label = f"{covered.sum()} x {n}, {d}"
        print(
            f"{label:<27}{their_time:>8.2f}{our_time:>9.3f}{their_time / our_time:>8.1f}{(found != expected).sum():>12}",
            flush=True,
        )
    try:
        from imblearn.under_sampling import EditedNearestNeighbors, RepeatedEditedNearestNeighbors
    except ImportError:
        print("imbalanced-learn is not installed: pip install imbalanced-learn")
        return
    X, y = make_clouds(20_000, random_state=0)
    X_test, y_test = make_clouds(20_000, random_state=1)
    print(
        "\nediting 20,000 rows of clouds                    s    rows left   error % of a Parzen "
        "network of what is left"
    )
    full = ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0).fit(X, y)
    judge = ParzenClassifier("hypersphere", standardize=False, radius=full.radius_)
    for name, editor in {
        "no editing": None,
        "EditedNearestNeighbors": EditedNearestNeighbors(sampling_strategy="all"),
        "RepeatedEditedNearestNeighbors": RepeatedEditedNearestNeighbors(sampling_strategy="all"),
        "MultiEdit, 1 round": MultiEdit(judge, max_iter=1, random_state=0),
        "MultiEdit": MultiEdit(judge, random_state=0),
    }.items():
        (X_left, y_left), seconds = (
            ((X, y), 0.0) if editor is None else timed(partial(editor.fit_resample, X, y))
        )
        error = 1 - ParzenClassifier("hypersphere", standardize=False, radius=full.radius_).fit(
            X_left, y_left
        ).score(X_test, y_test)
        print(f"{name:<40}{seconds:>10.2f}{len(X_left):>13}{100 * error:>12.2f}", flush=True)


def large():
    """50,000 kernels to 500, and 100,000 rows against 100,000 kernels."""
    X, y = make_clouds(50_000, random_state=0)
    X_test, y_test = make_clouds(20_000, random_state=1)
    full = error_of(
        ParzenClassifier("hypersphere", "loo", standardize=False, random_state=0).fit(X, y),
        X_test,
        y_test,
    )
    begin = time.perf_counter()
    network, seconds = timed(
        partial(ReducedParzenClassifier(500, standardize=False, random_state=0).fit, X, y)
    )
    print(
        f"\n50,000 kernels to 500: {seconds:.0f} CPU seconds, {time.perf_counter() - begin:.0f} "
        f"on the clock, error {error_of(network, X_test, y_test):.2f} %; full network {full:.2f} %",
        flush=True,
    )
    X, y = make_clouds(100_000, random_state=0)
    X_test, y_test = make_clouds(100_000, random_state=1)
    network = ParzenClassifier("hypersphere", standardize=False, radius=0.1).fit(X, y)
    tracemalloc.start()
    score, seconds = timed(partial(network.score, X_test, y_test))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(
        f"100,000 rows against 100,000 kernels: {seconds:.1f} s, error {100 * (1 - score):.2f} %, "
        f"at most {peak / 1e6:.0f} MB held at once (a table of distances would take 80,000)",
        flush=True,
    )


PARTS = {
    "table": table,
    "seeds": seeds,
    "auto": auto,
    "phoneme": partial(curve, "phoneme"),
    "satimage": partial(curve, "satimage"),
    "consistency": consistency,
    "speed": speed,
    "large": large,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
