r"""Logistic readout: Newton's method on sums over rows, as printed and damped.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks", equation (5);
Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical Mathematics 44(1), 1992;
Rad & Maleki, "A scalable estimate of the out-of-sample prediction error via approximate leave-one-out cross-validation",
Journal of the Royal Statistical Society B 82(4), 2020.

.. math:: \beta \leftarrow \beta + (X' W X)^{-1} X' (y - p), \qquad p = \sigma(X \beta), \quad W = p (1 - p)

=====================  ================  ==============  ===========================================================
paper                  here              shape           meaning
=====================  ================  ==============  ===========================================================
:math:`\beta`          ``weight``        (M + 1, o)      o = 1 for two classes, K - 1 for K
:math:`X' W X`         ``curvature``     (o(M+1))²       adds up over blocks of rows
:math:`X' (y - p)`     ``slope``         (M + 1, o)      adds up over blocks of rows
:math:`0.25\, I`       ``bound``                         a W that is never too small; needs (M + 1)² whatever K is
=====================  ================  ==============  ===========================================================

Deviations from the paper: (5) prints p(1 - p) where the residual needs p. More than two classes by softmax, the first class the
reference, in a metric in which all classes are alike. To the single step come a ridge, a line search, and the loss of rows left
out, which needs one more pass over the rows.
"""

from ..arrays import Array, as_float64, device, logsumexp, namespace
from ..rows import Block, Rows
from ..sums import Sums, record
from .em_log import Hidden, Layer
from .readout import Readout, Targets, pseudo_inverse, solved

SETTLED = 1e-9
"""Newton's method ends when the next step promises less than this a row."""

STEP = 10.0
"""Factor between neighboring strengths that are tried."""

WEAKEST, STRONGEST = 1e-3 / STEP**0.5, 1e6
"""Without any ridge the probabilities of separable rows would be 0 and 1."""

MOST_STEPS = 100


@record
class Curve(Sums):
    """The log-likelihood at some weights, and how it changes there."""

    loss: Array
    count: Array
    slope: Array
    """(M + 1, o)."""
    curvature: Array
    """(o(M + 1), o(M + 1)), output by output; with the bound (M + 1, M + 1) for all outputs."""


class Logistic:
    """Softmax on the outputs, the first class at zero: for two classes the paper's logistic regression.

    The ridge is strength / 2 times the sum of beta_k' beta_l * 2 (delta_kl - 1/K): for two classes the squared weights, for
    more twice the squared deviations from the mean class, so that no class is special.
    """

    centered = True

    def __init__(
        self,
        hidden: Hidden,
        targets: Targets,
        strength: float | str = "loo",
        *,
        bound: bool = False,
    ) -> None:
        self.hidden, self.targets, self.strength, self.bound = hidden, targets, strength, bound

    # -- from rows to sums ----------------------------------------------------------------------------------------

    def curve(self, block: Block, layer: Layer, weight: Array) -> Curve:
        """X'(y - p) and X'WX of one block, (5)."""
        xp = namespace(block.x)
        columns = self.hidden.columns(block, layer)
        target, count = self.targets.of(block)
        logit = as_float64(weight).T @ columns  # (o, n)
        p, log_rest = _softmax(logit)
        loss = -(xp.sum(target * logit, axis=0) + log_rest) @ count
        slope = columns @ ((target - p) * count).T
        if self.bound:
            return Curve(loss, xp.sum(count), slope, 0.25 * (columns * count) @ columns.T)
        outputs, width = range(p.shape[0]), columns.shape[0]
        if len(outputs) == 1:
            return Curve(loss, xp.sum(count), slope, (columns * (count * _w(p, 0, 0))) @ columns.T)
        # W = diag(p) - p p': the second part is one product for all pairs of outputs, of a matrix with itself
        stacked = xp.reshape(
            p[:, None, :] * (columns * count**0.5), (len(outputs) * width, -1)
        )  # (o (M + 1), n)
        curvature = -(stacked @ stacked.T)
        for k in outputs:
            span = slice(k * width, (k + 1) * width)
            curvature[span, span] += (columns * (p[k, :] * count)) @ columns.T
        return Curve(loss, xp.sum(count), slope, curvature)

    def left_out(self, block: Block, layer: Layer, weight: Array, inverse: Array) -> Array:
        """Log-loss of the rows of one block, each left out by one Newton step from the others, ()."""
        xp = namespace(block.x)
        columns = self.hidden.columns(block, layer)
        target, count = self.targets.of(block)
        logit = as_float64(weight).T @ columns
        p, _ = _softmax(logit)
        n_outputs, width = logit.shape[0], columns.shape[0]
        residual = p - target  # (o, n)
        if n_outputs == 1:
            leverage = xp.sum(columns * (as_float64(inverse) @ columns), axis=0)
            moved = logit + leverage / xp.clip(1 - _w(p, 0, 0) * leverage, min=1e-6) * residual
        else:
            wide = as_float64(inverse)
            cells = []  # x' inverse_km x for m >= k, (o - k, n) each: it is symmetric
            for k in range(n_outputs):
                turned = wide[k * width :, k * width : (k + 1) * width] @ columns
                cells.append(
                    xp.sum(xp.reshape(turned, (n_outputs - k, width, -1)) * columns, axis=1)
                )
            both = [
                [cells[min(k, m)][abs(k - m), :] for m in range(n_outputs)]
                for k in range(n_outputs)
            ]
            leverage = xp.stack([xp.stack(row, axis=1) for row in both], axis=1)  # (n, o, o)
            spread = xp.stack(
                [
                    xp.stack([_w(p, k, m) for m in range(n_outputs)], axis=1)
                    for k in range(n_outputs)
                ],
                axis=1,
            )
            one = xp.eye(n_outputs, dtype=leverage.dtype, device=device(leverage)) * (1 + 1e-9)
            moved = (
                logit
                + (leverage @ xp.linalg.solve(one - spread @ leverage, residual.T[:, :, None]))[
                    :, :, 0
                ].T
            )
        _, log_rest = _softmax(moved)
        return -(xp.sum(target * moved, axis=0) + log_rest) @ count

    # -- from sums to weights -------------------------------------------------------------------------------------

    def step(self, rows: Rows, layer: Layer, before: Readout | None = None) -> Readout:
        """(5) as printed: one Newton step, however far it leads, with W = p (1 - p), or with W = 0.25 I if `bound`."""
        strength = 0.0 if isinstance(self.strength, str) else self.strength
        weight = self._start(layer, before)
        curve = rows.total(self.curve, layer, weight)
        trial = weight + self._direction(curve, weight, strength)
        xp = namespace(trial)
        return Readout(trial if bool(xp.all(xp.isfinite(trial))) else weight, strength)

    def solve(self, rows: Rows, layer: Layer, before: Readout | None = None) -> Readout:
        """The most likely weights under the ridge; its strength given, or the one with the least loss left out.

        That one is looked for again after 1, 2, 4, 8, ... sweeps: it changes less and less.
        """
        age = 0 if before is None else before.age + 1
        strength = (
            self.strength
            if not isinstance(self.strength, str)
            else 1.0
            if before is None
            else before.strength
        )
        center = self._damped(rows, layer, self._start(layer, before), strength)
        if isinstance(self.strength, str) and age & (age - 1) == 0:
            center = self._tuned(rows, layer, center)
        return Readout(center.weight, center.strength, age)

    def _tuned(self, rows: Rows, layer: Layer, center: Readout) -> Readout:
        """Downhill from one strength to the next."""
        least = self.score(rows, layer, center)
        for factor in (STEP, 1 / STEP):
            found = False
            while WEAKEST <= center.strength * factor <= STRONGEST:
                trial = self._damped(rows, layer, center.weight, center.strength * factor)
                loss = self.score(rows, layer, trial)
                if not loss < least - 1e-9:
                    break
                center, least, found = trial, loss, True
            if found:
                break
        return center

    def score(self, rows: Rows, layer: Layer, readout: Readout) -> float:
        """Mean log-loss of every row when it is left out, to first order."""
        exact = Logistic(self.hidden, self.targets, self.strength)
        curve = rows.total(exact.curve, layer, readout.weight)
        inverse = pseudo_inverse(exact._curvature(curve, readout.strength))
        return float(rows.total(exact.left_out, layer, readout.weight, inverse)) / float(
            curve.count
        )

    def _start(self, layer: Layer, before: Readout | None) -> Array:
        xp, home = namespace(layer.log_scale), device(layer.log_scale)
        if before is not None:
            return before.weight
        return xp.zeros(
            (layer.log_scale.shape[0] + 1, self.targets.n_outputs), dtype=xp.float64, device=home
        )

    def _damped(self, rows: Rows, layer: Layer, weight: Array, strength: float) -> Readout:
        """Newton's method; a step is halved until the loss falls by what it promised, or given up."""
        xp = namespace(weight)
        curve = rows.total(self.curve, layer, weight)
        loss = float(curve.loss) + self._penalty(weight, strength)
        for _ in range(MOST_STEPS):
            direction = self._direction(curve, weight, strength)
            promise = float(xp.sum(direction * self._slope(curve, weight, strength)))
            if not promise > SETTLED * float(curve.count):
                break
            size = 1.0
            while size > 1e-4:
                trial = weight + size * direction
                there = rows.total(self.curve, layer, trial)
                loss_there = float(there.loss) + self._penalty(trial, strength)
                if loss_there <= loss - 1e-4 * size * promise:
                    break
                size /= 2
            else:
                break
            weight, curve, loss = trial, there, loss_there
        return Readout(weight, strength)

    def _metric(self, like: Array) -> Array:
        """2 (delta_kl - 1/K), (o, o): in it the classes are alike though one of them is the reference."""
        xp, n_outputs = namespace(like), self.targets.n_outputs
        return 2 * (xp.eye(n_outputs, dtype=like.dtype, device=device(like)) - 1 / (n_outputs + 1))

    def _ridged(self, weight: Array) -> Array:
        """The weights without the bias, which is free."""
        xp = namespace(weight)
        return xp.concat([weight[:-1, :], xp.zeros_like(weight[-1:, :])])

    def _penalty(self, weight: Array, strength: float) -> float:
        ridged = self._ridged(weight)
        return (
            0.5 * strength * float(namespace(weight).sum(ridged * (ridged @ self._metric(weight))))
        )

    def _slope(self, curve: Curve, weight: Array, strength: float) -> Array:
        return curve.slope - strength * self._ridged(weight) @ self._metric(weight)

    def _direction(self, curve: Curve, weight: Array, strength: float) -> Array:
        xp = namespace(weight)
        slope = self._slope(curve, weight, strength)
        curvature = self._curvature(curve, strength)
        if self.bound:  # Böhning: metric (x) 0.25 X'X is above the curvature everywhere
            n_outputs = weight.shape[1]
            back = 0.5 * (xp.eye(n_outputs, dtype=weight.dtype, device=device(weight)) + 1)
            return solved(curvature, slope) @ back
        flat = xp.reshape(slope.T, (-1, 1))
        return xp.reshape(solved(curvature, flat), (weight.shape[1], -1)).T

    def _curvature(self, curve: Curve, strength: float) -> Array:
        xp = namespace(curve.curvature)
        width = curve.slope.shape[0]
        free = [1.0] * (width - 1) + [0.0]
        ridge = strength * xp.eye(width, dtype=xp.float64, device=device(curve.slope))
        ridge = ridge * xp.asarray(free, dtype=xp.float64, device=device(curve.slope))
        if self.bound:
            return curve.curvature + ridge
        metric = self._metric(ridge)
        n_outputs = metric.shape[0]
        rows = [
            xp.concat([metric[k, m] * ridge for m in range(n_outputs)], axis=1)
            for k in range(n_outputs)
        ]
        return curve.curvature + xp.concat(rows)


def _softmax(logit: Array) -> tuple[Array, Array]:
    """Probabilities of all classes but the first, (o, n), and the log-probability of the first, (n,)."""
    xp = namespace(logit)
    log_rest = -logsumexp(xp.concat([xp.zeros_like(logit[:1, :]), logit]), axis=0)
    return xp.exp(logit + log_rest), log_rest


def _w(p: Array, k: int, m: int) -> Array:
    """W of outputs k and m, p_k (delta_km - p_m), (n,)."""
    return p[k, :] * ((1.0 if k == m else 0.0) - p[m, :])
