"""Charts of a summary as shapes with places: the templates draw them as inline SVG, so that the page needs no plotting library.

Colors are classes of the style sheet (s0, s1, ...: series), because a page may be light, dark or printed.
"""

import math
from dataclasses import dataclass, field

from ..selection.reject import NOTHING_BELOW
from .records import Accepted, Evaluation, Map, Outliers, Regression, Run

MINUS = "\N{MINUS SIGN}"

WIDTH, HEIGHT = 460.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 22.0, 12.0, 46.0
SHAPES = (
    "M-2.4 0a2.4 2.4 0 1 0 4.8 0a2.4 2.4 0 1 0-4.8 0z",  # circle
    "M-2.1-2.1h4.2v4.2h-4.2z",  # square
    "M0-2.9l2.7 4.7h-5.4z",  # triangle
    "M0-3l3 3l-3 3l-3-3z",  # diamond
    "M0 2.9l2.7-4.7h-5.4z",  # triangle, point down
    "M-3-.9h2.1v-2.1h1.8v2.1h2.1v1.8h-2.1v2.1h-1.8v-2.1h-2.1z",  # plus
    "M-2.6-1.5l1.1-1.1l1.5 1.5l1.5-1.5l1.1 1.1l-1.5 1.5l1.5 1.5l-1.1 1.1l-1.5-1.5l-1.5 1.5l-1.1-1.1l1.5-1.5z",  # cross
)
"""One a class, as in `plots`, so that color is not all that tells them apart."""


@dataclass
class Chart:
    """Shapes in the coordinates of the picture, with axes around them."""

    title: str
    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    bands: list[tuple[str, str]] = field(default_factory=list)
    bars: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    marks: list[tuple[float, float, str, str]] = field(default_factory=list)
    dots: list[tuple[float, float, float, str]] = field(default_factory=list)
    ellipses: list[tuple[float, float, float, float, float, str]] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)
    labels: list[tuple[float, float, str, str]] = field(default_factory=list)
    """(x, y, text-anchor, text)."""
    legend: list[tuple[str, str, str]] = field(default_factory=list)
    """(text, class, kind of mark)."""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT

    @property
    def right(self) -> float:
        """Edge of the plot."""
        return self.width - RIGHT

    @property
    def top(self) -> float:
        """Edge of the plot."""
        return TOP

    @property
    def bottom(self) -> float:
        """Edge of the plot."""
        return self.height - BOTTOM

    def x(self, value: float) -> float:
        """Place along the picture."""
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.right - self.left), 2)

    def y(self, value: float) -> float:
        """Place down the picture; what lies outside stays at the edge."""
        low, high = self.y_range
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return round(self.bottom - share * (self.bottom - self.top), 2)

    def path(self, points: list[tuple[float, float]]) -> str:
        """Points as SVG wants them."""
        return " ".join(f"{self.x(a)},{self.y(b)}" for a, b in points)

    def upright(self, value: float, kind: str, *texts: str) -> None:
        """A line from bottom to top with a label beside its upper end, on the side that has more room."""
        low, high = self.x_range
        place = min(max(value, low), high)
        self.lines.append((f"{self.x(place)},{self.bottom} {self.x(place)},{self.top}", kind))
        side, anchor = (6, "start") if place < (low + high) / 2 else (-6, "end")
        for i, text in enumerate(texts):
            pointed = f"← {text}" if value < low else f"{text} →" if value > high else text
            self.labels.append((round(self.x(place) + side, 2), self.top + 12 + 15 * i, anchor, pointed))

    def axes(self, x_percent: bool = False, y_percent: bool = False) -> "Chart":
        """With ticks at round numbers, and room for them beside the name of the axis."""
        self.y_ticks = [(self.y(v), _tick(v, y_percent)) for v in rounds(*self.y_range)]
        self.left = max(self.left, 30 + 7 * max(len(text) for _, text in self.y_ticks))
        self.x_ticks = [(self.x(v), _tick(v, x_percent)) for v in rounds(*self.x_range)]
        return self


def rounds(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers between two, about so many."""
    if not high > low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _tick(value: float, percent: bool) -> str:
    text = f"{100 * value:.4g} %" if percent else f"{value:.6g}"
    return text.replace("-", MINUS)


def _padded(low: float, high: float, part: float = 0.04) -> tuple[float, float]:
    if not high > low:
        return low - 0.5, high + 0.5
    return low - part * (high - low), high + part * (high - low)


# -- the charts ---------------------------------------------------------------------------------------------------


def calibration_chart(evaluation: Evaluation) -> Chart | None:
    """Share of rows that were right, against the probability that the model gave."""
    bins = evaluation.calibration
    if not bins:
        return None
    low = min(0.5, math.floor(10 * min(b.low for b in bins)) / 10)
    chart = Chart("Calibration", "probability of the class named", "share that was right", (low, 1.0), (low, 1.0)).axes(
        True, True
    )
    chart.lines.append((chart.path([(low, low), (1, 1)]), "reference"))
    most = max(b.n_rows for b in bins)
    for b in bins:
        chart.lines.append((chart.path([(b.confidence, b.accuracy_low), (b.confidence, b.accuracy_high)]), "accent error"))
        chart.dots.append((chart.x(b.confidence), chart.y(b.accuracy), round(3 + 5 * math.sqrt(b.n_rows / most), 2), "accent"))
    return chart


def reject_chart(evaluation: Evaluation) -> Chart | None:
    """Error among accepted rows, against the share that is accepted."""
    curve = evaluation.curve
    if not curve:
        return None
    main = [point.rate for point in curve if point.coverage >= 0.2] or [curve[-1].rate]
    used = in_use(evaluation)
    high = max(max(r.high for r in main), 1e-3 if used is None else 1.2 * used.rate.error, 1e-3) * 1.1
    chart = Chart("Reject curve", "share of rows accepted", "error among them", (0.0, 1.0), (0.0, min(high, 1.0))).axes(
        True, True
    )
    upper = [(point.coverage, point.rate.high) for point in curve]
    lower = [(point.coverage, point.rate.low) for point in reversed(curve)]
    chart.bands.append((chart.path(upper + lower), "accent"))
    chart.lines.append((chart.path([(point.coverage, point.rate.error) for point in curve]), "accent"))
    if used is not None:
        accepted, wrong = _tick(round(used.coverage, 3), True), _tick(round(used.rate.error, 4), True)
        chart.upright(used.coverage, "own", f"in use: {accepted} accepted,", f"{wrong} of them wrong")
        chart.dots.append((chart.x(used.coverage), chart.y(used.rate.error), 5.5, "own"))
    return chart


def in_use(evaluation: Evaluation) -> Accepted | None:
    """What a classifier that refuses accepts at its own thresholds, if it has any and accepts any row."""
    refused = evaluation.refused
    if refused is None or refused.accepted is None or refused.ambiguity is refused.novelty is None:
        return None
    return Accepted(1 - (1.0 if refused.ambiguity is None else refused.ambiguity), refused.coverage, refused.accepted)


def bought(evaluation: Evaluation) -> list[tuple[Accepted, bool]]:
    """Points of the reject curve from greatest coverage to least, and which of them is the one in use."""
    used = in_use(evaluation)
    points = [(point, False) for point in evaluation.choices] + ([] if used is None else [(used, True)])
    return sorted(points, key=lambda pair: -pair[0].coverage)


def history_chart(runs: tuple[Run, ...], name: str) -> Chart | None:
    """The objective sweep by sweep."""
    if not runs:
        return None
    values = [value for run in runs for value in run.values[1:] or run.values]
    longest = max(len(run.values) for run in runs)
    chart = Chart("Training", "sweeps kept", name, (0.0, float(longest - 1)), _padded(min(values), max(values))).axes()
    for i, run in enumerate(runs):
        kind = f"s{i % 7}" if len(runs) > 1 else "accent"
        chart.lines.append((chart.path([(float(k), v) for k, v in enumerate(run.values)]), kind))
        if len(runs) > 1 and i < 7:
            chart.legend.append((run.name, kind, "line"))
    return chart


def novelty_chart(outliers: Outliers) -> Chart | None:
    """How likely the model finds the rows it learned and those it did not."""
    edges = outliers.edges
    if not edges:
        return None
    shares = [[count / max(1, part.n_rows) for count in part.counts] for part in outliers.scores]
    own = drawable(outliers.novelty)
    high = max(max(share) for share in shares) * (1.08 if own is None else 1.2)
    ends = [edges[0], edges[-1], *([] if outliers.bound is None else [outliers.bound]), *_near(own, edges)]
    chart = Chart("Densities", "log p(x)", "share of rows", _padded(min(ends), max(ends), 0.02), (0.0, high)).axes(False, True)
    for a, b, part_of_rows in zip(edges[:-1], edges[1:], shares[0], strict=True):
        top = chart.y(part_of_rows)
        chart.bars.append((chart.x(a), top, round(chart.x(b) - chart.x(a), 2), round(chart.bottom - top, 2), "other"))
    chart.legend.append((outliers.scores[0].name, "other", "bar"))
    for part, share in zip(outliers.scores[1:], shares[1:], strict=True):
        steps = [(edge, value) for k, value in enumerate(share) for edge in (edges[k], edges[k + 1])]
        chart.lines.append((chart.path([(edges[0], 0.0), *steps, (edges[-1], 0.0)]), "accent"))
        chart.legend.append((part.name, "accent", "line"))
    if outliers.bound is not None:
        chart.lines.append((chart.path([(outliers.bound, 0.0), (outliers.bound, high)]), "reference"))
    if own is not None:
        chart.upright(own, "own", f"novel below {_tick(float(f'{own:.4g}'), False)}")
    return chart


def drawable(threshold: float | None) -> float | None:
    """A threshold of log p(x), unless it is the one that calls nothing novel but rows of no density."""
    return None if threshold is None or threshold <= NOTHING_BELOW else threshold


def _near(own: float | None, edges: tuple[float, ...]) -> list[float]:
    """The threshold, if it is near enough to the rows to be in the picture; else it is marked at the edge."""
    out = edges[-1] - edges[0]
    return [own] if own is not None and edges[0] - out <= own <= edges[-1] + out else []


def regression_chart(regression: Regression) -> Chart | None:
    """True outputs against predicted ones."""
    ends = _padded(min(min(p) for p in regression.points), max(max(p) for p in regression.points))
    chart = Chart("Predicted and true", "predicted", "true", ends, ends).axes()
    chart.lines.append((chart.path([(ends[0], ends[0]), (ends[1], ends[1])]), "reference"))
    chart.dots = [(chart.x(a), chart.y(b), 2.2, "accent faint") for a, b in regression.points]
    return chart


def map_chart(drawn: Map) -> Chart:
    """Rows as marks, kernels as ellipses of one standard deviation."""
    xs, ys = ([p[i] for p in drawn.points] + [(e.x, e.y)[i] for e in drawn.ellipses] for i in (0, 1))
    chart = Chart(
        "Kernels over rows", *drawn.axes, _padded(*_inner(xs)), _padded(*_inner(ys)), width=620.0, height=430.0
    ).axes()
    for a, b, label in drawn.points:
        if chart.x_range[0] <= a <= chart.x_range[1] and chart.y_range[0] <= b <= chart.y_range[1]:
            shape = SHAPES[label] if label >= 0 else SHAPES[0]
            chart.marks.append((chart.x(a), chart.y(b), shape, f"s{label}" if label >= 0 else "other"))
    for e in drawn.ellipses:
        chart.ellipses.append((*_drawn(chart, e.x, e.y, e.long, e.short, e.angle), f"s{e.label}" if e.label >= 0 else "other"))
    chart.legend = [(name, f"s{i}", SHAPES[i]) for i, name in enumerate(drawn.labels)]
    if any(point[2] < 0 for point in drawn.points):
        chart.legend.append(("other classes", "other", SHAPES[0]))
    return chart


def _inner(values: list[float]) -> tuple[float, float]:
    """Between the 0.5th and the 99.5th percent, widened: a lone row far away must not squeeze all others."""
    ordered = sorted(values)
    low, high = ordered[int(0.005 * (len(ordered) - 1))], ordered[math.ceil(0.995 * (len(ordered) - 1))]
    out = 0.15 * (high - low)
    return max(ordered[0], low - out), min(ordered[-1], high + out)


def _drawn(
    chart: Chart, x: float, y: float, long: float, short: float, angle: float
) -> tuple[float, float, float, float, float]:
    """An ellipse in the picture, whose axes are stretched unequally: center, half axes, and angle in degrees."""
    a = (chart.right - chart.left) / (chart.x_range[1] - chart.x_range[0])
    b = -(chart.bottom - chart.top) / (chart.y_range[1] - chart.y_range[0])
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    # covariance of the ellipse after stretching, and its eigenvalues
    xx = a * a * (long**2 * c * c + short**2 * s * s)
    yy = b * b * (long**2 * s * s + short**2 * c * c)
    xy = a * b * (long**2 - short**2) * c * s
    mean, half = (xx + yy) / 2, math.hypot((xx - yy) / 2, xy)
    turned = math.degrees(math.atan2(2 * xy, xx - yy) / 2)
    low, high = chart.y_range
    cy = chart.bottom - (y - low) / (high - low) * (chart.bottom - chart.top)
    return chart.x(x), round(cy, 2), round((mean + half) ** 0.5, 2), round(max(mean - half, 0.0) ** 0.5, 2), round(turned, 2)
