"""The automatic classifier beside every cell of a grid, and beside separate mixtures chosen by BIC.

python -m benchmarks automatic
python -m benchmarks.automatic [processes] [results.csv]
python -m benchmarks.automatic criterion     (what the plain log-loss would have chosen instead)
python -m benchmarks.automatic any           (mixtures_any alone)

Three repeats of stratified 5-fold cross-validation; features are standardized on the training folds
(satimage5 keeps its own axes).

- auto: `SharedKernelClassifier.auto()`, which chooses shape and number of kernels, sharing and
  penalty on its training folds.
- grid: the paper's spherical kernels, every combination of sharing, overlap penalty and number of
  kernels, each with defaults. The best cell is picked by its mean test error, so it knows more than
  any method may.
- mixtures: scikit-learn's GaussianMixture, one a class, full covariances, number of components by
  BIC.
- mixtures_any: the same, the covariance type by BIC too.

Results are written as they come, one line a fit; a run that was stopped goes on where it was. Sets
that are not on this machine are left out and named.
"""

import csv
import itertools
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds
from papers.data import (
    load_bupa,
    load_ionosphere,
    load_phoneme,
    load_pima,
    load_satimage,
    load_wdbc,
    missing_reason,
)

RESULTS = Path(__file__).parent / "results" / "automatic.csv"
SETTINGS = ["covariance_type", "n_kernels", "sharing", "overlap"]
COLUMNS = ["set", "repeat", "fold", "model", *SETTINGS, "error", "log_loss", "seconds", "tried"]
REPEATS = 3
FOLDS = 5

# name, source to look for, rows, kernels a class in the grid
SETS = {
    "pima": ("pima", lambda: load_pima(return_X_y=True), (1, 2, 4, 8, 16)),
    "ionosphere": ("ionosphere", lambda: load_ionosphere(return_X_y=True), (1, 2, 4, 8, 16)),
    "wdbc": (None, lambda: load_wdbc(return_X_y=True), (1, 2, 4, 8, 16)),
    "bupa": ("bupa", lambda: load_bupa(return_X_y=True), (1, 2, 4, 8, 16)),
    "clouds": (None, lambda: make_clouds(random_state=0), (2, 4, 8, 16, 32)),
    "phoneme": ("phoneme", lambda: load_phoneme(return_X_y=True), (2, 4, 8, 16, 32)),
    "satimage5": ("satimage", lambda: load_satimage(dims=5, return_X_y=True), (1, 2, 4, 8, 16)),
}
SHARING = (0, 0.5, 1)
PENALTY = (0, 5, 20)
MODELS = ("auto", "mixtures", "grid", "mixtures_any")


class SeparateMixtures:
    """scikit-learn's GaussianMixture, one a class, the number of components (and the type) by BIC;
    Bayes' rule.
    """

    def __init__(self, types=("full",), patience=3):
        self.types = types
        self.patience = patience

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.log_prior_ = np.log([np.mean(y == k) for k in self.classes_])
        self.mixtures_ = [self._best(X[y == k]) for k in self.classes_]
        return self

    def _best(self, X):
        found = []
        for kind in self.types:
            since = 0
            lowest = np.inf
            for n in range(1, len(X) // 2):
                mixture = GaussianMixture(
                    n, covariance_type=kind, random_state=0, max_iter=200
                ).fit(X)
                bic = mixture.bic(X)
                since, lowest = (0, bic) if bic < lowest else (since + 1, lowest)
                found.append((bic, len(found), mixture))
                if since == self.patience:
                    break
        return min(found)[2]

    def predict_proba(self, X):
        joint = (
            np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
            + self.log_prior_
        )
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)


def folds(name, repeat):
    """Every fold of a set: (repeat, fold), training rows and labels, test rows and labels."""
    X, y = SETS[name][1]()
    for fold, (train, test) in enumerate(
        StratifiedKFold(FOLDS, shuffle=True, random_state=repeat).split(X, y)
    ):
        scaler = StandardScaler(with_mean=name != "satimage5", with_std=name != "satimage5").fit(
            X[train]
        )
        yield (
            (repeat, fold),
            (scaler.transform(X[train]), y[train]),
            (scaler.transform(X[test]), y[test]),
        )


def score(model, train, test):
    """Test error in percent, test log-loss, seconds of the processor while fitting."""
    begun = time.process_time()
    model.fit(*train)
    seconds = time.process_time() - begun
    probability = model.predict_proba(test[0])
    # a class that gets no probability at all counts as 1e-300, not as infinity
    loss = log_loss(test[1], np.clip(probability, 1e-300, 1), labels=model.classes_)
    wrong = model.classes_[probability.argmax(axis=1)] != test[1]
    return {
        "error": f"{100 * wrong.mean():.4f}",
        "log_loss": f"{loss:.6f}",
        "seconds": f"{seconds:.2f}",
    }


def auto(_, train, test):
    model = SharedKernelClassifier.auto(random_state=0)
    scores = score(model, train, test)
    return [scores | _settings(model.covariance_type_, model.n_kernels_, model.sharing_degree_, model.overlap_)
            | {"tried": len(model.selection_["chosen"])}]  # fmt: skip


def mixtures(_, train, test, types=("full",)):
    model = SeparateMixtures(types)
    scores = score(model, train, test)
    parts = model.mixtures_
    return [
        scores
        | _settings(
            "+".join(m.covariance_type for m in parts), sum(m.n_components for m in parts), 0, 0
        )
    ]


def mixtures_any(name, train, test):
    return mixtures(name, train, test, ("full", "tied", "diag", "spherical"))


def grid(name, train, test):
    rows = []
    n_classes = len(np.unique(train[1]))
    for each, sharing, penalty in itertools.product(SETS[name][2], SHARING, PENALTY):
        if (
            sharing == 0 and penalty
        ):  # separate mixtures have no overlap to penalize: the same network
            continue
        model = SharedKernelClassifier.prbf(
            each * n_classes, sharing=sharing, overlap=penalty, random_state=0
        )
        rows.append(
            score(model, train, test) | _settings("spherical", each * n_classes, sharing, penalty)
        )
    return rows


def _settings(covariance_type, n_kernels, sharing, penalty):
    return dict(zip(SETTINGS, (covariance_type, n_kernels, sharing, penalty), strict=True))


def unit(model, name, place, train, test):
    """All lines of one model on one fold."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some fits stop at max_iter
        fits = {"auto": auto, "mixtures": mixtures, "grid": grid, "mixtures_any": mixtures_any}
        rows = fits[model](name, train, test)
    return [
        {"set": name, "repeat": place[0], "fold": place[1], "model": model, **row} for row in rows
    ]


def run(path, n_jobs, models):
    """Whatever is not in the file yet."""
    path.parent.mkdir(exist_ok=True)
    done = {(row["model"], row["set"], row["repeat"], row["fold"]) for row in read(path)}
    if not path.exists():
        path.write_text(",".join(COLUMNS) + "\n")
    present = [
        name for name, (source, *_) in SETS.items() if source is None or not missing_reason(source)
    ]
    for name in set(SETS) - set(present):
        print(f"{name} left out: {missing_reason(SETS[name][0])}", file=sys.stderr)
    work = (
        (model, name, place, train, test)
        for repeat in range(REPEATS)  # a run that is stopped early has some of everything
        for name in present
        for model in models
        for place, train, test in folds(name, repeat)
        if (model, name, *map(str, place)) not in done
    )
    for rows in Parallel(n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(
        delayed(unit)(*w) for w in work
    ):
        with path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n").writerows(rows)
        last = rows[-1]
        print(
            f"{last['model']:13}{last['set']:11} {last['repeat']}.{last['fold']}  error "
            f"{last['error']}",
            file=sys.stderr,
        )


def read(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# -- the tables ------------------------------------------------------------------------------------


def mean_and_deviation(rows, column):
    values = [float(row[column]) for row in rows]
    return np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0


def cells_of(rows):
    """The lines of every cell of the grid."""
    cells = {}
    for row in rows:
        cells.setdefault(
            (int(row["n_kernels"]), float(row["sharing"]), float(row["overlap"])), []
        ).append(row)
    return cells


def report(path):
    rows = read(path)
    of = {
        (model, name): [r for r in rows if r["model"] == model and r["set"] == name]
        for model in MODELS
        for name in SETS
    }
    names = [name for name in SETS if of["auto", name]]
    print(
        "\nMean test error, percent, with the standard deviation over folds; the best cell was "
        "picked on the test folds"
    )
    print(
        "| data | auto | best cell of the grid | its kernels, sharing, penalty | within one "
        "deviation | mean of all cells |"
    )
    print("|---|---|---|---|---|---|")
    for name in names:
        cells = {
            cell: mean_and_deviation(lines, "error")
            for cell, lines in cells_of(of["grid", name]).items()
        }
        if not cells:
            continue
        error, spread = mean_and_deviation(of["auto", name], "error")
        cell, (best, deviation) = min(cells.items(), key=lambda item: item[1][0])
        verdict = "yes" if error <= best + deviation else "NO"
        print(f"| {name} | {error:.1f} ± {spread:.1f} | {best:.1f} ± {deviation:.1f} | {cell[0]}, {cell[1]:g}, {cell[2]:g} | "
              f"{verdict} | {np.mean([mean for mean, _ in cells.values()]):.1f} |")  # fmt: skip
    print(
        "\nMean test log-loss; last, what it would cost to choose the cell of the grid by log-loss"
    )
    titles = {
        "auto": "auto",
        "mixtures": "mixtures, full, BIC",
        "mixtures_any": "mixtures, any type, BIC",
    }
    measured = [m for m in titles if all(len(of[m, n]) == len(of["auto", n]) for n in names)]
    columns = " | ".join(titles[model] for model in measured)
    print(f"| data | {columns} | lowest cell of the grid | its error |")
    print("|---" * (3 + len(measured)) + "|")
    for name in names:
        cells = [[mean_and_deviation(lines, column)[0] for column in ("log_loss", "error")]
                 for lines in cells_of(of["grid", name]).values()]  # fmt: skip
        loss, error = min(cells, default=[np.nan, np.nan])
        means = [mean_and_deviation(of[model, name], "log_loss")[0] for model in measured]
        figures = [f"{mean:.3f}" for mean in means]
        print(f"| {name} | " + " | ".join([*figures, f"{loss:.3f}"]) + f" | {error:.1f} |")
    print("\nWhat was chosen, how often in the folds, and the processor's seconds of a fit")
    print(
        "| data | shapes | kernels | sharing | penalty | tried | seconds | error of mixtures, "
        "full, BIC |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        chosen = of["auto", name]
        kernels = sorted(int(r["n_kernels"]) for r in chosen)
        baseline = (
            mean_and_deviation(of["mixtures", name], "error")[0] if of["mixtures", name] else np.nan
        )
        print(f"| {name} | {_counts(chosen, 'covariance_type')} | {kernels[0]} to {kernels[-1]}, median "
              f"{kernels[len(kernels) // 2]} | {_counts(chosen, 'sharing')} | "
              f"{_counts(chosen, 'overlap')} | "
              f"{np.mean([int(r['tried']) for r in chosen]):.0f} | "
              f"{mean_and_deviation(chosen, 'seconds')[0]:.1f} | "
              f"{baseline:.1f} |")  # fmt: skip


def _counts(rows, column):
    values = [row[column] for row in rows]
    values = [value if value.isalpha() else f"{float(value):g}" for value in values]
    return ", ".join(
        f"{value} {values.count(value)}"
        for value in sorted(set(values), key=lambda v: -values.count(v))
    )


def criterion():
    """Of the networks tried on all rows of a set: the one that is chosen, and the one that the
    plain log-loss would choose.
    """
    print(
        "| data | chosen | held-out error | log-loss | lowest log-loss | held-out error | log-loss "
        "| seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, (source, rows, _) in SETS.items():
        if source is not None and missing_reason(source):
            continue
        X, y = rows()
        X = X if name == "satimage5" else StandardScaler().fit_transform(X)
        begun = time.process_time()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tried = SharedKernelClassifier.auto(random_state=0).fit(X, y).selection_
        cells = []
        for i in (int(np.flatnonzero(tried["chosen"])[0]), int(np.argmin(tried["log_loss"]))):
            sharing = tried["sharing"][i]
            penalty = tried["overlap"][i]
            settings = (
                f"{tried['n_kernels'][i]} {tried['covariance_type'][i]}, {sharing:g}, {penalty:g}"
            )
            cells += [settings, f"{100 * tried['error'][i]:.1f}", f"{tried['log_loss'][i]:.3f}"]
        print(f"| {name} | {' | '.join(cells)} | {time.process_time() - begun:.1f} |", flush=True)


def main(arguments=()):
    if arguments == ["criterion"]:
        criterion()
        return
    models = MODELS[:3]
    if arguments[:1] == ["any"]:
        arguments = arguments[1:]
        models = MODELS[3:]
    n_jobs = int(arguments[0]) if arguments else 1
    path = Path(arguments[1]) if len(arguments) > 1 else RESULTS
    run(path, n_jobs, models)
    report(path)


if __name__ == "__main__":
    main(sys.argv[1:])
