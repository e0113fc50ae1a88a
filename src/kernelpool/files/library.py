"""What each estimator of the library must hold. A test walks all of them and fails where one, or one attribute, is missing."""

from typing import Any

import numpy as np

from ..errors import ModelFileError
from ..estimators.competitive import CompetitiveNeuronsClassifier
from ..estimators.multi_edit import MultiEdit
from ..estimators.parzen import ParzenClassifier, ReducedParzenClassifier
from ..estimators.rbf import RBFNetworkClassifier, RBFNetworkRegressor
from ..estimators.reject import RejectClassifier
from ..estimators.shared_kernel import SharedKernelClassifier
from ..estimators.sharing_average import SharingAverageClassifier
from ..kernels import FAMILIES
from ..training.parzen import profile_of
from .kinds import (
    Anything,
    Choice,
    Either,
    Flag,
    Keyed,
    Kind,
    Labels,
    Listed,
    Model,
    Names,
    Number,
    Numbers,
    Shares,
    Sizes,
    Text,
    Tupled,
    Wholes,
    maybe,
)
from .schema import Schema, answers, is_fitted

COUNT = Number(0, 2**53, whole=True)
NAN = Number(any_value=True)
HISTORY = Numbers(("H",), any_value=True)
FAMILY = Choice(tuple(FAMILIES))

FEATURES: dict[str, Kind] = {"n_features_in_": Number(1, 2**31, whole=True, binds="d")}
CLASSES: dict[str, Kind] = {**FEATURES, "classes_": Labels(("K",), distinct=True)}
NAMED: dict[str, Kind] = {"feature_names_in_": Names(("d",))}


def check_covariances(name: str, covariances: np.ndarray, shape: tuple[int, ...], family: str) -> None:
    """Variances above zero, matrices symmetric and positive definite, whatever the units of the features."""
    if covariances.shape != shape:
        raise ModelFileError(f"{name} of type {family!r} must have shape {shape}; got {covariances.shape}.")
    if not FAMILIES[family].matrices:
        if not covariances.min() > 0:
            raise ModelFileError(f"{name} must be positive; got {covariances.min()}.")
        return
    matrices = covariances.reshape(-1, *covariances.shape[-2:])
    variance = np.diagonal(matrices, axis1=1, axis2=2)
    if not variance.min() > 0:
        raise ModelFileError(f"{name} must have positive variances; got {variance.min()}.")
    unit = np.sqrt(variance)
    correlation = matrices / (unit[:, :, None] * unit[:, None, :])
    if not np.abs(correlation - correlation.swapaxes(1, 2)).max() < 1e-6:
        raise ModelFileError(f"{name} must be symmetric.")
    try:
        np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise ModelFileError(f"{name} must be positive definite.") from None


def check_members(name: str, labels: np.ndarray, classes: np.ndarray) -> None:
    """Every label is a class."""
    if labels.dtype.kind != classes.dtype.kind or not np.isin(labels, classes).all():
        raise ModelFileError(f"{name} must hold labels of classes_ only.")


def _close(name: str, found: Any, expected: Any) -> None:
    if not np.allclose(found, expected, rtol=1e-6, atol=1e-9):
        raise ModelFileError(f"{name} is not what the rest of the model makes it.")


# -- shared kernels -----------------------------------------------------------------------------------------------------


def _shared_kernel(model: Any, sizes: Sizes) -> None:
    shape = FAMILIES[model.covariance_type_].shape(sizes["M"], sizes["d"])
    check_covariances("covariances_", model.covariances_, shape, model.covariance_type_)
    if model.covariance_type not in ("auto", model.covariance_type_):
        raise ModelFileError(f"covariance_type_ must be the covariance_type asked for; got {model.covariance_type_!r}.")
    if model.n_kernels_ != sizes["M"]:
        raise ModelFileError(f"n_kernels_ must be the number of kernels, {sizes['M']}; got {model.n_kernels_}.")
    check_members("owners_", model.owners_, model.classes_)


def _sharing_average(model: Any, sizes: Sizes) -> None:
    if not model.estimators_ or len(model.estimators_) != sizes["L"]:
        raise ModelFileError("estimators_ must hold at least one network, and weights_ one weight for each.")
    if len(model.weights_) != len(model.estimators_):
        raise ModelFileError(f"weights_ must have one entry a network, {len(model.estimators_)}; got {len(model.weights_)}.")
    for member in model.estimators_:
        if not hasattr(member, "means_") or member.n_features_in_ != sizes["d"]:
            raise ModelFileError("estimators_ must be fitted to the features of the whole.")
        alike = member.covariance_type_ == model.estimators_[0].covariance_type_
        if not alike or not np.array_equal(member.classes_, model.classes_):
            raise ModelFileError("estimators_ must have one covariance_type and the classes of the whole.")


SHARED_KERNEL = Schema(
    SharedKernelClassifier,
    fitted={
        **CLASSES,
        "class_prior_": Shares(("K",)),
        "means_": Numbers(("M", "d")),
        "covariances_": Numbers(None),
        "mixing_": Shares(("M", "K")),
        "owners_": Labels(("M",)),
        "n_kernels_": COUNT,
        "covariance_type_": FAMILY,
        "overlap_penalty_": Number(0),
        "sharing_degree_": Either((Number(0, 1), NAN)),
    },
    optional={
        **NAMED,
        "sharing_": Numbers(("M", "K"), low=0.0, high=1 + 1e-9),
        "parents_": Wholes(("M",)),
        "selection_": Keyed(Either((Labels(("t",), objects=True), Listed(Anything())))),
        "history_": HISTORY,
        "objective_": Number(any_value=True),
        "n_iter_": COUNT,
        "converged_": Flag(),
        "_n_kernels_asked": COUNT,
    },
    check=_shared_kernel,
    probe=answers(lambda model: model.means_),
)

SHARING_AVERAGE = Schema(
    SharingAverageClassifier,
    fitted={
        **CLASSES,
        "class_prior_": Shares(("K",)),
        "weights_": Shares(("L",)),
        "estimators_": Listed(Model(("SharedKernelClassifier",))),
        "n_iter_": COUNT,
        "converged_": Flag(),
    },
    optional=NAMED,
    check=_sharing_average,
    probe=answers(lambda model: model.estimators_[0].means_),
)

# -- Parzen -------------------------------------------------------------------------------------------------------------


def _parzen(model: Any, sizes: Sizes) -> None:
    check_members("kernel_classes_", model.kernel_classes_, model.classes_)
    codes = np.searchsorted(model.classes_, model.kernel_classes_)
    if (np.diff(codes) < 0).any():
        raise ModelFileError("kernels_ must be sorted by class.")
    _close("_votes", model._votes, np.bincount(codes, model.kernel_weights_, minlength=sizes["K"]))
    if not model._votes.sum() > 0 or (model._unit != model._unit[0]).any():
        raise ModelFileError("there must be votes, and one unit for all features.")
    if not model._prior_given:
        _close("class_prior_", model.class_prior_, model._votes / model._votes.sum())
    _close("_log_volume", model._log_volume, profile_of(model.kernel, sizes["d"]).log_volume(sizes["d"]))


PARZEN_FITTED: dict[str, Kind] = {
    **CLASSES,
    "class_prior_": Shares(("K",)),
    "kernels_": Numbers(("M", "d"), single=True),
    "kernel_classes_": Labels(("M",)),
    "kernel_weights_": Numbers(("M",), low=0.0, single=True),
    "kept_indices_": Wholes(("M",), distinct=True),
    "radius_": Number(0, 1e150, open_low=True),
    "_votes": Numbers(("K",), low=0.0),
    "_prior_given": Flag(),
    "_origin": Numbers(("d",)),
    "_unit": Numbers(("d",), low=0.0, open_low=True),
    "_log_volume": Number(),
}
PARZEN_OPTIONAL: dict[str, Kind] = {**NAMED, "radii_": Numbers(("R",), low=0.0), "radius_errors_": Numbers(("R",), low=0.0)}

PARZEN = Schema(
    ParzenClassifier,
    fitted=PARZEN_FITTED,
    optional=PARZEN_OPTIONAL,
    rebuilt=frozenset({"_trees"}),
    check=_parzen,
    rebuild=lambda model: setattr(model, "_trees", model._build_trees()),
    probe=answers(lambda model: model.kernels_),
)

REDUCED_PARZEN = Schema(
    ReducedParzenClassifier,
    fitted={
        **PARZEN_FITTED,
        "full_radius_": Number(0, 1e150, open_low=True),
        "criterion_": Numbers(("C",), any_value=True),
        "edited_indices_": Wholes(("E",), distinct=True),
        "n_rows_": COUNT,
        "n_choices_": maybe(COUNT),
    },
    optional={
        **PARZEN_OPTIONAL,
        "curve_": Listed(Tupled((COUNT, Number()))),
        "full_error_": Number(),
    },
    parameters={"edit": Either((Model(("MultiEdit",)), Anything()))},
    rebuilt=frozenset({"_trees"}),
    check=_parzen,
    rebuild=lambda model: setattr(model, "_trees", model._build_trees()),
    probe=answers(lambda model: model.kernels_),
)


def _multi_edit(model: Any, sizes: Sizes) -> None:  # noqa: ARG001
    kept, history = model.sample_indices_, model.history_
    if len(history) != model.n_rounds_ + 1 or history[-1] != len(kept) or (np.diff(history) > 0).any():
        raise ModelFileError("history_ must fall from the rows there were to those that were kept.")
    if len(kept) and kept.max() >= history[0]:
        raise ModelFileError("sample_indices_ must be rows that there were.")


MULTI_EDIT = Schema(
    MultiEdit,
    fitted={
        **FEATURES,
        "sample_indices_": Wholes(("S",), distinct=True),
        "history_": Wholes(("H",)),
        "n_rounds_": COUNT,
        "quiet_": Flag(),
        "spared_classes_": Labels(("P",)),
        "classifier_": Model(("ParzenClassifier", "KNeighborsClassifier", "SharedKernelClassifier", "ReducedParzenClassifier")),
    },
    optional=NAMED,
    parameters={"classifier": Anything(models=True)},
    check=_multi_edit,
)

# -- RBF networks -------------------------------------------------------------------------------------------------------

RBF_FITTED: dict[str, Kind] = {
    "means_": Numbers(("M", "d")),
    "covariances_": Numbers(None),
    "mixing_": Shares(("M",)),
    "covariance_type_": FAMILY,
    "temperature_": Number(0, 1e150, open_low=True),
    "activation_log_scale_": Numbers(("M",)),
    "strength_": Number(any_value=True),
    "loss_": Number(any_value=True),
    "history_": HISTORY,
    "n_iter_": COUNT,
    "best_iter_": COUNT,
    "converged_": Flag(),
}
MIXTURES = Either(
    (
        Choice(("kmeans", "random", "em")),
        Model(
            (
                "GaussianMixture",
                "FrozenEstimator",
                "SharedKernelClassifier",
                "RBFNetworkClassifier",
                "RBFNetworkRegressor",
            )
        ),
    )
)


def _rbf(model: Any, sizes: Sizes) -> None:
    shape = FAMILIES[model.covariance_type_].shape(sizes["M"], sizes["d"])
    check_covariances("covariances_", model.covariances_, shape, model.covariance_type_)
    n_outputs = model.readout_.shape[1]
    if "K" in sizes and n_outputs != (1 if sizes["K"] == 2 else sizes["K"]):
        raise ModelFileError(f"readout_ must have one output a class, of two classes one; got {n_outputs}.")


RBF_CLASSIFIER = Schema(
    RBFNetworkClassifier,
    fitted={
        **CLASSES,
        **RBF_FITTED,
        "readout_": Numbers(("M+1", "o")),
        "_smallest": Number(0, 1, open_low=True),
    },
    optional=NAMED,
    parameters={"hidden": MIXTURES},
    check=_rbf,
    probe=answers(lambda model: model.means_),
)


def _rbf_regressor(model: Any, sizes: Sizes) -> None:
    _rbf(model, sizes)
    if model._flat and sizes["o"] != 1:
        raise ModelFileError(f"readout_ must have one output for a flat y; got {sizes['o']}.")
    model.predict(model.means_[:1], return_std=True)


RBF_REGRESSOR = Schema(
    RBFNetworkRegressor,
    fitted={
        **FEATURES,
        **RBF_FITTED,
        "readout_": Numbers(("M+1", "o")),
        "noise_variance_": Numbers(("o",), low=0.0),
        "_spread": Numbers(("M+1", "M+1")),
        "_flat": Flag(),
    },
    optional=NAMED,
    parameters={"hidden": MIXTURES},
    check=_rbf_regressor,
    probe=answers(lambda model: model.means_),
)

# -- neurons ------------------------------------------------------------------------------------------------------------


def _competitive(model: Any, sizes: Sizes) -> None:
    n_neurons, d, n_classes = sizes["M"], sizes["d"], sizes["K"]
    shape = (n_neurons, d + 1) if n_classes == 2 else (n_neurons, n_classes, d + 1)
    if model.weights_.shape != shape:
        raise ModelFileError(f"weights_ must have shape {shape}; got {model.weights_.shape}.")
    if model.local != hasattr(model, "means_") or model.local != hasattr(model, "covariances_"):
        raise ModelFileError("means_ and covariances_ must be there where local is set, and only there.")


NEURONS = Schema(
    CompetitiveNeuronsClassifier,
    fitted={
        **CLASSES,
        "mixing_": Shares(("M",)),
        "weights_": Numbers(None),
        "location_": Numbers(("d",)),
        "scale_": Numbers(("d",), low=0.0, open_low=True),
        "history_": HISTORY,
        "bound_history_": Numbers(("B",), any_value=True),
        "penalty_history_": Numbers(("B",), any_value=True),
        "objective_": Number(any_value=True),
        "n_iter_": COUNT,
        "converged_": Flag(),
    },
    optional={**NAMED, "means_": Numbers(("M", "d")), "covariances_": Numbers(("M", "d"), low=0.0, open_low=True)},
    check=_competitive,
    probe=answers(lambda model: model.location_[None, :]),
)

# -- refusals -----------------------------------------------------------------------------------------------------------


def _reject(model: Any, sizes: Sizes) -> None:
    inner = model.estimator_
    if not is_fitted(inner) or not hasattr(inner, "predict_proba") or not hasattr(inner, "classes_"):
        raise ModelFileError("estimator_ must be a fitted classifier with probabilities.")
    if getattr(inner, "n_features_in_", None) != sizes.get("d"):
        raise ModelFileError("n_features_in_ must be that of estimator_.")
    if model.novelty_threshold_ is not None and not hasattr(inner, "score_samples"):
        raise ModelFileError("novelty_threshold_ needs an estimator_ that knows densities.")
    for label in (model.ambiguous_label_, model.novel_label_):
        if isinstance(label, str) != (inner.classes_.dtype.kind in "UO") or label in inner.classes_.tolist():
            raise ModelFileError("ambiguous_label_ and novel_label_ must be of the kind of the classes, and none of them.")


LABEL = Either((Text(), Number()))

REJECT = Schema(
    RejectClassifier,
    fitted={
        "estimator_": Model(),
        "ambiguity_threshold_": maybe(Number(-1, 1)),
        "novelty_threshold_": maybe(Number(-1.8e308, 1.8e308)),
        "ambiguous_label_": LABEL,
        "novel_label_": LABEL,
    },
    optional={**FEATURES, **NAMED},
    parameters={"estimator": Model()},
    needs=frozenset({"estimator"}),
    check=_reject,
)

LIBRARY = (
    SHARED_KERNEL,
    SHARING_AVERAGE,
    PARZEN,
    REDUCED_PARZEN,
    MULTI_EDIT,
    RBF_CLASSIFIER,
    RBF_REGRESSOR,
    NEURONS,
    REJECT,
)
