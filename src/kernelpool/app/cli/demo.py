"""`kernelpool demo`: a first look on generated data: a pool beside scikit-learn's classifiers, and what sharing kernels does.

It needs none of the packages of the command line, so that it runs from a bare installation; only the report that it
ends with needs jinja2, and it says so where that is missing.
"""

import argparse
import csv
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ...datasets import make_clouds
from ...datasets.generators import CLOUDS_BAYES_ERROR
from ...estimators.pooled import PooledClassifier
from ...estimators.shared_kernel import SharedKernelClassifier
from ...estimators.sharing_average import SharingAverageClassifier
from ..files import save

try:
    from typer import Option
except ImportError:  # a bare installation runs the demo without it

    def Option(*_: Any, **__: Any) -> Any:  # noqa: N802 (typer's name)
        """Nothing: there is no command line to describe."""


N_KERNELS = (8, 12, 16)
SHARING = (0, 0.25, 0.5, 0.75, 1)
NOTES: dict[float, str] = {0: " (separate mixtures)", 1: " (fully shared, PRBF)"}
FOLDER = "kernelpool-demo"
TUMOR_COLUMNS = (
    "mean radius",
    "mean texture",
    "mean smoothness",
    "mean concavity",
    "mean symmetry",
)
SIZES = "small", "medium", "large"
"""What the area of a tumor is called, a third of them each."""
NEW_TUMORS = (
    ("A", 12.1, 17.9, 0.092, 0.044, 0.174, "small"),
    ("B", 13.3, 20.5, 0.1, 0.09, 0.18, "medium"),
    ("C", 14.2, 19.3, 0.95, 0.089, 0.181, "medium"),
    ("D", 20.1, 25.0, "", 0.21, 0.19, "large"),
)


class SeparateMixtures:
    """scikit-learn's way: one GaussianMixture a class, put together by hand."""

    def __init__(self, n_kernels: int) -> None:
        self.n_kernels = n_kernels

    def fit(self, X: np.ndarray, y: np.ndarray) -> "SeparateMixtures":
        """One mixture a class."""
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / counts.sum())
        each = self.n_kernels // len(self.classes_)
        self.mixtures_ = [
            GaussianMixture(each, covariance_type="spherical", max_iter=200, random_state=0).fit(
                X[y == k]
            )
            for k in self.classes_
        ]
        return self

    def score(self, X: np.ndarray, y: np.ndarray) -> float:
        """Share of rows classified correctly."""
        joint = (
            np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
            + self.log_prior_
        )
        return float((self.classes_[joint.argmax(axis=1)] == y).mean())


def run(folder: str | os.PathLike[str] = FOLDER) -> None:
    """Fit the Clouds data with a pool beside scikit-learn's classifiers, and with several degrees of sharing; write files."""
    train, test = make_clouds(5000, random_state=0), make_clouds(50_000, random_state=1)
    print(
        "Clouds: two classes that overlap everywhere, 5,000 rows to learn from, 50,000 to test on."
    )
    lowest = CLOUDS_BAYES_ERROR
    chance = np.sqrt(lowest * (1 - lowest) / len(test[0]))
    print(
        f"In the long run no classifier errs less than {100 * lowest:.2f} %; on so many rows chance moves every figure"
    )
    print(f"by about {100 * chance:.2f}.\n")
    _compare(train, test)
    print(
        "\nOne network, by how far its classes share kernels: error in percent, with spherical kernels\n"
    )
    print(f"{'':34}" + "".join(f"{n:>4} kernels" for n in N_KERNELS))
    for name, make in _contenders():
        errors = [1 - make(n).fit(*train).score(*test) for n in N_KERNELS]
        print(f"{name:34}" + "".join(f"{100 * error:12.2f}" for error in errors), flush=True)
    print("\nWhat to try next")
    print("  from kernelpool import PooledClassifier, SharedKernelClassifier")
    print("  PooledClassifier().fit(X, y)   # nothing to choose; budget='fast', 'best' or seconds")
    print(
        "  SharedKernelClassifier().fit(X, y)   # one network; .auto() chooses its shape and size, .prbf() is the paper's"
    )
    print(
        "  .predict_proba(X), .log_density(X), .score_samples(X), .kernel_posterior(X), .sample(100)"
    )
    print(
        f"  cd {folder}; kernelpool fit tumors.csv --target kind; kernelpool predict tumors.safetensors new.csv --reject"
    )
    print("  make docs     the guide, with pictures")
    print("  make bench    speed beside scikit-learn, on this machine\n")
    _write(Path(folder), train, test)


def _compare(train: tuple[Any, Any], test: tuple[Any, Any]) -> None:
    """Error and log-loss on the test rows of a pool and of scikit-learn's classifiers with their defaults."""
    (x, y), (x_test, y_test) = train, test
    svm = make_pipeline(StandardScaler(), SVC(random_state=0))
    models = {
        "kernelpool, PooledClassifier": PooledClassifier(budget="fast", random_state=0),
        "scikit-learn, SVM": CalibratedClassifierCV(svm, ensemble=False),
        "scikit-learn, random forest": RandomForestClassifier(random_state=0),
        "scikit-learn, boosted trees": HistGradientBoostingClassifier(random_state=0),
    }
    print(
        "With the defaults of all (the pool in its fast budget, the SVM with Platt's probabilities), on the test rows:\n"
    )
    print(f"{'':34}{'error, %':>12}{'log-loss':>12}")
    for name, model in models.items():
        proba = model.fit(x, y).predict_proba(x_test)
        error, loss = (
            (model.classes_[proba.argmax(axis=1)] != y_test).mean(),
            log_loss(y_test, proba),
        )
        print(f"{name:34}{100 * error:12.2f}{loss:12.3f}", flush=True)


def _contenders() -> list[tuple[str, Callable[[int], Any]]]:
    sharers = [
        (
            f"sharing={value:g}{NOTES.get(value, '')}",
            partial(SharedKernelClassifier.prbf, sharing=value, random_state=0),
        )
        for value in SHARING
    ]
    average = partial(SharingAverageClassifier, sharing=SHARING, random_state=0)
    return [
        ("scikit-learn, a mixture per class", SeparateMixtures),
        *sharers,
        ("average over all of these", average),
    ]


def _write(folder: Path, train: tuple[Any, Any], test: tuple[Any, Any]) -> None:
    """A model file and a report in a folder, and where they are."""
    model = SharedKernelClassifier(n_kernels=12, random_state=0)
    start = time.perf_counter()
    model.fit(*train)
    seconds = time.perf_counter() - start
    folder.mkdir(parents=True, exist_ok=True)
    path, page = folder / "clouds.safetensors", folder / "report.html"
    save(model, path, summary={"made_by": "kernelpool demo", "n_rows": len(train[0])})
    print(f"A model of 12 full kernels:  {path}      kernelpool.load reads it")
    _write_tumors(folder / "tumors.csv", folder / "new.csv")
    print(f"A table to try, and new rows: {folder / 'tumors.csv'}, {folder / 'new.csv'}")
    try:
        from ..report import write_report

        write_report(
            model,
            *train,
            page,
            X_test=test[0],
            y_test=test[1],
            title="Clouds",
            facts={"Rows": "make_clouds(5000, random_state=0)", "Seconds of training": seconds},
            command="kernelpool demo",
        )
        print(f"A report on it:              {page}            open it in a browser")
    except ImportError:
        print("A report needs jinja2: pip install '.[report]' in kernelpool's folder.")


def _write_tumors(table: Path, new: Path) -> None:
    """Tumors with five measurements each, from the data that come with scikit-learn, and the size of each in a word.

    Some cells are empty, as in most tables. Of four new tumors one is mistyped and one incomplete.
    """
    data = load_breast_cancer()
    columns = [data.feature_names.tolist().index(name) for name in TUMOR_COLUMNS]
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*TUMOR_COLUMNS, "size", "kind"])
        area = data.data[:, data.feature_names.tolist().index("mean area")]
        sizes = np.array(SIZES)[np.digitize(area, np.quantile(area, [1 / 3, 2 / 3]))]
        empty = np.random.default_rng(0).random((len(area), len(columns))) < 0.03
        for x, size, y, gone in zip(data.data[:, columns], sizes, data.target, empty, strict=True):
            writer.writerow(
                [*np.where(gone, "", x.astype(str)).tolist(), size, data.target_names[y]]
            )
    with open(new, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [["id", *TUMOR_COLUMNS, "size"], *NEW_TUMORS]
        )


def demo(
    output: Annotated[
        str, Option("--output", "-o", help="Folder for the model and the report.", metavar="FOLDER")
    ] = FOLDER,
) -> None:
    """Take a first look, on generated data, in under a minute."""
    from .output import CommandError, Exit

    try:
        run(output)
    except OSError as error:
        raise CommandError(
            Exit.OUTPUT, f"{output}: {(error.strerror or str(error)).lower()}."
        ) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The demo from a bare installation, without typer."""
    parser = argparse.ArgumentParser(
        prog="kernelpool demo", description="A first look, on generated data, in under a minute."
    )
    parser.add_argument(
        "-o",
        "--output",
        default=FOLDER,
        metavar="FOLDER",
        help="where to write the model and the report (%(default)s)",
    )
    run(parser.parse_args(arguments).output)
    return 0
