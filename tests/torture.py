"""Attacks by the thousand: hostile problems, damaged files, kills in mid-write. `make torture` runs
them all.

    python tests/torture.py --problems 10000 --files 100000 --kills 100

Among the problems are copies of rows, weights of any size, wild cells and tables of numbers,
categories and booleans with missing cells. A problem passes if the fit ends with probabilities that
are finite and sum to one, densities without NaN, kernel posteriors that sum to one and a history that never falls (a regressor: with
finite answers); or with an error that names what is wrong (`KernelpoolError`, or scikit-learn's own
validation). Beside it stand scikit-learn's mixtures, one a class, on the same rows.
"""

import argparse
import os
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.mixture import GaussianMixture

import kernelpool
from kernelpool import (
    CompetitiveNeuronsClassifier,
    ConformalClassifier,
    EMLogClassifier,
    EMLogRegressor,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    ReducedParzenClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    Training,
)
from kernelpool.errors import KernelpoolError

FAMILIES = ("spherical", "diag", "full", "tied")
VALIDATION = (
    "Input ",
    "Found array",
    "minimum of",
    "number of classes",
    "sample_weight",
    "Sample weights",
    "n_samples",
    "Unknown label",
)
"""How scikit-learn's own refusals begin, or what they say."""


def estimators(rng):
    """Every kind of estimator, with settings drawn at random."""
    family = str(rng.choice(FAMILIES))
    seed = int(rng.integers(1000))
    kwargs = {"covariance_type": family, "max_iter": 30, "random_state": seed}
    sharing = float(rng.choice([0.0, 0.5, 1.0]))
    return {
        "shared kernel": lambda: SharedKernelClassifier.prbf(
            None if rng.random() < 0.5 else int(rng.integers(2, 9)),
            sharing=sharing,
            kernel_prior="conjugate" if rng.random() < 0.3 else None,
            covariance_floor=float(rng.choice([1e-6, 1e-3, 1e-12])),
            **kwargs,
        ),
        "conditional": lambda: SharedKernelClassifier.prbf(
            sharing=sharing, training=Training(n_folds=2), **kwargs
        ),
        "sharing average": lambda: SharingAverageClassifier(
            SharedKernelClassifier.prbf(standardize=True, **kwargs), sharing=(0.0, 1.0)
        ),
        "parzen": lambda: ParzenClassifier(
            str(rng.choice(["gaussian", "hypersphere"])), "loo", random_state=seed
        ),
        "parzen, conditional": lambda: ParzenClassifier(random_state=seed),
        "reduced parzen": lambda: ReducedParzenClassifier(0.3, random_state=seed),
        "rbf": lambda: RBFNetworkClassifier(random_state=seed),
        "em_log": lambda: EMLogClassifier(3, training="em_log", max_iter=5, random_state=seed),
        "neurons": lambda: CompetitiveNeuronsClassifier(2, max_iter=20, random_state=seed),
        "default": lambda: SharedKernelClassifier(random_state=seed),
        "search": lambda: SharedKernelClassifier.auto(max_iter=20, random_state=seed),
        "pool": lambda: PooledClassifier("fast", random_state=seed),
        "reject": lambda: RejectClassifier(SharedKernelClassifier.prbf(**kwargs)),
        "conformal": lambda: ConformalClassifier(SharedKernelClassifier.prbf(**kwargs)),
        "regressor": lambda: EMLogRegressor(random_state=seed),
    }


def problem(rng, ordinary):
    """Rows, labels and weights such as nobody should have; scales within reason where
    `ordinary`.
    """
    n = int(rng.integers(4, 120))
    d = int(rng.integers(1, 7))
    n_classes = int(rng.integers(2, 5))
    y = rng.integers(n_classes, size=n)
    y[:2] = [0, 1]
    x = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y] * rng.choice([0, 1, 5])
    kind = rng.integers(9)
    if kind == 0:
        x = np.repeat(x[: max(2, n // 8)], 8, axis=0)[:n]
        y = y[: len(x)]
    elif kind == 1:
        x[:, 0] = 7.0
    elif kind == 2:
        x = np.eye(max(d, 2))[rng.integers(max(d, 2), size=len(y))]
    elif kind == 3:
        x = np.round(x)
    elif kind == 4:
        x = rng.standard_cauchy(size=x.shape) ** 3
    elif kind == 5:
        x[:, -1] = x[:, 0] * (1 + 1e-9)
    elif kind == 6:
        x[0] *= 1e6
    elif kind == 7:
        x[:] = x[0]
    power = 4 if ordinary else 120
    x = x * 10 ** rng.uniform(-power, power)
    if rng.random() >= 0.5:
        x = x + 10 ** rng.uniform(-power, power)
    if rng.random() < 0.3:
        with np.errstate(over="ignore"):
            small = x.astype(np.float32)
        x = small if np.isfinite(small).all() else x
    weight = None
    if rng.random() < 0.4:
        weight = rng.exponential(size=len(y))
        weight[rng.random(len(y)) < 0.2] = rng.choice(
            [0.0, 1e-6, 1e6] if ordinary else [0.0, 1e-30, 1e30]
        )
        weight[0] = 5e-4
    return x, y, weight


def twisted(x, y, weight, rng):
    """The problem with copies of all rows, a wild cell, other units of weight, or as a mixed
    table.
    """
    kind = rng.integers(4)
    if kind == 0:
        times = rng.integers(1, 6, size=len(y))
        x = np.repeat(x, times, axis=0)
        y = np.repeat(y, times)
        weight = None if weight is None else np.repeat(weight, times)
    elif kind == 1:
        x[rng.integers(len(x)), 0] = rng.choice([9999.0, -1e9, 1e30])
    elif kind == 2:
        weight = np.full(len(y), rng.choice([1e-3, 2.0, 1e3])) if weight is None else weight
        weight = weight / weight.sum() if rng.random() < 0.5 else weight
    return (mixed(x, rng) if kind == 3 else x), y, weight


def mixed(x, rng):
    """A table of these numbers, categories and booleans, with missing cells in all of them."""
    table = pd.DataFrame(x).add_prefix("x")
    for i in range(rng.integers(1, 4)):
        n_values = int(rng.choice([1, 2, 5, 60]))
        table[f"category {i}"] = rng.choice([f"<{v}>" for v in range(n_values)], len(x))
    table["flag"] = (rng.random(len(x)) < 0.5).astype(object)
    missing = rng.random(table.shape) < rng.choice([0.0, 0.1, 0.5])
    missing[rng.random(len(x)) < 0.05] = True  # rows of which nothing is known
    return table.mask(missing, None)


def queries(x):
    """Rows to ask about: those of the fit, and others far from them."""
    if not isinstance(x, pd.DataFrame):
        return [rows for rows in (x, x * 1e3, x[:2] - 1e4) if np.isfinite(rows).all()]
    other = x[:2].assign(**{name: "never seen" for name in x if name.startswith("cat")})
    return [x, other, x[:2].assign(**dict.fromkeys(x))]


def attack(name, make, x, y, weight):
    """None, or what is wrong."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = make().fit(x, y, sample_weight=weight)
        except KernelpoolError:
            return None
        except Exception as error:  # whatever it is, it is counted
            refused = any(words in str(error) for words in VALIDATION)
            if refused and isinstance(error, ValueError):
                return None
            return f"{name}: {traceback.format_exc(limit=-2)}"
        for rows in queries(x):
            try:
                if name == "regressor":
                    assert np.isfinite(model.predict(rows)).all()
                    continue
                if name == "conformal":
                    assert model.predict_set(rows).shape == (len(rows), len(model.classes_))
                if name == "reject":
                    assert np.isin(model.predict(rows), [*model.classes_, -1, -2]).all()
                if hasattr(model, "score_samples"):
                    assert not np.isnan(model.score_samples(rows)).any()
                for method in ("predict_proba", "kernel_posterior"):
                    if hasattr(model, method):
                        shares = np.asarray(getattr(model, method)(rows), np.float64)
                        assert np.isfinite(shares).all()
                        assert np.abs(shares.sum(axis=1) - 1).max() < 1e-4, method
            except Exception:
                return f"{name}: {traceback.format_exc(limit=-2)}"
        history = getattr(model, "history_", None)
        if name in ("shared kernel", "neurons") and history is not None and len(history) > 1:
            fall = -np.diff(history).min() / max(1.0, np.abs(history).max())
            if not fall < (1e-5 if getattr(x, "dtype", None) == np.float32 else 1e-8):
                return f"{name}: the history falls by {fall:.1e}"
    return None


def rivals(x, y):
    """Whether scikit-learn's mixtures, one a class, end with probabilities, without weights."""
    if isinstance(x, pd.DataFrame):
        return None  # numbers only
    classes, counts = np.unique(y, return_counts=True)
    if counts.min() < 2:
        return None  # it takes two rows at least
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            mixture = GaussianMixture(2, random_state=0, max_iter=30)
            scores = [mixture.fit(x[y == k]).score_samples(x) for k in classes]
            return bool(np.isfinite(scores).all())
        except ValueError:
            return False


def hostile_problems(n, seed=0, say=print, first=0, only=()):
    """(problems, failures, those of ordinary scale, problems that scikit-learn took, its failures).

    Problem i is the same whatever is run before it: `first` goes on where an earlier run ended.
    `only` are names of estimators.
    """
    counts = Counter()
    failures = []
    for i in range(first, first + n):
        rng = np.random.default_rng([seed, i])
        ordinary = i % 2 == 0
        x, y, weight = problem(rng, ordinary)
        makers = estimators(rng)
        name = list(makers)[i % len(makers)]
        if i // (2 * len(makers)) % 2:
            x, y, weight = twisted(x, y, weight, rng)
        if only and name not in only:
            continue
        wrong = attack(name, makers[name], x, y, weight)
        counts["problems", ordinary] += 1
        if wrong is not None:
            counts["failures", ordinary] += 1
            failures.append((i, wrong))
            say(
                f"problem {i} ({'ordinary' if ordinary else 'extreme'} scale): "
                f"{wrong.strip().splitlines()[-1]}"
            )
        taken = rivals(x, y)
        if taken is not None:
            counts["rival", ordinary] += 1
            counts["rival failed", ordinary] += not taken
    return counts, failures


def damaged_files(n, seed=0, say=print):
    """(files, failures): damaged model files of every kind, refused with `ModelFileError` or loaded
    and used.
    """
    from app.files.test_fuzz import FUZZED, fuzzed

    refused = loaded = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, name in enumerate(FUZZED):
            share = n // len(FUZZED) + (i < n % len(FUZZED))
            found = fuzzed(name, Path(folder) / "model", share, seed + i)
            refused += found[0]
            loaded += found[1]
            say(f"{name}: {found[0]} refused, {found[1]} loaded")
    return refused, loaded


def kills(n, seed=0):
    """Kills in mid-write after which the file is neither the old nor the new one; None are
    allowed.
    """
    from zoo import example

    rng = np.random.default_rng(seed)
    broken = 0
    models = [example("shared full")[0], example("parzen gaussian")[0]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        kernelpool.save(models[0], path)
        for _ in range(n):
            child = os.fork()
            if child == 0:
                try:
                    while True:
                        for model in models:
                            kernelpool.save(model, path)
                finally:
                    os._exit(1)
            time.sleep(float(rng.uniform(0.001, 0.05)))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            try:
                kernelpool.load(path)
            except KernelpoolError:
                broken += 1
    return broken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, size in (("problems", 10_000), ("files", 100_000), ("kills", 100)):
        parser.add_argument(f"--{name}", type=int, default=size)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first problem")
    parser.add_argument("--only", nargs="*", default=(), help="names of estimators")
    asked = parser.parse_args()
    begun = time.perf_counter()
    wrong = 0
    if asked.problems:
        counts, failures = hostile_problems(
            asked.problems, asked.seed, first=asked.first, only=asked.only
        )
        wrong += len(failures)
        for ordinary, words in ((True, "ordinary"), (False, "extreme")):
            print(
                f"| hostile problems, {words} scales | {counts['problems', ordinary]:,} | "
                f"{counts['failures', ordinary]} | "
                f"{counts['rival failed', ordinary]} of {counts['rival', ordinary]:,} |"
            )
    if asked.files:
        refused, loaded = damaged_files(asked.files, asked.seed)
        print(f"| damaged files | {refused + loaded:,} | 0 ({loaded:,} were loaded and answer) | |")
    if asked.kills:
        broken = kills(asked.kills, asked.seed)
        wrong += broken
        print(f"| kills in mid-write | {asked.kills} | {broken} | |")
    print(f"{time.perf_counter() - begun:.0f} s")
    raise SystemExit(int(wrong > 0))


if __name__ == "__main__":
    main()
