"""Missing values: deleted at random, everywhere or only where predictions are made; and what a
sweep over them costs.

python -m benchmarks missing            # errors and log-losses, every fit a line of
docs/missing.csv python -m benchmarks.missing table      # the means, as the guide shows them python
-m benchmarks.missing sweeps     # seconds of one EM sweep beside complete rows python -m
benchmarks.missing pima       # Pima, its impossible zeros as numbers and as missing cells

Cells are deleted with a probability of 10, 30 or 50 %, in training and test rows or in the test
rows alone. The same half of the rows trains (at most 1,000), the other half tests (at most 1,000);
the deleted cells are the same for all.
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelpool import PooledClassifier, SharedKernelClassifier
from kernelpool.kernels import FAMILIES
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import Frame, as_rows
from papers.data import load_phoneme, load_pima, load_satimage, load_wdbc, missing_reason

SHARES = (0.1, 0.3, 0.5)
MOST = 1000
OUTPUT = Path(__file__).parent.parent / "docs" / "missing.csv"

# name, source to look for, rows
PROBLEMS = [
    ("wdbc", None, lambda: load_wdbc(return_X_y=True)),
    ("satimage5", "satimage", lambda: load_satimage(dims=5, return_X_y=True)),
    ("phoneme", "phoneme", lambda: load_phoneme(return_X_y=True)),
    ("wine", None, lambda: load_wine(return_X_y=True)),
    (
        "generated",
        None,
        lambda: make_classification(
            2000, 10, n_informative=6, n_redundant=3, n_classes=3, class_sep=1.5, random_state=0
        ),
    ),
]


def mixture(n_classes):
    """The classifier that every imputer is put before, trained by EM alone, and that takes the
    holes as they are.
    """
    return SharedKernelClassifier.prbf(
        2 * n_classes,
        covariance_type="full",
        sharing=0,
        kernel_prior="conjugate",
        covariance_floor=1e-2,
        random_state=0,
    )


def imputers():
    """What people put before a classifier."""
    return {
        "mean": SimpleImputer(),
        "iterative": IterativeImputer(max_iter=10, random_state=0),
        "nearest neighbors": KNNImputer(),
    }


def methods(n_classes):
    """Classifiers by name; a flag says whether they are trained on masked copies of the rows
    besides.
    """
    found = {
        "default": (SharedKernelClassifier(random_state=0), False),
        "mixture": (mixture(n_classes), False),
        "pool": (PooledClassifier("fast", random_state=0), False),
        "boosting": (HistGradientBoostingClassifier(random_state=0), False),
        "boosting, masked copies": (HistGradientBoostingClassifier(random_state=0), True),
    }
    for name, imputer in imputers().items():
        found[f"{name} + mixture"] = (make_pipeline(imputer, mixture(n_classes)), False)
        found[f"{name} + SVM"] = (
            make_pipeline(StandardScaler(), imputer, SVC(probability=True, random_state=0)),
            False,
        )
    return found


def deleted(X, share, seed):
    """A copy with cells deleted at random."""
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def judge(model, masked, X, y, X_test, y_test, share):
    """Error, log-loss and seconds."""
    if masked:  # two copies of the rows, with cells deleted as they will be
        X = np.concatenate([X, *(deleted(X, share, 100 + i) for i in range(2))])
        y = np.tile(y, 3)
    begun = time.perf_counter()
    proba = model.fit(X, y).predict_proba(X_test)
    seconds = time.perf_counter() - begun
    wrong = model.classes_[proba.argmax(axis=1)] != y_test
    return (
        float(np.mean(wrong)),
        float(log_loss(y_test, np.clip(proba, 1e-15, 1), labels=model.classes_)),
        seconds,
    )


def main(names=()):
    """All problems, or those named."""
    warnings.simplefilter("ignore")
    with OUTPUT.open("w", newline="", encoding="utf-8") as file, threadpool_limits(1):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "deleted", "share", "method", "error", "log_loss", "seconds"])
        for name, source, rows in PROBLEMS:
            if names and name not in names:
                continue
            if source is not None and (reason := missing_reason(source)):
                print(f"{name} left out: {reason}", file=sys.stderr)
                continue
            X, y = rows()
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.5, random_state=0, stratify=y
            )
            (X_train, y_train), (X_test, y_test) = (
                (X_train[:MOST], y_train[:MOST]),
                (X_test[:MOST], y_test[:MOST]),
            )
            for share in SHARES:
                holed = deleted(X_test, share, 1)
                for where, train in (("everywhere", deleted(X_train, share, 0)), ("test", X_train)):
                    for method, (model, masked) in methods(len(np.unique(y))).items():
                        error, loss, seconds = judge(
                            model, masked, train, y_train, holed, y_test, share
                        )
                        line = [
                            name,
                            where,
                            share,
                            method,
                            f"{error:.4f}",
                            f"{loss:.4f}",
                            f"{seconds:.2f}",
                        ]
                        writer.writerow(line)
                        file.flush()
                        print(*line, sep="\t", flush=True)


def table():
    """Errors and log-losses in Markdown, for each share and place of the deleted cells; the least
    log-loss is bold.
    """
    with OUTPUT.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    data, names = (list(dict.fromkeys(row[key] for row in rows)) for key in ("data", "method"))
    for share, where in sorted({(row["share"], row["deleted"]) for row in rows}):
        print(
            f"\nDeleted: {share}, {where}\n\n| | "
            + " | ".join(data)
            + " |\n|---|"
            + "---|" * len(data)
        )
        found = {
            (row["method"], row["data"]): (100 * float(row["error"]), float(row["log_loss"]))
            for row in rows
            if (row["share"], row["deleted"]) == (share, where)
        }
        for method in names:
            cells = []
            for name in data:
                error, loss = found[method, name]
                least = loss == min(found[other, name][1] for other in names)
                cells.append(f"{error:.1f}, " + (f"**{loss:.3f}**" if least else f"{loss:.3f}"))
            print(f"| {method} | " + " | ".join(cells) + " |")


def sweeps(n=100_000, d=10, n_kernels=10, share=0.2):
    """Seconds of a sweep: complete rows, some cells missing, in a hundred rows, and nearly a
    pattern a row.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = rng.integers(0, 2, n)
    few = X.copy()
    few[rng.choice(n, 100, replace=False), 3] = np.nan
    wide = np.concatenate([X[: n // 50], rng.normal(size=(n // 50, 20))], axis=1)
    cases = {
        "complete": X,
        f"{share:.0%} missing": deleted(X, share, 0),
        "100 incomplete rows": few,
    }
    wide_cases = {"complete": wide, f"{share:.0%} missing": deleted(wide, share, 0)}
    print("| family | " + " | ".join(cases) + f" | {n // 50:,} x 30, {share:.0%} missing |")
    print("|---|" + "---|" * (len(cases) + 1))
    for family in FAMILIES:
        found = [sweep_seconds(family, x, y, n_kernels) for x in cases.values()]
        both = [sweep_seconds(family, x, y[: n // 50], n_kernels) for x in wide_cases.values()]
        cells = [
            f"{found[0]:.3f} s",
            *(f"{s:.3f} s ({s / found[0]:.1f} x)" for s in found[1:]),
            f"{both[1]:.3f} s ({both[1] / both[0]:.1f} x)",
        ]
        print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


def sweep_seconds(family, X, y, n_kernels):
    """The least of five, on one thread."""
    d = X.shape[1]
    kernel = FAMILIES[family](np.full(d, 1e-6))
    start = np.nan_to_num(X[:5000])
    kernels = kernel.place([(start[:n_kernels], start, np.ones(len(start)))])
    network = SharedKernel(kernel, np.ones((n_kernels, 2)))
    params = Params(kernels, np.full((n_kernels, 2), 1 / n_kernels), np.full(2, 0.5))
    rows = as_rows(X, y, n_jobs=1).framed(Frame(np.zeros(d), np.ones(d)), kernel.n_features(d) + 35)
    seconds = []
    with threadpool_limits(1):
        for _ in range(6):
            begun = time.perf_counter()
            network.sweep(rows, params)
            seconds.append(time.perf_counter() - begun)
    return min(seconds[1:])


def pima():
    """Impossible zeros of five features as numbers, and as missing cells."""
    if reason := missing_reason("pima"):
        print(reason, file=sys.stderr)
        return
    for missing in ("zero", "nan"):
        X, y = load_pima(missing=missing, return_X_y=True)
        found = []
        for seed in range(10):
            parts = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
            model = mixture(2)
            proba = model.fit(parts[0], parts[2]).predict_proba(parts[1])
            found.append(
                (
                    float((model.classes_[proba.argmax(axis=1)] != parts[3]).mean()),
                    log_loss(parts[3], proba),
                )
            )
        error, loss = np.mean(found, axis=0)
        print(f"{missing}: error {100 * error:.1f} %, log-loss {loss:.3f} (10 halves)")


def patterns(n=1000, n_seeds=5, trainings=("em", "conditional")):
    """Missingness as information: log-loss where a cell goes missing by its class, and not."""
    print("| cells go missing |" + "".join(f" {name} |" for name in trainings))
    print("|---|" + "---|" * len(trainings))
    told = {
        "mostly in class 1, in training and test": (True, True),
        "at random, in training and test": (False, False),
        "mostly in class 1 in training, at random in the test rows": (True, False),
    }
    for what, (by_class, by_class_later) in told.items():
        losses = []
        for seed in range(n_seeds):
            X, y = _by_pattern(n, 2 * seed, by_class)
            X_test, y_test = _by_pattern(n, 2 * seed + 1, by_class_later)
            models = [
                SharedKernelClassifier(training=name, random_state=0).fit(X, y)
                for name in trainings
            ]
            losses.append([log_loss(y_test, model.predict_proba(X_test)) for model in models])
        print(
            f"| {what} | " + " | ".join(f"{loss:.3f}" for loss in np.mean(losses, axis=0)) + " |",
            flush=True,
        )


def _by_pattern(n, seed, by_class):
    """Three numbers of two classes that overlap; the second is missing in 7 of 10 rows of class 1
    and 1 of 10 of class 0.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + 0.7 * y[:, None]
    X[rng.random(n) < (np.where(y == 1, 0.7, 0.1) if by_class else 0.4), 1] = np.nan
    return X, y


if __name__ == "__main__":
    commands = {"table": table, "sweeps": sweeps, "pima": pima, "patterns": patterns}
    commands[sys.argv[1]]() if len(sys.argv) > 1 and sys.argv[1] in commands else main(sys.argv[1:])
