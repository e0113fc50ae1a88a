"""Whether held-out rows are like training rows, and what the sets of a conformal classifier are like on them."""

from typing import Any

import numpy as np

from ...estimators.conformal import ConformalClassifier
from ...inspection.metrics import Rate
from ...questions import DriftReference
from ...questions.priors import prior_from_probability
from ...text import text_of
from .records import ClassShare, Likeness, MovedFeature, SetCoverage, Sets

MOST_WATCHED, MOST_LISTED = 1000, 10
"""Features that are compared, and features and classes that are listed."""


def likeness_of(
    reference: Any,
    rows: Any,
    names: dict[str, str],
    probability: np.ndarray | None = None,
    codes: np.ndarray | None = None,
    shares: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> Likeness:
    """Of training rows and held-out rows as they were given.

    `probability`, (n, K), is the classifier's for the held-out rows, `codes`, (n,), are their classes (-1: none) and `shares`,
    (K,), those of the training; without these frequencies are left out.
    """
    trained = DriftReference.of(reference)
    found = trained.compare(*trained.count(rows))
    told = tuple(
        MovedFeature(text_of(names.get(p.name, p.name)), p.distance, p.adjusted)
        for p in found.parts[:MOST_LISTED]
    )
    frequencies: list[ClassShare] = []
    p_value = None
    if probability is not None and codes is not None and shares is not None and classes is not None:
        estimate = prior_from_probability(probability, shares, classes)
        p_value = estimate.p_value
        counted = np.bincount(codes[codes >= 0], minlength=len(classes)) / max(
            1, int((codes >= 0).sum())
        )
        for k in np.argsort(-np.abs(estimate.class_prior - shares), kind="stable")[
            :MOST_LISTED
        ].tolist():
            low, high = float(estimate.low[k]), float(estimate.high[k])
            part = float(counted[k]) if (codes >= 0).any() else None
            name = text_of(classes.tolist()[k])
            frequencies.append(
                ClassShare(name, float(shares[k]), part, float(estimate.class_prior[k]), low, high)
            )
    return Likeness(
        n_rows=found.n_rows,
        n_reference=found.n_reference,
        p_value=found.p_value,
        features=told,
        n_more=len(found.parts) - len(told),
        classes=tuple(frequencies),
        n_more_classes=0 if classes is None else len(classes) - len(frequencies),
        classes_p_value=p_value,
    )


def sets_of(
    model: ConformalClassifier, rows: Any, codes: np.ndarray, held_out: bool, doubt: float
) -> Sets:
    """The sets of rows whose classes are known, by their codes (n,)."""
    members = model.predict_set(rows)
    inside = members[np.arange(len(codes)), codes]
    missing = Rate.of(int((~inside).sum()), len(codes), doubt)
    parts = [
        SetCoverage(text_of(label), int((codes == k).sum()), float(inside[codes == k].mean()))
        for k, label in enumerate(model.classes_.tolist())
        if (codes == k).any()
    ]
    parts.sort(key=lambda part: part.coverage)
    size = members.sum(axis=1)
    return Sets(
        error=float(model.error),
        per_class=bool(model.per_class),
        held_out=held_out,
        n_rows=len(codes),
        coverage=float(inside.mean()),
        coverage_low=1 - missing.high,
        coverage_high=1 - missing.low,
        mean_size=float(size.mean()),
        sizes=tuple(np.bincount(size).tolist()),
        classes=tuple(parts[:MOST_LISTED]),
        n_more_classes=max(0, len(parts) - MOST_LISTED),
    )
