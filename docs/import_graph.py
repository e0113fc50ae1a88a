"""The rooms of the package, what they import, and what a few journeys through them call, as
Markdown: python docs/import_graph.py.

The page of the architecture includes what this writes, `docs/_generated/architecture.md`.
"""

import ast
import io
import os
import sys
import tokenize
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import kernelpool

HERE = Path(__file__).parent
SOURCE = Path(kernelpool.__file__).parent
TARGET = HERE / "_generated" / "architecture.md"
JOURNEYS = "### Journeys"
BEFORE = {
    "fit of a pool": (39, 31, 62, 80),
    "prediction of that pool": (22, 4, 0, 32),
    "fit of shared kernels": (27, 8, 10, 0),
    "fit of an RBF network": (29, 5, 6, 0),
    "fit of an EM-Log network": (27, 5, 6, 1),
    "fit of neurons": (27, 5, 8, 0),
    "fit of a Parzen network": (28, 4, 6, 0),
}
"""The same numbers before methods had rooms, by this script in commit 4e909cb."""


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


def room(name):
    """The room that a module belongs to, by its dotted name or its path in the package."""
    parts = name.removesuffix(".py").replace("/", ".").removeprefix("kernelpool.").split(".")
    return parts[0]


@cache
def layers():
    """The rooms of each layer, top first, as import-linter has them in pyproject.toml."""
    config = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text())
    contract = config["tool"]["importlinter"]["contracts"][0]
    text = [line.replace("kernelpool.", "").replace("|", ":") for line in contract["layers"]]
    return [[name.strip() for name in line.split(":")] for line in text]


def height(name):
    """How many layers lie above a room."""
    return next((i for i, names in enumerate(layers()) if name in names), -1)


def n_tokens(path):
    """Tokens of code: no comments, no docstrings, no line ends."""
    text = path.read_text()
    docs = set()
    for node in ast.walk(ast.parse(text)):
        text_alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text_alone and isinstance(node.value.value, str):
            docs.update(range(node.lineno, node.end_lineno + 1))
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    skipped |= {tokenize.ENCODING, tokenize.ENDMARKER}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(t.type not in skipped and t.start[0] not in docs for t in tokens)


def tree():
    """The rooms, top first: files, lines, tokens of code, and the rooms that each imports."""
    known = modules()
    graph = imports(known)
    files, lines, tokens = Counter(), Counter(), Counter()
    below = {room(name): set() for name in known}
    for name, path in known.items():
        files[room(name)] += 1
        lines[room(name)] += len(path.read_text().splitlines())
        tokens[room(name)] += n_tokens(path)
        below[room(name)] |= {room(target) for target in graph[name]} - {room(name)}
    users = Counter(target for used in graph.values() for target in used)
    single = [name for name in known if users[name] == 1 and known[name].name != "__init__.py"]
    page = [
        f"{len(known)} modules, {lines.total():,} lines, {tokens.total():,} tokens of code, "
        f"{sum(map(len, graph.values()))} imports between modules; {len(single)} modules have a "
        "single user.",
        "",
        "| room | files | lines | tokens | imports |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(below, key=lambda name: (height(name), name)):
        if name != "kernelpool":
            used = ", ".join(f"`{b}`" for b in sorted(below[name], key=lambda b: (height(b), b)))
            page.append(
                f"| `{name}` | {files[name]} | {lines[name]:,} | {tokens[name]:,} | {used} |"
            )
    circles = [f"Modules that import each other: {', '.join(group)}." for group in cycles(graph)]
    circles = circles or ["No modules import each other, local imports counted."]
    return [*page, "", *circles, ""]


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


# -- journeys --------------------------------------------------------------------------------------


class Trace:
    """What an action calls in the package: a function is a file and a qualified name."""

    def __init__(self, action):
        self.calls = Counter()
        self.edges = set()
        self.n_surveys = 0
        sys.setprofile(self._watch)
        try:
            action()
        finally:
            sys.setprofile(None)
        self.files = {file for file, _ in self.calls}

    def _watch(self, frame, event, _):
        called = _function(frame.f_code)
        if event != "call" or called is None:
            return
        self.calls[called] += 1
        if frame.f_code.co_name == "total":
            statistic = frame.f_locals.get("statistic")
            self.n_surveys += getattr(statistic, "__name__", "") == "survey"
        caller = frame.f_back  # the nearest one in the package
        while caller is not None and _function(caller.f_code) is None:
            caller = caller.f_back
        if caller is not None:
            self.edges.add((_function(caller.f_code), called))

    def n_calls(self, name):
        """Calls of functions or methods of that name."""
        return sum(n for (_, function), n in self.calls.items() if function.split(".")[-1] == name)

    def upwards(self):
        """Pairs of functions of which the first calls one of a room above its own.

        Drivers of the lowest layer (`em`, `lbfgs`, `arrays`) call what they are given, and do not
        count.
        """
        return sorted(
            (caller, called)
            for caller, called in self.edges
            if len(layers()) - 1 > height(room(caller[0])) > height(room(called[0])) >= 0
        )


def _function(code):
    name = code.co_filename
    if not name.startswith(f"{SOURCE}{os.sep}") or code.co_name == "<module>":
        return None
    return name[len(str(SOURCE)) + 1 :], code.co_qualname


def table(n=300):
    """Rows of two numbers and a category, and two classes."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 2)) + y[:, None]
    size = np.where(x[:, 0] + rng.normal(size=n) > 0.5, "large", "small")
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "size": size}), np.array(["no", "yes"])[y]


def journeys():
    """Traces of fits of each method and of a prediction of a pool, by what was done."""
    from kernelpool import (
        CompetitiveNeuronsClassifier,
        EMLogClassifier,
        ParzenClassifier,
        PooledClassifier,
        RBFNetworkClassifier,
        SharedKernelClassifier,
    )

    X, y = table()
    pool = PooledClassifier(random_state=0, n_jobs=1)
    yield "fit of a pool", Trace(lambda: pool.fit(X, y))
    yield "prediction of that pool", Trace(lambda: pool.predict_proba(X))
    for name, model in (
        ("shared kernels", SharedKernelClassifier(random_state=0, n_jobs=1)),
        ("an RBF network", RBFNetworkClassifier(random_state=0)),
        ("an EM-Log network", EMLogClassifier(random_state=0)),
        ("neurons", CompetitiveNeuronsClassifier(random_state=0)),
        ("a Parzen network", ParzenClassifier(random_state=0)),
    ):
        yield f"fit of {name}", Trace(lambda model=model: model.fit(X, y))


def measures():
    """A table of the journeys, and the calls upwards that are left."""
    import warnings

    lines = [
        "| journey | files entered | calls upwards | surveys | `from_arrays` |",
        "|---|---|---|---|---|",
    ]
    upwards = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, trace in journeys():
            up = trace.upwards()
            upwards.update((a[0], a[1], b[0], b[1]) for a, b in up)
            now = len(trace.files), len(up), trace.n_surveys, trace.n_calls("from_arrays")
            cells = (f"{n} ({old})" for n, old in zip(now, BEFORE[name], strict=True))
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines, sorted(upwards)


def main():
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    lines, upwards = measures()
    page = [
        *tree(),
        JOURNEYS,
        "",
        "Of 300 rows with two numbers and a category; in parentheses what it was before methods had"
        " rooms. A call upwards is a pair of functions, of which"
        " the first calls one of a room above its own: a statistic that `rows` adds up, a method"
        " that a class of `base` leaves to its subclasses. Surveys are passes over rows for their"
        " location and scale, two a survey, those of indicators and of folds included, and today those of"
        " mean and variance alone; `from_arrays` makes kernels anew.",
        "",
        *lines,
        "",
    ]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(page))
    print("\n".join(page))
    for call in upwards:
        print("  {}: {} -> {}: {}".format(*call))


if __name__ == "__main__":
    main()
