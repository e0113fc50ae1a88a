"""What a model file must hold: whether a value is what its `Field` says, and whether the parts of a model fit together."""

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ...errors import ModelFileError
from ...kernels import FAMILIES
from ...registry import Field, record_of
from ...tables.columns import Columns
from ...training.parzen import profile_of
from ...training.prepare import known_columns
from ...training.views import indicator_view
from .container import short

Sizes = dict[str, int]
"""What the letters of shapes stand for; a letter is bound where it is met first."""

SUM_SLACK = 1e-6
"""By how much the sum of shares may miss one."""

PLAIN = Field("plain")

COVARIANCES = {
    "spherical": Field("floats", ("M",), low=0.0, open_low=True),
    "diag": Field("floats", ("M", "d"), low=0.0, open_low=True),
    "full": Field("matrices", ("M", "d", "d")),
    "tied": Field("matrices", ("d", "d")),
}
"""What `covariances_` must be, by `covariance_type_`."""


def refused(where: str, expected: str, found: Any) -> ModelFileError:
    """The error that says so."""
    return ModelFileError(f"{where} must be {expected}; got {found}.")


def check_field(
    field: Field, where: str, value: Any, sizes: Sizes, others: Mapping[str, Any]
) -> None:
    """Raise a ModelFileError unless `value` is what `field` says; `others` are the attributes read before it."""
    if any(type(value) is type(option) and value == option for option in field.options):
        return
    if field.kind == "covariances":
        field = COVARIANCES[others["covariance_type_"]]
        sizes = {**sizes, "d": sizes.get("D", sizes["d"])}  # of the columns that kernels see
    if field.kind in ARRAYS:
        _check_array(field, where, value, sizes)
    elif field.kind in ("float", "integer"):
        _check_number(field, where, value)
        if field.size:
            sizes[field.size] = int(value)
    elif field.kind == "columns":
        if not isinstance(value, Columns):
            raise refused(where, "columns", type(value).__name__)
        sizes[field.size] = len(value)
    elif field.kind in ("list", "tuple", "dict"):
        _check_parts(field, where, value, sizes)
    elif field.kind == "model":
        name = type(value).__name__
        if not isinstance(value, BaseEstimator) or (field.classes and name not in field.classes):
            raise refused(
                where,
                " or ".join(map(str, (*field.classes, *field.options))) or "a model",
                short(value),
            )
    elif field.kind == "member":
        if isinstance(value, tuple):
            check_field(
                Field("tuple", parts=(Field("str"), Field("model"))), where, value, sizes, others
            )
        else:
            check_field(Field("model"), where, value, sizes, others)
    elif field.kind == "plain":
        _check_plain(where, value)
    else:
        _check_word(field, where, value)


# -- arrays -----------------------------------------------------------------------------------------------------------------

ARRAYS = {
    "floats": "f",
    "shares": "f",
    "matrices": "f",
    "integers": "iu",
    "bools": "b",
    "labels": "biufU",
    "names": "O",
}
"""Kinds of arrays, and NumPy's letters of what they may hold."""


def _check_array(field: Field, where: str, value: Any, sizes: Sizes) -> None:
    found = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
    if not isinstance(value, np.ndarray) or value.dtype.kind not in ARRAYS[field.kind]:
        raise refused(where, f"an array of {field.kind}", found)
    wide = ("float64", "float32") if field.float32 else ("float64",)
    if field.kind in ("floats", "shares", "matrices") and value.dtype.name not in wide:
        raise refused(where, f"an array of {' or '.join(wide)}", found)
    if field.shape:
        _fit_shape(where, value.shape, field.shape, sizes)
    if field.kind == "names":
        if not all(isinstance(name, str) for name in value.ravel()):
            raise refused(where, "an array of names", "other objects")
    elif value.dtype.kind == "f" and field.finite and not np.isfinite(value).all():
        raise refused(where, "finite", "NaN or infinity")
    if field.kind == "labels":
        if field.distinct and (not len(value) or not np.array_equal(np.unique(value), value)):
            raise refused(
                where, "distinct and sorted labels, one at least", short(value[:8].tolist())
            )
        return
    if field.kind == "integers":
        _check_range(
            Field("integer", low=max(field.low, -1) if field.low > Field.low else 0, high=2**40),
            where,
            value,
        )
        if field.distinct and len(np.unique(value)) != value.size:
            raise refused(where, "distinct", "a number twice")
    elif field.kind == "shares":
        _check_range(Field("float", low=0.0, high=1 + SUM_SLACK), where, value)
        total = value.sum(axis=0)
        if not value.shape[0] or np.abs(total - 1).max(initial=0) > SUM_SLACK:
            raise refused(
                where, "shares that sum to one", f"sums {short(np.ravel(total)[:4].tolist())}"
            )
    elif field.kind == "matrices":
        _check_matrices(where, value)
    elif field.kind == "floats" and field.finite:
        _check_range(field, where, value)


def _check_range(field: Field, where: str, value: np.ndarray) -> None:
    if value.size:
        least, most = value.min().item(), value.max().item()
        if least < field.low or most > field.high or (field.open_low and least <= field.low):
            between = (
                f"{'above' if field.open_low else 'at least'} {field.low} and at most {field.high}"
            )
            raise refused(where, between, f"values from {least} to {most}")


def _fit_shape(where: str, found: tuple[int, ...], shape: tuple[str, ...], sizes: Sizes) -> None:
    """Every size is the one that its letter stands for; 'd+1' is one more than d."""
    wanted = []
    for axis, size in enumerate(shape):
        letter, _, more = size.partition("+")
        if letter not in sizes and axis < len(found):
            sizes[letter] = found[axis] - int(more or 0)
        wanted.append(sizes.get(letter, 0) + int(more or 0))
    if found != tuple(wanted):
        raise refused(where, f"of shape ({', '.join(shape)}) = {tuple(wanted)}", f"shape {found}")


def _check_matrices(where: str, value: np.ndarray) -> None:
    """Symmetric and positive definite, whatever the units of the features."""
    matrices = value.reshape(-1, *value.shape[-2:])
    variance = np.diagonal(matrices, axis1=1, axis2=2)
    if not variance.size or not variance.min() > 0:
        raise ModelFileError(
            f"{where} must have positive variances; got {variance.min() if variance.size else 'none'}."
        )
    unit = np.sqrt(variance)
    correlation = matrices / (unit[:, :, None] * unit[:, None, :])
    if not np.abs(correlation - correlation.swapaxes(1, 2)).max() < 1e-6:
        raise ModelFileError(f"{where} must be symmetric.")
    try:
        np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise ModelFileError(f"{where} must be positive definite.") from None


# -- other values -----------------------------------------------------------------------------------------------------------


def _check_number(field: Field, where: str, value: Any) -> None:
    kinds = (int, np.integer) if field.kind == "integer" else (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise refused(
            where, f"a {'whole ' if field.kind == 'integer' else ''}number", type(value).__name__
        )
    if not field.finite and not math.isfinite(value):
        return
    if not field.low <= value <= field.high or (field.open_low and value <= field.low):
        raise refused(
            where,
            f"{'above' if field.open_low else 'at least'} {field.low} and at most {field.high}",
            short(value),
        )


def _check_parts(field: Field, where: str, value: Any, sizes: Sizes) -> None:
    if not isinstance(value, {"list": list, "tuple": tuple, "dict": dict}[field.kind]):
        raise refused(where, f"a {field.kind}", type(value).__name__)
    if field.size:
        _fit_shape(where, (len(value),), (field.size,), sizes)
    entries = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    kinds = field.parts or (PLAIN,)
    if field.kind != "tuple":
        kinds = kinds * len(entries)
    elif len(kinds) != len(entries):
        raise refused(where, f"a tuple of {len(kinds)}", short(value))
    for kind, (key, part) in zip(kinds, entries, strict=True):
        check_field(
            kind, f"{where}/{short(key)}", part, {k: v for k, v in sizes.items() if k in "dK"}, {}
        )


def _check_word(field: Field, where: str, value: Any) -> None:
    if field.kind == "bool":
        good, expected = isinstance(value, bool | np.bool_), "True or False"
    elif field.kind == "str":
        good, expected = isinstance(value, str), "text"
    elif field.kind == "label":
        good, expected = (
            isinstance(value, str | bool | int | float | np.number | np.bool_),
            "a label",
        )
        good = good and (isinstance(value, str) or not field.finite or math.isfinite(value))
    elif field.kind == "family":
        good, expected = (
            isinstance(value, str) and value in FAMILIES,
            f"one of {tuple(FAMILIES)}",
        )
    else:
        good, expected = False, f"one of {field.options}"
    if not good:
        raise refused(where, expected, short(value))


def _check_plain(where: str, value: Any) -> None:
    """Scikit-learn's own ranges of parameters say more; an estimator must be asked for."""
    for part in (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, list | tuple)
        else ()
    ):
        _check_plain(where, part)
    if isinstance(value, BaseEstimator):
        raise refused(where, "plain data", type(value).__name__)


# -- the parts together -----------------------------------------------------------------------------------------------------


def is_fitted(model: Any) -> bool:
    """Whether it has what a fit leaves behind; of a pipeline, every step."""
    if isinstance(model, Pipeline):
        return all(is_fitted(step) for _, step in model.steps)
    if isinstance(model, FrozenEstimator):
        return is_fitted(model.estimator)
    if isinstance(model, str | None):
        return True
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _check_members(name: str, labels: np.ndarray, classes: np.ndarray) -> None:
    if labels.dtype != classes.dtype or not np.isin(labels, classes).all():
        raise ModelFileError(f"{name} must hold labels of classes_ only.")


def _check_close(name: str, found: Any, expected: Any) -> None:
    if not np.allclose(found, expected, rtol=1e-6, atol=1e-9):
        raise ModelFileError(f"{name} is not what the rest of the model makes it.")


def shared_kernel(model: Any, sizes: Sizes) -> None:
    """Of a SharedKernelClassifier."""
    words_alone = min(model.columns_.levels) > 0  # without a shape
    allowed = ["auto", model.covariance_type_]
    if model.standardize:  # among features of one unit each
        allowed += [
            name for name, family in FAMILIES.items() if family.scaled == model.covariance_type_
        ]
    if model.covariance_type not in allowed and not words_alone:
        raise ModelFileError(
            f"covariance_type_ must be the covariance_type asked for; got {model.covariance_type_!r}."
        )
    if sizes["D"] != sizes["d"]:
        raise ModelFileError("means_ must have a column for each feature.")
    if model.n_kernels_ != sizes["M"]:
        raise ModelFileError(
            f"n_kernels_ must be the number of kernels, {sizes['M']}; got {model.n_kernels_}."
        )
    _check_members("owners_", model.owners_, model.classes_)
    if hasattr(model, "deciding_networks_"):
        _check_deciding(model, sizes)
    if any(model.columns_.levels) or hasattr(model, "probabilities_"):
        _check_words(model, sizes)


def _check_words(model: Any, sizes: Sizes) -> None:
    """Every column of words has a table in each kernel, which sums to one."""
    if not (any(model.columns_.levels) and hasattr(model, "probabilities_")):
        raise ModelFileError("Categories and probabilities_ must be there together.")
    columns = known_columns(model)
    assert columns is not None
    ends = np.cumsum([0, *(n for n in columns.levels if n)])
    if ends[-1] != sizes["W"] or not ends[-1]:
        raise ModelFileError(
            f"probabilities_ must have one column for each word of categories_ and one for others, {ends[-1]}."
        )
    total = np.add.reduceat(np.asarray(model.probabilities_), ends[:-1], axis=1)
    if not np.allclose(total, 1, atol=1e-6):
        raise ModelFileError("probabilities_ must sum to one over the words of each column.")


def _check_deciding(model: Any, sizes: Sizes) -> None:
    if not model.deciding_networks_ or not hasattr(model, "class_shares_"):
        raise ModelFileError(
            "deciding_networks_ must hold one network at least, and class_shares_ must be there with them."
        )
    for network in model.deciding_networks_:
        if (
            not is_fitted(network)
            or network.n_features_in_ != sizes["D"]
            or hasattr(network, "deciding_networks_")
        ):
            raise ModelFileError(
                "deciding_networks_ must be fitted to the features of the whole, and have none of their own."
            )
        alike = network.covariance_type_ == model.covariance_type_
        if not alike or not np.array_equal(network.classes_, model.classes_):
            raise ModelFileError(
                "deciding_networks_ must have the covariance_type and the classes of the whole."
            )


def sharing_average(model: Any, sizes: Sizes) -> None:
    """Of a SharingAverageClassifier."""
    for member in model.estimators_:
        if not is_fitted(member) or member.n_features_in_ != sizes["d"]:
            raise ModelFileError("estimators_ must be fitted to the features of the whole.")
        alike = member.covariance_type_ == model.estimators_[0].covariance_type_
        if not alike or not np.array_equal(member.classes_, model.classes_):
            raise ModelFileError(
                "estimators_ must have one covariance_type and the classes of the whole."
            )
        words, own = known_columns(member), known_columns(model)
        if (None if words is None else words.levels) != (None if own is None else own.levels):
            raise ModelFileError("estimators_ must have the words of the whole.")


def pooled(model: Any, sizes: Sizes) -> None:
    """Of a PooledClassifier."""
    for network in model.networks_:
        if isinstance(network, type(model)) or not hasattr(network, "predict_proba"):
            raise ModelFileError("networks_ must be classifiers with probabilities, and no pools.")
        if not is_fitted(network) or len(network.classes_) != sizes["K"]:
            raise ModelFileError(
                "networks_ must be fitted to the features and the classes of the whole."
            )
    _check_widths(model, sizes)
    for name, most in (("network_members_", sizes["L"]), ("network_views_", sizes["V"])):
        if getattr(model, name).max(initial=-1) >= most:
            raise ModelFileError(f"{name} must be below {most}; got {getattr(model, name).max()}.")
    if set(range(sizes["L"])) - set(model.network_members_.tolist()):
        raise ModelFileError("network_members_ must name a network for every member.")
    if model.density_weights_.any():
        describing = [model.networks_[i] for i in np.flatnonzero(model.density_weights_)]
        if not all(hasattr(network, "log_density") for network in describing):
            raise ModelFileError("density_weights_ must be zero for networks without densities.")
        _check_close("density_weights_", model.density_weights_.sum(), 1.0)
    if model.pooling_ == "linear":
        _check_close("weights_", model.weights_.sum(), 1.0)
    if not np.isfinite(np.linalg.slogdet(model.view_metrics_)[1]).all():
        raise ModelFileError("view_metrics_ must be invertible.")
    _check_trials(model.trials_)


def _check_widths(model: Any, sizes: Sizes) -> None:
    """Networks see as many features as there are, or as their view has; without words views have as many as there are."""
    columns = known_columns(model)
    wide = sizes["d"] if columns is None else indicator_view(columns.levels).center.shape[0]
    if sizes["V"] and sizes["D"] != wide:
        raise ModelFileError(f"Views must have {wide} features; got {sizes['D']}.")
    for network, v in zip(model.networks_, model.network_views_, strict=True):
        if network.n_features_in_ != (sizes["d"] if v < 0 else wide):
            raise ModelFileError(
                "networks_ must be fitted to the features and the classes of the whole."
            )
        words = known_columns(network)
        if words is not None and (columns is None or v >= 0 or words.levels != columns.levels):
            raise ModelFileError("networks_ must have the words of the whole.")


TRIALS = {"name": "U", "loss": "f", "pool_loss": "f", "seconds": "f", "outcome": "U"}
"""Columns of what a pool has tried, and NumPy's letters of what they hold."""


def _check_trials(trials: dict[str, Any]) -> None:
    kinds = {
        name: value.dtype.kind if isinstance(value, np.ndarray) else ""
        for name, value in trials.items()
    }
    if (
        kinds != TRIALS
        or len({value.shape for value in trials.values()}) != 1
        or trials["name"].ndim != 1
    ):
        raise ModelFileError(f"trials_ must hold one entry a trial in each of {', '.join(TRIALS)}.")


def parzen(model: Any, sizes: Sizes) -> None:
    """Of a ParzenClassifier or ReducedParzenClassifier."""
    _check_members("kernel_classes_", model.kernel_classes_, model.classes_)
    codes = np.searchsorted(model.classes_, model.kernel_classes_)
    if (np.diff(codes) < 0).any():
        raise ModelFileError("kernels_ must be sorted by class.")
    _check_close(
        "_votes", model._votes, np.bincount(codes, model.kernel_weights_, minlength=sizes["K"])
    )
    columns = known_columns(model)
    if (columns is None) != (not hasattr(model, "word_distance_")) or (
        columns is not None and hasattr(model, "metric_")
    ):
        raise ModelFileError(
            "categories_ and word_distance_ must be there together, and no metric_."
        )
    if columns is not None:
        _check_codes(model, columns.levels)
    if (
        not model._votes.sum() > 0
        or (model._unit / model._scale != model._unit[0] / model._scale[0]).any()
    ):
        raise ModelFileError(
            "there must be votes, and one unit for all features beside their scale."
        )
    if hasattr(model, "metric_") and not np.linalg.slogdet(model.metric_)[0]:
        raise ModelFileError("metric_ must map different rows to different rows.")
    if not model._prior_given:
        _check_close("class_prior_", model.class_prior_, model._votes / model._votes.sum())
    d = sizes["d"] if columns is None else sum(not n for n in columns.levels)
    _check_close("_log_volume", model._log_volume, profile_of(model.kernel, d).log_volume(d))


def _check_codes(model: Any, levels: tuple[int, ...]) -> None:
    """Kernels hold codes of words that there are, in a frame that leaves them as they are."""
    for i, n_levels in enumerate(levels):
        code = model.kernels_[:, i]
        if n_levels and ((code != code.astype(int)) | (code < 0) | (code >= n_levels)).any():
            raise ModelFileError(f"kernels_ must hold codes below {n_levels} in column {i}.")
    if any(n and (model._origin[i] != 0 or model._unit[i] != 1) for i, n in enumerate(levels)):
        raise ModelFileError("_origin and _unit must be 0 and 1 for words.")


def multi_edit(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    """Of a MultiEdit."""
    kept, history = model.sample_indices_, model.history_
    if (
        len(history) != model.n_rounds_ + 1
        or history[-1] != len(kept)
        or (np.diff(history) > 0).any()
    ):
        raise ModelFileError("history_ must fall from the rows there were to those that were kept.")
    if len(kept) and kept.max() >= history[0]:
        raise ModelFileError("sample_indices_ must be rows that there were.")


def rbf(model: Any, sizes: Sizes) -> None:
    """Of an RBFNetworkClassifier or RBFNetworkRegressor."""
    (n_weights, n_outputs), on_path = model.readout_.shape, model.training == "path"
    _check_shown(model, sizes, indicators=on_path)
    if not on_path and (any(model.columns_.levels) or hasattr(model, "probabilities_")):
        _check_words(model, sizes)
    if on_path and any(model.columns_.levels) != hasattr(model, "word_distance_"):
        raise ModelFileError("categories_ and word_distance_ must be there together.")
    expected = sizes["M"] + (sizes["D"] if on_path else 0) + 1
    if n_weights != expected:
        raise ModelFileError(f"readout_ must have {expected} rows; got {n_weights}.")
    mapped = hasattr(model, "metric_")
    if mapped and not (
        on_path and model.covariance_type_ == "tied" and np.linalg.slogdet(model.metric_)[0]
    ):
        raise ModelFileError(
            "metric_ must map different rows to different rows, for a path whose kernels have one matrix."
        )
    if hasattr(model, "kernel_features_") and (
        not on_path or mapped or not model.kernel_features_.any(axis=1).all()
    ):
        raise ModelFileError(
            "kernel_features_ must name a feature for each kernel, of a path without metric_."
        )
    if on_path and not mapped and (model.covariances_ != model.covariances_[0]).any():
        raise ModelFileError("covariances_ must be the same for all kernels of a path.")
    if "K" in sizes and n_outputs != (1 if sizes["K"] == 2 else sizes["K"]):
        raise ModelFileError(
            f"readout_ must have one output a class, of two classes one; got {n_outputs}."
        )
    if "K" not in sizes:
        if model._flat and n_outputs != 1:
            raise ModelFileError(f"readout_ must have one output for a flat y; got {n_outputs}.")
        model.predict(model.means_[:1], return_std=True)


def _check_shown(model: Any, sizes: Sizes, *, indicators: bool = True) -> None:
    """Kernels and neurons see a column for each feature, or for each number and word; what describes rows knows the same."""
    columns = known_columns(model)
    wide = sizes["d"] if columns is None or not indicators else len(model._indicators.sources)
    if sizes["D"] != wide:
        raise ModelFileError(
            f"There must be {wide} columns for the features of the model; got {sizes['D']}."
        )
    network = getattr(model, "describing_network_", None)
    if network is None:
        return
    words = known_columns(network)
    alike = (None if words is None else words.levels) == (
        None if columns is None else columns.levels
    )
    if (
        not is_fitted(network)
        or network.n_features_in_ != sizes["d"]
        or not alike
        or not hasattr(model, "class_shares_")
    ):
        raise ModelFileError(
            "describing_network_ must be fitted to the features of the whole, and class_shares_ be with it."
        )


def competitive(model: Any, sizes: Sizes) -> None:
    """Of a CompetitiveNeuronsClassifier."""
    _check_shown(model, sizes)
    n_neurons, d, n_classes = sizes["M"], sizes["D"], sizes["K"]
    shape = (n_neurons, d + 1) if n_classes == 2 else (n_neurons, n_classes, d + 1)
    if model.weights_.shape != shape:
        raise ModelFileError(f"weights_ must have shape {shape}; got {model.weights_.shape}.")
    if model.local != hasattr(model, "means_") or model.local != hasattr(model, "covariances_"):
        raise ModelFileError(
            "means_ and covariances_ must be there where local is set, and only there."
        )


def reject(model: Any, sizes: Sizes) -> None:
    """Of a RejectClassifier."""
    inner = model.estimator_
    if (
        not is_fitted(inner)
        or not hasattr(inner, "predict_proba")
        or not hasattr(inner, "classes_")
    ):
        raise ModelFileError("estimator_ must be a fitted classifier with probabilities.")
    if getattr(inner, "n_features_in_", None) != sizes.get("d"):
        raise ModelFileError("n_features_in_ must be that of estimator_.")
    names, own = (list(getattr(part, "feature_names_in_", [])) for part in (inner, model))
    if names != own:
        raise ModelFileError("feature_names_in_ must be those of estimator_.")
    if model.novelty_threshold_ is not None and not hasattr(inner, "score_samples"):
        raise ModelFileError("novelty_threshold_ needs an estimator_ that knows densities.")
    for label in (model.ambiguous_label_, model.novel_label_):
        if (
            isinstance(label, str) != (inner.classes_.dtype.kind in "UO")
            or label in inner.classes_.tolist()
        ):
            raise ModelFileError(
                "ambiguous_label_ and novel_label_ must be of the kind of the classes, and none of them."
            )


def conformal(model: Any, sizes: Sizes) -> None:
    """Of a ConformalClassifier."""
    for inner in model.estimators_:
        if (
            not is_fitted(inner)
            or not hasattr(inner, "predict_proba")
            or not hasattr(inner, "classes_")
        ):
            raise ModelFileError("estimators_ must be fitted classifiers with probabilities.")
        if list(inner.classes_) != list(model.estimators_[0].classes_):
            raise ModelFileError("estimators_ must know the same classes.")
        if getattr(inner, "n_features_in_", None) != sizes.get("d"):
            raise ModelFileError("n_features_in_ must be that of estimators_.")
    if (
        not model.estimators_
        or not len(model.calibration_codes_)
        or not model.calibration_weights_.sum() > 0
    ):
        raise ModelFileError("there must be classifiers and calibration rows.")
    if model.calibration_codes_.max() >= len(
        model.classes_
    ) or model.calibration_folds_.max() >= len(model.estimators_):
        raise ModelFileError(
            "calibration rows must be of the classes, and judged by classifiers that there are."
        )


def table_encoder(model: Any, sizes: Sizes) -> None:
    """Of a TableEncoder."""
    if len(set(model.words)) != sizes["W"] or not set(model.words) <= set(model.feature_names_in_):
        raise ModelFileError("words must be names of columns, each with its categories.")
    if len(model.mean_) != sizes["d"] - sizes["W"]:
        raise ModelFileError("mean_ and scale_ must have one entry for each column of numbers.")
    for categories in model.categories_:
        if not len(categories) or len(set(categories)) != len(categories):
            raise ModelFileError(
                "categories_ must be distinct words, one at least for each column."
            )


def scaler(model: Any, sizes: Sizes) -> None:
    """Of scikit-learn's StandardScaler."""
    seen = np.asarray(model.n_samples_seen_)
    if (
        seen.dtype.kind not in "iuf"
        or seen.shape not in ((), (sizes["d"],))
        or not (seen >= 0).all()
    ):
        raise ModelFileError("n_samples_seen_ must be a number of rows, or one for each feature.")
    for name, asked in (("mean_", model.with_mean), ("scale_", model.with_std)):
        if asked and getattr(model, name) is None:
            raise ModelFileError(f"{name} must be there where it is asked for.")


def pipeline(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    """Of scikit-learn's Pipeline: scalers and encoders of tables, then a model, each fitted to what the one before makes."""
    names = [name for name, _ in model.steps]
    if not names or len(set(names)) != len(names) or any("__" in name for name in names):
        raise ModelFileError("a pipeline must have steps with distinct names.")
    steps = [step for _, step in model.steps if step is not None and not isinstance(step, str)]
    if not is_fitted(model):
        return
    for step, following in pairwise(steps):
        if isinstance(step, Pipeline) or not hasattr(step, "transform"):
            raise ModelFileError(
                f"a {type(step).__name__} cannot stand before other steps of a pipeline."
            )
        made = len(step.get_feature_names_out())
        if made != following.n_features_in_:
            raise ModelFileError(
                f"a step of a pipeline makes {made} features; the next expects {following.n_features_in_}."
            )
        if hasattr(following, "feature_names_in_"):
            raise ModelFileError(
                "a pipeline whose steps hand on data frames (set_output) cannot be saved: fit it without set_output."
            )


def frozen(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    """Of scikit-learn's FrozenEstimator: it holds a fitted model of ours."""
    if record_of(model.estimator) is None and not isinstance(model.estimator, Pipeline):
        raise ModelFileError(
            f"a FrozenEstimator must hold a model; got {type(model.estimator).__name__}."
        )
