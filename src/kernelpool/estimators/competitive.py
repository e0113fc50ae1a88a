"""Competitive mixture of neurons: the scikit-learn shell of `kernelpool.networks.competitive`."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, at_home_of, namespace, safe_log, to_numpy
from ..em import Fit, Outcome, Stop, best_of, em
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..kernels import Diag, Kernels
from ..networks.competitive import Competitive, Cost, GradientStep, Params, View
from ..rows import Block, Frame, Rows, one_blas_thread
from ..starts import sample_rows
from .data import TrainingData, query_rows, training_data
from .density import DensityClassifier
from .notebook import NotebookMixin
from .progress import CallbackSupportMixin, SweepInfo, with_callbacks
from .training import unfinished_message
from .watch import Watch

START_LENGTH = 4.0
"""Of the first weight vectors, for features of unit variance: steep enough that neurons begin with opinions of their own."""

LOCAL_FLOOR = 0.01
"""Smallest variance of a place, as a part of the feature's variance."""

DEFAULT_DECAY = 0.003


class CompetitiveNeuronsClassifier(CallbackSupportMixin, NotebookMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A mixture of simple neurons that compete for the rows and are kept different from each other.

    The prediction is :math:`\sum_j \pi_j f(x; w_j)` with logistic neurons f, softmax neurons for more than two classes. EM
    shares the rows out among the neurons; a penalty on the squared cosine between their weights turns their boundaries away
    from each other (Sridharan, Beal & Govindaraju 2006). Features are standardised inside.

    Parameters
    ----------
    n_neurons : int, default=16
        Number of neurons M.
    precision : float, default=4.0
        alpha: how sharply errors decide which neuron a row belongs to. Near 0 all neurons share all rows and the network is
        an average of like neurons; the paper has 0.03. From about 10 on each neuron sees its own rows only, which suits an
        average of all neurons badly.
    repulsion : float, default=0.1
        beta: the penalty on cos² of the angle between two neurons, against a row's squared error of at most one. It counts
        once, not once a row, so its say fades as rows come in. The paper has 0.01.
    decay : float or None, default=None
        Penalty on half the squared length of the weights (biases left out), in the unit of `repulsion`. None is 0.003 for
        ``solver="lbfgs"`` and 0 for ``solver="gradient"``, which the paper's rule is.
    solver : {"lbfgs", "gradient"}, default="lbfgs"
        How the M-step improves the weights: by some steps of L-BFGS, which never lower the objective, or by the single
        gradient step (5) of the paper as printed, together with its E-step (3), in which the repulsion takes part.
    learning_rate : float or None, default=None
        eta of (5), whose sum runs over the rows; for ``solver="gradient"`` only. None takes 4 M / (number of rows).
    n_steps : int, default=20
        Most steps of L-BFGS in one M-step.
    local : bool, default=False
        Give every neuron a place, a Gaussian with diagonal covariance over its rows: far from them it has no say.
    margin : bool, default=False
        Neurons that ask for a margin: the squared hinge in place of the logistic function.
    n_init : int, default=1
        Number of starts; the one with the highest objective is kept.
    max_iter : int, default=100
        Most sweeps from one start. ``solver="gradient"`` needs a thousand or more.
    tol : float, default=1e-4
        EM stops when a sweep changes the objective per row by less than `tol` times `precision`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads. None takes as many as BLAS may, -1 all cores.
    verbose : int, default=0
        1 shows a progress bar where `rich` is installed and a line every ten sweeps otherwise, 2 a line each sweep.
    callback : callable or None, default=None
        Called after each sweep with a `SweepInfo`; a true answer ends the fit with what has been reached.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    weights_ : ndarray of shape (n_neurons, n_features + 1) or (n_neurons, n_classes, n_features + 1)
        Weights in the units of the features, the bias last.
    mixing_ : ndarray of shape (n_neurons,)
        Share of each neuron; they sum to one.
    means_, covariances_ : ndarray of shape (n_neurons, n_features)
        Place of each neuron, where `local` is set: mean and variances.
    location_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation by which features are standardised.
    objective_ : float
        Objective per row of the parameters above.
    history_ : ndarray
        The objective after each sweep; it never falls under ``solver="lbfgs"``.
    bound_history_, penalty_history_ : ndarray
        The bound (2) that the M-step reached before each of these, between the objective before and the one after, and the
        part of `penalty` (repulsion and decay times `precision`) in the objective. NaN where not defined: at the start, and
        the bound under ``solver="gradient"``.
    n_iter_ : int
        Sweeps made by the best start.
    converged_ : bool
        Whether the objective settled.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    K. Sridharan, M. J. Beal and V. Govindaraju, "Competitive mixtures of simple neurons", ICPR 2006.

    Examples
    --------
    Exclusive or, which no single neuron can tell:

    >>> from kernelpool import CompetitiveNeuronsClassifier
    >>> from kernelpool.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> CompetitiveNeuronsClassifier(n_neurons=4, repulsion=40, tol=1e-6, random_state=0).fit(X, y).score(X, y)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_neurons": [Interval(Integral, 1, None, closed="left")],
        "precision": [Interval(Real, 0, None, closed="neither")],
        "repulsion": [Interval(Real, 0, None, closed="left")],
        "decay": [Interval(Real, 0, None, closed="left"), None],
        "solver": [StrOptions({"lbfgs", "gradient"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "local": ["boolean"],
        "margin": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_neurons: int = 16,
        *,
        precision: float = 4.0,
        repulsion: float = 0.1,
        decay: float | None = None,
        solver: str = "lbfgs",
        learning_rate: float | None = None,
        n_steps: int = 20,
        local: bool = False,
        margin: bool = False,
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[SweepInfo], Any] | None = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.precision = precision
        self.repulsion = repulsion
        self.decay = decay
        self.solver = solver
        self.learning_rate = learning_rate
        self.n_steps = n_steps
        self.local = local
        self.margin = margin
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    # -- fitting ----------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the network by EM.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best parameters reached so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : CompetitiveNeuronsClassifier
            The fitted estimator.
        """
        data = training_data(self, X, y, sample_weight, None, 1.0, self.n_jobs)
        if data.unlabelled_weight > 0:
            raise KernelpoolError("y must hold a label for every row; some are None. Drop those rows: neurons need labels.")
        training: Any = NeuronTraining(self, data)
        traces: list[Trace] = []
        with NeuronWatch(self, training, self.n_init, X, y, sample_weight) as watch:
            for i in range(self.n_init):
                traces.append(training.run(watch.begin(i)))
                watch.end()
                if traces[-1].fit.outcome is Outcome.INTERRUPTED:
                    break
        best = best_of([trace.fit for trace in traces])
        self._keep(next(trace for trace in traces if trace.fit is best), training)
        self._conclude(best)
        return self

    def _keep(self, trace: "Trace", training: "NeuronTraining") -> None:
        self.classes_, self.location_, self.scale_ = training.data.classes, training.scaling.origin, training.scaling.unit
        for name in ("means_", "covariances_"):
            self.__dict__.pop(name, None)
        for name, value in training.outside(trace.fit.params).items():
            setattr(self, name, value)
        shift = training.frame.log_volume
        self.history_, self.bound_history_ = np.asarray(trace.fit.history) - shift, np.asarray(trace.bounds) - shift
        self.penalty_history_, self.objective_ = np.asarray(trace.penalties), float(self.history_[-1])
        self.n_iter_, self.converged_ = trace.fit.n_sweeps, trace.fit.outcome is Outcome.CONVERGED

    def _conclude(self, fit: Fit[Params]) -> None:
        if fit.outcome is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(fit.sentence(self.max_iter))
        message = unfinished_message(fit, self.max_iter)
        if message is not None and fit.outcome is Outcome.FELL and self.solver == "gradient":
            message = f"The weights left the range of numbers at sweep {fit.n_sweeps}: lower learning_rate, or solver='lbfgs'."
        if message is not None:
            warn(message, UnfinishedWarning)

    # -- prediction -------------------------------------------------------------------------------------------------

    def _network(self, rounding: float) -> tuple[Competitive, View, Frame]:
        """The fitted network, its parameters in the frame of the data, and that frame."""
        frame = Frame(self.location_, self.scale_)
        kernel = Diag(np.zeros(self.n_features_in_)) if self.local else None
        network = Competitive(len(self.classes_), precision=self.precision, margin=self.margin, kernel=kernel)
        weight = np.asarray(self.weights_).reshape(len(self.mixing_), network.n_outputs, -1)
        kernels = None if kernel is None else kernel.into(Kernels(self.means_, self.covariances_), frame)
        params = Params(_inside(weight, frame), np.asarray(self.mixing_), kernels, float("nan"))
        return network, network.view(params, rounding), frame

    def _each(self, X: Any, answer: Callable[..., Array]) -> Array:
        check_is_fitted(self)
        rows = query_rows(self, X, self.n_jobs)
        network, view, frame = self._network(rows.rounding)
        return rows.framed(frame, _width(self.n_features_in_, view)).each(answer, network, view)

    _labels = DensityClassifier._labels

    def predict(self, X: Any) -> Any:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NumPy, pandas, torch and other array-API arrays, or Dask arrays.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels, in the home of `X` where it can hold them.
        """
        return self._labels(self._each(X, _most_probable))

    def predict_proba(self, X: Any) -> Any:
        """The mean output of the neurons, sum_j pi_j f(x; w_j).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, _probability)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_probability : array of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        return self._each(X, _log_probability)

    def decision_function(self, X: Any) -> Any:
        """How far the mean output of the neurons is beyond one half; of more than two classes, the mean outputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        score : array of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second of two classes.
        """
        return self._each(X, _decision)

    def neuron_posterior(self, X: Any) -> Any:
        """P(j|x): how much each neuron has to do with each row, (3) with the class summed out.

        Unless `local` is set, it differs little from `mixing_`: a neuron is told apart by its errors, and without a label only
        its doubts show.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_neurons)
            Rows sum to one.
        """
        return self._each(X, _posterior)


def _probability(block: Block, network: Competitive, view: View) -> Array:
    return network.probability(block, view)


def _log_probability(block: Block, network: Competitive, view: View) -> Array:
    return safe_log(network.probability(block, view))


def _most_probable(block: Block, network: Competitive, view: View) -> Array:
    return namespace(block.x).argmax(network.probability(block, view), axis=1)


def _decision(block: Block, network: Competitive, view: View) -> Array:
    probability = network.probability(block, view)
    return probability[:, 1] - 0.5 if network.n_outputs == 1 else probability


def _posterior(block: Block, network: Competitive, view: View) -> Array:
    return network.neuron_posterior(block, view)


# -- training -----------------------------------------------------------------------------------------------------------


class Lbfgs:
    """Some steps of L-BFGS down the cost of the M-step; never up."""

    def __init__(self, n_rows: float, n_steps: int) -> None:
        self.n_rows, self.n_steps = n_rows, n_steps

    def __call__(self, cost: Cost, weight: Array, first: tuple[float, Array]) -> tuple[Array, float]:
        start, shape = np.array(to_numpy(weight), dtype=np.float64).ravel(), weight.shape

        def per_row(flat: np.ndarray) -> tuple[float, np.ndarray]:
            # the E-step knows the cost where L-BFGS begins
            known = np.array_equal(flat, start)
            value, slope = first if known else cost(at_home_of(weight, flat.reshape(shape)))
            return value / self.n_rows, np.asarray(to_numpy(slope), np.float64).ravel() / self.n_rows

        found = minimize(per_row, start, jac=True, method="L-BFGS-B", options={"maxiter": self.n_steps})
        if not found.fun * self.n_rows < first[0]:
            return weight, first[0]
        return at_home_of(weight, found.x.reshape(shape)), float(found.fun * self.n_rows)


class Trace:
    """A run of EM and what was written down of it on the way."""

    def __init__(self, penalty: Callable[[Params], float]) -> None:
        self.fit: Fit[Params]
        self.last: Params
        self.bounds: list[float] = []
        self.penalties: list[float] = []
        self._penalty = penalty

    def write(self, fit: Fit[Params]) -> None:
        """After each sweep."""
        self.last = fit.params
        self.bounds.append(fit.params.bound)
        self.penalties.append(self._penalty(fit.params))


class NeuronTraining:
    """One data set, one set of parameters, any number of starts."""

    def __init__(self, estimator: CompetitiveNeuronsClassifier, data: TrainingData) -> None:
        self.data, self.estimator = data, estimator
        self.scaling = Frame(data.mean, np.where(data.variance > 0, data.variance, 1.0) ** 0.5)
        # densities change with the units of the features, errors do not
        self.frame = self.scaling if estimator.local else Frame(data.mean, np.ones_like(data.mean))
        self.rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31))
        self.network = self._network()
        n_scratch = 2 * estimator.n_neurons * self.network.n_outputs
        self.rows: Rows = data.rows.framed(self.scaling, n_scratch + 2 * len(data.mean))
        self.tol = estimator.tol * estimator.precision

    def _network(self) -> Competitive:
        e, n_classes, d = self.estimator, len(self.data.classes), len(self.data.mean)
        printed = e.solver == "gradient"
        rate = e.learning_rate if e.learning_rate is not None else 4 * e.n_neurons / self.data.weight
        decay = e.decay if e.decay is not None else 0.0 if printed else DEFAULT_DECAY
        return Competitive(
            n_classes,
            precision=e.precision,
            repulsion=e.repulsion,
            decay=decay,
            margin=e.margin,
            kernel=Diag(at_home_of(self.data.rows.home, np.full(d, LOCAL_FLOOR))) if e.local else None,
            repel_rows=printed,
            solver=GradientStep(rate) if printed else Lbfgs(self.data.weight, e.n_steps),
        )

    def run(self, on_sweep: Callable[[Fit[Params]], bool]) -> Trace:
        """EM from one start."""
        factor = -self.estimator.precision
        trace = Trace(lambda params: factor * self.network.penalty(params.weight))
        printed = self.estimator.solver == "gradient"

        def watched(fit: Fit[Params]) -> bool:
            trace.write(fit)
            return on_sweep(fit)

        stop = Stop(self.estimator.max_iter, self.tol, monotone=not printed)
        # the objective of float32 rows is itself no better than float32
        stop = replace(stop, rounding=max(stop.rounding, 8 * self.data.rows.rounding))
        # held at one thread for the whole run: BLAS takes longer to change its mind than a sweep over few rows
        # steps that are too long end in NaN, and EM tells of it
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            trace.fit = em(lambda params: self.network.sweep(self.rows, params), self._start(), stop, on_sweep=watched)
        if printed:  # (5) need not raise the objective, so the highest means nothing: the last parameters are the result
            trace.fit = replace(trace.fit, params=trace.last, objective=trace.fit.history[-1])
        return trace

    def _start(self) -> Params:
        e, d = self.estimator, len(self.data.mean)
        columns = [_spread_directions(e.n_neurons, d + 1, self.rng) for _ in range(self.network.n_outputs)]
        weight = START_LENGTH * np.stack(columns, axis=1)
        kernels = None
        if e.local:
            samples = sample_rows(self.rows, len(self.data.classes), int(self.rng.integers(2**31)))
            x = np.concatenate([sample.x for sample in samples])
            kernels = Kernels(self.rng.choice(x, e.n_neurons), np.ones((e.n_neurons, d)))
        mixing = np.full(e.n_neurons, 1 / e.n_neurons)
        weight, mixing, kernels = at_home_of(self.rows.home, (weight, mixing, kernels))
        return Params(weight, mixing, kernels, float("nan"))

    def outside(self, params: Params) -> dict[str, np.ndarray]:
        """Fitted attributes, in the units of the data."""
        weight = _outside(to_numpy(params.weight), self.scaling)
        found = {"weights_": weight[:, 0, :] if weight.shape[1] == 1 else weight, "mixing_": np.array(to_numpy(params.mixing))}
        if params.kernels is not None:
            kernels = Kernels(to_numpy(params.kernels.mean), to_numpy(params.kernels.covariance))
            kernels = Diag(np.zeros(len(self.data.mean))).out_of(kernels, self.scaling)
            found |= {"means_": kernels.mean, "covariances_": kernels.covariance}
        return found


class NeuronWatch(Watch):
    """Tells of each sweep in the words of this network."""

    training: Any

    def _parameters(self, params: Any) -> dict[str, Any]:
        outside: dict[str, Any] = self.training.outside(params)
        return outside

    def _attributes(self, params: Any) -> dict[str, Any]:
        scaling: Frame = self.training.scaling
        fixed = {"classes_": self.training.data.classes, "location_": scaling.origin, "scale_": scaling.unit}
        return {**self._parameters(params), **fixed}


def _spread_directions(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors at angles as wide as may be: the nearest frame with equal extent along all axes, (n, d)."""
    left, _, right = np.linalg.svd(rng.standard_normal((n, d)), full_matrices=False)
    direction = left @ right
    return np.asarray(direction / np.linalg.norm(direction, axis=1, keepdims=True))


def _outside(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """Weights of standardised features in the units of the features; w . (x - m) / s + b = (w / s) . x + b - w . m / s."""
    slope = weight[..., :-1] / frame.unit
    return np.concatenate([slope, weight[..., -1:] - (slope @ frame.origin)[..., None]], axis=-1)


def _inside(weight: np.ndarray, frame: Frame) -> np.ndarray:
    """The way back."""
    bias = weight[..., -1:] + (weight[..., :-1] @ frame.origin)[..., None]
    return np.concatenate([weight[..., :-1] * frame.unit, bias], axis=-1)


def _width(n_features: int, view: View) -> int:
    return 2 * n_features + 4 * len(view.weight)
