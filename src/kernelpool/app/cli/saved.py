"""A model file together with what was written down when it was fitted.

What the file says of itself is checked like any other input: it may have been written by somebody else.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import get_tags

from ...errors import KernelpoolError, TableError
from ...estimators.reject import DEFAULT_AMBIGUITY, DEFAULT_NOVELTY, RejectClassifier
from ...inspection.pipeline import Coding, unwrap
from ...tables.encoder import TableEncoder
from ...text import listed, plural, quoted, shown
from ...training.held_out import stratified_holdout
from ..files import load, read_header
from ..readers.columns import CATEGORY, NUMBER, FeatureColumn, Gaps, check_columns, fitted_features
from ..readers.labels import LabeledTable, codes_of, numbers_of
from ..readers.large import PlaceSplit
from ..readers.sources import Batch, Source, stem_of
from .output import CommandError, Exit, Screen

SWAPPED = "It has the name of a data file: the model comes first, then the data."


@dataclass
class Saved:
    """A fitted model and how to feed it."""

    model: Any
    path: str
    features: list[FeatureColumn] | None
    """None where the model was fitted without names: columns are then taken in their order."""
    target: str | None
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        """Whether it predicts numbers, not classes."""
        return not hasattr(self.model, "classes_")

    @property
    def classes(self) -> np.ndarray:
        """None at all where it predicts numbers."""
        return np.zeros(0) if self.numeric else np.asarray(self.model.classes_)

    def predict_numbers(self, table: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations of new observations, (n, outputs) both."""
        unwrapped = unwrap(self.model)
        mean, std = unwrapped.inner.predict(unwrapped.transform(table), return_std=True)
        return np.asarray(mean).reshape(len(mean), -1), np.asarray(std).reshape(len(mean), -1)

    def knows_density(self) -> bool:
        """Whether `score_samples` is there."""
        return hasattr(self.model, "score_samples")

    @property
    def takes_holes(self) -> bool:
        """Whether rows with missing cells are judged by the others."""
        inner = self.model.estimator_ if isinstance(self.model, RejectClassifier) else self.model
        return bool(get_tags(unwrap(inner).inner).input_tags.allow_nan)

    def set_drop(self) -> list[str]:
        """Columns that were left out when it was fitted."""
        found = self.summary.get("dropped")
        return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []

    def target_of(self, given: str | None) -> str:
        """The target column."""
        name = given or self.target
        if name is None:
            raise CommandError(
                Exit.USAGE,
                f"{shown(self.path, 200)} does not say which column is to be predicted: pass --target.",
            )
        return name

    def check_options(self, given: dict[str, Any]) -> None:
        """Refuse options that mean something for classes alone, for a model that predicts numbers."""
        for option, value in given.items():
            if value is not None and value is not False:
                raise CommandError(
                    Exit.USAGE,
                    f"{option} is for classes; {shown(self.path, 200)} predicts numbers.",
                )

    # -- rows -------------------------------------------------------------------------------------------------------

    def take(self, source: Source, spare: set[str], screen: Screen) -> list[FeatureColumn]:
        """The features among the columns of a source, matched by name; others are passed over, and that is said."""
        left = [name for name in source.names if name not in spare]
        if self.features is None:
            if len(left) != self.model.n_features_in_:
                raise TableError(
                    f"{source.label}: the model was fitted to {self.model.n_features_in_} columns without names; "
                    f"there are {len(left)}: {listed(left)}.",
                    "Leave others out with drop=.",
                )
            return [FeatureColumn(name) for name in left]
        known, present = {f.name for f in self.features}, set(source.names)
        missing = [f.name for f in self.features if f.name not in present]
        extra = [name for name in left if name not in known]
        if missing:
            others = f" It has {listed(extra, 8)} besides." if extra else ""
            raise TableError(
                f"{source.label}: the columns are not those that the model was fitted to: "
                f"it lacks {listed(missing, 8)}.{others}",
                missing_columns=missing,
                extra_columns=extra,
            )
        if extra:
            screen.say(f"{source.label}: the model does not use {listed(extra, 8)}.")
        return self.features

    def batches(
        self, source: Source, screen: Screen, spare: set[str], title: str, gaps: Gaps | None = None
    ) -> Iterator[tuple[Batch, Any, np.ndarray]]:
        """Batches with the features of the rows that can be judged, and which those are.

        Missing cells, and cells that cannot be read, are counted in `gaps`; without it they are refused at the end.
        """
        lenient, gaps, n_rows, features = gaps is not None, gaps or Gaps(), 0, None
        with screen.working(f"{title} {source.label}", source.n_bytes) as bar:
            for batch in source.batches():
                features = self.take(source, spare, screen) if features is None else features
                table, complete = fitted_features(batch, features, gaps, lenient, self.takes_holes)
                n_rows += batch.n_rows
                if lenient or not gaps.counts:
                    yield batch, self._named(table), complete
                bar.at(source.bytes_read, plural(n_rows, "row"))
        if gaps.counts and not lenient:
            raise gaps.error(n_rows)
        if not n_rows:
            self.take(source, spare, screen)
            raise TableError(f"{source.label}: no rows below the header.")

    def _named(self, table: Any) -> Any:
        """A model fitted without names is fed an array."""
        return table if self.features is not None else np.asarray(table)

    def labeled(
        self, source: Source, target: str, screen: Screen, drop: list[str], title: str
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Batches of features and class codes, or numbers where it predicts those."""
        spare = {target, *drop, *self.set_drop()}
        for batch, table, _ in self.batches(source, screen, spare, title):
            check_columns([target], source.names, source.label, "for the target")
            yield (
                table,
                numbers_of(batch, target)
                if self.numeric
                else codes_of(batch, target, self.classes),
            )

    def read(self, source: Source, target: str, screen: Screen, drop: list[str]) -> LabeledTable:
        """All rows of a source with their labels."""
        import pyarrow as pa

        if self.features is None:
            raise CommandError(
                Exit.MODEL,
                f"{shown(self.path, 200)} was fitted without names of columns; this needs them.",
            )
        parts = list(self.labeled(source, target, screen, drop, "Reading"))
        table, codes = (
            pa.concat_tables([part for part, _ in parts]),
            np.concatenate([codes for _, codes in parts]),
        )
        numbers = np.arange(1, len(codes) + 1)
        gone = np.isnan(codes) if self.numeric else codes < 0
        if gone.any() and (self.numeric or self.summary.get("unlabeled") == "drop"):
            table, numbers, codes = table.take(np.flatnonzero(~gone)), numbers[~gone], codes[~gone]
        labels = codes if self.numeric else self.classes[codes]
        if not self.numeric and (codes < 0).any():
            labels = labels.astype(object)
            labels[codes < 0] = None
        return LabeledTable(
            table.combine_chunks(),
            labels,
            self.features,
            target,
            source.label,
            source.names,
            numbers=numbers,
        )

    def split_of(self, fingerprint: str, codes: np.ndarray) -> tuple[bool, np.ndarray | None]:
        """Whether these are the rows that the model was fitted to, and if so which of them were held out."""
        codes = np.zeros(len(codes), np.int64) if self.numeric else codes
        data, split, by_place = (
            self.summary.get("data"),
            self.summary.get("split"),
            self.place_split(),
        )
        if not isinstance(data, dict) or data.get("fingerprint") != fingerprint:
            return False, None
        if by_place is not None:
            return True, by_place.of(codes, 0)[0]
        try:
            test = (
                stratified_holdout(codes, float(split["share"]), int(split["seed"]))
                if isinstance(split, dict)
                else None
            )
        except (KeyError, TypeError, ValueError):
            return True, None
        return True, test

    def place_split(self) -> PlaceSplit | None:
        """How rows of a large table were held out; None where the rows of the fit were in memory."""
        split = self.summary.get("split")
        if not isinstance(split, dict) or split.get("rule") != "place":
            return None
        share, seed = split.get("share"), split.get("seed")
        if not isinstance(share, float | int) or not isinstance(seed, int) or not 0 <= seed < 2**32:
            return None
        return PlaceSplit(float(share), seed)

    # -- refusing ---------------------------------------------------------------------------------------------------

    def rejecting(
        self, reject: bool, ambiguity: float | None, novelty: float | None, screen: Screen
    ) -> Any:
        """The model as one that may refuse rows; None if it may not."""
        if isinstance(self.model, RejectClassifier) and ambiguity is None and novelty is None:
            return self.model
        if not reject and ambiguity is None and novelty is None:
            return None
        model = self.model.estimator_ if isinstance(self.model, RejectClassifier) else self.model
        if novelty is None and ambiguity is None:
            ambiguity, novelty = (
                DEFAULT_AMBIGUITY,
                DEFAULT_NOVELTY if self._lowest() is not None else None,
            )
            if novelty is None:
                screen.warn("the model cannot tell novel rows: only ambiguous ones are refused.")
        lowest = None if novelty is None else self._novelty_threshold(novelty, screen)
        wrapped = RejectClassifier(
            model,
            ambiguity=ambiguity,
            novelty=lowest,
            novelty_rule="threshold",
            **self._words(),
        )
        return wrapped.fit(None, None)

    def _words(self) -> dict[str, Any]:
        """Labels of refusal that are no classes."""
        if self.classes.dtype.kind in "biuf":
            return {}
        taken = set(self.classes.tolist())
        names = {"ambiguous_label": "ambiguous", "novel_label": "novel"}
        return {
            key: name
            if name not in taken
            else next(f"{name}{'_' * n}" for n in range(1, 99) if f"{name}{'_' * n}" not in taken)
            for key, name in names.items()
        }

    def _lowest(self) -> tuple[int, list[float]] | None:
        """How many rows were held out, and the lowest of their log-densities, rising."""
        found = self.summary.get("held_out_densities")
        if not isinstance(found, dict) or not self.knows_density():
            return None
        n, lowest = found.get("n_rows"), found.get("lowest")
        if (
            not isinstance(n, int)
            or not isinstance(lowest, list)
            or not all(isinstance(v, int | float) for v in lowest)
        ):
            return None
        return n, sorted(float(v) for v in lowest)

    def _novelty_threshold(self, rate: float, screen: Screen) -> float:
        """The j-th lowest density of n held-out rows, j = floor(rate (n + 1)): a new row is lower with probability <= rate."""
        found = self._lowest()
        if found is None:
            reason = (
                "was fitted without rows held out (--holdout)"
                if self.knows_density()
                else "does not know how likely a row is"
            )
            raise CommandError(Exit.MODEL, f"--novelty is not possible: the model {reason}.")
        n, lowest = found
        j = int(np.floor(rate * (n + 1)))
        if j < 1:
            screen.warn(
                f"{plural(n, 'held-out row')} cannot tell the rarest {100 * rate:g} % of rows: no row is called novel."
            )
            return -float(np.finfo(np.float64).max)
        if j > len(lowest):
            raise CommandError(
                Exit.USAGE,
                f"--novelty must be at most {len(lowest) / (n + 1):.3g} for this model; got {rate:g}.",
            )
        return lowest[j - 1]


def decisions(wrapped: Any, table: Any) -> np.ndarray | None:
    """0 accepted, 1 ambiguous, 2 novel."""
    if wrapped is None:
        return None
    return np.asarray(wrapped.decide(table), np.int64)


def open_saved(path: str, screen: Screen, numeric: bool = False) -> Saved:
    """The model in a file; never runs code from it. Regressors are refused unless `numeric`."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model, header = load(path), read_header(path)
    except OSError as error:
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)}: {(error.strerror or str(error)).lower()}."
        ) from None
    except KernelpoolError as error:
        swapped = f" {SWAPPED}" if stem_of(path) != Path(path).name else ""
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)} is not a model file that can be used: {error}{swapped}"
        ) from None
    for warning in caught:
        screen.warn(shown(warning.message, 400))
    if is_regressor(unwrap(model).inner):
        if not numeric:
            inside = type(unwrap(model).inner).__name__
            raise CommandError(
                Exit.MODEL,
                f"{shown(path, 200)}: {inside} predicts numbers; this command is for classifiers.",
            )
    elif not hasattr(model, "classes_") or not hasattr(model, "predict_proba"):
        raise CommandError(
            Exit.MODEL, f"{shown(path, 200)}: {type(model).__name__} is not a classifier."
        )
    summary = header.get("summary") or {}
    target = summary.get("target")
    names = getattr(model, "feature_names_in_", None)
    features = (
        None if names is None else _features(summary.get("features"), [str(name) for name in names])
    )
    return Saved(model, path, features, target if isinstance(target, str) else None, summary)


def _features(told: Any, names: list[str]) -> list[FeatureColumn]:
    """What the file says of its features, as far as it fits the model; numbers otherwise."""
    kinds = {}
    for entry in told if isinstance(told, list) else []:
        if (
            isinstance(entry, dict)
            and entry.get("kind") in (NUMBER, CATEGORY)
            and isinstance(entry.get("name"), str)
        ):
            kinds[entry["name"]] = entry["kind"]
    return [FeatureColumn(name, kinds.get(name, NUMBER)) for name in names]


def unknown_words(saved: Saved, table: Any, counts: dict[str, int]) -> None:
    """Counts words that no category of the model is."""
    for step in unwrap(saved.model).steps:
        for name, n in (
            step.unknown_words(table).items() if isinstance(step, TableEncoder | Coding) else ()
        ):
            if n:
                counts[name] = counts.get(name, 0) + n


def tell_unknown_words(counts: dict[str, int], screen: Screen) -> None:
    """Rows with new categories are judged by their other columns; that should be known."""
    for name, n in counts.items():
        screen.warn(
            f"column {quoted(name)}: {plural(n, 'row')} with words that were not there when the model was fitted."
        )
