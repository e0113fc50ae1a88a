"""The import graph of the package and three journeys through it, as Markdown: python docs/import_graph.py.

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
                f"| `{layer}` | {files[layer]} | {lines[layer]:,} | {', '.join(f'`{b}`' for b in sorted(below[layer]))} |"
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
    """The files of the package that `action` passes, in the order in which they are first entered."""
    passed = []

    def watch(frame, event, _):
        if event == "call":
            name = frame.f_code.co_filename
            if (
                name.startswith(str(SOURCE))
                and frame.f_code.co_name != "<module>"
                and name not in passed
            ):
                passed.append(name)

    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(None)
    return [str(Path(name).relative_to(SOURCE)) for name in passed]


def journeys():
    """Fit, predict and a fit on the command line."""
    import numpy as np
    from typer.testing import CliRunner

    from kernelpool import SharedKernelClassifier
    from kernelpool.app.cli.app import app

    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    x = rng.normal(size=(600, 4)) + y[:, None]
    model = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0, n_jobs=1)
    yield "`SharedKernelClassifier.fit`", journey(lambda: model.fit(x, y))
    yield "`predict`", journey(lambda: model.predict(x))
    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "table.csv"
        table.write_text(
            "a,b,c,d,kind\n"
            + "\n".join(
                ",".join(f"{v:.4f}" for v in row) + f",k{k}" for row, k in zip(x, y, strict=True)
            )
        )
        words = ["fit", str(table), "-t", "kind", "--model", "shared-kernel", "-o"]
        CliRunner().invoke(
            app, [*words, str(Path(place) / "first.safetensors")]
        )  # what is only imported is not passed
        words.append(str(Path(place) / "model.safetensors"))
        result = []
        passed = journey(lambda: result.append(CliRunner().invoke(app, words)))
        if result[0].exit_code:
            raise SystemExit(f"The fit on the command line failed: {result[0].output}")
        yield "`kernelpool fit table.csv --target kind --model shared-kernel`", passed


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
        f"{len(known)} modules, {n_lines:,} lines, {sum(map(len, graph.values()))} imports between modules; "
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
    for title, passed in journeys():
        page += [f"{title}: {len(passed)} files. " + " → ".join(f"`{name}`" for name in passed), ""]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(page))
    print("\n".join(page))


if __name__ == "__main__":
    main()
