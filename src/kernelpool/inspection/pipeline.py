"""The model inside pipelines, searches, frozen estimators and classifiers that may refuse, and its
features in the units of the input.

Where every transformer shifts and scales single columns, the features of the model are the columns
of the input, and `scale` and `offset` lead back to their units. Other transformers make features of
their own, which have the names that they give them.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..errors import KernelpoolError
from ..tables.columns import Columns, texts_of
from ..tables.kinds import DATE
from ..text import date_text
from .description import Inspected, describe

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
    return (levels > 0) & (x == levels - 1)


def cells_of(columns: Columns, x: np.ndarray, X: Any = None) -> list[list[Any]]:
    """The cells of rows as their user knows them, of codes, (n, d): numbers, and categories and
    dates as text.

    Categories that are not known have the text that X has, the same rows; without, they are None.
    """
    cells: list[list[Any]] = replace(columns, frame=None, coded=False).decode(x).tolist()
    places = np.argwhere(never_seen(columns, x))
    if X is not None:
        texts = {j: texts_of(X, j) for j in set(places[:, 1].tolist())}
        for i, j in places.tolist():
            at, own = texts[j]
            cells[i][j] = own[at[i]]
    for j, kind in enumerate(columns.kinds):
        if kind == DATE:
            whole = bool(columns.ranges) and columns.ranges[j] is not None
            for row, day in zip(cells, x[:, j].tolist(), strict=True):
                row[j] = date_text(round(day) if whole and day == day else day)
    return cells


def feature_names(columns: Columns) -> list[str]:
    """As messages and tables name them."""
    return list(columns.names or (f"feature {i}" for i in range(len(columns))))


class FittedPipeline:
    """A fitted classifier and the model inside it, with its features in the units of the input.

    Parameters
    ----------
    outer : classifier
        Fitted.
    X : array-like or data frame, default=None
        Rows as the classifier takes them, for the names and kinds of columns that the model does
        not have itself.

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
    dates : frozenset of str
        Columns of dates, which are days since 1970.
    made : bool
        Whether transformers made them out of something else than single columns.
    scale, offset : ndarray of shape (d,)
        scale * value + offset is in the units of the input, or of what was made of it.
    categories : tuple
        What the codes of each feature stand for; None for numbers.
    """

    def __init__(self, outer: Any, X: Any = None) -> None:
        check_is_fitted(outer)
        self.outer = outer
        (*self.wrappers, self.model), self.steps = layers(outer)
        columns: Any = getattr(self.model, "columns_", None)
        own = columns_of(outer)
        self.direct = own is not None
        self.input: Columns
        if own is not None:
            self.input = own
        elif X is not None:
            self.input = Columns.learn(X)
        else:
            names = tuple(getattr(outer, "feature_names_in_", ())) or None
            self.input = Columns((None,) * getattr(outer, "n_features_in_", 0), names)
        self.names = feature_names(self.input)
        kinds = zip(self.names, self.input.kinds, strict=True)
        self.dates = frozenset(name for name, kind in kinds if kind == DATE)
        self.features, self.made = self._named_features()
        self.scale = np.ones(len(self.features))
        self.offset = np.zeros(len(self.features))
        for step in [] if self.made else self.steps:
            scale, offset = SCALERS[type(step)](step)
            self.offset = self.offset + self.scale * (0.0 if offset is None else offset)
            self.scale = self.scale * (1.0 if scale is None else scale)
        if columns is not None:
            self._form = columns.of_codes()  # of what the model takes
            self.model = self.model._with_columns(self._form)
        elif X is not None:
            self._form = columns = Columns.learn(transformed(self.steps, X))
        self._columns = columns
        self.categories = () if columns is None else columns.categories

    def _named_features(self) -> tuple[list[str], bool]:
        """Names of the features of the model, and whether they are other than the columns."""
        n_features = getattr(self.model, "n_features_in_", len(self.names))
        if all(type(step) in SCALERS for step in self.steps) and len(self.names) == n_features:
            return self.names, False
        names: Any = self.names
        try:
            for step in self.steps:
                names = step.get_feature_names_out(names)
        except (AttributeError, ValueError, TypeError):
            names = ()
        if len(names) != n_features:
            names = [f"feature {i}" for i in range(n_features)]
        return list(map(str, names)), True

    @property
    def numbers(self) -> list[int]:
        """Features of the model that are no categories."""
        return [i for i, values in enumerate(self.categories) if values is None]

    # -- rows --------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Rows as the model inside takes them, (n, d): codes, NaN where a cell is missing."""
        return self._columns.encode(transformed(self.steps, X))

    def cells(self, X: Any) -> list[list[Any]]:
        """The cells of `features` as their user knows them."""
        if self.made:
            return cells_of(self._columns, self.rows(X), transformed(self.steps, X))
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
    def kernels(self) -> Any:
        """Kernels in the units of the input, a `KernelTable`; None where there are none with means.

        Their classes are the probabilities at their means, where the model has no others.
        """
        table: Any = describe(self.model).kernels
        scale = self.scale
        if table is None or table.mean is None or table.mean.shape[1] != len(scale):
            return None
        mean = table.mean * scale + self.offset
        posterior = table.class_posterior
        if posterior is None:
            x = np.full(mean.shape, np.nan)
            x[:, self.numbers] = mean[:, self.numbers]
            posterior = np.asarray(self.model.predict_proba(self.table(x)))
        covariance = None if table.covariance is None else table.covariance * np.outer(scale, scale)
        return replace(
            table,
            mean=mean,
            variance=table.variance * scale**2,
            covariance=covariance,
            class_posterior=posterior,
        )

    def category(self, j: int, i: int) -> tuple[int, float]:
        """The code of the most probable category of kernel j along feature i, and its
        probability.
        """
        start = sum(self._columns.levels[:i])
        share = self.kernels.probability[j, start : start + len(self.categories[i])]  # known ones
        return int(share.argmax()), float(share.max())

    def responsibilities(self, X: Any) -> np.ndarray | None:
        """P(j|x) of the `kernels`, (n, M); None where the model has none."""
        if self.kernels is None or not hasattr(self.model, "kernel_posterior"):
            return None
        posterior = np.asarray(self.model.kernel_posterior(self.transform(X)))
        return posterior if posterior.shape[1] == len(self.kernels) else None

    def covariance(self, j: int, at: list[int]) -> np.ndarray:
        """Of kernel j along some features."""
        if self.kernels.covariance is None:
            return np.diag(self.kernels.variance[j][at])
        return self.kernels.matrices()[j][np.ix_(at, at)]


def innermost(estimator: Any) -> Any:
    """The model inside, fitted or not."""
    return layers(estimator)[0][-1]


def columns_of(estimator: Any) -> Columns | None:
    """Those that a fitted model of this library was fitted to; None where transformers stand before
    it, or there are several models.
    """
    (*wrappers, model), steps = layers(estimator)
    several = any(hasattr(wrapper, "estimators_") for wrapper in wrappers)
    return None if steps or several else getattr(model, "columns_", None)


def layers(estimator: Any) -> tuple[list[Any], list[Any]]:
    """An estimator and those inside it, the model or the first of several last; and the
    transformers before that.
    """
    estimators = [estimator]
    steps = []
    while True:
        attribute = inside_of(estimator)
        if attribute == "steps":
            inner = estimator.steps[-1][1]
            steps += transformers(estimator)
        else:
            inner = getattr(estimator, attribute or "_inner", None)
        if inner is None:
            return estimators, steps
        estimator = inner
        estimators.append(estimator)


def exported(estimator: Any) -> Any:
    """The first estimator of this library in a fitted one, whose answers an ONNX graph has."""
    estimators, _ = layers(estimator)
    if not isinstance(estimators[-1], Inspected):
        raise KernelpoolError(f"{type(estimators[-1]).__name__} cannot be exported to ONNX.")
    return next(inner for inner in estimators if isinstance(inner, Inspected))


def graph_answers(estimator: Any, x: Any) -> dict[str, Any]:
    """The answers of a fitted estimator in an ONNX graph of `x`, rows behind the transformers before
    the model.
    """
    return exported(estimator)._to_graph(x)  # type: ignore[no-any-return]


def inside_of(estimator: Any) -> str | None:
    """The attribute in which a wrapper keeps what it fitted; None for a model."""
    if isinstance(estimator, Pipeline):
        return "steps"
    if isinstance(estimator, FrozenEstimator):
        return "estimator"
    for name in ("best_estimator_", "estimator_"):
        if is_fitted_estimator(getattr(estimator, name, None)):
            return name
    return None


def transformers(pipeline: Pipeline) -> list[Any]:
    """The steps of a pipeline before the last one."""
    return [step for _, step in pipeline.steps[:-1] if step not in (None, "passthrough")]


def transformed(steps: list[Any], X: Any) -> Any:
    """Rows after some transformers."""
    for step in steps:
        X = step.transform(X)
    return X


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
