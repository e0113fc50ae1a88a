"""Competitive mixture of neurons: the scikit-learn estimator of `kernelpool.neurons.fit`."""

from typing import Any, ClassVar, Self

from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from ..base.constraints import COUNT, NOT_NEGATIVE, POSITIVE
from ..base.monitor import warn_if_unfinished
from ..complete.classifier import CompleteDoor, TabularClassifier
from ..inspection.description import (
    Description,
    KernelTable,
    classes_text,
    features_text,
    training_text,
)
from ..records import nested, saved
from ..text import plural
from .fit import NeuronSettings, fit_neurons
from .network import GradientRule, NeuronNetwork
from .onnx import to_graph


@saved
class FittedCompetitiveNeurons:
    """The fitted state of a `CompetitiveNeuronsClassifier`."""

    door: CompleteDoor = nested()
    network: NeuronNetwork = nested()


class CompetitiveNeuronsClassifier(TabularClassifier):
    r"""A mixture of simple neurons that compete for the rows and are kept different from each
    other.

    The prediction is :math:`\sum_j \pi_j f(x; w_j)` with logistic neurons f, softmax neurons for
    more than two classes. EM shares the rows out among the neurons; a penalty on the squared cosine
    between their weights turns their boundaries away from each other (Sridharan, Beal & Govindaraju
    2006).

    Parameters
    ----------
    n_neurons : int, default=16
        Number of neurons M.
    precision : float, default=4.0
        alpha: how sharply errors decide which neuron a row belongs to. Near 0 all neurons share all
        rows and the network is an average of like neurons; the paper has 0.03. From about 10 on
        each neuron fits its own rows only, which does not suit an average of all neurons.
    repulsion : float, default=0.1
        beta: the penalty on cos² of the angle between two neurons, against a row's squared error of
        at most one. It counts once, not once a row, so that its effect falls with the number of
        rows. The paper has 0.01.
    decay : float or None, default=None
        Penalty on half the squared length of the weights (biases left out), in the unit of
        `repulsion`. None is 0.003 for ``solver="lbfgs"`` and 0 for ``solver="gradient"``, which the
        paper's rule is.
    solver : {"lbfgs", "gradient"} or GradientRule, default="lbfgs"
        How the M-step improves the weights: by up to 20 steps of L-BFGS, which never lower the
        objective, or by the single gradient step (5) of the paper as printed, together with its
        E-step (3), in which the repulsion takes part.
        `kernelpool.neurons.GradientRule` has the learning rate, and the variant of the
        paper's section 5.
    local : bool, default=False
        Give every neuron a place, a Gaussian with diagonal covariance over its rows: far from them
        its weight is small.
    margin : bool, default=False
        Neurons that ask for a margin: the squared hinge in place of the logistic function.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns of X hold categories, as in `SharedKernelClassifier`. Neurons see an indicator
        for each category.
    n_init : int, default=1
        Number of starts; the one with the highest objective is kept.
    max_iter : int, default=100
        Most sweeps from one start. ``solver="gradient"`` needs a thousand or more.
    tol : float, default=1e-4
        EM stops when a sweep changes the objective per row by less than `tol` times `precision`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    weights_ : ndarray of shape (n_neurons, n_features + 1) or (n_neurons, n_classes, n_features + 1)
        Weights in the units of the features, the bias last. With categories, of the numbers and
        then of the indicators, column after column; `means_`, `covariances_`, `location_` and
        `scale_` likewise.
    mixing_ : ndarray of shape (n_neurons,)
        Share of each neuron; they sum to one.
    means_, covariances_ : ndarray of shape (n_neurons, n_features)
        Place of each neuron, where `local` is set: mean and variances.
    location_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation by which columns are standardized.
    columns_ : Columns
        Names of the columns, and the categories of those that hold some.
    imputer_ : ClassDensities
        The small mixture from which missing cells are drawn: predictions are means over
        imputations.
    class_share_ : ndarray of shape (n_classes,)
        Shares of the classes, the answer for a row of which nothing is known.
    objective_ : float
        Objective per row of the parameters above.
    history_ : ndarray
        The objective after each sweep; it never falls under ``solver="lbfgs"``.
    bound_history_, penalty_history_ : ndarray
        The bound (2) that the M-step reached before each of these, between the objective before and
        the one after, and the part of `penalty` (repulsion and decay times `precision`) in the
        objective. NaN where not defined: at the start, and the bound under ``solver="gradient"``.
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
    K. Sridharan, M. J. Beal and V. Govindaraju, "Competitive mixtures of simple neurons", ICPR
    2006.

    Examples
    --------
    Exclusive or, which no single neuron can tell:

    >>> from kernelpool import CompetitiveNeuronsClassifier
    >>> from kernelpool.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> neurons = CompetitiveNeuronsClassifier(4, repulsion=40, tol=1e-6, random_state=0)
    >>> neurons.fit(X, y).score(X, y)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **TabularClassifier._parameter_constraints,
        "n_neurons": COUNT,
        "precision": POSITIVE,
        "repulsion": NOT_NEGATIVE,
        "decay": [*NOT_NEGATIVE, None],
        "solver": [StrOptions({"lbfgs", "gradient"}), GradientRule],
        "local": ["boolean"],
        "margin": ["boolean"],
        "n_init": COUNT,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_neurons: int = 16,
        *,
        precision: float = 4.0,
        repulsion: float = 0.1,
        decay: float | None = None,
        solver: Any = "lbfgs",
        local: bool = False,
        margin: bool = False,
        categorical_features: Any = "from_dtype",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.precision = precision
        self.repulsion = repulsion
        self.decay = decay
        self.solver = solver
        self.local = local
        self.margin = margin
        self.categorical_features = categorical_features
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    # -- fitting -----------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the network by EM.

        Interrupting a fit (Ctrl-C) leaves the estimator with the best parameters reached so far.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in memory, in NumPy or a data frame.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : CompetitiveNeuronsClassifier
            The fitted estimator.
        """
        door, data = self._complete_data(X, y, sample_weight)
        rule = {"lbfgs": None, "gradient": GradientRule()}.get(self.solver, self.solver)
        seed = check_random_state(self.random_state).randint(2**31)
        settings = self._settings(NeuronSettings, rule=rule, seed=seed)
        network, run = fit_neurons(data, settings)
        self._fitted = FittedCompetitiveNeurons(door, network)
        fell = (
            f"The weights left the range of numbers at sweep {self.n_iter_}: lower learning_rate, "
            f"or solver='lbfgs'."
        )
        warn_if_unfinished(run, self.max_iter, None if rule is None else fell)
        return self

    # -- prediction --------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Any:
        """How far the mean output of the neurons is beyond one half; of more than two classes, the
        mean outputs.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        score : array of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second of two classes.
        """
        probability = self.predict_proba(X)
        return probability[:, 1] - 0.5 if probability.shape[1] == 2 else probability

    def neuron_posterior(self, X: Any) -> Any:
        """P(j|x): how much each neuron has to do with each row, (3) with the class summed out.

        Unless `local` is set, it differs little from `mixing_`: neurons differ by their errors,
        which need a label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        posterior : array of shape (n_samples, n_neurons)
            Rows sum to one.
        """
        return self._fitted.door.averaged(self._encoded(X), self._fitted.network.neuron_posterior)

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x.indicators(self._fitted.door.columns.levels), self._fitted.network)

    def _describe(self) -> Description:
        network = self._fitted.network
        shapes = {}
        if not any(self.columns_.levels):  # with categories neurons see indicators
            shapes = {"mean": network.means, "variance": network.covariances}
        place = "" if network.means is None else ", each with a place of its own,"
        return Description(
            f"A mixture of {plural(len(network.mixing), 'neuron')} that compete for the rows{place} "
            f"of {classes_text(self)} in {features_text(self)}{training_text(self)}",
            KernelTable(network.mixing, word="neuron", **shapes),
        )
