"""How an RBF network is trained on given data; the estimators set it up and keep what it returns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from ..arrays import as_float64, is_array, is_numpy_array, match_array, namespace, to_numpy
from ..em import Outcome
from ..errors import KernelpoolError
from ..kernels import FAMILIES, Kernels
from ..networks.em_log import EMLog, Hidden, Mixture, OutputLayer, Peaks, Run, train
from ..networks.readout import Values
from ..networks.shared_kernel import Params
from ..penalties import Penalty
from ..rows import Block, Rows, as_rows
from ..starts import ClassSample
from ..starts.sample import Sample, _of_block
from ..sums import Sums, record
from ..training.config import FitConfig, KernelConfig
from ..training.monitor import Progress
from ..training.shared_kernel import MixtureTraining
from ..training.validation import (
    FLOATS,
    TrainingData,
    beside,
    check_elsewhere,
    given_weights,
    lives_elsewhere,
    mean_and_variance,
)

LARGEST_TARGET = 1e140

PLACES = ("kmeans", "random", "em")
"""Where kernels may be, by the names under which users ask for them."""

ROWS_A_KERNEL = 5
"""Fewest distinct rows for each kernel when `n_kernels` is None."""

MOST_SAMPLED = 20_000
"""Rows from which starts are made."""


class HiddenTraining(MixtureTraining):
    """The hidden layer: a shared-kernel network with one class."""

    def __init__(self, data: TrainingData, kernel: KernelConfig, fit: FitConfig) -> None:
        alone = replace(data, classes=np.zeros(1, int), class_weight=np.array([data.weight]), unlabeled_weight=0.0)
        super().__init__(alone, kernel, fit, class_prior=np.ones(1))

    def samples(self, seed: int) -> list[ClassSample]:
        """Rows of all classes, labeled or not."""
        drawn: Sample = self.rows.total(_sample_of, seed, MOST_SAMPLED)
        return [drawn.of_class(0)]

    def widened(self, n_kernels: int) -> None:
        """Blocks that leave room for the columns of the output layer."""
        self.rows = self.data.rows.framed(self.frame, self._width + 4 * n_kernels)

    def _network(self, sharing: np.ndarray, penalty: Penalty | None = None) -> Mixture:
        own = self._penalty(sharing)
        return Mixture(self.kernel, match_array(sharing, like=self.rows.home), own if penalty is None else own + penalty)


def _sample_of(block: Block, seed: int, most: int) -> Sample:
    xp = namespace(block.x)
    return _of_block(Block(block.x, xp.zeros(block.x.shape[0], dtype=xp.int64), block.weight), seed, most)


# -- where to start -----------------------------------------------------------------------------------------------


@dataclass
class Given:
    """A mixture that was handed in, in the units of the data."""

    kernels: Kernels
    mixing: np.ndarray
    """(M,)."""
    covariance_type: str


def given_mixture(mixture: Any, n_features: int) -> Given:
    """What is needed of scikit-learn's mixtures, of ours, or of anything with the same attributes."""
    name = type(mixture).__name__
    missing = [attribute for attribute in ("means_", "covariances_") if not hasattr(mixture, attribute)]
    if not hasattr(mixture, "weights_") and not hasattr(mixture, "mixing_"):
        missing.append("weights_")
    if missing:
        raise KernelpoolError(
            f"hidden must be one of {PLACES} or a fitted mixture; got {name} without {', '.join(missing)}. Fit it first; "
            f"scikit-learn's clone forgets a fit unless the mixture is wrapped in sklearn.frozen.FrozenEstimator."
        )
    means, covariances = np.asarray(mixture.means_, np.float64), np.asarray(mixture.covariances_, np.float64)
    if means.ndim != 2 or means.shape[1] != n_features:
        raise KernelpoolError(f"hidden has kernels of shape {means.shape}; X has {n_features} features.")
    kind = str(getattr(mixture, "covariance_type_", getattr(mixture, "covariance_type", None)))
    m, d = means.shape
    shapes = {name: family.shape(m, d) for name, family in FAMILIES.items()}
    if covariances.shape != shapes.get(kind):
        raise KernelpoolError(
            f"hidden has covariance_type={kind!r} and covariances of shape {covariances.shape}; expected one of {shapes}."
        )
    return Given(Kernels(means, covariances), _given_mixing(mixture, m), kind)


def _given_mixing(mixture: Any, n_kernels: int) -> np.ndarray:
    mixing = np.asarray(mixture.weights_ if hasattr(mixture, "weights_") else mixture.mixing_, np.float64)
    if mixing.ndim == 2:
        mixing = mixing @ np.asarray(mixture.class_prior_)
    if mixing.shape != (n_kernels,) or not np.isfinite(mixing).all() or mixing.min() < 0 or not mixing.sum() > 0:
        raise KernelpoolError(
            f"hidden has mixing weights {mixing.tolist()} for {n_kernels} kernels; expected positive numbers."
        )
    return np.asarray(mixing / mixing.sum())


# -- one fit ------------------------------------------------------------------------------------------------------


@dataclass
class Fitted:
    """A trained network in the units of the data."""

    run: Run
    loss: float
    settled: bool
    means: np.ndarray
    covariances: np.ndarray
    mixing: np.ndarray
    log_scale: np.ndarray
    temperature: float


class RBFTraining:
    """What follows from an estimator's parameters and the data."""

    def __init__(self, estimator: Any, data: TrainingData, default_kernels: int) -> None:
        self.estimator = estimator
        if isinstance(estimator.hidden, str) and estimator.hidden not in PLACES:
            raise KernelpoolError(f"hidden must be one of {PLACES} or a fitted mixture; got {estimator.hidden!r}.")
        self.given = None if isinstance(estimator.hidden, str) else given_mixture(estimator.hidden, data.rows.n_features)
        self.covariance_type = estimator.covariance_type if self.given is None else self.given.covariance_type
        self.training = HiddenTraining(
            data,
            KernelConfig(self.covariance_type, estimator.covariance_floor, estimator.kernel_prior),
            FitConfig(estimator.max_iter, estimator.tol),
        )
        self.hidden = Hidden(self.training.kernel, estimator.activation, float(estimator.temperature or 1))
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
        self.samples: list[ClassSample] = []
        if self.given is None:
            self.samples = self.training.samples(int(self.rng.integers(2**31)))
            wanted = (
                min(default_kernels, max(1, len(self.samples[0].x) // ROWS_A_KERNEL))
                if estimator.n_kernels is None
                else estimator.n_kernels
            )
            self.counts = self.training.counts(wanted, self.samples)
        else:
            self.counts = [len(self.given.mixing)]
        self.training.widened(self.counts[0])
        self.interrupted: str | None = None
        """What to say if the user stopped the training."""

    @property
    def rows(self) -> Rows:
        return self.training.rows

    def best(self, output: OutputLayer) -> Fitted:
        """The start whose network has the least loss on rows left out."""
        estimator = self.estimator
        n_starts = estimator.n_init if self.given is None else 1
        fits = []
        with Progress(estimator.verbose, n_starts, estimator.max_iter, type(estimator).__name__) as progress:
            for i in range(n_starts):
                progress.start(i)
                run, settled = self._run(output, progress)
                network = run.network
                loss = output.score(self.rows, network.layer, network.readout)
                fits.append(self._fitted(run, loss, settled))
                if run.outcome == "interrupted":
                    self.interrupted = f"interrupted after {run.n_sweeps} sweeps; the best network so far was kept"
                    break
        return min(fits, key=lambda fit: fit.loss if np.isfinite(fit.loss) else np.inf)

    def _run(self, output: OutputLayer, progress: Progress) -> tuple[Run, bool]:
        estimator = self.estimator
        params, settled, n_sweeps = self._start()
        once = getattr(estimator, "solver", "damped") != "damped"
        mixture = self.training._network(np.ones((self.counts[0], 1)))
        em_log = EMLog(mixture, self.hidden, output, link=estimator.training == "em_log_link", once=once)
        if estimator.temperature is None and estimator.activation == "normalized":
            self.hidden.temperature = self._temperature(em_log, params)
        if estimator.training == "two_stage":
            em_log.once = False
            return Run(em_log.read(self.rows, params), n_sweeps=n_sweeps, best_sweep=n_sweeps, outcome="two_stage"), settled

        def tell(run: Run) -> bool:
            loss = run.history[-1] if run.history else float("nan")
            progress.sweep(run.n_sweeps, -loss, float("nan"))
            return False

        run = train(
            em_log,
            self.rows,
            params,
            max_iter=estimator.max_iter,
            tol=estimator.tol,
            patience=estimator.patience,
            on_sweep=tell if estimator.verbose else None,
        )
        unfinished = run.outcome == "max_iter" and run.best_sweep == run.n_sweeps and estimator.patience is not None
        return run, not unfinished

    def _temperature(self, em_log: EMLog, start: Params) -> float:
        """Of 1, d and d², the one whose output layer has the least loss on rows left out at the start."""
        losses, once, d = {}, em_log.once, self.rows.n_features
        em_log.once = False
        for temperature in sorted({1.0, float(d), float(d * d)}):
            self.hidden.temperature = temperature
            network = em_log.read(self.rows, start)
            losses[temperature] = em_log.output.score(self.rows, network.layer, network.readout)
        em_log.once = once
        return min(losses, key=lambda temperature: losses[temperature])

    def _start(self) -> tuple[Params, bool, int]:
        """First hidden layer, whether EM settled (where it ran), and its sweeps."""
        one = np.ones((self.counts[0], 1))
        if self.given is not None:
            kernels = self.training.host_kernel.into(self.given.kernels, self.training.frame)
            return self.training.start(kernels, self.given.mixing[:, None]), True, 0
        kernels = self.training.place(
            "random" if self.estimator.hidden == "random" else "kmeans", self.samples, self.counts, self.rng
        )
        start = self.training.start(kernels, one / len(one))
        if self.estimator.hidden != "em":
            return start, True, 0
        fit = self.training.run(start, one, np.zeros(len(one), int))
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(fit.sentence(self.estimator.max_iter))
        return fit.params, fit.outcome is Outcome.CONVERGED, fit.n_sweeps

    def _fitted(self, run: Run, loss: float, settled: bool) -> Fitted:
        means, covariances, mixing = self.training.in_data_units(run.network.hidden)
        log_scale = to_numpy(run.network.layer.log_scale)
        if self.hidden.activation != "normalized":
            log_scale = log_scale - self.training.frame.log_volume / self.hidden.temperature
        return Fitted(run, loss, settled, means, covariances, mixing[:, 0], log_scale, self.hidden.temperature)


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
    return TargetSums(xp.sum(weight), xp.sum(xp.astype(weight > 0, xp.float64)), target @ weight, target**2 @ weight)


def regression_data(
    estimator: Any, X: Any, y: Any, sample_weight: Any, n_jobs: int | None
) -> tuple[TrainingData, Values, bool]:
    """Rows with their targets, the scale of the targets, and whether y was one-dimensional."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    if lives_elsewhere(X):
        check_elsewhere(estimator, X, reset=True)
        y = _targets_elsewhere(X, y)
    else:
        X, y = validate_data(estimator, X, y, dtype=FLOATS, multi_output=True, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, np.float64)
    as_given = sample_weight is None or hasattr(X, "to_delayed")
    weight = sample_weight if as_given else beside(X, given_weights(X, sample_weight))
    rows = as_rows(X, y, weight, n_jobs=n_jobs)
    if not float(namespace(rows.home).max(rows.total(_largest).log)) < LARGEST_TARGET:
        raise KernelpoolError("y is too large to be squared in float64, or holds NaN or infinity; rescale or clean it.")
    n_outputs = 1 if y.ndim == 1 else y.shape[1]
    sums = rows.total(_target_sums, [0.0] * n_outputs)
    if not float(sums.weight) > 0:
        raise KernelpoolError("sample_weight is zero for every row; at least one must be positive.")
    origin = [float(v) for v in sums.first / sums.weight]
    about = rows.total(_target_sums, origin)
    shift = [float(v) for v in about.first / about.weight]
    variance = [max(float(v) - s**2, 0.0) for v, s in zip(about.second / about.weight, shift, strict=True)]
    mean = [o + s for o, s in zip(origin, shift, strict=True)]
    scale = [v**0.5 if v > (1e-14 * abs(m)) ** 2 else 1.0 for v, m in zip(variance, mean, strict=True)]
    x_mean, x_variance = mean_and_variance(rows)
    class_weight = np.array([float(sums.weight)])
    data = TrainingData(rows, np.zeros(1, int), class_weight, 0.0, float(sums.count), x_mean, x_variance)
    return data, Values(mean, scale), y.ndim == 1


def _targets_elsewhere(X: Any, y: Any) -> Any:
    if hasattr(X, "to_delayed"):
        import dask.array as da

        if hasattr(y, "to_delayed"):
            return y.astype(np.float64)
        y = np.asarray(to_numpy(y) if is_array(y) else y, np.float64)
        return da.from_array(y, chunks=(X.chunks[0],) if y.ndim == 1 else (X.chunks[0], y.shape[1]))
    xp = namespace(X)
    y = as_float64(y) if is_array(y) and not is_numpy_array(y) else xp.asarray(np.asarray(y, np.float64))
    if y.shape[0] != X.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{X.shape[0]}, {y.shape[0]}]")
    return y
