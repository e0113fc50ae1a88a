"""Everything that a report says of a fitted model, from the model and its rows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..errors import KernelpoolError
from ..estimators.reject import RejectClassifier
from ..inspection.pipeline import Unwrapped
from ..inspection.pool import describe, refusals
from ..text import text_of
from .glance import data_of
from .making import SummaryBuilder
from .records import Summary
from .training import rerun_of, training_of

__all__ = ["Summary", "summarize"]


def summarize(
    estimator: Any,
    X: Any,
    y: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    feature_names: Sequence[str] | None = None,
    target_name: str | None = None,
    title: str | None = None,
    source: str | None = None,
    test_source: str | None = None,
    command: str | None = None,
    duration: float | None = None,
    doubt: float = 0.05,
    max_kernels: int = 40,
    n_outliers: int = 8,
    random_state: int = 0,
) -> Summary:
    """Everything that a report says of a fitted model, as plain data.

    Parameters
    ----------
    estimator : fitted estimator
        A classifier or regressor of this library, or a pipeline, search or `RejectClassifier` around one. Of other estimators
        the report tells what can be told without kernels.
    X : array-like or frame of shape (n_samples, n_features)
        The rows that it was fitted to.
    y : array-like of shape (n_samples,)
        Their labels, or numbers for a regressor.
    X_test, y_test : array-like, default=None
        Rows that played no part in training. Without them the report can only tell the error on the training rows.
    feature_names : sequence of str, default=None
        Names of the columns; None takes those of a frame, or x0, x1, ...
    target_name : str, default=None
        Name of the target.
    title : str, default=None
        Title of the report; None takes the name of the estimator.
    source, test_source : str, default=None
        Where the rows came from, such as a file name.
    command : str, default=None
        A command line that makes the model again.
    duration : float, default=None
        Seconds that training took.
    doubt : float, default=0.05
        One minus the confidence of intervals.
    max_kernels : int, default=40
        Kernels to list.
    n_outliers : int, default=8
        Rows to list of the training rows and of the held-out ones.
    random_state : int, default=0
        Seed of samples of rows.

    Returns
    -------
    summary : Summary
        For `write_html`, or for machines by its `to_dict` and `to_json`.

    Examples
    --------
    >>> from kernelpool import SharedKernelClassifier
    >>> from kernelpool.datasets import make_clouds
    >>> from kernelpool.report import summarize
    >>> X, y = make_clouds(random_state=0)
    >>> X_test, y_test = make_clouds(random_state=1)
    >>> model = SharedKernelClassifier(n_kernels=12, covariance_type="full", random_state=0).fit(X, y)
    >>> summary = summarize(model, X, y, X_test, y_test)
    >>> rate = summary.evaluation.rate
    >>> rate.low < 0.0965 < rate.high  # the error of the best possible classifier
    True
    >>> len(summary.kernels.rows), summary.data.n_rows
    (12, 5000)
    """
    check_is_fitted(estimator)
    _check_arguments(estimator, X_test, y_test, doubt, max_kernels, n_outliers)
    making = SummaryBuilder(estimator, X, y, X_test, y_test, feature_names, doubt, np.random.default_rng(random_state))
    labels = {"target": target_name, "source": source, "test_source": test_source}
    texts = {name: None if value is None else text_of(value) for name, value in labels.items()}
    evaluation, regression = making.judged()
    pool, kernels, drawn = making.kernels(max_kernels)
    return Summary(
        title=text_of(title) if title is not None else type(making.model.inner).__name__,
        created=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        estimator=type(estimator).__name__,
        sentence=_sentence(making.model),
        task="classification" if making.classification else "regression",
        data=data_of(making.table, making.target, making.test, making.test_target, texts),
        evaluation=evaluation,
        regression=regression,
        kernels=kernels,
        map=drawn,
        outliers=making.outliers(pool, n_outliers, random_state),
        training=training_of(making.model, duration),
        rerun=rerun_of(making.model, texts["source"], making.table.n_rows, command),
        notes=tuple(dict.fromkeys(making.notes)),
    )


def _check_arguments(estimator: Any, X_test: Any, y_test: Any, doubt: float, max_kernels: int, n_outliers: int) -> None:
    if not (is_classifier(estimator) or is_regressor(estimator)):
        raise KernelpoolError(f"A report needs a classifier or a regressor; got {type(estimator).__name__}.")
    if (X_test is None) != (y_test is None):
        raise KernelpoolError("X_test and y_test must be given together; one of them is None.")
    if not 0 < doubt < 1:
        raise KernelpoolError(f"doubt must lie between 0 and 1; got {doubt}.")
    if max_kernels < 1 or n_outliers < 0:
        raise KernelpoolError(f"max_kernels must be at least 1 and n_outliers at least 0; got {max_kernels} and {n_outliers}.")


def _sentence(model: Unwrapped) -> str:
    """The model inside, what stands before it and what stands around it."""
    parts = [describe(model.inner).sentence]
    steps = [type(step).__name__ for transform in model.transforms for _, step in transform.steps if step != "passthrough"]
    if steps:
        parts.append(f"Rows first go through {' and '.join(steps)}.")
    for wrapper in model.wrappers:
        if hasattr(wrapper, "best_estimator_"):
            parts.append(f"It was chosen by {type(wrapper).__name__}.")
        if isinstance(wrapper, RejectClassifier):
            parts.append(refusals(wrapper))
    return " ".join(parts)
