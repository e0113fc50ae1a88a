"""`kernelpool info`: what is in a model file."""

from ...inspection import describe
from ...text import listed, percent, shown
from . import options as o
from .loaded import load_model
from .output import Screen

RECORDED = ("command", "source", "seed", "settings", "held_out", "evaluated_by", "n_rows")
"""What the file says of the training."""


def info(model: o.ModelPath, as_json: o.Json = False) -> None:
    """Describe a model file.

    What the model is, which columns it takes, what it predicts, and how it was made.

    Example: kernelpool info irises.safetensors
    """
    screen = Screen(as_json)
    loaded = load_model(model, screen)
    record = {
        "model": loaded.path,
        "estimator": type(loaded.model).__name__,
        "sentence": shown(describe(loaded.model).sentence, 2000),
        "classes": loaded.classes.tolist(),
        "n_features": int(loaded.model.n_features_in_),
        "features": loaded.kinds,
        "target": loaded.target,
        "density": loaded.has_density,
        **{key: loaded.summary.get(key) for key in RECORDED},
    }
    screen.result(record["sentence"])
    lines = {
        "Classes": listed(record["classes"], 12),
        "Features": f"{record['n_features']}: {listed(list(loaded.kinds or ()), 12) or 'no names'}",
        "Target": record["target"],
        "Made by": record["command"],
        "From": record["source"],
        "Density": "known" if loaded.has_density else "not known",
    }
    held_out = record["held_out"]
    if isinstance(held_out, dict) and isinstance(held_out.get("error"), float):
        lines["Error"] = f"{percent(held_out['error'])} by {record['evaluated_by']}"
    for name, text in lines.items():
        if text:
            screen.result(f"{name + ':':10} {shown(text, 300)}")
    screen.answer(record)
