"""What stands between a table and a network: scikit-learn's scalers, imputers and encoders as nodes of a graph.

Words become the numbers of their categories by ONNX's LabelEncoder. What an encoder makes of a word that it has never seen is
what it makes of it in Python: nothing (``handle_unknown="ignore"``), the column of the rare ones (``"infrequent_if_exist"``), a
number of its own (``"use_encoded_value"``). One that refuses such words looks their number up beyond the end of a table, which
ONNX calls an error: onnxruntime ends the run and quotes the name of the node, which says what is wrong.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from ..errors import KernelpoolError
from .columns import Columns, Given, Inputs, Word, beside, block, numbers
from .graph import ML, Graph

GAP = ""
"""Stands for a missing word."""

KNOWN = "ColumnTransformer, OneHotEncoder, OrdinalEncoder, Pipeline, SimpleImputer, StandardScaler, 'passthrough' and 'drop'"


def one_by_one(steps: Iterable[Any]) -> Iterator[Any]:
    """The steps of pipelines within pipelines, without those that do nothing."""
    for step in steps:
        inner = step.estimator if isinstance(step, FrozenEstimator) else step
        if isinstance(inner, Pipeline):
            yield from one_by_one(part for _, part in inner.steps)
        elif inner is not None and not (isinstance(inner, str) and inner == "passthrough"):
            yield inner


def takes_columns(steps: Iterable[Any]) -> bool:
    """Whether the first step that does anything looks at columns one by one, and so may want words."""
    for step in one_by_one(steps):
        if type(step) is SimpleImputer:
            return any(_fills_words(step, value) for value in step.statistics_)
        if type(step) is not FunctionTransformer:
            return type(step) in (ColumnTransformer, OneHotEncoder, OrdinalEncoder)
    return False


def after(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    """The columns that a fitted transformer makes of others."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if isinstance(step, str) and step == "drop":
        return []
    make = STEPS.get(type(step))
    if make is None or (type(step) is FunctionTransformer and step.func is not None):
        raise KernelpoolError(
            f"{type(step).__name__} cannot be exported to ONNX; before the classifier only {KNOWN} can. "
            f"Export the last step alone, and transform the rows yourself."
        )
    return make(g, inputs, columns, step)


def _pipeline(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    for _, part in step.steps:
        columns = after(g, inputs, columns, part)
    return columns


def _by_columns(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    made: Columns = []
    for name, part, _ in step.transformers_:
        mine = [columns[at] for at in step._transformer_to_input_indices[name]]
        if not mine:  # such a part was never fitted
            continue
        found = after(g, inputs, mine, part)
        weight = (step.transformer_weights or {}).get(name)
        if weight is not None and found:
            found = block(g.multiply(numbers(g, inputs, found), float(weight)), len(found))
        made += found
    return made


def _scaled(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    x = numbers(g, inputs, columns)
    if step.mean_ is not None and step.with_mean:
        x = g.centered(x, np.asarray(step.mean_, np.float64))
    if step.scale_ is not None and step.with_std:
        x = g.multiply(x, 1 / np.asarray(step.scale_, np.float64))
    return block(x, len(columns))


# -- gaps ---------------------------------------------------------------------------------------------------------------


def is_gap(value: Any) -> bool:
    """None, NaN, or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float | np.floating) and value != value)


def _fills_words(step: Any, statistic: Any) -> bool:
    return isinstance(statistic, str) or isinstance(step.missing_values, str)


def _imputed(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    """Gaps filled with what the imputer learned; columns that were all gaps left out; marks of the gaps at the end."""
    values = np.asarray(step.statistics_, object)
    made: Columns = []
    run: list[int] = []
    for at, value in enumerate(values):
        if is_gap(value):
            continue
        if _fills_words(step, value):
            made += [*_numbers_filled(g, inputs, columns, step, run), _words_filled(inputs, columns[at], step, value)]
            run = []
        else:
            run.append(at)
    made += _numbers_filled(g, inputs, columns, step, run)
    if step.add_indicator:
        marks = [_gap(g, inputs, columns[at], step, values[at]) for at in step.indicator_.features_]
        made += block(g.cast(beside(g, marks), g.dtype), len(marks)) if marks else []
    return made


def _numbers_filled(g: Graph, inputs: Inputs, columns: Columns, step: Any, run: list[int]) -> Columns:
    if not run:
        return []
    x = numbers(g, inputs, [columns[at] for at in run])
    value = step.statistics_[run].astype(step._fill_dtype).astype(np.float64)
    return block(str(g.op("Where", _is_missing(g, x, step.missing_values), g.constant(value), x)), len(run))


def _is_missing(g: Graph, x: str, missing: Any) -> str:
    if is_gap(missing):
        return str(g.op("IsNaN", x))
    return str(g.op("Equal", g.outwards(x), g.constant(np.array(float(missing)), g.outside)))


def _words_filled(inputs: Inputs, column: Any, step: Any, value: str) -> Word:
    word = _word(inputs, column)
    missing = GAP if is_gap(step.missing_values) else str(step.missing_values)
    stands_for = {given: str(value) if means == missing else means for given, means in word.stands_for}
    stands_for.setdefault(missing, str(value))
    return replace(word, stands_for=tuple(stands_for.items()), gaps_filled=word.gaps_filled or is_gap(step.missing_values))


def _gap(g: Graph, inputs: Inputs, column: Any, step: Any, value: Any) -> str:
    """Where a column has a gap, (n, 1)."""
    if not _fills_words(step, value):
        return _is_missing(g, numbers(g, inputs, [column]), step.missing_values)
    word, missing = _word(inputs, column), GAP if is_gap(step.missing_values) else str(step.missing_values)
    means = {missing: missing} | dict(word.stands_for)
    codes = {given: int(meant == missing) for given, meant in means.items()}
    return str(g.op("Equal", _numbered(g, word.tensor, codes, 0), g.constant(np.array(1))))


def _word(inputs: Inputs, column: Any) -> Word:
    if isinstance(column, Given):
        return Word(inputs.taken(column.at, words=True), inputs.columns[column.at])
    if isinstance(column, Word):
        return column
    raise KernelpoolError("A step that expects words follows one that makes numbers; ONNX cannot turn them back.")


# -- categories ---------------------------------------------------------------------------------------------------------


def _one_hot(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    made: Columns = []
    for at, column in enumerate(columns):
        places, unknown = one_hot_places(step, at)
        width = int(step._n_features_outs[at])
        codes = _codes(g, inputs, column, step.categories_[at], np.array(places), unknown)
        if width:
            hot = g.op("Equal", codes, g.constant(np.arange(width)[None, :]))
            made += block(g.cast(hot, g.dtype), width)
    return made


def one_hot_places(step: Any, at: int) -> tuple[list[int], int | None]:
    """The place of each category's one among the encoder's columns for feature `at`, -1 for none; and that of unknown ones.

    The latter is None where the encoder refuses them.
    """
    n = len(step.categories_[at])
    rare = step._default_to_infrequent_mappings[at] if step._infrequent_enabled else None
    grouped = list(range(n)) if rare is None else [int(place) for place in rare]
    dropped = None if step._drop_idx_after_grouping is None else step._drop_idx_after_grouping[at]

    def place(group: int) -> int:
        if dropped is None or group < dropped:
            return group
        return -1 if group == dropped else group - 1

    unknown: int | None = -1
    if step.handle_unknown == "error":
        unknown = None
    elif step.handle_unknown in ("infrequent_if_exist", "warn") and rare is not None:
        unknown = place(max(grouped))  # rare categories come last
    return [place(group) for group in grouped], unknown


def _ordinal(g: Graph, inputs: Inputs, columns: Columns, step: Any) -> Columns:
    made = []
    for at, column in enumerate(columns):
        values = ordinal_values(step, at)
        unknown = float(step.unknown_value) if step.handle_unknown == "use_encoded_value" else None
        made.append(_codes(g, inputs, column, step.categories_[at], values, unknown))
    return block(beside(g, made), len(made))


def ordinal_values(step: Any, at: int) -> np.ndarray:
    """The number of each category of feature `at`."""
    n = len(step.categories_[at])
    missing = step._missing_indices.get(at)
    values = np.arange(n, dtype=np.float64)
    rare = step._default_to_infrequent_mappings[at] if step._infrequent_enabled else None
    if rare is not None:
        values[[i for i in range(n) if i != missing]] = rare
    if missing is not None:
        values[missing] = step.encoded_missing_value
    return values


def _codes(g: Graph, inputs: Inputs, column: Any, categories: np.ndarray, values: np.ndarray, unknown: float | None) -> str:
    """The value of each row's category, (n, 1); `unknown` for other words, an error of the runtime where it is None."""
    keys = categories.tolist()
    if any(isinstance(key, bytes) for key in keys):
        raise KernelpoolError("Categories of bytes cannot be exported to ONNX; fit with text instead.")
    n = len(keys)
    if any(isinstance(key, str) for key in keys) or (categories.dtype.kind == "O" and all(is_gap(key) for key in keys)):
        word = _word(inputs, column)
        name, index = word.column, _numbered(g, word.tensor, _word_keys(word, keys), n)
    else:
        name = inputs.columns[column.at] if isinstance(column, Given) else "of numbers"
        index = _number_keys(g, numbers(g, inputs, [column]), name, keys, n)
    table = values if unknown is None else np.append(values, unknown)
    return str(g.op("Gather", g.constant(table), index, says=f"Column {name!r} holds a category that the model does not know"))


def _word_keys(word: Word, keys: list[Any]) -> dict[str, int]:
    """The numbers of words as they are given."""
    n_gaps = sum(is_gap(key) for key in keys)
    if n_gaps > 1 or (GAP in keys and (n_gaps or word.gaps_filled)):
        raise KernelpoolError(
            f"Column {word.column!r} has two kinds of gaps (None, NaN or an empty word), of which ONNX knows one, "
            f"the empty word. Make them one before fitting."
        )
    own = {GAP if is_gap(key) else key: code for code, key in enumerate(keys)}
    return own | {given: own.get(means, len(keys)) for given, means in word.stands_for}


def _numbered(g: Graph, words: str, codes: dict[str, int], unknown: int) -> str:
    """Whole numbers for words."""
    keys, values = list(codes), list(codes.values())
    return str(g.op("LabelEncoder", words, domain=ML, keys_strings=keys, values_int64s=values, default_int64=unknown))


def _number_keys(g: Graph, x: str, name: str, keys: list[Any], unknown: int) -> str:
    """The same for numbers, compared as they are outside: a float32 of 0.1 is the category 0.1."""
    known = np.array([np.nan if is_gap(key) else float(key) for key in keys]).astype(g.outside)
    if len(np.unique(known)) < len(known):
        raise KernelpoolError(
            f"Column {name!r} has categories that {g.outside.name} cannot tell apart. Export with precision='float64'."
        )
    same = g.op("Equal", g.outwards(x), g.constant(known[None, :], g.outside))
    if np.isnan(known).any():
        gap = g.op("And", g.op("IsNaN", x), g.constant(np.isnan(known)[None, :]))
        same = g.op("Or", same, gap)
    codes = g.op("Mul", g.cast(same, np.int64), g.constant(np.arange(len(known))[None, :] - unknown))
    return str(g.op("Add", g.total(codes, 1, keepdims=True), g.constant(np.array(unknown))))


STEPS: dict[type, Callable[..., Columns]] = {
    ColumnTransformer: _by_columns,
    FrozenEstimator: lambda g, inputs, columns, step: after(g, inputs, columns, step.estimator),
    FunctionTransformer: lambda g, inputs, columns, step: columns,  # noqa: ARG005
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _ordinal,
    Pipeline: _pipeline,
    SimpleImputer: _imputed,
    StandardScaler: _scaled,
}
