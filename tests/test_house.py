"""The rules of the house, by reading the source: what CONTRIBUTING.md and docs/architecture.md
promise.

A rule yields each place that breaks it, as (key, place, name). What is still allowed stands beside
the rule as the number of breaches by key, mostly the room; these numbers may only fall:
`test_allowances_are_needed` fails where one is higher than it need be.
"""

import ast
import importlib
import inspect
import re
from collections import Counter, defaultdict
from functools import wraps
from pathlib import Path

import pytest
from zoo import ANSWERS, example, fitted

import kernelpool
from kernelpool.records import SAVED

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "kernelpool"
TREES = {
    str(path.relative_to(SRC)): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(SRC.rglob("*.py"))
}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs/architecture.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "docs" / "extending").glob("*.md")),
]
RULES = {}


def rule(allowed=None):
    """Make a test of a function that yields breaches; its docstring tells what to do about one."""

    def test_of(breaches):
        RULES[breaches.__name__] = breaches, allowed or {}

        @wraps(breaches)
        def test():
            found = defaultdict(list)
            for key, place, name in breaches():
                found[key].append(f"{place}: {name}")
            wrong = [
                f"{key}: {len(places)} instead of {(allowed or {}).get(key, 0)}\n  "
                + "\n  ".join(places)
                for key, places in found.items()
                if len(places) > (allowed or {}).get(key, 0)
            ]
            if wrong:
                pytest.fail("\n".join([breaches.__doc__, *wrong]), pytrace=False)

        return test

    return test_of


@pytest.mark.parametrize("name", RULES)
def test_allowances_are_needed(name):
    breaches, allowed = RULES[name]
    found = Counter(key for key, _, _ in breaches())
    assert {key: found[key] for key in allowed} == allowed, f"lower the numbers of {name} to these"


def room(path):
    return path.split("/")[0].removesuffix(".py")


def nodes(*kinds):
    """Every node of these kinds: the room, file:line and the node."""
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, kinds):
                line = node.iter.lineno if isinstance(node, ast.comprehension) else node.lineno
                yield room(path), f"{path}:{line}", node


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)
    }


def methods(tree):
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for method in owner.body:
            if isinstance(method, ast.FunctionDef):
                yield owner, method


# -- where things may be done ----------------------------------------------------------------------


@rule({"inspection": 3})  # drift and pipelines: tables that no model was fitted to
def test_columns_are_learned_in_data():
    """Only data/ calls Columns.learn: pass on the columns of the fit."""
    for where, place, node in nodes(ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr == "learn" and where != "data":
            yield where, place, ast.unparse(node)


@rule()
def test_folds_are_looped_over_in_data():
    """Only data/ loops over folds: use its cross_fit."""
    for where, place, node in nodes(ast.For, ast.comprehension):
        used = names_in(node.iter) & {"fold", "folds", "n_folds"}
        if used and where != "data":
            yield where, place, ast.unparse(node.iter)


@rule()
def test_fitted_records_stay_in_their_room():
    """`_fitted` is used in base/ and where a class has a `fit`; others ask public attributes."""
    for path, tree in TREES.items():
        fits = any(method.name == "fit" for _, method in methods(tree))
        if room(path) == "base" or (
            room(path) != "app" and (fits or path.endswith("classifier.py"))
        ):
            continue
        for node in ast.walk(tree):
            if (isinstance(node, ast.Attribute) and node.attr == "_fitted") or (
                isinstance(node, ast.Constant) and node.value == "_fitted"
            ):
                yield room(path), f"{path}:{node.lineno}", ast.unparse(node)


@rule()
def test_fit_assigns_one_attribute():
    """`fit` and `partial_fit` assign `self._fitted` and nothing else: put it into the record."""
    for path, tree in TREES.items():
        for owner, method in methods(tree):
            if method.name not in {"fit", "partial_fit"}:
                continue
            for node in ast.walk(method):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Store)
                    and ast.unparse(node.value) == "self"
                    and node.attr != "_fitted"
                ):
                    yield room(path), f"{path}:{node.lineno}", f"{owner.name}.{node.attr}"


@rule()
def test_private_names_stay_in_their_room():
    """No name with a leading underscore is imported from another room or asked of its objects."""
    own = defaultdict(set)  # private names that each room defines
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                own[room(path)].add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own[room(path)].add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own[room(path)].add(node.attr)
    ours = set().union(*own.values())
    for where, place, node in nodes(ast.Attribute, ast.ImportFrom):
        if isinstance(node, ast.ImportFrom):
            n_up = node.level - place.count("/")  # 1: a module of another room
            private = [alias.name for alias in node.names if re.match("_[a-z]", alias.name)]
            if private and n_up == 1 and where != "__init__":
                yield where, place, ast.unparse(node)
        elif (
            re.match(r"_[a-z]", node.attr)
            and node.attr in ours - own[where] - {"_fitted"}
            and ast.unparse(node.value) not in {"self", "cls", "super()"}
        ):
            yield where, place, ast.unparse(node)


# arrays, data, tables, text ask what users pass; app, decide, inspection any classifier; rows the
# system
@rule(
    {
        "app": 18,
        "arrays": 11,
        "base": 2,
        "data": 9,
        "decide": 5,
        "em_log": 3,
        "inspection": 17,
        "parzen": 3,
        "rows": 1,
        "tables": 5,
        "text": 1,
    }
)
def test_types_decide_not_attributes():
    """hasattr and getattr with a literal: give every class of the protocol the method instead."""
    for where, place, node in nodes(ast.Call):
        if (
            isinstance(node.func, ast.Name)
            and node.func.id in {"hasattr", "getattr"}
            and isinstance(node.args[1], ast.Constant)
        ):
            yield where, place, ast.unparse(node)


@rule()
def test_constants_are_defined_once():
    """One module-level constant of each name: import it, or name it after what it is for."""
    places = defaultdict(list)
    for path, tree in TREES.items():
        for node in tree.body:
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                for n in ast.walk(target) if target is not None else ():
                    if not isinstance(n, ast.Name) or isinstance(n.ctx, ast.Load):
                        continue
                    if re.fullmatch("_?[A-Z][A-Z0-9_]+", n.id):
                        places[n.id.lstrip("_")].append(f"{path}:{node.lineno}")
    for name, where in sorted(places.items()):
        for place in where[1:]:
            yield name, place, f"{name}, also {where[0]}"


@rule({"pool": 1})  # its networks are those of its members: no network.py
def test_methods_have_the_same_files():
    """The folder of a method has network.py, fit.py, classifier.py and onnx.py."""
    for where in ("rbf", "em_log", "neurons", "parzen", "mixtures", "pool"):
        for name in ("network.py", "fit.py", "classifier.py", "onnx.py"):
            if f"{where}/{name}" not in TREES:
                yield where, f"{where}/", name


@rule()
def test_tests_lie_in_the_folder_of_their_room():
    """A folder of tests is named after a room, or is one of contracts, papers, own_process."""
    others = {"contracts", "papers", "own_process", "__pycache__"}
    for path in sorted((ROOT / "tests").iterdir()):
        if path.is_dir() and path.name not in others and not (SRC / path.name).is_dir():
            yield path.name, "tests", path.name


# -- what texts name exists ------------------------------------------------------------------------


def public_parameters(package):
    """Names of the parameters of what a module exports."""
    own = [n for n, v in vars(package).items() if getattr(v, "__module__", "") == package.__name__]
    for thing in (getattr(package, name) for name in getattr(package, "__all__", own)):
        if inspect.ismodule(thing):
            yield from public_parameters(thing)
        methods = vars(thing).values() if inspect.isclass(thing) else ()
        for function in (thing, *methods):
            function = getattr(function, "__func__", function)
            if callable(function) and getattr(function, "__name__", "_")[0] != "_":
                yield from inspect.signature(function).parameters


@rule()
def test_parameters_in_texts_exist():
    """A message or docstring writes `name=` of a parameter that no public callable has."""
    known = {"default", "style", "year"}  # of numpydoc, of HTML, of a path in an example
    folders = (path.parent for path in SRC.rglob("__init__.py"))
    for path in (*folders, SRC / "atomic"):
        name = ".".join(path.relative_to(SRC.parent).parts)
        known.update(public_parameters(importlib.import_module(name)))
    for _, place, node in nodes(ast.Constant):
        if isinstance(node.value, str) and not place.startswith(("app/cli", "tables/")):
            for name in re.findall(r"(?<![-\w.\"/?&])([a-z]\w+)=(?=[\"'\w\[(])", node.value):
                if name not in known:
                    yield name, place, f"{name}="
    for path in PAGES:
        for name in re.findall(r"`([a-z]\w+)=[^=`]*`", path.read_text(encoding="utf-8")):
            if name not in known:
                yield name, path.relative_to(ROOT), f"{name}="


@rule()
def test_names_in_pages_exist():
    """A page names a module, an attribute or a file that does not exist."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        for name in set(re.findall(r"\bkernelpool(?:\.[A-Za-z_]\w*)+", text)):
            if not exists(name):
                yield str(place), place, name
        for name in set(re.findall(r"(?<![\w/.<{])((?:[\w.]+/)+\w+\.(?:py|md))\b", text)):
            bases = (ROOT, SRC, SRC.parent, path.parent)
            if not any((base / name).exists() for base in bases):
                yield str(place), place, name
        for file, name in re.findall(r"literalinclude\} (\S+)\n:pyobject: (\S+)", text):
            source = ast.parse((path.parent / file).read_text(encoding="utf-8"))
            if name not in {f"{a}{b}" for a, b in objects(source)}:
                yield str(place), place, f"{name} of {file}"
        for name in set(re.findall(r"`(\w+)/`", text)):
            if not any((base / name).exists() for base in (ROOT, SRC, ROOT / "docs", ROOT / "src")):
                yield str(place), place, f"{name}/"


def objects(tree):
    """Classes and functions of a module, with a name in front of methods."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield "", node.name
    for owner, method in methods(tree):
        yield f"{owner.name}.", method.name


@rule()
def test_imports_outside_the_package_exist():
    """A script or an example of a page imports what the package does not have."""
    folders = (ROOT / name for name in ("papers", "benchmarks", "examples", "docs"))
    for path in [*PAGES, *(path for folder in folders for path in folder.rglob("*.py"))]:
        text = path.read_text(encoding="utf-8")
        for module, names in re.findall(
            r"^ *(?:>>> )?from (kernelpool[\w.]*) import (\([^)]*\)|[^#\n]*)", text, re.M
        ):
            for name in re.findall(r"\w+", re.sub(r" as \w+", "", names)):
                if not exists(f"{module}.{name}"):
                    yield str(path.relative_to(ROOT)), path.relative_to(ROOT), f"{module}.{name}"


def exists(name):
    """Whether a dotted name can be imported or asked for."""
    thing = kernelpool
    path = "kernelpool"
    for part in name.split(".")[1:]:
        path += "." + part
        try:
            thing = getattr(thing, part)
        except AttributeError:
            try:
                thing = importlib.import_module(path)
            except ModuleNotFoundError:
                return part in {"safetensors", "model", "onnx", "csv"}  # a file, not a module
    return True


@rule()
def test_what_is_installed_names_nothing_else():
    """Users who read this have no papers/ and no tests/."""
    for path in sorted(SRC.rglob("*")):
        if path.suffix in {".py", ".html", ".js"}:
            lines = path.read_text(encoding="utf-8").splitlines()
            for i, line in enumerate(lines, 1):
                if match := re.search(r"\b(papers|tests)[./]\w+", line):
                    yield match[0], f"{path.relative_to(SRC)}:{i}", match[0]


# -- fitted models ---------------------------------------------------------------------------------


@rule()
def test_documented_attributes_are_listed():
    """An attribute that the docstring documents is in dir(model) after a fit."""
    models = [fitted(name, missing=0) for name in ("em", "average", "rbf", "em_log", "neurons")]
    models += [fitted(name, missing=0) for name in ("parzen", "reduced", "reject", "conformal")]
    models += [fitted("pool", missing=0), example("regressor")[0], example("multi-edit")[0]]
    for model in models:
        listed = dir(model)
        text = inspect.getdoc(type(model)).split("Attributes\n----------\n")[1]
        text = re.split(r"\n\n[A-Z][\w ]+\n---", text)[0]
        for names, described in re.findall(r"^(\w[\w, ]*) :(.*\n(?:[ \n].*\n?)*)", text, re.M):
            if not re.search(r"(?i)\b(where|only|alone|if|after|None|unless)\b", described):
                for name in names.split(", "):
                    if name not in listed:
                        key = f"{type(model).__name__}.{name}"
                        yield key, inspect.getsourcefile(type(model)).split("/src/")[1], key


RECORDS = """
Bins ClassDensities Columns Competitive CompleteDoor DriftReference EMLogNetwork FittedCompetitiveNeurons
FittedConformal FittedEMLogClassifier FittedEMLogRegressor FittedMultiEdit FittedParzen
FittedPool FittedRBF FittedReducedParzen FittedReject FittedSharedKernel FittedSharingAverage
Frame GradientRule NeuronNetwork NeuronParams Overlap ParzenNetwork PoolNetwork Predictions
RBFNetwork ReductionHistory Space Start StreamState Thresholds Training View
"""
"""What a model file may hold: a change of this list is one of the format of files."""


def test_records_of_model_files():
    importlib.import_module("kernelpool.app.files")
    assert sorted(SAVED) == RECORDS.split(), "change RECORDS with the format of model files"


@rule()
def test_answers_of_the_zoo_exist():
    """A name in ANSWERS of tests/zoo.py is a method of some estimator."""
    classes = [getattr(kernelpool, name) for name in kernelpool.ESTIMATORS]
    for name in ANSWERS:
        if not any(hasattr(owner, name) for owner in classes):
            yield name, "tests/zoo.py", name
