"""RBF networks from rows: settings and data in, both layers out.

Ferreira & Figueiredo, "A global training algorithm for radial basis functions neural networks". The mathematics is in
`kernelpool.networks.em_log`, `kernelpool.networks.logistic` and `kernelpool.networks.least_squares`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.utils import check_X_y

from ..arrays import as_float64, is_array, is_numpy_array, match_array, namespace, to_numpy
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import Gaussian, Kernels
from ..networks.em_log import EMLog, EMLogRun, Hidden, Mixture, OutputLayer, Peaks, RBFParams, train
from ..networks.readout import Values
from ..networks.shared_kernel import Params
from ..penalties import Penalty
from ..rows import Block, Rows, as_rows, column_like, is_lazy, lives_elsewhere
from ..starts import ClassSample
from ..starts.sample import Sample, sample_block
from ..sums import Sums, record
from ..tables.columns import Columns
from .config import FitConfig, KernelConfig
from .monitor import Progress
from .prepare import FLOATS, TrainingData, check_elsewhere, given_weights, mean_and_variance
from .shared_kernel import MixtureTraining

LARGEST_TARGET = 1e140

ROWS_A_KERNEL = 5
"""Fewest distinct rows for each kernel when `n_kernels` is None."""

MAX_SAMPLED = 20_000
"""Rows from which starts are made."""


@dataclass(frozen=True)
class GivenMixture:
    """A mixture fitted before, in the units of the data."""

    kernels: Kernels
    mixing: np.ndarray
    """(M,)."""


@dataclass(frozen=True)
class RBFConfig:
    """Settings of both layers but for the output layer itself."""

    n_kernels: int | None
    default_kernels: int
    """Where `n_kernels` is None; fewer where there are few distinct rows."""
    hidden: str | GivenMixture
    """Where the kernels start: "kmeans", "random", "em", "uniform", "normal", or given."""
    widths: str | None
    """Widths in place of those of the start: "unit" or "farthest"."""
    kernel: KernelConfig
    training: str
    """"two_stage", "em_log" or "em_log_link"."""
    activation: str
    temperature: float | None
    """None chooses one for normalized activations and is 1 for others."""
    once: bool
    """Whether each sweep makes one undamped step of the output layer, as printed."""
    patience: int | None
    n_init: int
    max_iter: int
    tol: float
    seed: int
    standardize: bool = False
    """Whether spherical kernels are spherical in units of the features' deviations; other families do not depend on units."""


@dataclass(frozen=True)
class FittedRBF:
    """A trained network in the units of the data."""

    means: np.ndarray
    covariances: np.ndarray
    covariance_type: str
    mixing: np.ndarray
    probability: np.ndarray | None
    """Of words, (M, W)."""
    log_scale: np.ndarray
    """log of what each column is divided by, (M,)."""
    temperature: float
    loss: float
    """A row, on rows left out."""
    settled: bool
    run: EMLogRun
    output: OutputLayer
    rows: Rows
    """The training rows in the frame of `run`."""
    interrupted: str | None = None
    """What to say if the user stopped the training."""

    @property
    def network(self) -> RBFParams:
        """Both layers in the frame of the training."""
        return self.run.network


def fit_rbf(
    data: TrainingData,
    config: RBFConfig,
    make_output: Callable[[Hidden], OutputLayer],
    progress: Progress,
) -> FittedRBF:
    """The start whose network has the least loss on rows left out; `make_output` makes the output layer of a hidden layer."""
    training = _RBFTraining(data, config, make_output)
    fits: list[FittedRBF] = []
    interrupted: str | None = None
    with progress:
        for i in range(training.n_starts):
            progress.start(i)
            try:
                fits.append(training.fit_once(progress))
            except KeyboardInterrupt:
                if not fits:
                    raise
                interrupted = f"interrupted after {i} of {training.n_starts} starts; the best network so far was kept"
                break
            if fits[-1].run.outcome == "interrupted":
                interrupted = f"interrupted after {fits[-1].run.n_sweeps} sweeps; the best network so far was kept"
                break
    best = min(fits, key=lambda fit: fit.loss if np.isfinite(fit.loss) else np.inf)
    return replace(best, interrupted=interrupted)


class HiddenTraining(MixtureTraining):
    """The hidden layer: a shared-kernel network with one class."""

    def __init__(self, data: TrainingData, kernel: KernelConfig, fit: FitConfig) -> None:
        alone = replace(
            data,
            classes=np.zeros(1, int),
            class_weight=np.array([data.weight]),
            unlabeled_weight=0.0,
        )
        super().__init__(alone, kernel, fit, class_prior=np.ones(1))

    def samples(self, seed: int) -> list[ClassSample]:
        """Rows of all classes, labeled or not."""
        drawn: Sample = self.rows.total(_sample_of, seed, MAX_SAMPLED)
        return [drawn.of_class(0)]

    def widen(self, n_kernels: int) -> None:
        """Make blocks leave room for the columns of the output layer."""
        self.rows = self.data.rows.framed(self.frame, self._width + 4 * n_kernels)

    def mixture(self, n_kernels: int) -> Mixture:
        """The network of so many kernels."""
        return self._network(np.ones((n_kernels, 1)))

    def _network(self, sharing: np.ndarray, penalty: Penalty | None = None) -> Mixture:
        own = self._penalty(sharing)
        return Mixture(
            self.kernel,
            match_array(sharing, like=self.rows.backend),
            own if penalty is None else own + penalty,
        )


def _sample_of(block: Block, seed: int, most: int) -> Sample:
    xp = namespace(block.x)
    everyone = Block(block.x, xp.zeros(block.x.shape[0], dtype=xp.int64), block.weight)
    everyone.missing = block.missing
    return sample_block(everyone, seed, most)


DRAWN: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "uniform": lambda rng, shape: rng.uniform(-1, 1, shape),
    "normal": lambda rng, shape: rng.normal(size=shape),
}
"""Means that do not look at the rows: step 0 of the paper's algorithm, and the start that its conclusions name."""


def round_kernels(kernel: Gaussian, means: np.ndarray, variance: float) -> Kernels:
    """Kernels of one variance in every direction, in the shape of the family."""
    m, d = means.shape
    shape = kernel.shape(m, d)
    covariance = (
        np.broadcast_to(variance * np.eye(d), shape).copy()
        if kernel.matrices
        else np.full(shape, variance)
    )
    return Kernels(means, covariance)


class _RBFTraining:
    """What follows from the settings and the data, for any number of starts."""

    def __init__(
        self, data: TrainingData, config: RBFConfig, make_output: Callable[[Hidden], OutputLayer]
    ) -> None:
        self.data, self.config, self.make_output = data, config, make_output
        placed = (
            isinstance(config.hidden, str)
            and config.hidden in ("kmeans", "random", "em")
            and config.widths is None
        )
        if data.levels is not None and not placed:
            raise KernelpoolError(
                "X has columns of words, of which hidden='uniform', hidden='normal', a fitted mixture and widths say nothing; "
                "use hidden='kmeans', 'random' or 'em', and widths=None."
            )
        in_units_of_data = (
            isinstance(config.hidden, GivenMixture)
            or config.hidden in ("uniform", "normal")
            or config.widths
        )
        kernel = replace(config.kernel, standardize=config.standardize and not in_units_of_data)
        self.mixture = HiddenTraining(data, kernel, FitConfig(config.max_iter, config.tol))
        self.rng = np.random.default_rng(config.seed)
        self.samples: list[ClassSample] = []
        if isinstance(config.hidden, GivenMixture):
            self.counts, self.n_starts = [len(config.hidden.mixing)], 1
        else:
            self.samples = self.mixture.samples(int(self.rng.integers(2**31)))
            fewer = min(config.default_kernels, max(1, len(self.samples[0].x) // ROWS_A_KERNEL))
            wanted = fewer if config.n_kernels is None else config.n_kernels
            self.counts, self.n_starts = self.mixture.counts(wanted, self.samples), config.n_init
        self.mixture.widen(self.counts[0])
        self.rows = self.mixture.rows

    def fit_once(self, progress: Progress) -> FittedRBF:
        """One start."""
        params, settled, n_sweeps = self._start()
        em_log = self._em_log(self._temperature(params))
        if self.config.training == "two_stage":
            network = em_log.read(self.rows, params, once=False)
            return self._fitted(
                EMLogRun(network, n_sweeps=n_sweeps, best_sweep=n_sweeps, outcome="two_stage"),
                em_log,
                settled,
            )

        def on_sweep(run: EMLogRun) -> bool:
            loss = run.history[-1] if run.history else float("nan")
            progress.sweep(run.n_sweeps, -loss, float("nan"))
            return False

        config = self.config
        run = train(
            em_log,
            self.rows,
            params,
            max_iter=config.max_iter,
            tol=config.tol,
            patience=config.patience,
            on_sweep=on_sweep if progress.verbose else None,
        )
        unfinished = (
            run.outcome == "max_iter"
            and run.best_sweep == run.n_sweeps
            and config.patience is not None
        )
        return self._fitted(run, em_log, not unfinished)

    def _em_log(self, temperature: float) -> EMLog:
        hidden = Hidden(self.mixture.kernel, self.config.activation, temperature)
        mixture = self.mixture.mixture(self.counts[0])
        link = self.config.training == "em_log_link"
        return EMLog(mixture, hidden, self.make_output(hidden), link=link, once=self.config.once)

    def _temperature(self, start: Params) -> float:
        """As given; or of 1, d and d², the one whose output layer has the least loss on rows left out at the start."""
        if self.config.temperature is not None or self.config.activation != "normalized":
            return float(self.config.temperature or 1)
        losses, d = {}, self.rows.n_features
        for temperature in sorted({1.0, float(d), float(d * d)}):
            em_log = self._em_log(temperature)
            network = em_log.read(self.rows, start, once=False)
            losses[temperature] = em_log.output.score(self.rows, network.layer, network.readout)
        return min(losses, key=lambda temperature: losses[temperature])

    def _start(self) -> tuple[Params, bool, int]:
        """First hidden layer, whether EM settled (where it ran), and its sweeps."""
        mixture, hidden = self.mixture, self.config.hidden
        one = np.ones((self.counts[0], 1))
        if isinstance(hidden, GivenMixture):
            kernels = mixture.host_kernel.into(hidden.kernels, mixture.frame)
            return self._with_widths(mixture.start(kernels, hidden.mixing[:, None])), True, 0
        if hidden in DRAWN:
            means = DRAWN[hidden](self.rng, (len(one), self.rows.n_features))
            kernels = mixture.host_kernel.into(
                round_kernels(mixture.host_kernel, means, 1.0), mixture.frame
            )
        else:
            kernels = mixture.place(
                "random" if hidden == "random" else "kmeans", self.samples, self.counts, self.rng
            )
        start = mixture.start(kernels, one / len(one))
        if hidden != "em":
            return self._with_widths(start), True, 0
        fit = mixture.run(start, one, np.zeros(len(one), int))
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(fit.sentence(self.config.max_iter))
        return self._with_widths(fit.params), fit.outcome is Outcome.CONVERGED, fit.n_sweeps

    def _with_widths(self, params: Params) -> Params:
        """The same kernels, all as wide as `widths` says in the units of the data."""
        if self.config.widths is None:
            return params
        mixture = self.mixture
        means, _, mixing = mixture.in_data_units(params)
        variance = 1.0
        if self.config.widths == "farthest":
            variance = (
                float(pdist(means, "sqeuclidean").max())
                if len(means) > 1
                else float(self.data.variance.mean())
            )
            if not variance > 0:
                raise KernelpoolError(
                    'widths="farthest" needs two centers that differ; all of them lie at one point.'
                )
        kernels = round_kernels(mixture.host_kernel, means, variance)
        return mixture.start(mixture.host_kernel.into(kernels, mixture.frame), mixing)

    def _fitted(self, run: EMLogRun, em_log: EMLog, settled: bool) -> FittedRBF:
        loss = em_log.output.score(self.rows, run.network.layer, run.network.readout)
        means, covariances, mixing = self.mixture.in_data_units(run.network.hidden)
        log_scale, temperature = to_numpy(run.network.layer.log_scale), em_log.hidden.temperature
        if em_log.hidden.activation != "normalized":
            log_scale = log_scale - self.mixture.frame.log_volume / temperature
        return FittedRBF(
            means=means,
            covariances=covariances,
            covariance_type=self.mixture.type_in_data_units,
            mixing=mixing[:, 0],
            probability=self.mixture.probability(run.network.hidden),
            log_scale=log_scale,
            temperature=temperature,
            loss=loss,
            settled=settled,
            run=run,
            output=em_log.output,
            rows=self.rows,
        )


# -- rows with real targets ---------------------------------------------------------------------------------------


@record
class TargetSums(Sums):
    """Weighted sums of the targets about a point."""

    weight: Any
    count: Any
    """Rows with any weight."""
    first: Any
    """(o,)."""
    second: Any
    """(o,)."""


def _largest(block: Block) -> Peaks:
    target, _ = Values([0.0], [1.0]).of(block)
    xp = namespace(target)
    return Peaks(xp.max(xp.abs(target), axis=1))


def _target_sums(block: Block, about: list[float]) -> TargetSums:
    target, weight = Values(about, [1.0] * len(about)).of(block)
    xp = namespace(target)
    return TargetSums(
        xp.sum(weight),
        xp.sum(xp.astype(weight > 0, xp.float64)),
        target @ weight,
        target**2 @ weight,
    )


def regression_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, n_jobs: int | None
) -> tuple[TrainingData, Values, bool]:
    """Rows with their targets, the scale of the targets, and whether y was one-dimensional."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    if lives_elsewhere(X):
        check_elsewhere(type(estimator).__name__, X)
        columns = Columns.numbers(X.shape[1])
        y = _targets_elsewhere(X, y)
    else:
        columns = Columns.learn(X, None)
        X, y = check_X_y(
            X,
            y,
            dtype=FLOATS,
            multi_output=True,
            y_numeric=True,
            ensure_min_samples=2,
            estimator=estimator,
        )
        y = np.asarray(y, np.float64)
    as_given = sample_weight is None or is_lazy(X)
    weight = sample_weight if as_given else column_like(X, given_weights(X, sample_weight))
    rows = as_rows(X, y, weight, n_jobs=n_jobs)
    if not float(namespace(rows.backend).max(rows.total(_largest).log)) < LARGEST_TARGET:
        raise KernelpoolError(
            "y is too large to be squared in float64, or holds NaN or infinity; rescale or clean it."
        )
    n_outputs = 1 if y.ndim == 1 else y.shape[1]
    sums = rows.total(_target_sums, [0.0] * n_outputs)
    if not float(sums.weight) > 0:
        raise KernelpoolError("sample_weight is zero for every row; at least one must be positive.")
    origin = [float(v) for v in sums.first / sums.weight]
    about = rows.total(_target_sums, origin)
    shift = [float(v) for v in about.first / about.weight]
    variance = [
        max(float(v) - s**2, 0.0) for v, s in zip(about.second / about.weight, shift, strict=True)
    ]
    mean = [o + s for o, s in zip(origin, shift, strict=True)]
    scale = [
        v**0.5 if v > (1e-14 * abs(m)) ** 2 else 1.0 for v, m in zip(variance, mean, strict=True)
    ]
    x_mean, x_variance = mean_and_variance(rows)
    class_weight = np.array([float(sums.weight)])
    data = TrainingData(
        rows, np.zeros(1, int), class_weight, 0.0, float(sums.count), x_mean, x_variance, columns
    )
    return data, Values(mean, scale), y.ndim == 1


def _targets_elsewhere(X: Any, y: Any) -> Any:
    if is_lazy(y):
        return y.astype(np.float64)
    y = as_float64(y) if is_array(y) and not is_numpy_array(y) else np.asarray(y, np.float64)
    if is_lazy(X):
        return to_numpy(y)
    y = namespace(X).asarray(y) if is_numpy_array(y) else y
    if y.shape[0] != X.shape[0]:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{X.shape[0]}, {y.shape[0]}]"
        )
    return y
