"""What a fitted model is made of, without any rows: a sentence, and its kernels with their shares
and classes; the model inside pipelines, searches, frozen estimators and classifiers that may
refuse; and what a notebook shows of it.

=====================  ===================  ======================================================
paper                  here                 meaning
=====================  ===================  ======================================================
:math:`P(j)`           ``share``            of a kernel in the whole mixture; they sum to one
:math:`P(C_k|j)`       ``class_posterior``  of a row that a kernel generated
=====================  ===================  ======================================================

Every estimator of the library returns its own `Description` from ``_describe()``. Reports,
notebooks, the command line, model files and ONNX models read it.

A kernel lives in the features that the last transformer made. Where those are input columns shifted
and scaled, `scale` and `offset` lead back to the units of the input.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..arrays import to_numpy
from ..tables.columns import Columns
from ..text import decimals_of, percent, plural, shorten, text_of


@dataclass(frozen=True)
class Pool:
    """The kernels of a fitted model, or its neurons, in the order of its attributes."""

    share: np.ndarray
    """P(j), (M,)."""
    class_posterior: np.ndarray | None = None
    """P(C_k|j), (M, K); None where it is defined for rows only."""
    mean: np.ndarray | None = None
    """(M, d)."""
    variance: np.ndarray | None = None
    """Along each feature, (M, d)."""
    covariance: np.ndarray | None = None
    """(M, d, d), or (d, d) for all; None where features are independent within a kernel."""
    probability: np.ndarray | None = None
    """Of the categories of all categorical features, one after the other, (M, all levels)."""
    group: tuple[str, ...] = ()
    """The network that each belongs to, where there are several."""
    word: str = "kernel"
    listed: np.ndarray | None = None
    """Which belong to the first network of their name, (M,): those of other folds are nearly the same.
    """

    def __len__(self) -> int:
        return len(self.share)

    def matrices(self) -> np.ndarray:
        """The covariance of each kernel, (M, d, d)."""
        mean, variance, whole = map(np.asarray, (self.mean, self.variance, self.covariance))
        if self.covariance is None:
            whole = variance[:, :, None] * np.eye(mean.shape[1])
        return np.broadcast_to(whole, (len(mean), *whole.shape[-2:]))

    def largest(self, n: int) -> np.ndarray:
        """At most n kernels that are listed, those with the greatest shares; equidistant ones if all
        shares are equal.
        """
        at = np.flatnonzero(np.ones(len(self)) if self.listed is None else self.listed)
        share = self.share[at]
        if len(at) > n and np.ptp(share) < 1e-12 * share.max():
            return at[np.linspace(0, len(at) - 1, n).astype(int)]
        return at[np.argsort(-share, kind="stable")[:n]]


def joined_pools(pools: Sequence[Pool], weights: Sequence[float], names: Sequence[str]) -> Pool:
    """The kernels of several networks, each with its weight and name."""

    def joined(field: str) -> np.ndarray | None:
        parts = [getattr(pool, field) for pool in pools]
        if all(part is None for part in parts):
            return None
        if field == "covariance":
            parts = [pool.matrices() for pool in pools]
        return np.concatenate(parts)

    share = np.concatenate([w * pool.share for w, pool in zip(weights, pools, strict=True)])
    fields = ("class_posterior", "mean", "variance", "covariance", "probability")
    found: dict[str, Any] = {field: joined(field) for field in fields}
    sizes = list(map(len, pools))
    group = tuple(np.repeat(names, sizes).tolist())
    first = np.repeat([name not in names[:i] for i, name in enumerate(names)], sizes)
    return Pool(share / share.sum(), **found, group=group, listed=first)


@dataclass(frozen=True)
class Description:
    """A fitted model in a sentence or two, and its kernels where it has any."""

    sentence: str
    pool: Pool | None = None


def describe(estimator: Any) -> Description:
    """The description of a fitted estimator; without kernels if it is not one of this library."""
    if hasattr(type(estimator), "_describe"):
        description: Description = estimator._describe()
        return description
    return Description(f"A fitted {type(estimator).__name__}.")


# -- parts of the descriptions -------------------------------------------------------------------


def classes_text(estimator: Any) -> str:
    """The number of classes."""
    return plural(len(estimator.classes_), "class")


def features_text(estimator: Any) -> str:
    """The number of features."""
    return plural(estimator.n_features_in_, "feature")


def training_text(estimator: Any, fitted: str = ", fitted by EM") -> str:
    """The end of a sentence: the number of sweeps, and whether training converged."""
    n_sweeps = getattr(estimator, "n_iter_", None)
    if n_sweeps is None:  # made from known parameters
        return "."
    end = "" if getattr(estimator, "converged_", True) else "; training stopped before convergence"
    return f"{fitted} in {plural(int(n_sweeps), 'sweep')}{end}."


def refusals(estimator: Any) -> str:
    """When a `RejectClassifier` refuses a row, in a sentence."""
    rules = []
    if estimator.ambiguity_threshold_ is not None:
        percent = 100 * estimator.ambiguity_threshold_
        rules.append(f"ambiguous where the probability of an error exceeds {percent:.3g} %")
    if estimator.novelty_threshold_ is not None:
        rules.append(f"novel where log p(x) is below {estimator.novelty_threshold_:.4g}")
    if not rules:
        return "It may refuse rows, but no threshold is set."
    return f"It refuses a row as {' and as '.join(rules)}."


# -- the model inside ------------------------------------------------------------------------------

SCALERS: dict[type, Callable[[Any], tuple[Any, Any]]] = {
    StandardScaler: lambda step: (step.scale_, step.mean_),
    RobustScaler: lambda step: (step.scale_, step.center_),
    MaxAbsScaler: lambda step: (step.scale_, None),
    MinMaxScaler: lambda step: (1 / step.scale_, -step.min_ / step.scale_),
}
"""Of transformers of single features, `scale` and `offset`: scale * output + offset is the
input.
"""


def never_seen(columns: Columns, x: np.ndarray) -> np.ndarray:
    """Which codes stand for categories that are not known, (n, d)."""
    levels = np.array(columns.levels)
    return np.asarray((levels > 0) & (x == levels - 1))


def cells_of(columns: Columns, x: np.ndarray, X: Any = None) -> list[list[Any]]:
    """The cells of rows as their user knows them, of codes, (n, d): numbers, and categories as text.

    Categories that are not known have the text that X has, the same rows; without, they are None.
    """
    cells: list[list[Any]] = replace(columns, frame=None, coded=False).decode(x).tolist()
    places = np.argwhere(never_seen(columns, x))
    if len(places) and X is not None:
        own = Columns.learn(X, np.flatnonzero(columns.levels).tolist())
        codes = own.encode(X)
        for i, j in places.tolist():
            cells[i][j] = np.asarray(own.categories[j])[int(codes[i, j])]
    return cells


def feature_names(columns: Columns) -> list[str]:
    """As messages and tables name them."""
    return list(columns.names or (f"feature {i}" for i in range(len(columns))))


class Inside:
    """A fitted classifier and the model inside it, with its features in the units of the input.

    Parameters
    ----------
    outer : classifier
        Fitted.
    X : array-like or data frame, default=None
        Rows as the classifier takes them, for the names and kinds of columns that the model does
        not have itself.
    dates : sequence of str, default=()
        Columns of numbers that are days since 1970.

    Attributes
    ----------
    model : classifier
        The innermost one; it takes codes of categories where it is one of this library.
    wrappers, steps : list
        Pipelines, searches and others around it, the outermost first, and the transformers before
        it.
    input : Columns
        Of the rows; `names` are theirs.
    features : list of str
        Of the model inside.
    made : bool
        Whether transformers made them out of something else than single columns.
    scale, offset : ndarray of shape (d,)
        scale * value + offset is in the units of the input, or of what was made of it.
    categories : tuple
        What the codes of each feature stand for; None for numbers.
    """

    def __init__(self, outer: Any, X: Any = None, dates: Sequence[str] = ()) -> None:
        check_is_fitted(outer)
        self.outer, self.dates = outer, frozenset(dates)
        self.model, self.wrappers, self.steps = _layers(outer)
        columns: Any = getattr(self.model, "columns_", None)
        self.input: Columns
        several = any(hasattr(wrapper, "estimators_") for wrapper in self.wrappers)
        self.direct = columns is not None and not self.steps and not several
        if self.direct:
            self.input = columns
        elif X is not None:
            self.input = Columns.learn(X)
        else:
            names = tuple(getattr(outer, "feature_names_in_", ())) or None
            self.input = Columns((None,) * getattr(outer, "n_features_in_", 0), names)
        self.names = feature_names(self.input)
        self._place_features()
        if columns is not None:
            self._form = columns.of_codes()  # of what the model takes
            self.model = self.model._with_columns(self._form)
        elif X is not None:
            self._form = columns = Columns.learn(self._after_steps(X))
        self._columns = columns
        self.categories = () if columns is None else columns.categories

    def _place_features(self) -> None:
        """Names of the features of the model, and the way back to the units of the input."""
        names = self.names
        made = False
        scale: Any = 1.0
        offset: Any = 0.0
        for step in self.steps:
            if type(step) in SCALERS:
                by, to = SCALERS[type(step)](step)
                offset = offset + scale * (0.0 if to is None else to)
                scale = scale * (1.0 if by is None else by)
            else:
                names = _names_after(step, names)
                made = True
                scale = 1.0
                offset = 0.0
        n_features = getattr(self.model, "n_features_in_", len(names))
        if len(names) != n_features:  # a transformer that does not name what it makes
            names = [f"feature {i}" for i in range(n_features)]
            made = True
            scale = 1.0
            offset = 0.0
        self.features = list(names)
        self.made = made
        self.scale, self.offset = (np.broadcast_to(v, n_features) for v in (scale, offset))

    @property
    def numbers(self) -> list[int]:
        """Features of the model that are no categories."""
        return [i for i, values in enumerate(self.categories) if values is None]

    # -- rows --------------------------------------------------------------------------------------

    def _after_steps(self, X: Any) -> Any:
        for step in self.steps:
            X = step.transform(X)
        return X

    def transform(self, X: Any) -> np.ndarray:
        """Rows as the model inside takes them, (n, d): codes, NaN where a cell is missing."""
        return np.asarray(self._columns.encode(self._after_steps(X)))

    def cells(self, X: Any) -> list[list[Any]]:
        """The cells of `features` as their user knows them."""
        if self.made:
            return cells_of(self._columns, self.rows(X), self._after_steps(X))
        return cells_of(self.input, self.input.encode(X), X)

    def rows(self, X: Any) -> np.ndarray:
        """The same in the units of the input."""
        return self.transform(X) * self.scale + self.offset

    def table(self, x: np.ndarray) -> Any:
        """What the model inside takes, of rows in the units of the input."""
        return self._form.decode((x - self.offset) / self.scale)

    def score(self, x: np.ndarray) -> np.ndarray | None:
        """log p(x) of rows, (n,); None where the model has no density of such rows."""
        if not hasattr(self.model, "score_samples"):
            return None
        try:
            return np.asarray(self.model.score_samples(self.table(x)), np.float64)
        except ValueError:
            return None

    # -- kernels -----------------------------------------------------------------------------------

    @cached_property
    def pool(self) -> Any:
        """Kernels in the units of the input, a `Pool`; None where there are none with means.

        Their classes are the probabilities at their means, where the model has no others.
        """
        pool = describe(self.model).pool
        scale = self.scale
        if pool is None or pool.mean is None or pool.mean.shape[1] != len(scale):
            return None
        mean = pool.mean * scale + self.offset
        posterior = pool.class_posterior
        if posterior is None:
            x = np.full(mean.shape, np.nan)
            x[:, self.numbers] = mean[:, self.numbers]
            posterior = np.asarray(self.model.predict_proba(self.table(x)))
        covariance = None if pool.covariance is None else pool.covariance * np.outer(scale, scale)
        return replace(
            pool,
            mean=mean,
            variance=pool.variance * scale**2,
            covariance=covariance,
            class_posterior=posterior,
        )

    def category(self, j: int, i: int) -> tuple[int, float]:
        """The code of the most probable category of kernel j along feature i, and its
        probability.
        """
        start = sum(self._columns.levels[:i])
        share = self.pool.probability[j, start : start + len(self.categories[i])]  # known ones
        return int(share.argmax()), float(share.max())

    def responsibilities(self, X: Any) -> np.ndarray | None:
        """P(j|x) of the kernels of `pool`, (n, M); None where the model has none."""
        if self.pool is None or not hasattr(self.model, "kernel_posterior"):
            return None
        found = np.asarray(self.model.kernel_posterior(self.transform(X)))
        return found if found.shape[1] == len(self.pool) else None

    def covariance(self, j: int, at: list[int]) -> np.ndarray:
        """Of kernel j along some features."""
        if self.pool.covariance is None:
            return np.diag(self.pool.variance[j][at])
        whole = self.pool.covariance if self.pool.covariance.ndim == 2 else self.pool.covariance[j]
        return np.asarray(whole[np.ix_(at, at)])


def innermost(estimator: Any) -> Any:
    """The model inside, fitted or not."""
    return _layers(estimator)[0]


def _layers(estimator: Any) -> tuple[Any, list[Any], list[Any]]:
    """The model inside, the first of several, what stands around it, and the transformers before
    it.
    """
    attribute = inside_of(estimator)
    if attribute == "steps":
        before = [step for _, step in estimator.steps[:-1] if step not in (None, "passthrough")]
        inner, wrappers, steps = _layers(estimator.steps[-1][1])
        return inner, [estimator, *wrappers], before + steps
    if attribute is not None:
        inner, wrappers, steps = _layers(getattr(estimator, attribute))
    elif hasattr(type(estimator), "_inner") and hasattr(estimator, "estimators_"):
        inner, wrappers, steps = _layers(estimator._inner)
    else:
        return estimator, [], []
    return inner, [estimator, *wrappers], steps


def inside_of(estimator: Any) -> str | None:
    """The attribute in which a wrapper keeps what it fitted; None for a model."""
    if isinstance(estimator, Pipeline):
        return "steps"
    kept = ("estimator",) if isinstance(estimator, FrozenEstimator) else ()
    for name in (*kept, "best_estimator_", "estimator_"):
        if is_fitted_estimator(getattr(estimator, name, None)):
            return name
    return None


def _names_after(step: Any, names: Sequence[str]) -> list[str]:
    """What a fitted transformer calls the features that it makes."""
    for arguments in ([list(names)], []):
        try:
            return [str(name) for name in step.get_feature_names_out(*arguments)]
        except (AttributeError, ValueError, TypeError):
            continue
    return []


def log_density(estimator: Any, X: Any) -> np.ndarray:
    """log p(x|C_k) by the model inside, (n, K), in the features that it takes; pipelines do not
    hand it on.
    """
    inner, _, steps = _layers(estimator)
    for step in steps:
        X = step.transform(X)
    return np.asarray(to_numpy(inner.log_density(X)), np.float64)


def is_fitted_estimator(estimator: Any) -> bool:
    """Whether it is an estimator that answers, a pipeline with all its steps; forests keep an
    unfitted one as a pattern.
    """
    if isinstance(estimator, Pipeline):  # scikit-learn asks its last step alone
        return all(
            step in (None, "passthrough") or is_fitted_estimator(step)
            for _, step in estimator.steps
        )
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


# -- notebooks -------------------------------------------------------------------------------------

MINUS = "\N{MINUS SIGN}"
MOST_ROWS = 10
MOST_FEATURES = 4
MOST_CLASSES = 2
LONGEST = 40


class NotebookMixin:
    """Adds a summary of a fitted model to scikit-learn's diagram.

    HTML is written by hand here, a table of numbers: notebooks must not need the packages that
    whole reports do. Everything that comes from the data is escaped.
    """

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + notebook_summary(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += notebook_summary(self)
        return bundle


def notebook_summary(estimator: Any) -> str:
    """A sentence and the greatest kernels, as HTML that can stand in any page; nothing where the
    model is not fitted.
    """
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return ""
    body = f"<p>{escape(describe(estimator).sentence)}</p>"
    pool = describe(estimator).pool
    if pool is not None:
        body += _table(pool, Inside(estimator), getattr(estimator, "classes_", ()))
    return f'<div style="margin:0.6em 0;max-width:60em;font-size:90%">{body}</div>'


def _table(pool: Pool, inside: Inside, classes: Any) -> str:
    order = pool.largest(MOST_ROWS).tolist()
    columns = {pool.word: [str(j) for j in order]}
    if pool.group:
        columns["network"] = [pool.group[j] for j in order]
    columns["share"] = [percent(pool.share[j]) for j in order]
    if pool.class_posterior is not None and len(classes):
        columns["classes"] = [_class_shares(pool.class_posterior[j], classes) for j in order]
    left = {f"{pool.word}s": len(pool) - len(order)}
    heads = list(columns)
    cells = list(columns.values())
    if inside.pool is not None:
        left["features"] = max(0, len(inside.features) - MOST_FEATURES)
        for i, name in enumerate(inside.features[:MOST_FEATURES]):
            heads.append(shorten(name, LONGEST))
            cells.append([_feature_text(inside, j, i) for j in order])
    rows = [heads, *zip(*cells, strict=True)]
    marks = ["th", *["td"] * len(order)]
    html = "".join(
        f"<tr>{''.join(f'<{mark}>{escape(cell)}</{mark}>' for cell in row)}</tr>"
        for mark, row in zip(marks, rows, strict=True)
    )
    more = ", ".join(f"{n:,} more {word}" for word, n in left.items() if n)
    return f"<table>{html}</table>" + (f"<p>… and {escape(more)}.</p>" if more else "")


def _feature_text(inside: Inside, j: int, i: int) -> str:
    """What kernel j is along feature i: a category and its share, or a mean and a deviation."""
    if inside.categories[i] is not None:
        code, share = inside.category(j, i)
        return f"{text_of(inside.categories[i][code], LONGEST)} {percent(share, 0)}"
    mean = inside.pool.mean[j, i]
    deviation = inside.pool.variance[j, i] ** 0.5
    texts = (text_of(round(v, decimals_of(deviation, 2))) for v in (mean, deviation))
    return " ± ".join(texts).replace("-", MINUS)


def _class_shares(posterior: np.ndarray, classes: Any) -> str:
    order = [k for k in np.argsort(-posterior, kind="stable").tolist() if posterior[k] >= 0.005]
    named = [f"{shorten(str(classes[k]), LONGEST)} {percent(posterior[k], 0)}" for k in order]
    more = [f"{len(order) - MOST_CLASSES} more"] if len(order) > MOST_CLASSES else []
    return ", ".join([*named[:MOST_CLASSES], *more])
