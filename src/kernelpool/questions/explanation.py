"""Explanations of whatever stands around a model: pipelines, refusals, columns of words; see `inspection.explanation`."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import explain_classifier, explained_rows
from ..inspection.explanation import ExplainedFeature, Explanation
from ..inspection.pipeline import Unwrapped, unwrap


def explain(
    model: Any, X: Any, *, against: Any = None, background: Any = None, random_state: Any = 0
) -> list[Explanation]:
    """Why rows get their classes, in the columns and units of the input.

    Like the method `explain` of the classifiers, which says what the answer is made of, for a classifier inside a pipeline, a
    search or a `RejectClassifier`, and for other classifiers with `predict_proba`. All indicators of a column of words are one
    feature.

    Parameters
    ----------
    model : classifier
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Rows, as the model takes them.
    against : label, default=None
        The class to compare with; None takes the most probable of the others.
    background : array-like of shape (n_background, n_features), default=None
        Rows that lend features where the classifier cannot leave them out by itself; None draws 32 from the model.
    random_state : int, RandomState instance or None, default=0
        Seed.

    Returns
    -------
    explanations : list of Explanation
        One a row; each prints as a table.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelpool import SharedKernelClassifier, questions
    >>> from kernelpool.datasets import make_clouds
    >>> X, y = make_clouds(random_state=0)
    >>> model = make_pipeline(StandardScaler(), SharedKernelClassifier.prbf(4, random_state=0)).fit(X, y)
    >>> (why,) = questions.explain(model, X[:1])
    >>> round(why.log_odds - why.prior - sum(feature.part for feature in why.features), 6)
    0.0
    """
    found, x = seen_rows(model, X)
    if background is not None:
        background = found.transform(background)
    return explain_classifier(
        found.inner,
        x,
        user_features(found, X, x),
        against=against,
        background=background,
        random_state=random_state,
    )


def seen_rows(model: Any, X: Any) -> tuple[Unwrapped, np.ndarray]:
    """The model inside, and rows as it sees them, (n, d)."""
    check_is_fitted(model)
    found = unwrap(model)
    if not found.transforms:
        return found, explained_rows(found.inner, X)
    return found, np.asarray(found.transform(X), np.float64)


def user_features(found: Unwrapped, X: Any, x: np.ndarray) -> list[ExplainedFeature]:
    """The features as the user knows them: numbers in their units, and columns of words with all their indicators."""
    made: dict[str, list[int]] = {}
    for i, feature in enumerate(found.features):
        made.setdefault(feature.source or f"\0{i}", []).append(i)
    features = []
    for source, columns in made.items():
        first = found.features[columns[0]]
        if first.words is not None:
            told = {**dict(enumerate(first.words)), len(first.words): "another word"}
            values = [told.get(code, "nothing") for code in x[:, columns[0]].tolist()]
            features.append(ExplainedFeature(first.name, tuple(columns), values, None))
        elif first.source is None:
            values = (first.scale * x[:, columns[0]] + first.offset).tolist()
            features.append(
                ExplainedFeature(first.name, tuple(columns), values, first.scale, first.offset)
            )
        else:
            words = [str(word) for word in np.asarray(X[source], object).tolist()]
            features.append(ExplainedFeature(source, tuple(columns), words, None))
    return features
