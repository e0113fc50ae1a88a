"""Parts of the pictures: panels, rows, decision regions, kernels; and pictures as files."""

import io
from typing import Any

import numpy as np

from kernelpool.errors import KernelpoolError

BLUE, ORANGE, GRAY = "#2f6db5", "#e07b1a", "#555555"
PALE = ["#dbe7f4", "#fbe6d1"]


def side_by_side(n: int, height: float = 3.3) -> tuple[Any, Any]:
    """A figure of panels side by side, for no screen."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise KernelpoolError('Figures need matplotlib: pip install "kernelpool[plot]".') from error
    figure = Figure(figsize=(3.6 * n, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, n, squeeze=False)[0]


def draw_rows(axes: Any, X: np.ndarray, y: np.ndarray, size: float = 7) -> None:
    """Rows in the colors of their classes."""
    axes.scatter(*X.T, c=np.where(y == 0, BLUE, ORANGE), s=size, linewidths=0, alpha=0.75)
    low, high = X.min(axis=0), X.max(axis=0)
    out = 0.06 * (high - low).max()
    axes.set(xlim=(low[0] - out, high[0] + out), ylim=(low[1] - out, high[1] + out), xticks=[], yticks=[], aspect="equal")


def draw_regions(axes: Any, model: Any, X: np.ndarray, y: np.ndarray) -> None:
    """Rows over the label of every point of the plane."""
    from matplotlib.colors import ListedColormap

    draw_rows(axes, X, y)
    grid = np.meshgrid(*(np.linspace(low, high, 250) for low, high in (axes.get_xlim(), axes.get_ylim())))
    label = model.predict(np.column_stack([g.ravel() for g in grid])).reshape(grid[0].shape)
    axes.pcolormesh(*grid, label, cmap=ListedColormap(PALE), vmin=0, vmax=1, shading="nearest", rasterized=True, zorder=0)
    axes.contour(*grid, label, levels=[0.5], colors=GRAY, linewidths=1)


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
