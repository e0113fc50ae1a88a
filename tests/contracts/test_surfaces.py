"""Every surface of every classifier shows what `predict_proba` returns, and no value that is not in
the data: categories by name, missing cells as missing, no codes.

A new classifier joins by its line in `zoo.py`, a new surface by its name in `SURFACES`.
"""

import json
from functools import cache, partial

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from app.report.parsed import Page
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics import log_loss
from typer.testing import CliRunner
from zoo import CLASSIFIERS, META

from kernelpool import ConformalClassifier, RejectClassifier, load, save, to_onnx
from kernelpool.app.cli.app import app
from kernelpool.app.files import load_file
from kernelpool.app.report import write_report
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import DECISIONS, check_drift, explain, feature_importance

pytestmark = pytest.mark.filterwarnings("ignore")

N = 100
AGE = "age (years)"
TOWN = '<b>città</b>, "home"'
DAY = "signed up"
close = partial(np.testing.assert_allclose, rtol=0, atol=1e-6)


def table():
    """Numbers, categories, missing cells in both, a boolean, an ID, a date as text, odd names, and
    a rare class.
    """
    rng = np.random.default_rng(0)
    rare = rng.random(N) < 0.15
    X = pd.DataFrame(
        {
            AGE: (40 + 10 * rng.normal(size=N) + 12 * rare).round(1),
            TOWN: rng.choice(["Rome", "=Oslo", "<i>Athens"], N),
            "paid?": rng.random(N) < 0.3 + 0.5 * rare,
            "dose": rng.normal(size=N),
            "id": [f"C{i:04}" for i in rng.permutation(N)],
            DAY: pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d"),
        }
    )
    X[[AGE, TOWN]] = X[[AGE, TOWN]].mask(rng.random((N, 2)) < 0.2, None)
    return X, np.where(rare, "rare & odd", "usual")


X, Y = table()
TEXT = {
    name: set(X[name].dropna().astype(str)) for name in X if X[name].dtype != float and name != DAY
}


def with_days(frame):
    """Dates as days since 1970."""
    since = pd.to_datetime(frame[DAY]) - pd.Timestamp(0)
    return frame.assign(**{DAY: since / pd.Timedelta(days=1)})


@cache
def fitted(name):
    model = clone({**CLASSIFIERS, **META}[name]).fit(X, Y)
    return model, model.predict_proba(X)


def assert_in_data(frame):
    assert list(frame.columns) == list(X.columns)
    assert with_days(frame)[DAY].between(*with_days(X)[DAY].iloc[[0, -1]]).all()
    for name, column in with_days(frame).items():
        assert set(column.astype(str)) <= TEXT[name] if name in TEXT else np.isfinite(column).all()


def labels(model, p, _):
    accepted = model.accepted(X) if hasattr(model, "accepted") else slice(None)
    assert (model.predict(X) == model.classes_[p.argmax(axis=1)])[accepted].all()


def explanations(model, p, _):
    prior = model.predict_proba(X[:1].assign(**dict.fromkeys(X)))[0]
    for (_, row), why, proba in zip(X[:9].iterrows(), explain(model, X[:9]), p[:9], strict=True):
        a, b = (model.classes_.tolist().index(label) for label in (why.label, why.against))
        assert a == proba.argmax()
        close((why.probability, why.against_probability), proba[[a, b]])
        close(why.prior, np.log(prior[a] / prior[b]))
        close(why.prior + sum(part.part for part in why.features), why.log_odds)
        shown = {part.name: str(part.value) for part in why.features}
        texts = {f"{name} = {cell.removesuffix('.0')}" for name, cell in shown.items()}
        assert texts == {part.texts()[0] for part in why.features}
        assert shown == {name: str(cell) for name, cell in row.items() if pd.notna(cell)}
        for part in why.features:
            assert part.expected in {None, *TEXT.get(part.name, {part.expected})}
    (why,) = explain(model, X[:1].assign(**{TOWN: "Paris"}))
    (new,) = (part for part in why.features if part.name == TOWN)
    assert (new.value, new.known) == ("Paris", isinstance(model, ConformalClassifier))
    assert ("never seen" in new.texts()[1]) != new.known


def importance(model, p, _):
    found = feature_importance(model, X, Y)
    assert found.names == tuple(X.columns)
    without = [log_loss(Y, model.predict_proba(X.assign(**{name: None}))) for name in X]
    close(found.importance, np.array(without) - log_loss(Y, p))


def densities(model, p, _):
    if hasattr(model, "log_density") and hasattr(model, "class_prior_"):
        joint = model.log_density(X) + np.log(model.class_prior_)
        close(logsumexp(joint, axis=1), model.score_samples(X))
    if hasattr(model, "impute"):
        rows = X[::-1]
        assert_in_data(model.impute(rows))
        assert (model.impute(rows) == rows).where(rows.notna(), True).all(axis=None)
        whole = rows.dropna().astype({"dose": np.float32, TOWN: "category"})
        pd.testing.assert_frame_equal(model.impute(whole), whole)
    if hasattr(model, "sample"):
        drawn, classes = model.sample(200, random_state=0)
        assert_in_data(drawn)
        assert drawn["paid?"].dtype == bool
        assert set(classes) <= set(Y)


def sets_and_rejection(model, p, _):
    sets = ConformalClassifier(model, conformity="probability").fit(X, Y)
    close(sets.predict_proba(X), p)
    inside = sets.predict_set(X)
    assert inside[np.arange(N), p.argmax(axis=1)][inside.any(axis=1)].all()
    labels(RejectClassifier(model).fit(X, Y), p, None)


def explorer_of(source):
    """The data of the explorer of a page, whose tables show the cells of the data."""
    page = Page(source)
    assert "i" not in dict(page.tags), "a cell of the data is not escaped"
    for head, *rows in page.tables:
        for at, (name, _) in enumerate(head):
            cells = [row[at][0] for row in rows if name in TEXT and len(row) > at]
            assert all(cell.startswith(tuple(TEXT[name])) for cell in cells), (name, cells)
    return page.explorer


def notebook(model, p, _):
    explorer_of(model._repr_html_())


def report(model, p, folder):
    write_report(model, X, Y, folder / "report.html")
    assert_report(folder / "report.html", model, p, X)


def assert_report(path, model, p, rows):
    shown = explorer_of(path)
    at = [rows.index.astype(str).tolist().index(i) for i in shown["ids"]]
    assert shown["named"] == p[at].argmax(axis=1).tolist()
    close(shown["ambiguity"], 1 - p[at].max(axis=1), rtol=1e-6, atol=1e-15)
    assert shown["dates"] == [name == DAY for name in shown["features"]]
    pair = with_days(rows)[shown["features"]]
    close(np.array(shown["values"], float), pair.to_numpy(float)[at], atol=0)
    for name, cells in shown["categories"].items():
        assert cells == [None if pd.isna(cell) else str(cell) for cell in rows[name].iloc[at]]
    # the background: the model, asked with the first two features alone
    sides = zip(shown["grid"], shown["ranges"][:2], strict=True)
    axes = [np.linspace(*ends, 2 * n + 1)[1::2] for n, ends in sides]
    grid = np.stack(np.meshgrid(*axes), axis=2).reshape(-1, 2)
    alone = pd.DataFrame(grid, columns=pair.columns[:2]).reindex(columns=model.feature_names_in_)
    drawn = np.repeat(shown["regions"][0][::2], shown["regions"][0][1::2])
    assert (drawn == model.predict_proba(alone).argmax(axis=1)).all()


def drift(model, p, _):
    found = check_drift(model, X, X)
    assert not found.moved()
    assert {part["name"] for part in found.parts} >= set(X.columns)


def run(*words):
    """What a command prints; the object, with --json."""
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout) if "--json" in words else result.stdout


def commands(model, p, folder):
    path = folder / "m.safetensors"
    rows = folder / "rows.csv"
    save(model, path)
    X.assign(target=Y).to_csv(rows, index=False)
    run("predict", path, rows, "-o", folder / "p.csv", "--explain")
    answers = pd.read_csv(folder / "p.csv")
    close(answers[[f"probability_{label}" for label in model.classes_]], p)
    log_odds = np.ptp(np.log(np.maximum(p, 1e-12)), axis=1)
    why = answers["why"].str.extract(r" \+(\d\S*):")[0].astype(float)
    close(why[log_odds < 20], log_odds[log_odds < 20], atol=0.006)
    measured = run("evaluate", path, rows, "-t", "target", "--json")
    assert measured["n_errors"] == (model.classes_[p.argmax(axis=1)] != Y).sum()
    assert p.min() == 0 or measured["log_loss"] == pytest.approx(log_loss(Y, p))
    run("report", path, rows, "-t", "target", "-o", folder / "r.html")
    assert_report(folder / "r.html", model, p, X.set_axis(range(1, N + 1)))
    assert list(run("info", path, "--json")["features"]) == list(model.feature_names_in_)
    if not isinstance(model, ConformalClassifier):  # ONNX has no sets
        run("export", path, "-o", folder / "m.onnx")


SURFACES = [labels, explanations, importance, densities, sets_and_rejection, notebook, report]
SURFACES += [drift, commands]


@pytest.mark.parametrize("check", SURFACES, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", [*CLASSIFIERS, *META])
def test_every_surface_shows_what_the_model_predicts(name, check, tmp_path):
    check(*fitted(name), tmp_path)


# -- doors -------------------------------------------------------------------------------------------

ANSWERS = ("predict", "predict_proba", "log_density", "score_samples", "decide", "predict_set")


def answers(model, rows):
    """What a model answers to a frame, or to a path."""
    return {
        name: np.asarray(getattr(model, name)(rows)) for name in ANSWERS if hasattr(model, name)
    }


def text_file(model, _, folder):
    X.to_csv(folder / "rows.csv.gz", index=False)
    return answers(model, folder / "rows.csv.gz")


def reloaded(model, _, folder):
    save(model, folder / "m.safetensors")
    again = load(folder / "m.safetensors")
    for why, same in zip(explain(model, X[:5]), explain(again, X[:5]), strict=True):
        assert why == same
    return answers(again, X)


def command(model, wanted, folder):
    """Refused rows have no label there."""
    text_file(model, wanted, folder)
    save(model, folder / "m.safetensors")
    out = folder / "answers.parquet"
    run("predict", folder / "m.safetensors", folder / "rows.csv.gz", "-o", out)
    table = pd.read_parquet(out)
    label = table["label"].to_numpy(object)
    found = {"predict": np.where(table["label"].isna(), wanted["predict"], label)}
    names = [f"probability_{label}" for label in model.classes_]
    found["predict_proba"] = table[names].to_numpy()
    if "log_density" in table:
        found["score_samples"] = table["log_density"].to_numpy()
    if "decision" in table:
        found["decide"] = table["decision"].map(DECISIONS.index).to_numpy()
        assert (table["label"].isna() == (found["decide"] > 0)).all()
    if "set" in table:
        found["predict_set"] = members(table["set"], model.classes_)
    return found


def members(texts, classes):
    """Whether each class is in the set of each row."""
    return np.array([[label in text.split("|") for label in classes] for text in texts])


def graph(model, wanted, _):
    """What cannot be exported is refused, and so are rows with missing cells but by mixtures."""
    try:
        exported = to_onnx(model, precision="float64")
    except KernelpoolError:
        assert isinstance(model, ConformalClassifier)
        return wanted
    about = {entry.key: entry.value for entry in exported.metadata_props}
    refused = about["missing_cells"] == "refused"
    at = X.notna().all(axis=1).to_numpy() if refused else np.ones(N, bool)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    cells = {name: with_days(X).loc[at, [name]] for name in X}
    for name, column in cells.items():
        text = name in TEXT
        cells[name] = column.fillna("").astype(str).to_numpy(object) if text else column.to_numpy()
    found = dict(wanted)
    names = {"label": "predict", "probabilities": "predict_proba", "decision": "decide"}
    for output in session.get_outputs():
        name = names.get(output.name, output.name)
        found[name] = np.array(wanted[name])
        found[name][at] = session.run([output.name], cells)[0]
    return found


def assert_same(found, wanted):
    for key, values in found.items():
        if values.dtype.kind == "f":
            close(values, wanted[key])
        else:
            assert (values == wanted[key]).all(), key


@pytest.mark.parametrize("door", [text_file, reloaded, command, graph])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *META])
def test_every_door_leads_to_the_same_answers(name, door, tmp_path):
    model, _ = fitted(name)
    wanted = answers(model, X)
    found = door(model, wanted, tmp_path)
    absent = {"log_density"} if door is command else set()
    assert wanted.keys() - found.keys() <= absent
    assert_same(found, wanted)


@pytest.mark.parametrize("name", ["pool", "shared-kernel", "rbf", "neurons", "parzen"])
def test_so_do_the_models_of_the_command_line(name, tmp_path):
    path = tmp_path / "m.safetensors"
    rows = tmp_path / "rows.csv"
    X.assign(target=Y).to_csv(rows, index=False)
    quick = {"pool": ["--time-limit", "1e-6"], "shared-kernel": ["--set", "training=em"]}
    run("fit", rows, "-t", "target", "-m", name, *quick.get(name, []), "-o", path)
    assert run("check", path, rows, "--json")["moved"] == []
    model = load(path)
    assert list(model.feature_names_in_) == [name for name in X if name != "id"]
    # decisions and sets by the held-out rows in the file
    file = load_file(path)
    held_out = file.model, file.calibration, file.codes
    out = tmp_path / "decided.parquet"
    run("predict", path, rows, "--ambiguity", 0.1, "--sets", 0.2, "-o", out)
    table = pd.read_parquet(out)
    refusing = RejectClassifier.from_predictions(*held_out, ambiguity=0.1, novelty=None)
    assert (table["decision"].map(DECISIONS.index) == refusing.decide(rows)).all()
    sets = ConformalClassifier.from_predictions(*held_out, error=0.2)
    assert (members(table["set"], sets.classes_) == sets.predict_set(rows)).all()
    commands(model, model.predict_proba(rows), tmp_path)
