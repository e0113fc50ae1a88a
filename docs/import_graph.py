"""The import graph of the package and three journeys through it, as Markdown: python
docs/import_graph.py.

The page of the architecture includes what this writes, `docs/_generated/architecture.md`.
"""

import ast
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "kernelpool"
TARGET = HERE / "_generated" / "architecture.md"


def modules():
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known):
    """The modules of the package that each one imports, local imports included."""
    graph = {}
    for name, path in known.items():
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        used = set()
        if name == SOURCE.name:  # its names are imported on first use
            graph[name] = used
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.ImportFrom) or not node.level:
                continue
            base = package[: len(package) - node.level + 1] + ([node.module] if node.module else [])
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                used.add(whole if whole in known else ".".join(base))
        graph[name] = {target for target in used if target in known and target != name}
    return graph


def folder(name):
    """The layer that a module belongs to."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "kernelpool"


def layers(known, graph):
    """One line a layer, users first: its files, its lines, and the layers that it imports."""
    below = {folder(name): set() for name in known}
    for name, used in graph.items():
        below[folder(name)] |= {folder(target) for target in used} - {folder(name)}
    order, seen = [], set()

    def visit(layer):
        if layer not in seen:
            seen.add(layer)
            for other in sorted(below[layer]):
                visit(other)
            order.append(layer)

    for layer in sorted(below):
        visit(layer)
    files = Counter(folder(name) for name in known)
    lines = Counter()
    for name, path in known.items():
        lines[folder(name)] += len(path.read_text().splitlines())
    rows = ["| layer | files | lines | imports |", "|---|---|---|---|"]
    for layer in reversed(order):
        if layer != "kernelpool":
            rows.append(
                f"| `{layer}` | {files[layer]} | {lines[layer]:,} | "
                f"{', '.join(f'`{b}`' for b in sorted(below[layer]))} |"
            )
    return rows, sum(lines.values())


def cycles(graph):
    """Groups of modules that import each other."""
    index, low, stack, found, counter = {}, {}, [], [], [0]

    def visit(v):
        index[v] = low[v] = counter[0]
        counter[0] += 1
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            group = []
            while True:
                w = stack.pop()
                group.append(w)
                if w == v:
                    break
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for v in graph:
        if v not in index:
            visit(v)
    return found


def journey(action):
    """The files of the package that `action` enters, in the order in which they are first
    entered.
    """
    entered = []

    def watch(frame, event, _):
        if event == "call":
            name = frame.f_code.co_filename
            if (
                name.startswith(str(SOURCE))
                and frame.f_code.co_name != "<module>"
                and name not in entered
            ):
                entered.append(name)

    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
    return [str(Path(name).relative_to(SOURCE)) for name in entered]


def journeys():
    """A fit, a prediction of a pool over a data frame, and a fit with its report."""
    import numpy as np
    import pandas as pd
    from typer.testing import CliRunner

    from kernelpool import PooledClassifier, SharedKernelClassifier
    from kernelpool.app.cli.app import app

    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    x = rng.normal(size=(600, 4)) + y[:, None]
    yield (
        "`SharedKernelClassifier().fit(x, y)`",
        41,
        journey(lambda: SharedKernelClassifier(random_state=0, n_jobs=1).fit(x, y)),
    )
    frame = pd.DataFrame(x, columns=list("abcd"))
    frame["size"] = np.where(x[:, 0] > 0.5, "large", "small")
    frame.loc[::7, "b"] = np.nan
    labels = np.array(["k0", "k1", "k2"])[y]
    pool = PooledClassifier("fast", random_state=0, n_jobs=1).fit(frame, labels)
    yield (
        "`PooledClassifier().predict_proba(frame)`",
        23,
        journey(lambda: pool.predict_proba(frame)),
    )
    with tempfile.TemporaryDirectory() as place:
        table, model, page = (Path(place) / name for name in ("t.csv", "m.safetensors", "r.html"))
        frame.assign(kind=labels).head(300).to_csv(table, index=False)
        call = ["fit", str(table), "-t", "kind", "--report", str(page), "-o", str(model)]
        CliRunner().invoke(app, call)  # files that are only imported do not count
        model.unlink(), page.unlink()
        result = []
        entered = journey(lambda: result.append(CliRunner().invoke(app, call)))
        if result[0].exit_code:
            raise SystemExit(f"The fit on the command line failed: {result[0].output}")
        yield "`kernelpool fit table.csv --target kind --report report.html`", 94, entered


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    known = modules()
    graph = imports(known)
    table, n_lines = layers(known, graph)
    users = Counter(target for used in graph.values() for target in used)
    single = sorted(
        name for name in known if users[name] == 1 and known[name].name != "__init__.py"
    )
    page = [
        f"{len(known)} modules, {n_lines:,} lines, {sum(map(len, graph.values()))} imports between "
        f"modules; "
        f"{len(single)} modules have a single user.",
        "",
        *table,
        "",
        *(f"Modules that import each other: {', '.join(group)}." for group in cycles(graph)),
        "" if cycles(graph) else "No modules import each other, local imports counted.",
        "",
        "### Three journeys",
        "",
        "The files that are entered, in the order in which they are.",
        "",
    ]
    for title, before, entered in journeys():
        path = " → ".join(f"`{name}`" for name in entered)
        page += [f"{title}: {len(entered)} files ({before} before the redesign). {path}", ""]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(page))
    print("\n".join(page))


if __name__ == "__main__":
    main()
