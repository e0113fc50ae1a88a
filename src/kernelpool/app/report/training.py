"""How a model was trained, and how to train it again: parameters, sweeps, versions, and code that can be run."""

import ast
import inspect
import platform
import re
import sys
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn import config_context
from sklearn.base import BaseEstimator

from ...inspection.describe import member_name
from ...inspection.pipeline import Unwrapped
from ...text import text_of
from .records import History, MemberRow, Parameter, Rerun, Selection, Training, Tried

MOST_SWEEPS, MOST_CHARACTERS, MOST_TRIED = 400, 1_000_000, 12
"""Parameters that change nothing in the result."""


def training_of(model: Unwrapped, duration: float | None) -> Training:
    """What is known of the training."""
    inner = model.inner
    sweeps, converged = getattr(inner, "n_iter_", None), getattr(inner, "converged_", None)
    objective = getattr(inner, "objective_", getattr(inner, "loss_", None))
    loss = not hasattr(inner, "objective_") and hasattr(inner, "loss_")
    return Training(
        parameters=tuple(_parameters(model)),
        n_sweeps=None if sweeps is None else int(np.max(sweeps)),
        converged=None if converged is None else bool(converged),
        objective=None if objective is None else float(objective),
        objective_name="loss per row, on rows left out" if loss else "objective per row",
        runs=_runs(inner),
        seed=_seed(inner),
        duration=None if duration is None else float(duration),
        versions=_versions(),
    )


def members_of(inner: Any) -> tuple[MemberRow, ...]:
    """Who was asked for a pool, and who is heard in it."""
    trials = getattr(inner, "trials_", None)
    if trials is None:
        return ()
    weights = dict(zip(inner.members_, np.asarray(inner.weights_).tolist(), strict=True))
    columns = (
        trials[name].tolist() for name in ("name", "loss", "pool_loss", "seconds", "outcome")
    )
    return tuple(
        MemberRow(
            text_of(name),
            _finite(loss),
            _finite(pool_loss),
            float(seconds),
            text_of(outcome),
            weights.get(name),
        )
        for name, loss, pool_loss, seconds, outcome in zip(*columns, strict=True)
    )


def selection_of(inner: Any) -> Selection | None:
    """What was tried for one network, the best first; None where nothing was to be chosen."""
    found = getattr(inner, "selection_", None)
    if found is None or not len(found["chosen"]):
        return None
    order = np.argsort(found["behind"], kind="stable")
    close = int((found["behind"] <= found["behind_error"]).sum())
    place = int(np.flatnonzero(found["chosen"][order])[0]) if found["chosen"].any() else 0
    listed = [*order[:MOST_TRIED].tolist(), *([int(order[place])] if place >= MOST_TRIED else [])]
    rows = tuple(
        Tried(
            covariance_type=str(found["covariance_type"][i]),
            n_kernels=int(found["n_kernels"][i]),
            sharing=_finite(float(found["sharing"][i])),
            kernel_prior=str(found["kernel_prior"][i]),
            overlap_penalty=float(found["overlap_penalty"][i]),
            loss=float(found["tempered_loss"][i]),
            behind=float(found["behind"][i]),
            behind_error=float(found["behind_error"][i]),
            plain_loss=float(found["log_loss"][i]),
            error=float(found["error"][i]),
            chosen=bool(found["chosen"][i]),
        )
        for i in listed
    )
    return Selection(rows, len(order) - len(rows), close)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _parameters(model: Unwrapped) -> list[Parameter]:
    """Of the model inside, and of what is around it, where that is no mere chain of steps."""
    parameters = _own_parameters(model.inner, "")
    for wrapper in model.wrappers:
        if not hasattr(wrapper, "steps"):
            parameters += _own_parameters(wrapper, type(wrapper).__name__ + ": ")
    return parameters


def _own_parameters(estimator: Any, prefix: str) -> list[Parameter]:
    if not hasattr(estimator, "get_params"):
        return []
    defaults = inspect.signature(type(estimator).__init__).parameters
    found = []
    for name, value in estimator.get_params(deep=False).items():
        if isinstance(value, BaseEstimator) or name in (
            "estimator",
            "param_grid",
            "param_distributions",
        ):
            continue
        default = name in defaults and _same(value, defaults[name].default)
        with np.printoptions(threshold=20):
            found.append(Parameter(prefix + name, text_of(repr(value)), default))
    return found


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, float) and isinstance(default, float) and value != value:
        return default != default
    return type(value) is type(default) and np.ndim(value) == 0 and bool(value == default)


def _runs(inner: Any) -> tuple[History, ...]:
    """Every history that was kept, thinned where it is long."""
    members = getattr(inner, "estimators_", None) or [inner]
    runs = []
    for member in members:
        history = np.asarray(getattr(member, "history_", ()), np.float64)
        if len(history) > MOST_SWEEPS:
            history = history[np.linspace(0, len(history) - 1, MOST_SWEEPS).astype(int)]
        if len(history) > 1 and np.isfinite(history).any():
            name = member_name(member) if len(members) > 1 else ""
            runs.append(History(name, tuple(history[np.isfinite(history)].tolist())))
    return tuple(runs)


def _seed(inner: Any) -> str:
    seed = getattr(inner, "random_state", None)
    if seed is None:
        return "none"
    return (
        str(int(seed))
        if isinstance(seed, int | np.integer)
        else "a generator, which no longer is where it was"
    )


def _versions() -> tuple[tuple[str, str], ...]:
    return (
        (
            "kernelpool",
            sys.modules["kernelpool"].__version__,
        ),  # an import of it would turn the layers around
        ("scikit-learn", sklearn.__version__),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
        ("Python", platform.python_version()),
        ("system", f"{platform.system()} {platform.machine()}"),
    )


# -- rerun --------------------------------------------------------------------------------------------------------


def rerun_of(model: Unwrapped, source: str | None, n_rows: int, command: str | None) -> Rerun:
    """Code that makes an estimator with the same parameters, and notes on what it cannot say."""
    estimator = model.outer
    with config_context(print_changed_only=True):
        made = (
            estimator.__repr__(N_CHAR_MAX=MOST_CHARACTERS)
            if isinstance(estimator, BaseEstimator)
            else repr(estimator)
        )
    notes = []
    try:
        ast.parse(made)
    except SyntaxError:
        notes.append(
            "Some parameter is an object that cannot be written down as code (callback, random_state, kernel): set it anew."
        )
    if _seed(model.inner) != "none" and not _seed(model.inner).isdigit():
        notes.append("random_state was a generator: another run begins elsewhere.")
    if _seed(model.inner) == "none" and hasattr(model.inner, "random_state"):
        notes.append("No seed was set (random_state=None): another run may give other numbers.")
    data = f"{n_rows:,} rows" + ("" if source is None else f" of {source}")
    lines = [
        *_imports(estimator, made),
        "",
        f"# X, y: the {data}, and the target",
        f"model = {made}",
        "model.fit(X, y)",
    ]
    lines += ["", "# X_test, y_test: rows that were held out, or leave them away"]
    lines += ['write_html(summarize(model, X, y, X_test, y_test), "report.html")']
    return Rerun(
        "\n".join(lines), None if command is None else text_of(command, 2000), tuple(notes)
    )


def _imports(estimator: Any, made: str) -> list[str]:
    """From where the names in the code come."""
    parts = [
        estimator,
        *(estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()),
    ]
    origin: dict[str, set[str]] = {"kernelpool.app.report": {"summarize", "write_html"}}
    for part in parts:
        if isinstance(part, BaseEstimator) and re.search(rf"\b{type(part).__name__}\(", made):
            origin.setdefault(_public(type(part)), set()).add(type(part).__name__)
    for name in ("array", "nan", "inf"):
        if re.search(rf"(?<![\w'\"]){name}\b", made):
            origin.setdefault("numpy", set()).add(name)
    return [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(origin.items())
    ]


def _public(kind: type) -> str:
    """The module that users import a class from."""
    parts = kind.__module__.split(".")
    if parts[0] == "kernelpool":
        return "kernelpool"
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[: max(private, 1)])
