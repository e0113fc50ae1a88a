"""`kernelpool info`: what is in a model file."""

from typing import Any

import numpy as np

from ...inspection.pipeline import unwrap
from ...inspection.pool import describe
from ...text import listed, percent, plural, shown
from . import options as o
from .output import Screen
from .saved import Saved, open_saved


def info(model: o.ModelPath, as_json: o.Json = False) -> None:
    """Say what is in a model file.

    What the model is, which columns it takes, what it predicts, and how it was made.

    Example: kernelpool info irises.safetensors
    """
    screen = Screen(as_json)
    saved = open_saved(model, screen, numeric=True)
    record = _record(saved)
    screen.result(record["sentence"])
    screen.result(
        "Predicts:  numbers" if saved.numeric else f"Classes:   {listed(record['classes'], 12)}"
    )
    names = None if record["features"] is None else [f["name"] for f in record["features"]]
    screen.result(
        f"Features:  {record['n_features']}{'' if names is None else f': {listed(names, 12)}'}"
    )
    for label, key in (
        ("Target", "target"),
        ("Left out", "dropped"),
        ("Made by", "command"),
        ("From", "source"),
    ):
        if record[key]:
            told = (
                listed(record[key], 12)
                if isinstance(record[key], list)
                else shown(record[key], 300)
            )
            screen.result(f"{label + ':':10} {told}")
    held_out = record["held_out"]
    measure = "rmse" if saved.numeric else "error"
    if (
        isinstance(held_out, dict)
        and isinstance(held_out.get(measure), float)
        and isinstance(held_out.get("n_rows"), int)
    ):
        rows, error = plural(held_out["n_rows"], "row"), held_out[measure]
        told = f"{error:.4g} (root mean square)" if saved.numeric else percent(error)
        screen.result(f"{'Error:':10} {told} of {rows}, by {shown(record['judged_by'])}")
    if not saved.numeric:
        screen.result(f"{'Density:':10} {'known' if record['density'] else 'not known'}")
    screen.answer(record)


def _record(saved: Saved) -> dict[str, Any]:
    last = unwrap(saved.model).inner
    told = {
        key: saved.summary.get(key)
        for key in ("command", "source", "seed", "chosen", "held_out", "judged_by", "n_rows")
    }
    return {
        "model": saved.path,
        "estimator": type(last).__name__,
        "sentence": shown(describe(last).sentence, 2000),
        "classes": np.asarray(saved.classes).tolist(),
        "n_features": int(saved.model.n_features_in_),
        "features": None
        if saved.features is None
        else [{"name": f.name, "kind": f.kind} for f in saved.features],
        "target": saved.target,
        "dropped": saved.set_drop(),
        "density": saved.knows_density(),
        **told,
    }
