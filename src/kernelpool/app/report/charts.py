"""Charts of a summary as inline SVG, drawn by the displays of `plots`.

A page may be light, dark or printed, and its policy allows no styles but its own. So what matplotlib writes is taken apart and
written anew: styles become attributes, colors of the palette variables of the page's style sheet, text stays text in the page's
font, and nothing but shapes and text is let through. Names from the data are never read as mathematics.
"""

import warnings
from collections.abc import Callable
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np

from .plots import (
    CalibrationDisplay,
    HistoryDisplay,
    KernelDisplay,
    NoveltyDisplay,
    RejectCurveDisplay,
)
from .plots.history import Course
from .plots.style import COLORS, DARK, GRAY, LIGHT, RULE, rgb
from .records import Accepted, Evaluation, Map, Outliers, Regression, Summary, Training

SMALL, WIDE = (5.0, 3.4), (7.4, 4.7)
"""Inches."""

SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "kernelpool",
    "text.parse_math": False,
    "font.size": 9.5,
    "legend.fontsize": 8.5,
    "text.color": DARK,
    "axes.labelcolor": DARK,
    "axes.edgecolor": LIGHT,
    "xtick.color": LIGHT,
    "ytick.color": LIGHT,
    "xtick.labelcolor": GRAY,
    "ytick.labelcolor": GRAY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
}

ELEMENTS = ("svg", "g", "defs", "clipPath", "pattern", "path", "rect", "use", "text")
"""All that a chart is made of; the rest of what matplotlib writes is left out."""

ATTRIBUTES = frozenset(
    {
        "d",
        "x",
        "y",
        "width",
        "height",
        "transform",
        "viewBox",
        "clip-path",
        "opacity",
        "font-size",
        "text-anchor",
    }
    | {
        "fill",
        "fill-opacity",
        "fill-rule",
        "stroke",
        "stroke-opacity",
        "stroke-width",
        "stroke-dasharray",
    }
    | {"stroke-dashoffset", "stroke-linejoin", "stroke-linecap", "patternUnits"}
)


def _variables() -> dict[str, str]:
    """Colors of the palette, also in the darker shades that the displays give them, as variables of the style sheet."""
    found = {
        DARK: "--ink",
        GRAY: "--quiet",
        LIGHT: "--quiet",
        RULE: "--rule",
        "#ffffff": "--paper",
        "#000000": "--ink",
    }
    for i, color in enumerate(COLORS):
        for shade in (1.0, 0.85, 0.8):
            found["#" + "".join(f"{round(shade * part * 255):02x}" for part in rgb(color))] = (
                f"--s{i}"
            )
    return {color.lower(): f"var({name})" for color, name in found.items()}


VARIABLES = _variables()


def charts_of(summary: Summary) -> dict[str, str]:
    """SVG of every chart that the summary has numbers for, by name."""
    evaluation, outliers, training = summary.evaluation, summary.outliers, summary.training
    found: dict[str, str] = {}

    def draw(
        name: str, title: str, plot: Callable[[Any], str], size: tuple[float, float] = SMALL
    ) -> None:
        found[name] = svg(name, title, plot, size)

    if evaluation is not None and evaluation.calibration:
        draw(
            "calibration",
            "Calibration: share of rows that were right against probability",
            lambda ax: _calibration(ax, evaluation),
        )
    if evaluation is not None and evaluation.curve:
        draw(
            "reject",
            "Reject curve: error of accepted rows against their share",
            lambda ax: _reject(ax, evaluation),
        )
    if training.runs:
        draw(
            "history",
            f"Training: {training.objective_name}, sweep by sweep",
            lambda ax: _history(ax, training),
        )
    if outliers is not None and outliers.edges:
        draw("novelty", "Densities: shares of rows by log p(x)", lambda ax: _novelty(ax, outliers))
    if summary.map is not None:
        drawn = summary.map
        draw(
            "kernels",
            f"Kernels over rows: {drawn.axes[1]} against {drawn.axes[0]}",
            lambda ax: _map(ax, drawn),
            WIDE,
        )
    for i, part in enumerate(summary.regression):
        draw(
            f"regression{i}",
            "True outputs against predicted ones",
            lambda ax, part=part: _regression(ax, part),  # type: ignore[misc]
        )
    return found


# -- the charts, each returning a description in words ------------------------------------------------------------


def _calibration(ax: Any, evaluation: Evaluation) -> str:
    bins = evaluation.calibration
    columns = np.array([(b.confidence, b.accuracy, b.n_rows, b.low, b.high) for b in bins])
    display = CalibrationDisplay(
        columns[:, 0], columns[:, 1], columns[:, 2].astype(int), columns[:, 3:]
    )
    display.plot(ax, doubt=1 - evaluation.rate.confidence)
    told = "; ".join(
        f"said {100 * b.confidence:.0f} %, right {100 * b.accuracy:.0f} % of {b.n_rows:,} rows"
        for b in bins
    )
    return f"Expected calibration error {display.ece:.3f}. {told}."


def _reject(ax: Any, evaluation: Evaluation) -> str:
    curve, used = evaluation.curve, in_use(evaluation)
    coverage, error = (
        np.array(part) for part in zip(*((p.coverage, p.rate.error) for p in curve), strict=True)
    )
    point = None if used is None else (used.coverage, used.rate.error)
    display = RejectCurveDisplay(coverage, error, evaluation.rate.n_rows, point)
    display.plot(ax, doubt=1 - evaluation.rate.confidence)
    told = "; ".join(
        f"{100 * p.rate.error:.1f} % of {100 * p.coverage:.0f} %" for p in evaluation.choices
    )
    return f"Wrong among the accepted rows: {told}."


def in_use(evaluation: Evaluation) -> Accepted | None:
    """What a classifier that refuses accepts at its own thresholds, if it has any and accepts any row."""
    refused = evaluation.refused
    if refused is None or refused.accepted is None or refused.ambiguity is refused.novelty is None:
        return None
    return Accepted(
        1 - (1.0 if refused.ambiguity is None else refused.ambiguity),
        refused.coverage,
        refused.accepted,
    )


def _history(ax: Any, training: Training) -> str:
    courses = [
        Course(run.name, np.arange(len(run.values)), np.array(run.values)) for run in training.runs
    ]
    HistoryDisplay(courses[:8], training.objective_name, "sweeps kept").plot(ax)
    later = [value for run in training.runs for value in run.values[1:] or run.values]
    margin = 0.05 * (max(later) - min(later)) or 0.5
    ax.set_ylim(min(later) - margin, max(later) + margin)  # the start may be far below
    ends = "; ".join(
        f"{c.name + ': ' if c.name else ''}from {c.value[0]:.5g} to {c.value[-1]:.5g}"
        for c in courses[:8]
    )
    return f"{ends}."


def _novelty(ax: Any, outliers: Outliers) -> str:
    shares = {part.name: np.array(part.counts) / max(1, part.n_rows) for part in outliers.scores}
    display = NoveltyDisplay({}, outliers.novelty)
    display.plot_histograms(ax, np.array(outliers.edges), shares, outliers.bound)
    below = "; ".join(
        f"{part.n_below:,} of {part.n_rows:,} {part.name} rows" for part in outliers.scores
    )
    return "" if outliers.bound is None else f"Below {outliers.bound:.4g}: {below}."


def _map(ax: Any, drawn: Map) -> str:
    points = np.array([point[:2] for point in drawn.points])
    codes = np.array([point[2] for point in drawn.points])
    angle = np.radians([e.angle for e in drawn.ellipses])
    long, short = (
        np.array([getattr(e, name) for e in drawn.ellipses]) for name in ("long", "short")
    )
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])  # (2, 2, M)
    covariances = np.einsum("abm,bm,cbm->mac", turn, np.array([long**2, short**2]), turn)
    centers = np.array([(e.x, e.y) for e in drawn.ellipses])
    shares = np.array([e.classes for e in drawn.ellipses]).reshape(len(centers), len(drawn.labels))
    display = KernelDisplay(
        points,
        codes,
        np.array(drawn.labels, object),
        centers,
        covariances,
        shares,
        np.array([e.share for e in drawn.ellipses]),
        drawn.axes,
        limits=[_inner(np.append(points[:, i], centers[:, i])) for i in (0, 1)],
        word=drawn.word,
    )
    display.plot(ax, deviations=1.0)
    return f"{len(points):,} rows and {len(centers):,} {drawn.word}s."


def _inner(values: np.ndarray) -> tuple[float, float]:
    """Between the 0.5th and the 99.5th percent, widened: a lone row far away must not squeeze all others."""
    low, high = np.quantile(values, [0.005, 0.995], method="nearest")
    ends = np.array(
        [
            max(values.min(), low - 0.15 * (high - low)),
            min(values.max(), high + 0.15 * (high - low)),
        ]
    )
    margin = 0.04 * (ends[1] - ends[0]) or 0.5
    return float(ends[0] - margin), float(ends[1] + margin)


def _regression(ax: Any, regression: Regression) -> str:
    predicted, true = np.array(regression.points).T
    ends = [min(predicted.min(), true.min()), max(predicted.max(), true.max())]
    ax.plot(ends, ends, color=GRAY, linewidth=1.2, linestyle="--")
    ax.scatter(predicted, true, s=9, color=COLORS[0], alpha=0.55, linewidths=0)
    ax.set(xlabel="predicted", ylabel="true")
    ax.spines[["top", "right"]].set_visible(False)
    return f"Root mean squared error {regression.rmse:.4g} over {regression.n_rows:,} rows."


# -- from matplotlib to the page ----------------------------------------------------------------------------------


def svg(name: str, title: str, plot: Callable[[Any], str], size: tuple[float, float]) -> str:
    """One chart as an SVG element; its ids begin with `name`."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Reports need matplotlib: pip install '.[report]' in kernelpool's folder."
        ) from error
    buffer = BytesIO()
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # a page looks the same whatever style the user has set
        mpl.rcParams.update(SETTINGS)
        warnings.filterwarnings(
            "ignore", message="Glyph|Matplotlib currently does not support"
        )  # the browser has more fonts
        figure = Figure(figsize=size, layout="constrained")
        description = plot(figure.add_subplot())
        figure.savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    root = ElementTree.fromstring(buffer.getvalue())
    page = _cleaned(root, name)
    for attribute in ("width", "height"):
        page.attrib.pop(attribute, None)
    page.attrib |= {
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-desc",
    }
    for kind, text in (("desc", description), ("title", title)):
        element = ElementTree.Element(kind, {"id": f"{name}-{kind}"})
        element.text = text
        page.insert(0, element)
    return ElementTree.tostring(page, encoding="unicode")


def _cleaned(element: ElementTree.Element, name: str) -> ElementTree.Element:
    """The element without namespaces and styles, and with it only such parts and attributes as charts need."""
    attributes: dict[str, str] = {}
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "style":
            attributes |= _styles(value)
        elif key == "id":
            attributes[key] = f"{name}-{value}"
        elif key == "href" and value.startswith("#"):
            attributes[key] = f"#{name}-{value[1:]}"
        elif key in ATTRIBUTES:
            attributes[key] = VARIABLES.get(value, value)
    attributes = {key: value.replace("url(#", f"url(#{name}-") for key, value in attributes.items()}
    made = ElementTree.Element(element.tag.rpartition("}")[2], attributes)
    made.text = element.text if made.tag == "text" else None
    made.extend(
        _cleaned(part, name) for part in element if str(part.tag).rpartition("}")[2] in ELEMENTS
    )
    return made


def _styles(text: str) -> dict[str, str]:
    """Declarations of a style attribute as attributes; of a font its size alone."""
    found = {}
    for part in text.split(";"):
        key, _, value = (piece.strip() for piece in part.partition(":"))
        if key == "font":
            found["font-size"] = next(
                word for word in value.split() if word.endswith("px")
            ).removesuffix("px")
        elif key in ATTRIBUTES:
            found[key] = VARIABLES.get(value, value)
    return found
