"""Parts of the pictures: panels, rows, decision regions, kernels; and pictures as files."""

import io
from typing import Any

import numpy as np

from kernelpool.errors import KernelpoolError

BLUE = "#2f6db5"
ORANGE = "#e07b1a"
GRAY = "#555555"
PALE = ["#dbe7f4", "#fbe6d1"]


def panels(n_rows: int, n_columns: int, height: float = 3.3) -> tuple[Any, Any]:
    """A figure that is drawn to a file, and its panels, (n_rows, n_columns); `height` is that of a
    row in inches.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise KernelpoolError('Figures need matplotlib: pip install "kernelpool[plot]".') from error
    figure = Figure(figsize=(3.6 * n_columns, height * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def side_by_side(n: int, height: float = 3.3) -> tuple[Any, Any]:
    """A figure of panels in one row."""
    figure, axes = panels(1, n, height)
    return figure, axes[0]


def frame(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower left and upper right corner of a panel that shows the rows."""
    low = X.min(axis=0)
    high = X.max(axis=0)
    margin = 0.06 * (high - low).max()
    return low - margin, high + margin


def border(X: np.ndarray, n: int = 200) -> np.ndarray:
    """Points along the edge of the panel that shows the rows, (4 n, 2)."""
    (left, bottom), (right, top) = frame(X)
    x = np.linspace(left, right, n)
    y = np.linspace(bottom, top, n)
    sides = [
        (x, np.full(n, bottom)),
        (x, np.full(n, top)),
        (np.full(n, left), y),
        (np.full(n, right), y),
    ]
    return np.concatenate([np.column_stack(side) for side in sides])


def draw_rows(
    axes: Any, X: np.ndarray, y: np.ndarray, size: float = 7, shown: np.ndarray | None = None
) -> None:
    """Rows in the colors of their classes, in a panel that shows them, or as much as the rows
    `shown` need.
    """
    axes.scatter(*X.T, c=np.where(y == 0, BLUE, ORANGE), s=size, linewidths=0, alpha=0.75)
    low, high = frame(X if shown is None else shown)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[], aspect="equal")


def draw_regions(axes: Any, model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Rows over the label of every point of the plane."""
    from matplotlib.colors import ListedColormap

    draw_rows(axes, X, y)
    grid = np.meshgrid(*(np.linspace(low, high, 250) for low, high in zip(*frame(X), strict=True)))
    label = model.predict(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    axes.pcolormesh(
        *grid,
        label,
        cmap=ListedColormap(PALE),
        vmin=0,
        vmax=1,
        shading="nearest",
        rasterized=True,
        zorder=0,
    )
    axes.contour(*grid, label, levels=[0.5], colors=GRAY, linewidths=1)


def draw_neurons(
    axes: Any, X: np.ndarray, y: np.ndarray, weights: np.ndarray, mixing: np.ndarray
) -> None:
    """Rows and the line w . x + b = 0 of each neuron, wider for a larger share, with an arrow to
    the side of class 1.
    """
    draw_rows(axes, X, y)
    reach = 2 * np.linalg.norm(np.subtract(*frame(X)))
    for weight, share in zip(weights, mixing, strict=True):
        length = np.linalg.norm(weight[:2])
        normal = weight[:2] / length
        foot = -weight[2] * weight[:2] / length**2
        along = np.array([-normal[1], normal[0]])
        foot = foot + along * (
            along @ (X.mean(axis=0) - foot)
        )  # the point of the line nearest to the rows
        axes.plot(
            *np.column_stack([foot - reach * along, foot + reach * along]),
            color=GRAY,
            linewidth=0.6 + 7 * share,
        )
        axes.annotate(
            "",
            foot + 0.5 * normal,
            foot,
            arrowprops={"arrowstyle": "-|>", "color": ORANGE, "linewidth": 2},
        )


def draw_circle(axes: Any, radius: float) -> None:
    """A dashed circle about the origin."""
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(radius * np.cos(angle), radius * np.sin(angle), "--", color="black", linewidth=1)


def draw_kernels(axes: Any, means: np.ndarray, variances: np.ndarray, colors: list[str]) -> None:
    """Circles of one standard deviation, as the paper draws them."""
    from matplotlib.patches import Circle

    for mean, variance, color in zip(means, variances, colors, strict=True):
        axes.add_patch(Circle(mean, variance**0.5, fill=False, edgecolor="white", linewidth=4))
        axes.add_patch(Circle(mean, variance**0.5, fill=False, edgecolor=color, linewidth=2))
        axes.plot(*mean, "+", color=color, markersize=9, markeredgewidth=2)


def png(figure: Any, dpi: int = 100) -> bytes:
    """The picture as a file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi, metadata={"Software": None})
    return stream.getvalue()
