"""`kernelpool sample`: rows that a model might have been fitted to."""

from typing import Annotated, Any

import numpy as np
import typer

from ...inspection.pipeline import unwrap
from ...text import plural, shown
from . import options as o
from .output import NAME_IT, CommandError, Exit, check_free, format_of, table_output
from .saved import Saved, open_saved

AT_ONCE = 1 << 16


def sample(
    model: o.ModelPath,
    n_rows: Annotated[int, typer.Option("--rows", "-n", help="How many rows.", min=1)] = 100,
    output: o.OutputPath = "-",
    seed: Annotated[int, typer.Option("--seed", help="Seed.", min=0, max=2**32 - 1)] = 0,
    format: o.Format = None,
    raw: o.Raw = False,
    force: o.Force = False,
    *,
    screen: o.ScreenOptions,
) -> None:
    """Draw new rows from a model that knows densities.

    The output has the columns of the data that the model was fitted to, the class last.

    Example: kernelpool sample irises.safetensors -n 1000 -o more.csv
    """
    import pyarrow as pa

    if screen.as_json and output == "-":
        raise CommandError(Exit.USAGE, NAME_IT)
    check_free(output, force)
    kind = format_of(output, format)
    saved = open_saved(model, screen)
    rng, names = np.random.RandomState(seed), _names(saved)
    types = {np.dtype(object): pa.string()}
    with screen.working("Sampling", n_rows) as bar:
        x, y = _drawn(saved, 1, np.random.RandomState(seed))
        schema = pa.schema(
            [
                (name, types.get(column.dtype, pa.float64()))
                for name, column in zip(names, x, strict=True)
            ]
        )
        schema = schema.append(
            pa.field(names[-1] if len(names) > len(x) else saved.target or "class", _label_type(y))
        )
        with table_output(output, kind, schema, force, raw) as writer:
            for start in range(0, n_rows, AT_ONCE):
                x, y = _drawn(saved, min(AT_ONCE, n_rows - start), rng)
                columns = [
                    pa.array(c.tolist() if c.dtype == object else c, t.type)
                    for c, t in zip([*x, y], schema, strict=True)
                ]
                writer.write(pa.table(columns, schema=schema))
                bar.at(start + len(y))
    screen.say(f"{plural(n_rows, 'row')}{'' if output == '-' else f' -> {shown(output, 200)}'}")
    screen.answer({"output": output, "n_rows": n_rows, "seed": seed})


def _names(saved: Saved) -> list[str]:
    if saved.features is not None:
        return [f.name for f in saved.features]
    return [f"c{i + 1}" for i in range(saved.model.n_features_in_)]


def _label_type(y: np.ndarray) -> Any:
    import pyarrow as pa

    return {"i": pa.int64(), "u": pa.int64(), "f": pa.float64()}.get(y.dtype.kind, pa.string())


def _drawn(saved: Saved, n: int, rng: np.random.RandomState) -> tuple[list[np.ndarray], np.ndarray]:
    """Columns in the units of the data, and labels."""
    model = unwrap(saved.model)
    if not hasattr(model.inner, "sample"):
        raise CommandError(
            Exit.MODEL,
            f"{type(model.inner).__name__} knows no densities, so there is nothing to draw from; fit shared-kernel or parzen.",
        )
    x, y = model.inner.sample(n, random_state=rng)
    for step in reversed(model.steps):
        x = step.inverse_transform(np.asarray(x))
    columns = list(x.values()) if isinstance(x, dict) else list(np.asarray(x, np.float64).T)
    return columns, np.asarray(y) if np.asarray(y).dtype.kind in "iuf" else np.asarray(
        [str(v) for v in y], object
    )
