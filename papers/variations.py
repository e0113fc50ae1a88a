"""What the higher cells depend on: the columns they lie in, rerun with one choice changed at a
time.

    python -m papers.variations [repeats] [file.csv]

Prints for each group of cells the mean published error and ours, under the protocol of the tables
and under each variation, how many cells are higher by more than two deviations, and how far single
runs of five folds lie apart; the RBF row with Netlab's widths and with the mixture's own; and
satimage in five and in 36 dimensions. Nothing of it feeds back into the protocol.
"""

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kernelpool import Start
from kernelpool.errors import UnfinishedWarning

from . import regularized_prbf, shared_kernels
from .experiment import Row
from .folds import Fold, folds
from .published import LIMIT, Cell, cells
from .summary import write_csv


@dataclass(frozen=True)
class Variation:
    """One choice changed: words for the training, the scale of the features, or the width of the
    start.
    """

    name: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    scale: str | None = None
    width: float | None = None
    """Start variances as a part of the mean variance of the owner's rows."""


VARIATIONS = (
    Variation("as in the tables"),
    Variation("features as they are", scale="none"),
    Variation("features scaled to [0, 1]", scale="range"),
    Variation("features scaled by quartiles", scale="quartiles"),
    Variation("start variance a quarter", width=0.25),
    Variation("k-means start", {"init": "kmeans"}),
    Variation("20 sweeps", {"max_iter": 20, "tol": 0.0}),
    Variation("500 sweeps", {"max_iter": 500, "tol": 0.0}),
)

GROUPS = (
    (regularized_prbf.NAME, "pima", "penalty", ("6", "8", "10", "12", "14")),
    (shared_kernels.NAME, "phoneme", "sharing", ("10", "14")),
)
"""Paper, data set, method and numbers of kernels of the columns that have higher cells."""


def start(fold: Fold, kernels: int, width: float) -> dict[str, Any]:
    """Kernels at random rows of their class, as wide as `width` of its mean variance."""
    rng = np.random.default_rng(fold.seed)
    classes = np.unique(fold.y)
    rows = [fold.X[fold.y == k] for k in classes]
    each = kernels // len(classes)
    means = np.concatenate([x[rng.choice(len(x), each, replace=False)] for x in rows])
    variances = np.repeat([width * x.var(axis=0).mean() for x in rows], each)
    return {"init": Start(means=means, covariances=variances, owners=np.repeat(classes, each))}


def column(
    paper: str, dataset: str, kernels: int, repeat: int, variation: Variation
) -> dict[str, float]:
    """Five-fold errors of the degrees or strengths of a column under one variation."""
    found: dict[str, list[float]] = {}
    for fold in folds(dataset, repeat, variation.scale):
        kwargs = dict(variation.kwargs)
        if variation.width is not None:
            kwargs |= start(fold, kernels, variation.width)
        if paper == regularized_prbf.NAME:
            errors = regularized_prbf.errors(fold, kernels, **kwargs)
        else:
            errors = [
                (p, error)
                for method, p, error in shared_kernels.errors(fold, kernels, **kwargs)
                if method == "sharing"
            ]
        for parameter, error in errors:
            found.setdefault(parameter, []).append(error)
    return {parameter: float(np.mean(values)) for parameter, values in found.items()}


def compared(wanted: list[Cell], repeats: int) -> Iterator[Row]:
    """A row for each variation: what it makes of the cells."""
    paper = wanted[0].paper
    dataset = wanted[0].dataset
    theirs = np.array([cell.error for cell in wanted])
    limit = LIMIT * np.array([cell.deviation() for cell in wanted])
    for variation in VARIATIONS:
        runs = []
        for repeat in range(repeats):
            found = {
                k: column(paper, dataset, int(k), repeat, variation)
                for k in dict.fromkeys(c.kernels for c in wanted)
            }
            runs.append([found[cell.kernels][cell.parameter] for cell in wanted])
        ours = np.array(runs)  # (repeats, cells)
        yield {
            "paper": paper,
            "dataset": dataset,
            "variation": variation.name,
            "cells": len(wanted),
            "published": round(float(theirs.mean()), 2),
            "ours": round(float(ours.mean()), 2),
            "higher": int((ours.mean(axis=0) - theirs > limit).sum()),
            "higher_in_one_run": round(float((ours - theirs > limit).sum(axis=1).mean()), 1),
            "one_run_varies_by": round(float(ours.std(axis=0, ddof=1).mean()), 2)
            if repeats > 1
            else "",
        }


def widths(dataset: str) -> Iterator[Row]:
    """The RBF row of the shared-kernel paper with Netlab's widths and with the mixture's own."""
    wanted = [
        c
        for c in cells()
        if c.paper == shared_kernels.NAME and c.dataset == dataset and c.method == "rbf"
    ]
    errors: dict[str, list[float]] = {
        "RBF row, Netlab's widths": [],
        "RBF row, the mixture's own widths": [],
    }
    for cell in wanted:
        for fold in folds(dataset, 0):
            for found, widths in zip(errors.values(), ("farthest", None), strict=True):
                model = shared_kernels.netlab(fold.X, int(cell.kernels), fold.seed, widths)
                found.append(fold.error(model.fit(fold.X, fold.y).predict(fold.X_test)))
    published = round(float(np.mean([cell.error for cell in wanted])), 2)
    for name, found in errors.items():
        common = {
            "paper": shared_kernels.NAME,
            "dataset": dataset,
            "variation": name,
            "cells": len(wanted),
        }
        yield common | {"published": published, "ours": round(float(np.mean(found)), 2)}


def satimage() -> Iterator[Row]:
    """The first columns of the regularized paper's Table 2 with five features and with all 36,
    standardized.
    """
    for kernels in ("6", "9"):
        wanted = [
            c
            for c in cells()
            if (c.paper, c.dataset, c.kernels) == (regularized_prbf.NAME, "satimage5", kernels)
        ]
        for dataset, name in (("satimage5", "five features"), ("satimage", "36 features")):
            found = column(regularized_prbf.NAME, dataset, int(kernels), 0, Variation(name))
            yield {
                "paper": regularized_prbf.NAME,
                "dataset": "satimage",
                "variation": f"{kernels} kernels, {name}",
                "cells": len(wanted),
                "published": round(float(np.mean([cell.error for cell in wanted])), 2),
                "ours": round(float(np.mean(list(found.values()))), 2),
            }


def rows(repeats: int) -> Iterator[Row]:
    """Everything, one row after the other."""
    for dataset in ("clouds", "ionosphere", "pima", "phoneme", "satimage5"):
        yield from widths(dataset)
    yield from satimage()
    for paper, dataset, method, kernels in GROUPS:
        group = [
            c
            for c in cells()
            if (c.paper, c.dataset, c.method) == (paper, dataset, method) and c.kernels in kernels
        ]
        yield from compared(group, repeats)


def main(repeats: str = "2", path: str | None = None) -> None:
    """Print the rows, and write them."""
    found: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnfinishedWarning)
        for row in rows(int(repeats)):
            print("  ".join(f"{name} {value}" for name, value in row.items()), flush=True)
            found.append(row)
    if path is not None:
        write_csv(Path(path), found, list(found[-1]))


if __name__ == "__main__":
    main(*sys.argv[1:])
