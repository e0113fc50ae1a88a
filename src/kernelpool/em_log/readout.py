r"""Output layers of an RBF network: logistic regression, and least squares with a ridge.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks",
equations (1) and (5);
Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of Statistical
Mathematics 44(1), 1992;
Rad & Maleki, "A scalable estimate of the out-of-sample prediction error via approximate
leave-one-out cross-validation", Journal of the Royal Statistical Society B 82(4), 2020;
Golub, Heath & Wahba, "Generalized cross-validation as a method for choosing a good ridge
parameter", Technometrics 21(2), 1979.

.. math::

    \beta \leftarrow \beta + (X' W X)^{-1} X' (y - p), \qquad
    p = \sigma(X \beta), \quad W = p (1 - p) \qquad \text{(logistic)}

    \min_\beta |y - X \beta|^2 + \lambda |\beta|^2, \qquad
    \text{GCV} = \frac{n\, |y - Hy|^2}{(n - \text{tr} H)^2}, \quad
    \text{left out: } \frac{(y - Hy)_i}{1 - H_{ii}}, \quad H = X (X'X + \lambda)^{-1} X'

===================  ==============  ==========  ==================================================
papers               here            shape       meaning
===================  ==============  ==========  ==================================================
:math:`X`            ``design``      (n, M + 1)  outputs of the kernels, and last the bias
:math:`\beta`        ``weight``      (M + 1, o)  o outputs; logistic regression of K classes: K - 1
:math:`y`            ``target``      (n, o)      indicators of classes, or real numbers
\                    ``count``       (n,)        how much each row counts
:math:`X' W X`       ``curvature``   (o(M+1))²   output by output
:math:`\lambda`      ``strength``    scalar      one for all outputs
:math:`0.25\, I`     ``bound``                   a W that is never too small, (M + 1)² for any K
===================  ==============  ==========  ==================================================

Deviations from the papers: (5) prints p(1 - p) where the residual needs p. More than two classes
by softmax, the first class the reference, in a metric in which all classes are alike. To the single
step come a ridge, a line search, and the loss of rows left out. The bias is free of the ridge.
Equations that are singular are solved by least norm.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve
from scipy.special import logsumexp

from ..arrays import cholesky, inverse_of_lower

SMALLEST = 1e-12
"""A column whose residual given the others is below this, relative to its square, is taken to
depend on them."""

FLAT = 1e-100
"""A curvature below this is none: the outputs are 0 or 1 wherever the column is not zero."""

SETTLED = 1e-9
"""Newton's method ends when the next step promises less than this a row."""

STEP = 10.0
"""Factor between neighboring strengths that are tried."""

WEAKEST = 1e-3 / STEP**0.5
"""Least strength that is tried: without any ridge the probabilities of separable rows would be 0
and 1.
"""

STRONGEST = 1e6
"""Greatest strength that is tried."""

MOST_STEPS = 100
"""Newton steps at most."""


@dataclass(frozen=True)
class Readout:
    """A trained output layer."""

    weight: np.ndarray
    """(M + 1, o), for the columns of the layer that it was trained on."""
    strength: float
    age: int = 0
    """How many layers it has followed."""


def class_targets(
    codes: np.ndarray, weight: np.ndarray | None, n_classes: int, first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Indicators of the classes `first`, ..., K - 1, and how much each row counts: without a label
    nothing.
    """
    target = (codes[:, None] == np.arange(first, n_classes)).astype(np.float64)
    return target, (1.0 if weight is None else weight) * (codes >= 0)


@dataclass(frozen=True)
class Logistic:
    """Softmax on the outputs, the first class at zero: for two classes the paper's logistic
    regression.

    The ridge is strength / 2 times the sum of beta_k' beta_l * 2 (delta_kl - 1/K): for two classes
    the squared weights, for more twice the squared deviations from the mean class, so that no class
    is special.
    """

    target: np.ndarray
    count: np.ndarray
    strength: float | str = "loo"
    bound: bool = False

    @property
    def metric(self) -> np.ndarray:
        """2 (delta_kl - 1/K), (o, o)."""
        n_outputs = self.target.shape[1]
        return 2 * (np.eye(n_outputs) - 1 / (n_outputs + 1))

    def step(self, design: np.ndarray, before: Readout | None = None) -> Readout:
        """(5) as printed: one Newton step, however far it leads, with W = p (1 - p), or with
        W = 0.25 I if `bound`.
        """
        strength = 0.0 if isinstance(self.strength, str) else self.strength
        weight = (before or self._start(design)).weight
        _, slope, curvature = self._curve(design, weight, strength)
        trial = weight + _newton(slope, curvature)
        return Readout(trial if np.isfinite(trial).all() else weight, strength)

    def solve(self, design: np.ndarray, before: Readout | None = None) -> Readout:
        """The most likely weights under the ridge; its strength given, or the one with the least
        loss left out.

        That one is looked for again after 1, 2, 4, 8, ... sweeps: it changes less and less.
        """
        before = before or self._start(design)
        age = before.age + 1
        strength = before.strength if isinstance(self.strength, str) else self.strength
        readout = self._damped(design, before.weight, strength)
        if isinstance(self.strength, str) and age & (age - 1) == 0:
            readout = self._tuned(design, readout)
        return replace(readout, age=age)

    def score(self, design: np.ndarray, readout: Readout) -> float:
        """Mean log-loss of every row when it is left out, with all its weight, by one Newton step
        from the others.
        """
        exact = replace(self, bound=False)
        _, _, curvature = exact._curve(design, readout.weight, readout.strength)
        logit = design @ readout.weight  # (n, o)
        p, _ = _softmax(logit)
        (n, width), n_outputs = design.shape, logit.shape[1]
        inverse = pseudo_inverse(curvature).reshape(n_outputs, width, n_outputs, width)
        leverage = np.empty((n, n_outputs, n_outputs))
        for k, m in np.ndindex(n_outputs, n_outputs):
            leverage[:, k, m] = self.count * ((design @ inverse[k, :, m]) * design).sum(axis=1)
        rest = np.eye(n_outputs) * (1 + 1e-9) - _spread(p) @ leverage
        if n_outputs == 1:
            rest = np.maximum(rest, 1e-6)  # a row that alone decides its own output
        moved = logit + (leverage @ np.linalg.solve(rest, (p - self.target)[:, :, None]))[:, :, 0]
        return self._loss(moved, _softmax(moved)[1]) / float(self.count.sum())

    @staticmethod
    def of_classes(weight: np.ndarray) -> np.ndarray:
        """The weights of more than two classes, the first included, about their mean."""
        if weight.shape[1] == 1:
            return weight
        weight = np.hstack([np.zeros_like(weight[:, :1]), weight])
        return np.asarray(weight - weight.mean(axis=1, keepdims=True))

    def _loss(self, logit: np.ndarray, log_rest: np.ndarray) -> float:
        return -float(((self.target * logit).sum(axis=1) + log_rest) @ self.count)

    def _start(self, design: np.ndarray) -> Readout:
        return Readout(np.zeros((design.shape[1], self.target.shape[1])), 1.0, age=-1)

    def _curve(
        self, design: np.ndarray, weight: np.ndarray, strength: float
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """The loss, X'(y - p) (M + 1, o) and X'WX, (5), each with the ridge."""
        logit = design @ weight
        p, log_rest = _softmax(logit)
        free = np.append(np.ones(len(weight) - 1), 0.0)
        ridged = weight * free[:, None]
        loss = (
            self._loss(logit, log_rest) + 0.5 * strength * (ridged * (ridged @ self.metric)).sum()
        )
        residual = (self.target - p) * self.count[:, None]
        slope = design.T @ residual - strength * ridged @ self.metric
        ridge = strength * np.diag(free)
        if self.bound:  # Böhning: above the curvature everywhere
            bound = 0.25 * (design.T * self.count) @ design
            return loss, slope, np.kron(self.metric, bound + ridge)
        curvature = np.kron(self.metric, ridge)
        width, n_outputs = weight.shape
        blocks = curvature.reshape(n_outputs, width, n_outputs, width)
        spread = _spread(p)
        for k in range(n_outputs):
            for m in range(k + 1):
                block = (design.T * (self.count * spread[:, k, m])) @ design
                blocks[k, :, m] += block
                if m < k:
                    blocks[m, :, k] += block
        return loss, slope, curvature

    def _damped(self, design: np.ndarray, weight: np.ndarray, strength: float) -> Readout:
        """Newton's method; a step is halved until the loss falls by what it promised, or given
        up.
        """
        loss, slope, curvature = self._curve(design, weight, strength)
        for _ in range(MOST_STEPS):
            direction = _newton(slope, curvature)
            promise = float((direction * slope).sum())
            if not promise > SETTLED * float(self.count.sum()):
                break
            size = 1.0
            while size > 1e-4:
                trial = weight + size * direction
                at_trial = self._curve(design, trial, strength)
                if at_trial[0] <= loss - 1e-4 * size * promise:
                    break
                size /= 2
            else:
                break
            weight = trial
            loss, slope, curvature = at_trial
        return Readout(weight, strength)

    def _tuned(self, design: np.ndarray, center: Readout) -> Readout:
        """Downhill from one strength to the next."""
        least = self.score(design, center)
        begun = center
        for factor in (STEP, 1 / STEP):
            while WEAKEST <= center.strength * factor <= STRONGEST:
                trial = self._damped(design, center.weight, center.strength * factor)
                loss = self.score(design, trial)
                if not loss < least - 1e-9:
                    break
                center = trial
                least = loss
            if center is not begun:
                break
        return center


def _softmax(logit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all classes but the first, (n, o), and the log-probability of the first,
    (n,).
    """
    log_rest = -logsumexp(np.hstack([np.zeros_like(logit[:, :1]), logit]), axis=1)
    return np.exp(logit + log_rest[:, None]), log_rest


def _spread(p: np.ndarray) -> np.ndarray:
    """W of every pair of outputs, p_k (delta_km - p_m), (n, o, o)."""
    return p[:, :, None] * (np.eye(p.shape[1]) - p[:, None, :])


def _newton(slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(X'WX)^-1 X'(y - p), (M + 1, o)."""
    return solved(curvature, slope.T.reshape(-1, 1)).reshape(slope.T.shape).T


@dataclass(frozen=True)
class LeastSquares:
    """min |y - X beta|² + strength |beta|²; the strength given, or chosen by "gcv" or "loo"."""

    target: np.ndarray
    count: np.ndarray
    strength: float | str = 0.0

    def solve(self, design: np.ndarray, before: Readout | None = None) -> Readout:
        """The best output layer for `design`; what was there before plays no part."""
        axes = _Axes(design, self.target, self.count)
        strength = self._chosen(axes) if isinstance(self.strength, str) else self.strength
        weight = axes.vector @ (axes.along * axes.inverse([strength]))
        return Readout(np.vstack([weight, axes.target_mean - axes.mean @ weight]), strength)

    step = solve

    @staticmethod
    def of_classes(weight: np.ndarray) -> np.ndarray:
        """Every class has its weights."""
        return weight

    def score(self, design: np.ndarray, readout: Readout) -> float:
        """Mean squared error of every row when it is left out, in closed form."""
        axes = _Axes(design, self.target, self.count)
        return float(axes.left_out([readout.strength])[0]) / float(axes.total)

    def uncertainty(self, design: np.ndarray, readout: Readout) -> tuple[np.ndarray, np.ndarray]:
        """Variance of the noise about each output, (o,), and that of the weights in units of it,
        (M + 1, M + 1).
        """
        axes = _Axes(design, self.target, self.count)
        inverse = axes.inverse([readout.strength])
        spread = (axes.vector * inverse[:, 0]) @ axes.vector.T
        cross = -(spread @ axes.mean)[:, None]
        bias = np.reshape(1 / axes.total - axes.mean @ cross[:, 0], (1, 1))
        noise = axes.residual(inverse)[:, 0] / max(float(axes.freedom(inverse)[0]), 1.0)
        return noise, np.block([[spread, cross], [cross.T, bias]])

    def _chosen(self, axes: "_Axes") -> float:
        """The strength with the least error, on a grid of three a decade and then a finer one
        around the best.
        """
        top = float(axes.value.max())
        best = top if top > FLAT else 1.0  # constant columns need no ridge
        error = axes.left_out if self.strength == "loo" else axes.gcv
        for steps, fewest, most in ((3, -30, 7), (15, -5, 6)):
            grid = [best * 10 ** (i / steps) for i in range(fewest, most)]
            best = grid[int(np.argmin(error(grid)))]
        return best


class _Axes:
    """Columns and targets about their means, along the axes in which the columns are
    uncorrelated.
    """

    def __init__(self, design: np.ndarray, target: np.ndarray, count: np.ndarray) -> None:
        self.count, self.total = count, count.sum()
        share = count / self.total
        self.mean = share @ design[:, :-1]
        self.target_mean = share @ target
        centered = design[:, :-1] - self.mean
        self.target = target - self.target_mean
        value, self.vector = np.linalg.eigh((centered.T * count) @ centered)
        self.value = np.maximum(value, 0.0)
        """Sum of squares along each axis, (M,)."""
        self.coordinates = centered @ self.vector
        """Of the rows along each axis, (n, M)."""
        self.along = self.vector.T @ ((centered.T * count) @ self.target)
        """Sum of column times target, (M, o)."""

    def inverse(self, strengths: list[float]) -> np.ndarray:
        """1 / (value + strength) for every strength, (M, L); zero along empty axes: the
        pseudo-inverse.
        """
        total = self.value[:, None] + np.asarray(strengths)
        empty = total <= max(SMALLEST * float(self.value.max()), FLAT)
        return np.where(empty, 0.0, 1 / np.where(empty, 1.0, total))

    def left_out(self, strengths: list[float]) -> np.ndarray:
        """Squared error of the rows, each left out with all its weight, for every strength, (L,):
        r_i / (1 - h_ii).
        """
        inverse = self.inverse(strengths)
        rest = 1 - self.count[:, None] * (1 / self.total + self.coordinates**2 @ inverse)  # (n, L)
        rest = np.maximum(rest, 1e-9)  # a row that alone decides its own output
        error = np.zeros(len(strengths))
        for target, along in zip(self.target.T, self.along.T, strict=True):
            residual = target[:, None] - self.coordinates @ (along[:, None] * inverse)
            error += self.count @ (residual / rest) ** 2
        return error

    def gcv(self, strengths: list[float]) -> np.ndarray:
        """n |residual|² / (n - trace of the hat matrix)² for every strength, (L,)."""
        inverse = self.inverse(strengths)
        left = self.freedom(inverse)
        error = self.total * self.residual(inverse).sum(axis=0) / np.where(left > 0, left, 1) ** 2
        return np.where(left > 0, error, np.inf)

    def residual(self, inverse: np.ndarray) -> np.ndarray:
        """Sum of squared residuals, (o, L)."""
        square = self.count @ self.target**2
        fitted = (self.along**2).T @ (inverse * (2 - self.value[:, None] * inverse))
        return np.maximum(square[:, None] - fitted, 0.0)

    def freedom(self, inverse: np.ndarray) -> np.ndarray:
        """n less the trace of the hat matrix, (L,)."""
        return self.total - 1 - self.value @ inverse


# -- symmetric equations that may be singular ----------------------------------------------------


def solved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a^-1 b for a symmetric `a` that may be singular: of all solutions the shortest, in units of
    the diagonal.
    """
    unit, _, factor = _factored(a)
    if factor is None:
        return pseudo_inverse(a) @ b
    solution = cho_solve((factor, True), b / unit[:, None], check_finite=False)
    return solution / unit[:, None]


def pseudo_inverse(a: np.ndarray) -> np.ndarray:
    """Of a symmetric, positive semi-definite `a`, in units of its diagonal."""
    unit, scaled, factor = _factored(a)
    if factor is not None:  # several times quicker
        root = inverse_of_lower(factor, overwrite=True)
        return root.T @ root / np.outer(unit, unit)
    inverse = np.linalg.pinv(scaled, rcond=SMALLEST, hermitian=True)
    return inverse / np.outer(unit, unit)


def _factored(a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The unit of each column, `a` with a diagonal of ones, and its Cholesky factor if it has
    one.
    """
    diagonal = np.diagonal(a)
    unit = np.where(diagonal > FLAT, diagonal, 1.0) ** 0.5
    scaled = a / np.outer(unit, unit)
    factor = cholesky(scaled)
    well = factor is not None and float(np.diagonal(factor).min()) ** 2 > SMALLEST
    return unit, scaled, factor if well else None
