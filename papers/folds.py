"""The papers' data sets as their experiments use them: loaded once, split into folds, standardized
inside each.

Features are standardized by the training rows of a fold. Satimage's five axes are left on their own
scale, unit variance within classes, which is what makes spherical kernels fit them. Clouds is drawn
anew for each repeat, since the papers' own draw is not known.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from kernelpool.datasets import make_clouds

from . import data
from .data.generators import make_ellipses, make_strips

N_FOLDS = 5

SETS: dict[str, Callable[[int], Any]] = {
    "clouds": lambda repeat: make_clouds(random_state=repeat),
    "ionosphere": lambda _: data.load_ionosphere(return_X_y=True),
    "pima": lambda _: data.load_pima(return_X_y=True),
    "phoneme": lambda _: data.load_phoneme(return_X_y=True),
    "satimage5": lambda _: data.load_satimage(dims=5, return_X_y=True),
    "satimage": lambda _: data.load_satimage(return_X_y=True),
    "wdbc": lambda _: data.load_wdbc(return_X_y=True),
    "bupa": lambda _: data.load_bupa(return_X_y=True),
    "ellipses": lambda repeat: make_ellipses(random_state=repeat),
    "strips": lambda repeat: make_strips(random_state=repeat, angle=10),
    "parallel strips": lambda repeat: make_strips(random_state=repeat),
}
"""Every data set of the tables, by the papers' names."""

DRAWN = ("clouds",)
OWN_SCALE = ("satimage5",)

SCALERS: dict[str, Callable[[], Any] | None] = {
    "standard": StandardScaler,
    "range": MinMaxScaler,
    "quartiles": RobustScaler,
    "none": None,
}
"""How features are scaled by the training rows of a fold: the tables use the first, and the last
for `OWN_SCALE`.
"""


class Fold(NamedTuple):
    """Rows to train and to test on, and the seed of whatever starts at random."""

    number: int
    seed: int
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def error(self, predicted: np.ndarray) -> float:
        """Test error, percent."""
        return float(100 * np.mean(predicted != self.y_test))


@lru_cache(maxsize=4)
def _loaded(name: str, repeat: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = SETS[name](repeat)
    return X, y


def load(name: str, repeat: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A data set; only those that are drawn depend on `repeat`."""
    return _loaded(name, repeat if name in DRAWN else 0)


def digest(name: str) -> str:
    """A short name for the very rows, so that results of other rows are not taken for theirs."""
    X, y = load(name)
    return hashlib.sha256(
        np.ascontiguousarray(X, float).tobytes() + np.asarray(y, np.int64).tobytes()
    ).hexdigest()[:12]


def folds(name: str, repeat: int, scale: str | None = None) -> Iterator[Fold]:
    """Five folds that keep the shares of the classes; a repeat is another split, and other
    starts.
    """
    X, y = load(name, repeat)
    splits = StratifiedKFold(N_FOLDS, shuffle=True, random_state=repeat).split(X, y)
    for number, (train, test) in enumerate(splits):
        yield fold(
            name, number, 1000 * repeat + number, (X[train], y[train], X[test], y[test]), scale
        )


def fold(
    name: str, number: int, seed: int, parts: tuple[np.ndarray, ...], scale: str | None = None
) -> Fold:
    """One fold; `scale` is one of `SCALERS`, or None to scale as the papers' tables need it."""
    X, y, X_test, y_test = parts
    make = SCALERS[scale or ("none" if name in OWN_SCALE else "standard")]
    if make is not None:
        scaler = make().fit(X)
        X = scaler.transform(X)
        X_test = scaler.transform(X_test)
    return Fold(number, seed, X, y, X_test, y_test)
