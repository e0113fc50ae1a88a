"""What all displays share: colors, marks, axes, and what may be drawn.

M. Okabe and K. Ito, "Color Universal Design", 2008: the colors. Black is left out for classes: it is the
color of lines that belong to none.
"""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ....errors import KernelpoolError
from ....inspection.pipeline import Unwrapped, unwrap
from ..data import column_names

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
MARKS = ("o", "s", "^", "D", "v", "P", "X")
DARK, GRAY, LIGHT, RULE = "#222222", "#6b6b6b", "#c8c8c8", "#dddddd"


def color_of(code: int) -> str:
    """Of a class, by its code."""
    return COLORS[code % len(COLORS)]


def mark_of(code: int) -> str:
    """Of a class, by its code: with the color it tells 49 classes apart."""
    return MARKS[(code + code // len(COLORS)) % len(MARKS)]


def rgb(color: str) -> np.ndarray:
    """`#rrggbb` as three numbers in [0, 1]."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def mixed(share: np.ndarray) -> np.ndarray:
    """The color of each row of shares of the classes, (n, 3): shades between the colors of the classes."""
    palette = np.array([rgb(color_of(code)) for code in range(share.shape[1])])
    rest = np.clip(1 - share.sum(axis=1, keepdims=True), 0, 1)  # of classes that are not named
    return np.asarray(np.clip(share @ palette + rest * rgb(GRAY), 0, 1))


def tint(color: np.ndarray, strength: float) -> np.ndarray:
    """The color thinned with white."""
    return 1 - strength * (1 - color)


def axes_for(ax: Any, figsize: tuple[float, float]) -> Any:
    """The axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install '.[plot]' in kernelpool's folder."
        ) from error
    return plt.subplots(figsize=figsize, layout="constrained")[1]


def tidy(ax: Any) -> None:
    """Axes without a box, whose names are shown as they are and never read as mathematics."""
    ax.spines[["top", "right"]].set_visible(False)
    as_written(ax)


def as_written(ax: Any) -> None:
    """Names of axes, legend and title are shown as they are: a column may be called $x$."""
    legend = ax.get_legend()
    for text in (
        ax.xaxis.label,
        ax.yaxis.label,
        ax.title,
        *(() if legend is None else legend.get_texts()),
    ):
        text.set_parse_math(False)


def model_in(estimator: Any, X: Any = None) -> Unwrapped:
    """The fitted model inside pipelines, searches and refusals, with the names of its features."""
    check_is_fitted(estimator)
    names = column_names(X)
    return unwrap(estimator, None if names is None else [str(name) for name in names])


def codes_of(y: Any, classes: np.ndarray) -> np.ndarray:
    """Place of each label among the classes; -1 where it is none of them."""
    places = {label: code for code, label in enumerate(classes.tolist())}
    return np.array(
        [places.get(label, -1) for label in np.asarray(y).ravel().tolist()], dtype=np.int64
    )


def refuse(display: str, model: Any, why: str) -> KernelpoolError:
    """The error of a model that a display has nothing to draw of."""
    return KernelpoolError(f"{display} cannot draw a {type(model).__name__}: {why}.")
