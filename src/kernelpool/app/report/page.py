"""A report on a fitted classifier: one HTML file that needs neither network nor server.

The entry point is

    write_report(model, X, y, path, *, X_test=None, y_test=None, row_ids=None, test_row_ids=None,
                 title=None, facts=None, command=None) -> Path
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .html import write_html
from .summary import summarize


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    X_test: Any = None,
    y_test: Any = None,
    row_ids: Sequence[Any] | None = None,
    test_row_ids: Sequence[Any] | None = None,
    title: str | None = None,
    facts: Mapping[str, Any] | None = None,
    command: str | None = None,
) -> Path:
    """Write a report as one HTML file that can be opened, mailed and printed as it is.

    Parameters
    ----------
    model : classifier
        Fitted, with `predict_proba`: of this library or another, alone or in a pipeline.
    X : array-like or data frame of shape (n_samples, n_features), or None
        The rows that it was fitted to; None where they are not at hand.
    y : array-like of shape (n_samples,), or None
        Their classes.
    path : str or path
        Where to write; a file that is there is replaced, completely or not at all.
    X_test : array-like or data frame of shape (n_test_samples, n_features), default=None
        Rows that had no part in the training: held out, or new ones.
    y_test : array-like of shape (n_test_samples,), default=None
        Their classes; None where they are not known.
    row_ids, test_row_ids : sequence of length n_samples, default=None
        How the report names rows, such as by number and identifier; None takes the index of a data frame, or
        counts from 0.
    title : str, default=None
        Title; None takes the name of the class of the model.
    facts : dict of str to value, default=None
        What else is to be said of the training, such as {"Rows": "irises.csv", "Target": "species"}.
    command : str, default=None
        A command line that makes the model again.

    Returns
    -------
    path : Path
        Where it was written.
    """
    told = dict(facts or {})
    names: dict[str, Any] = {}
    for prefix, ids in (("", row_ids), ("test_", test_row_ids)):
        if ids is not None:
            numbers = np.asarray(ids)
            whole = numbers.dtype.kind in "iu"
            names[f"{prefix}row_numbers"] = numbers if whole else None
            names[f"{prefix}row_names"] = None if whole else list(ids)
    summary = summarize(
        model,
        X,
        y,
        X_test,
        y_test,
        title=title,
        source=told.get("Rows"),
        target_name=told.get("Target"),
        command=command,
        **names,
    )
    return write_html(summary, path)
