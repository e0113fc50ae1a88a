"""`kernelpool export`: a model for those who predict without Python."""

from pathlib import Path
from typing import Annotated

from ...errors import KernelpoolError
from ...text import listed, plural, shown
from ..onnx import to_onnx
from . import options as o
from .output import CommandError, Exit, check_free, placed
from .saved import open_saved


def export(
    model: o.ModelPath,
    output: Annotated[
        str | None,
        o.output(
            "--output",
            "-o",
            help="File to write. [default: the name of MODEL, ending in .onnx]",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        o.Precision, o.output("--precision", help="mixed is float32 outside and float64 inside.")
    ] = o.Precision.MIXED,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
) -> None:
    """Write a model as ONNX, to be run by onnxruntime and others.

    Its input X has the columns of the fit in their order; a model with categories has an input for each column
    instead, under its name. The outputs are label, probabilities and, where known, log_density and score_samples; the mean and
    the deviation where the model predicts numbers.

    Example: kernelpool export irises.safetensors -o irises.onnx
    """
    path = output or f"{model.removesuffix('.safetensors')}.onnx"
    check_free(path, force)
    saved = open_saved(model, screen, numeric=True)
    try:
        graph = to_onnx(saved.model, precision=str(precision))
    except KernelpoolError as error:
        missing = "pip install" in str(error)
        raise CommandError(
            Exit.EXTRA if missing else Exit.MODEL, f"{shown(model, 200)}: {error}"
        ) from None
    with placed(path, force) as beside:
        Path(beside).write_bytes(graph.SerializeToString())
    inputs, outputs = (
        [entry.name for entry in entries] for entries in (graph.graph.input, graph.graph.output)
    )
    screen.result(f"ONNX: {shown(path, 400)}, with {', '.join(outputs)}")
    if inputs != ["X"]:
        screen.result(f"{plural(len(inputs), 'input')}, each (n, 1): {listed(inputs, 12)}")
    screen.answer({"onnx": path, "inputs": inputs, "outputs": outputs})
