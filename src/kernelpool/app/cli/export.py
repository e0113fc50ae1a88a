"""`kernelpool export`: a model for those who predict without Python."""

from pathlib import Path
from typing import Annotated

from ... import to_onnx
from ...errors import KernelpoolError
from ...text import listed, plural, shown
from . import options as o
from .loaded import load_model
from .output import CommandError, Exit, Screen, check_free, placed

OUTPUT = "File to write; the name of MODEL with the ending .onnx unless given."


def export(
    model: o.ModelPath,
    output: Annotated[str | None, o.output("--output", "-o", help=OUTPUT, metavar="FILE")] = None,
    precision: Annotated[
        o.Precision, o.output("--precision", help="mixed is float32 outside and float64 inside.")
    ] = o.Precision.MIXED,
    force: o.Force = False,
    as_json: o.Json = False,
) -> None:
    """Write a model as ONNX, to be run by onnxruntime and others.

    Its input X has the columns of the fit in their order; a model with categories has an input for
    each column instead, under its name. The outputs are label, probabilities and, where known,
    log_density and score_samples.

    Example: kernelpool export irises.safetensors -o irises.onnx
    """
    screen, path = Screen(as_json), output or f"{model.removesuffix('.safetensors')}.onnx"
    check_free(path, force)
    loaded = load_model(model, screen)
    try:
        graph = to_onnx(loaded.rejecting or loaded.model, precision=str(precision))
    except KernelpoolError as error:
        code = Exit.EXTRA if "pip install" in str(error) else Exit.MODEL
        raise CommandError(code, f"{shown(model, 200)}: {error}") from None
    with placed(path, force) as beside:
        Path(beside).write_bytes(graph.SerializeToString())
    inputs, outputs = (
        [entry.name for entry in entries] for entries in (graph.graph.input, graph.graph.output)
    )
    screen.result(f"ONNX: {shown(path, 400)}, with {', '.join(outputs)}")
    if inputs != ["X"]:
        screen.result(f"{plural(len(inputs), 'input')}, each (n, 1): {listed(inputs, 12)}")
    screen.answer({"onnx": path, "inputs": inputs, "outputs": outputs})
