"""`kernelpool info`: what is in a model file."""

from ...inspection.describe import describe
from ...inspection.pipeline import unwrap
from ...text import listed, percent, plural, shown
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
    last, names = unwrap(loaded.model).inner, list(loaded.kinds or ())
    record = {
        "model": loaded.path,
        "estimator": type(last).__name__,
        "sentence": shown(describe(last).sentence, 2000),
        "classes": loaded.classes,
        "n_features": int(loaded.model.n_features_in_),
        "features": loaded.kinds,
        "target": loaded.target,
        "density": loaded.has_density,
        **{key: loaded.summary.get(key) for key in RECORDED},
    }
    screen.result(record["sentence"])
    screen.result(f"Classes:   {listed(loaded.classes.tolist(), 12)}")
    screen.result(f"Features:  {record['n_features']}{f': {listed(names, 12)}' if names else ''}")
    for label, key in (("Target", "target"), ("Made by", "command"), ("From", "source")):
        if record[key]:
            screen.result(f"{label + ':':10} {shown(record[key], 300)}")
    held_out = record["held_out"]
    if isinstance(held_out, dict) and isinstance(held_out.get("error"), float):
        rows = plural(int(held_out.get("n_rows", 0)), "row")
        error = f"{percent(held_out['error'])} of {rows}, by {shown(record['evaluated_by'])}"
        screen.result(f"{'Error:':10} {error}")
    screen.result(f"{'Density:':10} {'known' if loaded.has_density else 'not known'}")
    screen.answer(record)
