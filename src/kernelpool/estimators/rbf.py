"""RBF network classifier and regressor: shells of `kernelpool.training.rbf`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..arrays import Array, Float64, as_float64, namespace, safe_log, to_numpy
from ..errors import KernelpoolError, UnfinishedWarning, warn
from ..inspection.describe import (
    Description,
    Pool,
    classes_text,
    features_text,
    gaussian_shapes,
    gaussians_text,
    training_text,
)
from ..kernels import FAMILIES, Diag, Kernels, Spherical
from ..kernels.gaussian import LOG_2_PI
from ..networks.em_log import ACTIVATIONS, Hidden, Layer, OutputLayer
from ..networks.least_squares import LeastSquares
from ..networks.logistic import Logistic
from ..networks.parzen_kernels import distances_along, squared_distances
from ..networks.readout import ClassTargets, Values
from ..rows import Block, Frame, Rows, one_blas_thread
from ..starts.sample import content_key
from ..text import plural
from ..training.config import KernelConfig
from ..training.cross_fit import Selection
from ..training.folds import stratified_folds
from ..training.frames import family_for, frame_of, frame_of_table, kernels_of, mixture_frame
from ..training.monitor import Progress
from ..training.parzen import ParzenRows, labeled_rows
from ..training.prepare import (
    TrainingData,
    known_columns,
    named_features,
    query_rows,
    training_data,
    validation_rows,
)
from ..training.rbf import FittedRBF, GivenMixture, RBFConfig, fit_rbf, regression_data
from ..training.readout_path import (
    DEFAULT,
    RIDGES,
    WIDTHS,
    LabeledArrays,
    ReadoutFit,
    Setting,
    fit_readout_path,
    mean_losses,
    train_readout,
)
from ..training.views import learned_metric
from .base import Estimator, RowFunction, Transform, log_softmax
from .describing import TableClassifier, filled_rows

HELD_OUT_FOLDS, FEW_ROWS = 4, 500
"""One of so many folds is held out where width and ridge are chosen; each in turn where rows are few."""

PLACES = ("kmeans", "random", "em", "uniform", "normal")
"""Where kernels may start, by the names under which users ask for them."""

WORD_DISTANCES = (0.5, 1.0, 2.0)
"""Distances between two words that are tried, in units of the root-mean-square distance of two rows along a feature."""

KERNELS_ON_PATH = 300
KERNELS_PER_CLASS = 10
KERNELS_OF_REGRESSOR = 40


class RBFNetwork(Estimator):
    """What both networks have in common."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_kernels": [Interval(Integral, 1, None, closed="left"), None],
        "hidden": "no_validation",  # a name or a mixture: looked at where it is used
        "widths": [StrOptions({"unit", "farthest"}), None],
        "training": [StrOptions({"two_stage", "em_log", "em_log_link"})],
        "activation": [StrOptions(set(ACTIVATIONS))],
        "temperature": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_type": [StrOptions(set(FAMILIES))],
        "strength": [StrOptions({"loo", "gcv"}), Interval(Real, 0, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_floor": [Interval(Real, 0, None, closed="left")],
        "kernel_prior": [StrOptions({"conjugate"}), None],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _fit_layers(
        self,
        data: TrainingData,
        default_kernels: int,
        make_output: Callable[[Hidden], OutputLayer],
        *,
        once: bool = False,
    ) -> FittedRBF:
        """Train both layers; nothing is written into the estimator."""
        if isinstance(self.hidden, str) and self.hidden not in PLACES:
            raise KernelpoolError(
                f"hidden must be one of {PLACES} or a fitted mixture; got {self.hidden!r}."
            )
        hidden: str | GivenMixture = self.hidden
        family = self.covariance_type
        if not isinstance(hidden, str):
            hidden, family = _given_mixture(hidden, data.rows.n_features)
        if (
            data.levels is not None and min(data.levels) > 0
        ):  # without numbers kernels have no shape
            family = "diag"
        config = RBFConfig(
            n_kernels=self.n_kernels,
            default_kernels=default_kernels,
            hidden=hidden,
            widths=self.widths,
            kernel=KernelConfig(family, self.covariance_floor, self.kernel_prior),
            training=self.training,
            activation=self.activation,
            temperature=self.temperature,
            once=once,
            patience=self.patience,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            standardize=self.standardize,
            seed=check_random_state(self.random_state).randint(2**31),
        )
        n_starts = self.n_init if isinstance(hidden, str) else 1
        with named_features(data.columns):
            return fit_rbf(
                data,
                config,
                make_output,
                Progress(self.verbose, n_starts, self.max_iter, type(self).__name__),
            )

    def _set_layers(self, fitted: FittedRBF) -> None:
        """Set the attributes that both networks have."""
        self.means_, self.covariances_, self.mixing_ = (
            fitted.means,
            fitted.covariances,
            fitted.mixing,
        )
        self.covariance_type_ = fitted.covariance_type
        self.temperature_ = fitted.temperature
        self.activation_log_scale_ = fitted.log_scale
        self.strength_ = fitted.network.readout.strength
        self.loss_, self.history_ = fitted.loss, np.asarray(fitted.run.history)
        self.n_iter_, self.best_iter_ = fitted.run.n_sweeps, fitted.run.best_sweep
        self.converged_ = fitted.settled
        self.__dict__.pop("probabilities_", None)
        if fitted.probability is not None:
            self.probabilities_ = fitted.probability

    def _warn_if_unfinished(self, fitted: FittedRBF) -> None:
        if not fitted.settled:
            what = (
                "the mixture was"
                if self.training == "two_stage"
                else "the loss of rows left out was"
            )
            warn(
                f"Training stopped after max_iter={self.max_iter} sweeps; {what} still improving. Raise max_iter, or tol.",
                UnfinishedWarning,
            )
        if fitted.interrupted is not None:
            raise KeyboardInterrupt(fitted.interrupted)

    def _layers(self, rows: Rows) -> tuple[Rows, Hidden, Layer]:
        """Rows in the frame of the kernels, the hidden layer, and its parameters in that frame."""
        columns = known_columns(self)
        kernel = family_for(
            self.covariance_type_,
            np.zeros(self.n_features_in_),
            None if columns is None else columns.levels,
        )
        kernels = kernels_of(self.means_, self.covariances_, getattr(self, "probabilities_", None))
        frame = mixture_frame(kernel, kernels, self.mixing_)
        natural_params = kernel.natural_params(kernel.into(kernels, frame), rows.eps)
        log_scale = self.activation_log_scale_ + (
            0.0 if self.activation == "normalized" else frame.log_volume / self.temperature_
        )
        layer = Layer(natural_params, safe_log(self.mixing_), log_scale, np.zeros_like(log_scale))
        framed = rows.framed(frame, natural_params.weight.shape[1] + 5 * len(self.means_))
        return framed, Hidden(kernel, self.activation, self.temperature_), layer

    def _of_columns(self, X: Any, answer: Callable[..., Array], *params: Any) -> Array:
        """`answer(columns, *params)` of every row."""
        framed, hidden, layer = self._layers(self._rows(X))
        return framed.each(_of_block_columns, answer, hidden, layer, *params)

    def _rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        return query_rows(self, X)

    def activations(self, X: Any) -> Any:
        """What the kernels say of each row: the columns that `readout_` weighs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        activation : array of shape (n_samples, n_kernels)
            p(x|j) / exp(activation_log_scale_), or P(j|x) where `activation` is "normalized".
        """
        return self._of_columns(X, _activation)

    def _describe(self) -> Description:
        share = np.asarray(self.mixing_)
        task = f"for {classes_text(self)}" if hasattr(self, "classes_") else "for real outputs"
        # with categories the kernels are in the space of the indicators
        shapes = {} if hasattr(self, "word_distance_") else gaussian_shapes(self)
        pool = Pool(share / share.sum(), weight=np.asarray(self.readout_)[: len(share)], **shapes)
        if self.training == "path":
            few = (
                f", each of at most {self.max_features} of them,"
                if hasattr(self, "kernel_features_")
                else ""
            )
            return Description(
                f"A radial basis function network: {plural(len(self.means_), 'Gaussian kernel')} "
                f"of one width in {features_text(self)}{few} and a logistic output layer {task} on "
                f"them and on the features; width and ridge are the best of "
                f"{plural(self.n_iter_, 'setting')}.",
                pool,
            )
        n = plural(len(self.means_), f"{gaussians_text(self)} Gaussian kernel")
        two_stage = self.training == "two_stage"
        how = "the two layers trained one after the other" if two_stage else ""
        return Description(
            f"A radial basis function network: {n} in {features_text(self)} and a "
            f"{self.readout.replace('_', '-')} output layer {task}, "
            f"{how or 'both layers trained together'} ({self.training})"
            f"{training_text(self, fitted='')}",
            pool,
        )


def _of_block_columns(
    block: Block, answer: Callable[..., Array], hidden: Hidden, layer: Layer, *params: Any
) -> Array:
    return answer(hidden.columns(block, layer), *params)


def _activation(columns: Array) -> Array:
    return columns[:-1, :].T


def _outputs(columns: Array, readout: Float64) -> Array:
    """Outputs of the network, (n, o), in float64."""
    return columns.T @ readout.value


def _given_mixture(mixture: Any, n_features: int) -> tuple[GivenMixture, str]:
    """What is needed of scikit-learn's mixtures, of ours, or of anything with the same attributes; and its family."""
    name = type(mixture).__name__
    missing = [
        attribute for attribute in ("means_", "covariances_") if not hasattr(mixture, attribute)
    ]
    if not hasattr(mixture, "weights_") and not hasattr(mixture, "mixing_"):
        missing.append("weights_")
    if missing:
        raise KernelpoolError(
            f"hidden must be one of {PLACES} or a fitted mixture; got {name} without {', '.join(missing)}. Fit it first; "
            f"scikit-learn's clone forgets a fit unless the mixture is wrapped in sklearn.frozen.FrozenEstimator."
        )
    means, covariances = (
        np.asarray(mixture.means_, np.float64),
        np.asarray(mixture.covariances_, np.float64),
    )
    if means.ndim != 2 or means.shape[1] != n_features:
        raise KernelpoolError(
            f"hidden has kernels of shape {means.shape}; X has {n_features} features."
        )
    kind = str(getattr(mixture, "covariance_type_", getattr(mixture, "covariance_type", None)))
    m, d = means.shape
    shapes = {name: family.shape(m, d) for name, family in FAMILIES.items()}
    if covariances.shape != shapes.get(kind):
        raise KernelpoolError(
            f"hidden has covariance_type={kind!r} and covariances of shape {covariances.shape}; expected one of {shapes}."
        )
    return GivenMixture(Kernels(means, covariances), _given_mixing(mixture, m)), kind


def _given_mixing(mixture: Any, n_kernels: int) -> np.ndarray:
    mixing = np.asarray(
        mixture.weights_ if hasattr(mixture, "weights_") else mixture.mixing_, np.float64
    )
    if mixing.ndim == 2:
        mixing = mixing @ np.asarray(mixture.class_prior_)
    if (
        mixing.shape != (n_kernels,)
        or not np.isfinite(mixing).all()
        or mixing.min() < 0
        or not mixing.sum() > 0
    ):
        raise KernelpoolError(
            f"hidden has mixing weights {mixing.tolist()} for {n_kernels} kernels; expected positive numbers."
        )
    return np.asarray(mixing / mixing.sum())


class RBFNetworkClassifier(TableClassifier, RBFNetwork):
    r"""Radial basis function network: Gaussian kernels, and an output layer on what they say.

    By default (``training="path"``) there are some hundred round kernels of one width at the centers that k-means finds, and
    the output layer is a logistic regression on the kernels and on the features themselves. The width and the strength of the
    ridge are those with the least log-loss on rows that are held out, found along a path from strong ridges to weak ones.

    In the networks of the paper (Ferreira & Figueiredo) the kernels are few, of any shape, and one mixture of all rows, which
    does not see the labels; the output layer does. They are trained one after the other (``training="two_stage"``), or together
    ("em_log", "em_log_link"): in every sweep one EM step of the mixture and the output layer for it; with the link, the weights
    of the output layer become the mixing weights of the next sweep, so that kernels that matter to the labels draw more rows.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes 300, at most half of the distinct rows, for "path"; for the networks of the paper ten a
        class, fewer where X has fewer than five distinct rows for each.
    hidden : {"kmeans", "random", "em", "uniform", "normal"} or fitted mixture, default="kmeans"
        Where the kernels are, or start if `training` moves them: at the centers that k-means finds, as wide as its clusters;
        at random rows, as wide as the data; where EM settles from a k-means start; at random in [-1, 1], or by a Gaussian
        of mean zero and variance one, with unit covariances, in the units of X and whatever its rows are (the paper's step 0,
        and the start of its conclusions); or those of a mixture fitted before, scikit-learn's or anything with `means_`,
        `covariances_`, `covariance_type` and `weights_` or `mixing_`. scikit-learn's `clone` forgets the fit of such a
        mixture unless it is wrapped in `sklearn.frozen.FrozenEstimator`.
        "path" takes the centers of "kmeans" or the rows of "random".
    widths : {"unit", "farthest"} or None, default=None
        Widths that replace those of `hidden`, one for all kernels and directions, in the units of X: variance one, as in the
        paper's (1), or the largest squared distance between two centers, as in Netlab. None leaves them as they are. With
        `hidden="em"` they are replaced after EM; what `training` moves then starts with them.
    readout : {"logistic", "least_squares", "ridge"}, default="logistic"
        The output layer. Logistic outputs are log-odds, fitted by likelihood. Outputs of "least_squares" and "ridge" estimate
        P(C_k|x) themselves and sum to one, but may leave [0, 1]: for `predict_proba`, what lies below 1 / (n + K), for n
        training rows, is raised to that, and the outputs are divided by their new sum. The order of the classes stays. "path"
        has the logistic layer alone.
    training : {"path", "em_log_link", "em_log", "two_stage"}, default="path"
        How the two layers are trained. The parameters from `activation` to `solver`, and from `patience` to `kernel_prior`, are
        those of the networks of the paper and mean nothing to "path".
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        What a kernel says of a row: its share P(j|x) in the mixture, its density p(x|j) (the paper), or a Gaussian of height
        one. The last two are the same network in other units, and differ only in what the link makes of the weights. In many
        dimensions only the first still varies smoothly.
    temperature : float or None, default=None
        The logarithm of what a kernel says is divided by this, which widens it by the square root. log p(x|j) varies with
        the number of features d, so that in many dimensions one kernel has everything to say and the next nothing. None takes
        for "normalized" the one of 1, d and d² with the least loss on rows left out at the start, and 1, the paper, for the
        other two.
    covariance_type : {"full", "diag", "spherical", "tied"}, default="full"
        Shape of the kernels. The spherical family depends on the units of the features; the other three do not.
    solver : {"damped", "newton", "bound"}, default="damped"
        The logistic step of each sweep: Newton's method with a ridge and a line search until it has converged; or, as in the
        paper, one Newton step with W = p (1 - p), or one with the bound W = 0.25 I. With `training="two_stage"` the last two
        are made until they converge, damped.
    strength : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge on the output layer ("ridge", and "logistic" where `solver` is "damped"): half of it times the
        squared weights is added to the loss, for "ridge" and for two classes; the bias is free. "loo" takes the strength with
        the least loss on rows left out, in closed form (for "logistic" to first order), "gcv" (only for "ridge") that
        with the least generalized cross-validation error. The paper's solvers use no ridge unless a number is given. With
        ``training="path"`` "loo" is chosen on held-out rows together with the width.
    patience : int or None, default=10
        EM does not see the labels and may come to serve them worse. Training stops when the loss on rows left out has not
        fallen for this many sweeps, and the best sweep is kept. None makes `max_iter` sweeps and keeps the last.
    n_init : int, default=1
        Number of starts; the one with the least loss on rows left out is kept.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        A smaller gain per row is none.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in the data.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel; None is maximum likelihood, as in
        the paper.
    standardize : bool, default=True
        Whether kernels are round in features of mean zero and variance one, rather than in the features as they come; what the
        network says stays in the units of the data. It matters for "path" and for spherical kernels, whose `covariances_` are
        then diagonal: the other families do not depend on units.
    max_features : int or None, default=None
        For "path", how many features a kernel may see. None lets each see all. With a number, kernels lie at rows, and each
        sees from one to so many features that are drawn at random, whatever the others are, as trees of a forest do. Two or
        three suit tables of many columns, of which few go together.
    metric : {"learned"} or None, default=None
        For "path", "learned" makes kernels round in a linear map of the features under which near rows are of one class:
        neighborhood components (Goldberger et al. 2004), learned on a sample of 600 rows. `covariances_` are then one matrix.
    missing : {"marginalize", "error"}, default="marginalize"
        What NaN in X means, and None, pandas' NA and masked cells: a missing cell, or an error. In the networks of the paper
        with normalized activations, missing cells are integrated out of the kernels, in training and in prediction; the other
        activations have no such meaning and refuse them. "path" answers the mean of its probabilities over eight fillings that
        are drawn from a small mixture (`describing_network_`) given the cells that are known, and is trained on one; what is
        drawn in prediction depends on the row alone. Rows in NumPy and in tables may have missing cells.
    categorical_features : "from_dtype", sequence of str, int or bool, Columns, or None, default="from_dtype"
        Which columns of X hold words, as in `SharedKernelClassifier`. Kernels are products of one over the numbers and one over
        each column of words: in the networks of the paper a table of probabilities; for "path" round kernels in which all words
        of a column are equally far from one another (Aitchison & Aitken 1976).
    word_distance : float or "auto", default="auto"
        For "path", distance between two words of a column, in the units of `width_`. "auto" tries three and takes the one with
        the least log-loss on the rows that are held out.
    path_setting : tuple of two int or None, default=None
        Where on the path to look: `path_setting_` of a network fitted to other rows of the same data. Only its width and the
        ridges beside it are tried; see `narrowed`.
    unlabeled : int, float, str or None, default=None
        The label in `y` that marks rows without a label: they take part in the hidden layer only, and with
        ``training="path"`` not at all.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the results do not depend on it.
    verbose : int, default=0
        1 shows progress, 2 a line each sweep.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    means_, covariances_, mixing_ : ndarray
        The hidden layer: centers (n_kernels, n_features), covariances in the shape of `covariance_type_`, and the mixing
        weights (n_kernels,) of the mixture; for "path" the same covariance for all kernels, and the shares of the rows that are
        nearest to each, or with `max_features` equal ones.
    kernel_features_ : ndarray of bool of shape (n_kernels, n_features)
        The features that each kernel sees, where `max_features` is set.
    metric_ : ndarray of shape (n_features, n_features)
        The map of the features in which kernels are round, of standard deviation `width_`, where a metric was learned.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs) or (n_kernels + n_features + 1, n_outputs)
        The output layer, for the columns of `activations`, for the features (only "path"), and last the bias. One output for
        two classes: for "logistic" the log-odds of the second class, else its probability. One output a class for more.
    width_ : float
        Standard deviation of the kernels of "path", in units of the features' deviations where `standardize` is set.
    word_distance_ : float
        Distance between two words of a column, for "path"; where there are columns of words. `means_` and `readout_` have a
        column for each number and then one for each word and for all others, 0 or 1.
    categories_ : list of (ndarray of str or None)
        The words that are told apart in each column, the most frequent first, None for numbers; where there are such columns.
    probabilities_ : ndarray of shape (n_kernels, n_levels)
        Probability of each word, and of all others, in each kernel of a network of the paper, column after column.
    describing_network_ : SharedKernelClassifier
        The mixture from which "path" draws missing cells.
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labeled rows: what is said of a row of which nothing is known.
    path_setting_ : tuple of two int
        Place of the width and of the ridge on the path, for "path".
    validation_log_proba_ : ndarray of shape (n_validation_samples, n_classes)
        log P(C_k|x) of the rows of `X_val`, for "path": of each fifth by the width and ridge that suit the others best, so
        that no row is judged by what it has chosen. Not kept in model files.
    activation_log_scale_ : ndarray of shape (n_kernels,)
        log of what each column was divided by: readout_ / exp(activation_log_scale_) are the weights of densities.
    strength_ : float
        Strength of the ridge.
    loss_ : float
        Loss a row on rows left out: log-loss, or for "least_squares" and "ridge" squared error.
    history_ : ndarray
        That loss after each sweep, where it was watched; for "path" at each setting that was tried.
    n_iter_, best_iter_ : int
        Sweeps made, and the sweep that was kept; settings for "path".
    converged_ : bool
        Whether training ended by itself.
    covariance_type_ : str
        Family of the kernels.
    temperature_ : float
        The temperature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks".

    Examples
    --------
    Two classes that overlap everywhere; no classifier can err less than 9.7 %:

    >>> from kernelpool import RBFNetworkClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> network = RBFNetworkClassifier(random_state=0).fit(X, y)
    >>> print(f"{1 - network.score(X_test, y_test):.2f}")
    0.10
    >>> network = RBFNetworkClassifier(n_kernels=12, training="em_log_link", random_state=0).fit(X, y)
    >>> print(f"{1 - network.score(X_test, y_test):.2f}")
    0.10
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RBFNetwork._parameter_constraints,
        **TableClassifier._parameter_constraints,
        "word_distance": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "training": [StrOptions({"path", "two_stage", "em_log", "em_log_link"})],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "metric": [StrOptions({"learned"}), None],
        "path_setting": [tuple, list, None],
        "readout": [StrOptions({"logistic", "least_squares", "ridge"})],
        "solver": [StrOptions({"damped", "newton", "bound"})],
        "unlabeled": "no_validation",
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        hidden: Any = "kmeans",
        widths: str | None = None,
        readout: str = "logistic",
        training: str = "path",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "full",
        solver: str = "damped",
        strength: float | str = "loo",
        patience: int | None = 10,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = "conjugate",
        standardize: bool = True,
        max_features: int | None = None,
        metric: str | None = None,
        path_setting: tuple[int, int] | None = None,
        missing: str = "marginalize",
        categorical_features: Any = "from_dtype",
        word_distance: float | str = "auto",
        unlabeled: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.hidden = hidden
        self.widths = widths
        self.readout = readout
        self.training = training
        self.activation = activation
        self.temperature = temperature
        self.covariance_type = covariance_type
        self.solver = solver
        self.strength = strength
        self.patience = patience
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.standardize = standardize
        self.max_features = max_features
        self.metric = metric
        self.path_setting = path_setting
        self.missing = missing
        self.categorical_features = categorical_features
        self.word_distance = word_distance
        self.unlabeled = unlabeled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Fit both layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are, but for
            ``training="path"``, which takes a copy in memory.
        y : array-like of shape (n_samples,)
            Labels; see `unlabeled` for rows that have none.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.
        X_val : array-like of shape (n_validation_samples, n_features), default=None
            Rows on which ``training="path"`` chooses width and ridge. None holds a quarter of X out for that (of less than
            500 rows each quarter in turn), and then trains on all of X.
        y_val : array-like of shape (n_validation_samples,), default=None
            Their labels.

        Returns
        -------
        self : RBFNetworkClassifier
            The fitted estimator.
        """
        if self.strength == "gcv" and self.readout != "ridge":
            raise KernelpoolError(
                f"strength='gcv' is for readout='ridge'; got readout={self.readout!r}. Use strength='loo'."
            )
        if self._on_path:
            return self._fit_path(X, y, sample_weight, X_val, y_val)
        if self.max_features is not None:
            raise KernelpoolError(
                f"max_features is for training='path'; got training={self.training!r}, whose kernels see every feature."
            )
        if self.metric is not None:
            raise KernelpoolError(
                f"metric='learned' is for training='path'; got training={self.training!r}, which shapes kernels itself."
            )
        data = training_data(
            self,
            X,
            y,
            sample_weight,
            unlabeled=self.unlabeled,
        )
        self.columns_ = data.columns
        n_classes = len(data.classes)
        output = partial(self._output, n_classes=n_classes)
        fitted = self._fit_layers(
            data, KERNELS_PER_CLASS * n_classes, output, once=self.solver != "damped"
        )
        weight = to_numpy(fitted.network.readout.weight)
        if (
            self.readout == "logistic" and n_classes > 2
        ):  # the first class was the reference: now all are alike
            weight = np.concatenate([np.zeros_like(weight[:, :1]), weight], axis=1)
            weight = weight - weight.mean(axis=1, keepdims=True)
        self.classes_ = data.classes
        self._set_layers(fitted)
        self._forget_path()
        self.readout_ = np.array(weight)
        self._smallest = 1 / (data.weight + n_classes)
        self.class_shares_ = np.asarray(data.class_weight / data.class_weight.sum())
        self._warn_if_unfinished(fitted)
        return self

    @property
    def _takes_holes(self) -> bool:
        if self._on_path:
            return super()._takes_holes
        return bool(self.missing != "error" and self.activation == "normalized")

    # -- the path ---------------------------------------------------------------------------------------------------

    @property
    def _on_path(self) -> bool:
        return bool(self.training == "path")

    def _fit_path(self, X: Any, y: Any, sample_weight: Any, X_val: Any, y_val: Any) -> Self:
        if self.readout != "logistic":
            raise KernelpoolError(
                f"training='path' has a logistic output layer; got readout={self.readout!r}. Use training='two_stage'."
            )
        if self.hidden not in ("kmeans", "random"):
            given = (
                repr(self.hidden) if isinstance(self.hidden, str) else type(self.hidden).__name__
            )
            raise KernelpoolError(
                f"training='path' needs hidden='kmeans' or 'random'; got {given}. Use training='two_stage'."
            )
        if self.max_features is not None and self.metric is not None:
            raise KernelpoolError(
                "max_features and metric='learned' exclude each other: a map mixes the features of which a kernel sees a few."
            )
        near = None if self.path_setting is None else _checked_setting(self.path_setting)
        data = training_data(
            self,
            X,
            y,
            sample_weight,
            unlabeled=self.unlabeled,
            unlabeled_weight=0.0,
        )
        self.columns_ = data.columns
        seed = check_random_state(self.random_state).randint(2**31)
        describing = self._described(data, seed)
        rows = labeled_rows(data)
        rows = replace(rows, x=filled_rows(rows.x, describing, seed)).merge_duplicates()
        settings: dict[str, Any] = {
            "n_kernels": KERNELS_ON_PATH if self.n_kernels is None else self.n_kernels,
            "n_classes": len(data.classes),
            "seed": seed,
            "hidden": self.hidden,
            "max_features": self.max_features,
            "ridge": None if isinstance(self.strength, str) else 0.5 * float(self.strength),
        }
        held_out: ParzenRows | None = None
        selection: Selection | None = None
        if X_val is not None:
            x_val, codes = validation_rows(self, X_val, y_val, data.columns, data.classes)
            x_val = filled_rows(x_val, describing, seed)
            held_out = replace(
                rows, x=x_val, codes=codes, weight=np.ones(len(codes)), index=np.arange(len(codes))
            )

        def fitted(frame: Frame, progress: Progress) -> tuple[ReadoutFit, np.ndarray | None]:
            """The network of rows that are seen in a frame, and the metric that was learned in it."""
            x, metric = self._path_rows(rows.x, frame), None
            if self.metric is not None:
                metric = learned_metric(x, rows.codes, rows.weight, np.random.default_rng(seed))

            def seen(x: np.ndarray) -> np.ndarray:
                return x if metric is None else x @ metric.T

            def on_setting(n: int, loss: float) -> None:
                progress.sweep(n, -loss, float("nan"))

            def search(
                train: LabeledArrays, held_out: LabeledArrays, selection: Selection | None = None
            ) -> ReadoutFit:
                return fit_readout_path(
                    train,
                    held_out,
                    near=near,
                    selection=selection,
                    on_setting=on_setting,
                    **settings,
                )

            train = seen(x), rows.codes, rows.weight
            if held_out is not None:
                nonlocal selection
                apart = seen(self._path_rows(held_out.x, frame)), held_out.codes, held_out.weight
                selection = selection or Selection(*apart[1:], content_key(apart[0], seed))
                return search(train, apart, selection), metric
            fold = stratified_folds(rows.codes, HELD_OUT_FOLDS, key=content_key(train[0], seed))
            out = [
                f for f in range(HELD_OUT_FOLDS if len(fold) < FEW_ROWS else 1) if (fold == f).any()
            ]
            losses = mean_losses(
                [search(_where(train, fold != f), _where(train, fold == f)) for f in out]
            )
            setting = (
                min(losses, key=lambda setting: losses[setting]) if losses else near or DEFAULT
            )
            found = train_readout(train, setting, **settings)
            return replace(found, loss=losses.get(setting, np.nan), losses=losses), metric

        frames = self._path_frames(data)
        # the products are small: what a second thread of BLAS brings, its waiting costs several times where cores are busy
        with (
            one_blas_thread(),
            Progress(self.verbose, 1, len(WIDTHS) * len(RIDGES), type(self).__name__) as progress,
        ):
            progress.start(0)
            tried = [(*fitted(frame, progress), frame) for frame in frames]
        found, metric, frame = min(
            tried, key=lambda one: one[0].loss if np.isfinite(one[0].loss) else np.inf
        )
        self._set_path(found, data.classes, frame, metric)
        if selection is not None:
            self.validation_log_proba_ = selection.log_proba
        self._keep_description(describing, data)
        return self

    def _path_frames(self, data: TrainingData) -> list[Frame]:
        """The frames to be tried, over numbers and then indicators of words: one, or one for each distance between words."""
        family, indicators = Diag if self.standardize else Spherical, self._indicators
        if indicators is None or data.levels is None:
            return [frame_of(family, data.mean, data.variance)[0]]
        numbers, n_words = indicators.numbers, sum(indicators.words)
        frame, variance = frame_of_table(family, data.mean, data.variance, data.levels)
        origin, unit = frame.origin[numbers], frame.unit[numbers]
        typical = np.sqrt(2 * variance[numbers].mean()) if numbers else 1.0
        scale = 1.0 if self.standardize or not numbers else float(unit[0])
        distances = [typical * factor for factor in (WORD_DISTANCES if numbers else (1.0,))]
        distances = (
            distances
            if isinstance(self.word_distance, str)
            else [float(self.word_distance) / scale]
        )
        return [
            Frame(
                np.append(origin, np.zeros(n_words)),
                np.append(unit, np.full(n_words, np.sqrt(2) / distance)),
            )
            for distance in distances
        ]

    def _path_rows(self, x: np.ndarray, frame: Frame) -> np.ndarray:
        """Complete rows as they are seen in a frame, (n, D)."""
        x = np.asarray(x, np.float64)
        return np.asarray(frame.inside(x if self._indicators is None else self._indicators.of(x)))

    def _set_path(
        self, found: ReadoutFit, classes: np.ndarray, frame: Frame, metric: np.ndarray | None
    ) -> None:
        n_kernels, d = found.center.shape
        self._forget_path()
        self.__dict__.pop("probabilities_", None)
        weight, center = found.readout.copy(), found.center
        if metric is not None:
            self.metric_ = metric / frame.unit
            weight[n_kernels:-1] = metric.T @ weight[n_kernels:-1]
            center = np.linalg.solve(metric, center.T).T
        weight[n_kernels:-1] *= (
            d**-0.5 / frame.unit[:, None]
        )  # of the features in the units of the data
        weight[-1] -= frame.origin @ weight[n_kernels:-1]
        weight = weight - weight.mean(axis=1, keepdims=True)
        variance = found.variance * frame.unit**2
        log_peak = -0.5 * (d * LOG_2_PI + np.log(variance).sum())
        if found.seen is not None:
            self.kernel_features_ = found.seen
        self.classes_ = classes
        self.means_, self.mixing_ = center * frame.unit + frame.origin, found.share
        if metric is not None:
            unmapped = np.linalg.inv(self.metric_)
            self.covariance_type_, self.covariances_ = (
                "tied",
                found.variance * unmapped @ unmapped.T,
            )
            log_peak += float(np.linalg.slogdet(metric)[1])
        elif self.standardize or self._indicators is not None:
            self.covariance_type_, self.covariances_ = "diag", np.tile(variance, (n_kernels, 1))
        else:
            self.covariance_type_, self.covariances_ = "spherical", np.full(n_kernels, variance[0])
        self.readout_ = weight[:, 1:] - weight[:, :1] if len(classes) == 2 else weight
        self.activation_log_scale_, self.temperature_ = np.full(n_kernels, log_peak), 1.0
        self.width_ = float(
            np.sqrt(found.variance)
            * (1.0 if self.standardize or metric is not None else frame.unit[0])
        )
        self.path_setting_, self.strength_ = (
            (found.setting.width, found.setting.ridge),
            2 * found.ridge,
        )
        self.loss_, self.history_ = found.loss, np.array(list(found.losses.values()))
        self.n_iter_, self.converged_ = len(found.losses), True
        self.best_iter_ = 1 + int(np.argmin(self.history_)) if found.losses else 0
        if self._indicators is not None:
            scale = (
                1.0 if self.standardize or not self._indicators.numbers else float(frame.unit[0])
            )
            self.word_distance_ = float(scale * np.sqrt(2) / frame.unit[-1])
        self._smallest = 0.5  # of readouts that are no probabilities by themselves; this one's are

    def _forget_path(self) -> None:
        kept = (
            "width_",
            "path_setting_",
            "kernel_features_",
            "metric_",
            "word_distance_",
            "describing_network_",
        )
        for name in (*kept, "validation_log_proba_"):
            self.__dict__.pop(name, None)

    def narrowed(self) -> Self:
        """An unfitted copy that looks for width and ridge only near those that this network has.

        For networks that are fitted to other rows of the same data, as in cross-validation. A network that is not of
        ``training="path"`` has nothing to look for; its copy is a plain one.

        Returns
        -------
        network : RBFNetworkClassifier
            Not fitted.
        """
        check_is_fitted(self)
        copy: Self = clone(self)
        if not self._on_path:
            return copy
        known = {"word_distance": self.word_distance_} if hasattr(self, "word_distance_") else {}
        return copy.set_params(path_setting=self.path_setting_, **known)  # type: ignore[no-any-return]

    def _path_layers(self) -> "PathLayers":
        """What the network is made of, in a frame in which every kernel has variance one, or by a map into one."""
        n_kernels, d = self.means_.shape
        metric = self.metric_ / self.width_ if hasattr(self, "metric_") else None
        variance = (
            np.ones(d)
            if metric is not None
            else np.broadcast_to(np.asarray(self.covariances_)[0], (d,))
        )
        frame = Frame(self.mixing_ @ self.means_, np.sqrt(variance))
        readout, center = np.array(self.readout_), (self.means_ - frame.origin) / frame.unit
        readout[-1] += frame.origin @ readout[n_kernels:-1]
        readout[n_kernels:-1] *= frame.unit[:, None]
        seen = (
            np.asarray(self.kernel_features_, np.float64)
            if hasattr(self, "kernel_features_")
            else None
        )
        return PathLayers(
            frame, center if metric is None else center @ metric.T, readout, metric, seen
        )

    def _of_columns(self, X: Any, answer: Callable[..., Array], *params: Any) -> Array:
        if not self._on_path:
            return super()._of_columns(X, answer, *params)
        rows, layers = self._rows(X), self._path_layers()
        return self._shown_to(
            rows,
            layers.frame,
            3 * len(self.means_),
            _path_activation,
            layers.hidden(),
            logs=False,
            priors=False,
        )()

    def _output(self, hidden: Hidden, n_classes: int) -> OutputLayer:
        first = 1 if self.readout == "logistic" or n_classes == 2 else 0
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        if self.readout == "logistic":
            return Logistic(
                hidden, ClassTargets(n_classes, first), strength, bound=self.solver == "bound"
            )
        return LeastSquares(
            hidden,
            ClassTargets(n_classes, first),
            0.0 if self.readout == "least_squares" else strength,
        )

    def _scores(self, rows: Rows) -> RowFunction:
        if self._on_path:
            layers = self._path_layers()
            params = Float64(layers.readout), *layers.hidden()
            return self._shown_to(
                rows, layers.frame, 3 * len(self.means_), _path_outputs, params, logs=True
            )
        framed, hidden, layer = self._layers(rows)
        logistic = self.readout == "logistic"
        shares = getattr(self, "class_shares_", np.zeros(len(self.classes_)))
        at_nothing = Float64(safe_log(shares) if logistic else shares)
        return RowFunction(
            framed, _class_outputs, (hidden, layer, Float64(self.readout_), logistic, at_nothing)
        )

    def _log_probability(self) -> Transform:
        check_is_fitted(self)
        return (
            log_softmax
            if self.readout == "logistic"
            else partial(_log_raised, smallest=self._smallest)
        )

    def _probability(self) -> Transform:
        return partial(_exp_of, transform=self._log_probability())

    def decision_function(self, X: Any) -> Any:
        """Outputs of the network before they are made probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        output : array of shape (n_samples,) or (n_samples, n_classes)
            For two classes one number, positive for the second class: its log-odds ("logistic"), or by how much its output
            exceeds that of the first. One number a class for more.
        """
        return self._map_scores(X, _decision)


def _class_outputs(
    block: Block,
    hidden: Hidden,
    layer: Layer,
    readout: Float64,
    logistic: bool,
    at_nothing: Float64,
) -> Array:
    """One output a class, (n, K): of two classes the first is zero, or what is left of one; `at_nothing` if none is known."""
    output = _by_class(_outputs(hidden.columns(block, layer), readout), logistic)
    if block.missing is None:
        return output
    xp = namespace(output)
    nothing = xp.sum(block.missing.observed, axis=1, keepdims=True) == 0
    return xp.where(nothing, at_nothing.value + xp.zeros_like(output), output)


def _by_class(output: Array, logistic: bool) -> Array:
    if output.shape[1] > 1:
        return output
    xp = namespace(output)
    return xp.concat([xp.zeros_like(output) if logistic else 1 - output, output], axis=1)


@dataclass(frozen=True)
class PathLayers:
    """The two layers of a network of the path."""

    frame: Frame
    center: np.ndarray
    """(M, d), in the frame, and mapped where there is a metric."""
    readout: np.ndarray
    """(M + d + 1, o); the features are those of the frame."""
    metric: np.ndarray | None
    """(d, d)."""
    seen: np.ndarray | None
    """One for the features that each kernel sees, and zero for the others, (M, d); None where all see all."""

    def hidden(self) -> tuple[Float64, Float64 | None, Float64 | None]:
        """What kernels need to know: centers, the metric, and the features that they see."""
        metric, seen = (None if a is None else Float64(a) for a in (self.metric, self.seen))
        return Float64(self.center), metric, seen


def _path_activation(
    block: Block, center: Float64, metric: Float64 | None, seen: Float64 | None
) -> Array:
    """exp(-|x - mean|^2 / 2), (n, M), of rows and centers in the frame, along the features that are seen."""
    xp, x, at = namespace(block.x), as_float64(block.x), center.value
    if seen is not None:
        squared = distances_along(x, at, seen.value)
    else:
        squared = squared_distances(x if metric is None else x @ metric.value.T, at)
    return xp.exp(-0.5 * xp.clip(squared, min=0.0))


def _path_outputs(
    block: Block, readout: Float64, center: Float64, metric: Float64 | None, seen: Float64 | None
) -> Array:
    """One output a class, (n, K): kernels, features and bias, weighed."""
    n_kernels, weight = center.value.shape[0], readout.value
    n_columns = weight.shape[0] - 1
    output = _path_activation(block, center, metric, seen) @ weight[:n_kernels, :]
    output = output + as_float64(block.x) @ weight[n_kernels:n_columns, :] + weight[n_columns, :]
    return _by_class(output, logistic=True)


def _where(rows: LabeledArrays, mask: np.ndarray) -> LabeledArrays:
    x, codes, weight = rows
    return x[mask], codes[mask], weight[mask]


def _checked_setting(setting: Any) -> Setting:
    positions = [p for p in setting if isinstance(p, Integral) and not isinstance(p, bool)]
    if (
        len(setting) != 2
        or len(positions) != 2
        or not (0 <= setting[0] < len(WIDTHS) and 0 <= setting[1] < len(RIDGES))
    ):
        raise KernelpoolError(
            f"path_setting must be the place of a width, below {len(WIDTHS)}, and of a ridge, below {len(RIDGES)}; "
            f"got {tuple(setting)}."
        )
    return Setting(*map(int, setting))


def _decision(scores: Array) -> Array:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def _log_raised(scores: Array, smallest: float) -> Array:
    xp = namespace(scores)
    scores = xp.clip(scores, min=smallest)
    return xp.log(scores / xp.sum(scores, axis=1, keepdims=True))


def _exp_of(scores: Array, transform: Transform) -> Array:
    return namespace(scores).exp(transform(scores))


class RBFNetworkRegressor(MultiOutputMixin, RegressorMixin, RBFNetwork):
    r"""Radial basis function network for real outputs with Gaussian noise.

    As `RBFNetworkClassifier`, with outputs :math:`y = \sum_j \beta_j\, a_j(x) + \beta_0 + \text{noise}`. EM-Log carries over:
    each sweep makes one EM step of the mixture of kernels and solves the output layer for it; with the link, the absolute
    weights, summed over the outputs, become the mixing weights of the next sweep.

    Parameters
    ----------
    n_kernels : int or None, default=None
        Number of kernels M. None takes forty, fewer where X has fewer than 200 distinct rows.
    hidden : {"kmeans", "random", "em", "uniform", "normal"} or fitted mixture, default="kmeans"
        Where the kernels are or start, as in `RBFNetworkClassifier`.
    widths : {"unit", "farthest"} or None, default=None
        Widths that replace those of `hidden`, as in `RBFNetworkClassifier`.
    readout : {"ridge", "least_squares"}, default="ridge"
        The output layer.
    training : {"em_log_link", "em_log", "two_stage"}, default="em_log_link"
        How the two layers are trained.
    activation : {"normalized", "density", "gaussian"}, default="normalized"
        What a kernel says of a row; see `RBFNetworkClassifier`.
    temperature : float or None, default=None
        How much wider kernels are for the output layer than for EM; see `RBFNetworkClassifier`.
    covariance_type : {"diag", "full", "spherical", "tied"}, default="diag"
        Shape of the kernels.
    strength : {"loo", "gcv"} or float, default="loo"
        Strength of the ridge: this times the squared weights is added to the squared errors, the outputs in units of their
        deviation; the bias is free. "loo" takes the one with the least leave-one-out error, "gcv" with the least generalized
        cross-validation error; both in closed form.
    patience : int or None, default=10
        Training stops when the leave-one-out error has not fallen for this many sweeps, and the best sweep is kept. None makes
        `max_iter` sweeps and keeps the last.
    n_init : int, default=1
        Number of starts; the one with the least leave-one-out error is kept.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        A smaller gain per row is none.
    covariance_floor : float, default=1e-6
        Smallest variance of a kernel along a feature, as a part of the variance of that feature in the data.
    kernel_prior : {"conjugate"} or None, default="conjugate"
        "conjugate" puts the data-scaled prior of Fraley & Raftery (2007) on every kernel; None is maximum likelihood.
    standardize : bool, default=True
        Whether spherical kernels are round in features of mean zero and variance one, rather than in the features as they
        come. Their `covariances_`, in the units of the data, are then diagonal. Other families do not depend on units.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the results do not depend on it.
    verbose : int, default=0
        1 shows progress, 2 a line each sweep.

    Attributes
    ----------
    means_, covariances_, mixing_ : ndarray
        The hidden layer, as in `RBFNetworkClassifier`.
    readout_ : ndarray of shape (n_kernels + 1, n_outputs)
        The output layer, for the columns of `activations`, and last the bias, in the units of y.
    noise_variance_ : ndarray of shape (n_outputs,)
        Variance of the noise: squared residuals, divided by the rows less the effective number of weights.
    activation_log_scale_ : ndarray of shape (n_kernels,)
        log of what each column was divided by.
    strength_ : float
        Strength of the ridge.
    loss_ : float
        Squared leave-one-out error a row, summed over the outputs, each in units of its variance.
    history_ : ndarray
        That error after each sweep, where it was watched.
    n_iter_, best_iter_ : int
        Sweeps made, and the sweep that was kept.
    converged_ : bool
        Whether training ended by itself.
    covariance_type_ : str
        Family of the kernels.
    temperature_ : float
        The temperature.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, where X had them.

    References
    ----------
    A. Ferreira and M. Figueiredo, "A global training algorithm for radial basis functions neural networks".

    Examples
    --------
    A sine, with noise of variance 0.01:

    >>> import numpy as np
    >>> from kernelpool import RBFNetworkRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (500, 1))
    >>> y = np.sin(X[:, 0]) + rng.normal(0, 0.1, 500)
    >>> network = RBFNetworkRegressor(random_state=0).fit(X, y)
    >>> print(network.predict([[np.pi / 2]]).round(1), network.noise_variance_.round(2))
    [1.] [0.01]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RBFNetwork._parameter_constraints,
        "readout": [StrOptions({"least_squares", "ridge"})],
    }

    def __init__(
        self,
        n_kernels: int | None = None,
        *,
        hidden: Any = "kmeans",
        widths: str | None = None,
        readout: str = "ridge",
        training: str = "em_log_link",
        activation: str = "normalized",
        temperature: float | None = None,
        covariance_type: str = "diag",
        strength: float | str = "loo",
        patience: int | None = 10,
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        covariance_floor: float = 1e-6,
        kernel_prior: str | None = "conjugate",
        standardize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.hidden = hidden
        self.widths = widths
        self.readout = readout
        self.training = training
        self.activation = activation
        self.temperature = temperature
        self.covariance_type = covariance_type
        self.strength = strength
        self.patience = patience
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.covariance_floor = covariance_floor
        self.kernel_prior = kernel_prior
        self.standardize = standardize
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit both layers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows. NumPy and whatever NumPy takes; torch and other array-API arrays and Dask arrays stay where they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : RBFNetworkRegressor
            The fitted estimator.
        """
        data, values, flat = regression_data(self, X, y, sample_weight, self.n_jobs)
        self.columns_ = data.columns
        fitted = self._fit_layers(data, KERNELS_OF_REGRESSOR, partial(self._output, values=values))
        output, network, scale = fitted.output, fitted.network, np.asarray(values.scale)
        assert isinstance(output, LeastSquares)
        noise, spread = output.doubt(fitted.rows, network.layer, network.readout)
        self._set_layers(fitted)
        self.readout_ = to_numpy(network.readout.weight) * scale
        self.readout_[-1] += values.mean
        self.noise_variance_, self._spread = to_numpy(noise) * scale**2, np.array(to_numpy(spread))
        self._flat = flat
        self._warn_if_unfinished(fitted)
        return self

    def _output(self, hidden: Hidden, values: Values) -> OutputLayer:
        strength = self.strength if isinstance(self.strength, str) else float(self.strength)
        return LeastSquares(hidden, values, 0.0 if self.readout == "least_squares" else strength)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Expected outputs of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Return the standard deviation of a new observation too: noise, and doubt about the output layer. The kernels
            are taken for granted, and far from all rows the doubt does not grow as that of a Gaussian process does.

        Returns
        -------
        y : array of shape (n_samples,) or (n_samples, n_outputs)
            Means, in float64.
        std : array of the same shape
            Only where `return_std`.
        """
        check_is_fitted(self)
        mean = self._of_columns(X, _outputs, Float64(self.readout_))
        mean = mean[:, 0] if self._flat else mean
        if not return_std:
            return mean
        std = self._of_columns(X, _deviation, Float64(self._spread), Float64(self.noise_variance_))
        return mean, std[:, 0] if self._flat else std


def _deviation(columns: Array, spread: Float64, noise: Float64) -> Array:
    xp = namespace(columns)
    lever = xp.sum(columns * _outputs(columns, spread).T, axis=0)
    return ((1 + xp.clip(lever, min=0.0))[:, None] * noise.value) ** 0.5
