"""The report against what the model, its data, scikit-learn and SciPy say."""

import base64
import re
from collections import Counter
from hashlib import sha256
from html import unescape

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    precision_score,
    recall_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import (
    PooledClassifier,
    RejectClassifier,
    SharedKernelClassifier,
)
from kernelpool.app.report import page as page_module
from kernelpool.app.report import results as results_module
from kernelpool.app.report import write_report
from kernelpool.app.report.page import number, percent
from kernelpool.errors import KernelpoolError
from kernelpool.inspection import check_drift, estimate_class_prior

from .conftest import HOSTILE
from .parsed import Page, column

pytest.importorskip("jinja2", reason="reports need jinja2: pip install '.[report]'")
pytest.importorskip("matplotlib", reason="reports need matplotlib: pip install '.[report]'")


def one_percent(text):
    return float(text.removesuffix("\N{NO-BREAK SPACE}%")) / 100


# -- quality ---------------------------------------------------------------------------------------


def test_error_confusion_and_losses_are_scipys_and_scikit_learns(page, fitted, clouds):
    X, y = clouds[2:]
    named = fitted.predict(X)
    probability = fitted.predict_proba(X)
    wrong = (named != y).sum()
    low, high = binomtest(wrong, len(y)).proportion_ci(0.95)
    assert f" {wrong} of 200 held-out rows have the wrong class: " in page.text
    between = re.search(r"lies between (\S+\s%) and (\S+\s%) \(Clopper", page.text)
    assert [one_percent(part) for part in between.groups()] == pytest.approx([low, high], abs=5e-5)
    rows = next(t for t in page.tables if t[1][0][0] == "true")[2:]
    counts = [[int(cell[0]) for cell in row[1:]] for row in rows]
    assert counts == confusion_matrix(y, named).tolist()
    recall = page.table("recall")
    assert column(recall, 2) == pytest.approx(recall_score(y, named, average=None))
    assert column(recall, 3) == pytest.approx(precision_score(y, named, average=None))
    accepted = page.table("accepted", "probability at least")
    assert accepted[0][1][0] == number(probability.max(axis=1).min(), 3)
    loss = re.search(r"Log-loss (\S+),", page.text)[1]
    assert float(loss) == pytest.approx(log_loss(y, probability), rel=5e-3)


def test_the_answer_comes_first_and_what_the_model_is_made_of_last(customers_page, customers):
    model, X, y = customers
    order = "quality unsure explore importance kernels outliers drift data training code"
    sections = [a["id"] for tag, a in customers_page.tags if tag == "section"]
    assert " ".join(sections) == order
    usual = max((y[300:] == label).mean() for label in model.classes_)
    assert f"the most frequent class, would err on {percent(1 - usual)}" in customers_page.text
    margin = np.abs(np.diff(model.predict_proba(X[300:])))[:, 0]
    rows = customers_page.table("unsure-table")
    assert column(rows, 0, sort=False) == [str(300 + i) for i in np.argsort(margin)[:8]]


def test_a_rejecting_classifier_is_evaluated_by_what_it_accepts(report, rejecting, clouds):
    model, X, y = rejecting
    page = report(model, *clouds[:2], X, y, charts=True)
    decision = model.decide(X)
    accepted, ambiguous, novel = np.bincount(decision)
    wrong = (model.estimator_.predict(X) != y)[decision == 0]
    assert f"refuses {ambiguous} rows as ambiguous" in page.text
    assert f" and {novel} as novel" in page.text
    said = re.search(rf"Of the {accepted} that it accepts, (\S+\s%) are wrong", page.text)[1]
    assert one_percent(said) == pytest.approx(wrong.mean(), abs=6e-5)
    drawn = " ".join(page.chart("reject_curve").itertext())
    assert f"in use: {100 * accepted / len(X):.0f} % accepted" in drawn
    assert "novel below -12" in " ".join(page.chart("novelty").itertext())
    assert page.explorer["threshold"] == 0.3


def test_rows_without_a_class_and_classes_that_the_model_does_not_know(report, fitted, clouds):
    X, y, X_test, y_test = clouds
    odd = y_test.astype(object)
    odd[:5], odd[5:12] = None, "maybe"
    page = report(fitted, X, y, X_test, odd)
    wrong = (fitted.predict(X_test)[5:] != odd[5:]).sum()
    assert f"{wrong} of 195 held-out rows have the wrong class" in page.text
    assert "Classes that the model does not have: maybe ." in page.text
    alone = report(fitted, X, y, X_test)
    assert "Confusion" not in alone.text
    label, n = Counter(fitted.predict(X_test)).most_common()[0]
    assert f"Of 200 held-out rows {n} are predicted to be {label}" in alone.text
    assert set(alone.explorer["true"]) == {-1}
    assert "No held-out rows" in report(fitted, X, y).text


# -- drift and importance --------------------------------------------------------------------------


def test_drift_priors_and_importance_are_those_of_the_library(report, customers_page, customers):
    model, X, y = customers
    found = check_drift(None, X[300:], X[:300])
    rows = customers_page.table("feature", "distance", "p")
    assert column(rows, 0, sort=False) == [part["name"] for part in found.parts]
    assert column(rows, 2) == pytest.approx([part["adjusted"] for part in found.parts])
    trained = [(y[:300] == label).mean() for label in model.classes_]
    prior = estimate_class_prior(model, X[300:], trained=trained)
    rows = customers_page.table("class", "training", "estimated", "counted")
    assert column(rows, 2) == pytest.approx(prior.class_prior)
    assert column(rows, 3) == pytest.approx([(y[300:] == k).mean() for k in model.classes_])
    moved = report(model, X[:300], y[:300], X[300:].assign(age=X["age"] + 30), y[300:])
    assert "not reliable" in moved.text
    assert "not reliable" not in customers_page.text


# -- explorer --------------------------------------------------------------------------------------


def test_a_classifier_that_takes_no_missing_values_has_no_regions(report, clouds):
    X, X_test = (np.column_stack([part, part.sum(axis=1)]) for part in clouds[::2])
    page = report(LogisticRegression().fit(X, clouds[1]), X, clouds[1], X_test, clouds[3])
    assert page.explorer["regions"] == []
    assert "The model has no kernels with means" in page.text


# -- kernels ---------------------------------------------------------------------------------------


def test_kernels_have_their_share_classes_and_means(page, fitted, clouds):
    joint = fitted.mixing_ * fitted.class_prior_
    assert page.explorer["nearest"] == fitted.kernel_posterior(clouds[2]).argmax(axis=1).tolist()
    rows = page.table("kernel-table")
    assert column(rows, 1) == pytest.approx(sorted(joint.sum(axis=1), reverse=True))
    for row in rows:
        j = int(row[0][0])
        assert float(row[1][1]) == pytest.approx(joint[j].sum())
        assert row[2][1] == fitted.classes_[joint[j].argmax()]
        assert [float(cell[1]) for cell in row[3:5]] == pytest.approx(fitted.means_[j])


# -- outliers --------------------------------------------------------------------------------------


def test_a_row_with_missing_cells_is_compared_with_rows_that_lack_the_same(report):
    X = np.random.default_rng(0).normal(size=(200, 6)) * 100
    X_test = X[:20].copy()
    y = np.arange(200) % 2
    # five deviations away; the density of one cell is greater than that of six
    X_test[3] = [500.0, *[np.nan] * 5]
    model = SharedKernelClassifier.prbf(1, random_state=0, tol=0.02).fit(X, y)
    page = report(model, X, y, X_test, y[:20])
    assert np.argmax(model.score_samples(X_test)) == 3
    rows = page.table("outlier-table")
    assert next(row for row in rows if row[0][0] == "held-out")[1][0] == "3"
    assert page.table("rows", "in all", "below")[1][2][0] == "1"


def test_cells_are_shown_and_drawn_as_they_are(dated):
    page = Page(dated[0])
    X = dated[1]
    columns = {row[0][0]: [cell[0] for cell in row[1:]] for row in page.table("column-table")}
    (big,) = (row for row in page.table("column-table") if row[0][0] == "big")
    expected = [X["big"].mean(), X["big"].std(ddof=0)]
    assert [float(big[i][1]) for i in (2, 4)] == pytest.approx(expected)
    for name, text in (("day", lambda v: str(v.date())), ("big", "{:,.0f}".format)):
        ends = [text(X[name].min()), text(X[name].max())]
        assert columns[name][:3:2] == ends
        means = [row[3 + list(X).index(name)][0] for row in page.table("kernel-table")]
        assert all(ends[0] < mean < ends[1] for mean in means)
    assert columns["plan"] == ["2 categories, most often plus ; never seen: student 1"]
    days = (X["day"] - np.datetime64("1970-01-01")) / np.timedelta64(1, "D")
    assert (
        page.explorer["values"] == X[["big"]].assign(day=days)[["day", "big"]].to_numpy().tolist()
    )
    assert page.explorer["categories"]["plan"][:2] == ["student (never seen)", X["plan"][1]]
    odd = [row[5][0] for row in page.table("outlier-table") if row[1][0] == "0"]
    assert "plan student (never seen, expected plus, " in odd[0]


def test_the_bound_is_a_quantile_of_rows_drawn_from_the_model(page, fitted, clouds):
    drawn, _ = fitted.sample(200_000, random_state=1)
    said = re.search(r"log p\(x\) below (\S+)\. rows", page.text)[1]
    bound = float(said.replace("\N{MINUS SIGN}", "-"))
    # three and a half standard errors of 5,000 draws
    assert np.mean(fitted.score_samples(drawn) < bound) == pytest.approx(0.01, rel=0.5)
    below = {row[0][0]: int(row[2][0]) for row in page.table("rows", "in all", "below")}
    assert below["held-out"] == (fitted.score_samples(clouds[2]) < bound).sum()


# -- training --------------------------------------------------------------------------------------


def test_the_code_makes_the_same_model(report, fitted, clouds):
    X, y = clouds[:2]
    chain = make_pipeline(StandardScaler(), PCA(2), clone(fitted))
    model = RejectClassifier(chain, ambiguity=0.2).fit(X, y)
    page = report(model, X, y)
    code = unescape(re.search(r'<code id="python">(.*?)</code>', page.html, re.S)[1])
    names = {"X": X, "y": y}
    exec(code[: code.index("write_report(model")], names)
    np.testing.assert_array_equal(names["model"].predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_members_of_a_pool_are_listed_with_their_weights(report, clouds):
    model = PooledClassifier("fast", random_state=0).fit(*clouds[:2])
    page = report(model, *clouds)
    rows = page.table("members")
    assert column(rows, 0, sort=False) == model.trials_["name"].tolist()
    weights = {row[0][0]: float(row[1][1]) for row in rows if row[1][0]}
    assert weights == pytest.approx(dict(zip(model.members_, model.weights_, strict=True)))
    assert column(rows, 2) == pytest.approx(model.trials_["loss"], nan_ok=True)


# -- rows, names and files -------------------------------------------------------------------------


def test_rows_have_the_ids_that_are_given(report, fitted, clouds):
    X_test, y_test = clouds[2:]
    ids = [f"id-{i}" for i in range(200)]
    page = report(fitted, None, None, X_test, y_test, test_row_ids=ids)
    assert page.explorer["ids"] == ids
    worst = np.argsort(fitted.score_samples(X_test))[:8]
    assert column(page.table("outlier-table"), 1, sort=False) == [ids[i] for i in worst]
    assert "training rows" not in page.text


def test_too_many_rows_are_sampled(report, fitted, clouds, monkeypatch):
    for module in (page_module, results_module):
        monkeypatch.setattr(module, "MOST_EVALUATED", 50)
    page = report(fitted, *clouds, facts={"Rows": "clouds.csv", "Seconds": 1.25})
    assert f"Rows clouds.csv Seconds 1.25 Sweeps {fitted.n_iter_}" in page.text
    assert "Of the 300 training rows a random 50 passed through the model." in page.text
    assert " of 50 held-out rows have the wrong class" in page.text
    assert page.explorer["values"] == clouds[2][list(map(int, page.explorer["ids"]))].tolist()


def test_hostile_names_stay_text(hostile_path):
    page = Page(hostile_path)
    tags = {tag for tag, _ in page.tags}
    assert tags.isdisjoint({"base", "iframe", "object", "embed", "form", "foreignobject"})
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on")]
    shown = [
        "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in n) for n in HOSTILE
    ]
    assert page.explorer["labels"] == sorted(shown, key=lambda n: HOSTILE[shown.index(n)])
    drawn = list(page.chart("kernels").itertext())
    assert HOSTILE[6] in " ".join(drawn)  # and not as a formula


def test_categories_are_shown_without_signs_that_turn_the_text_around(report):
    pd = pytest.importorskip("pandas")
    y = np.arange(60) % 2
    X = pd.DataFrame(
        {"n": y + np.arange(60) / 60, "word": np.where(np.arange(60) % 3, "b\u202ea", "c\u202ed")}
    )
    model = SharedKernelClassifier(2, training="em", random_state=0, tol=0.02).fit(X, y)
    new = X.assign(word=X["word"].where(y > 0, "e\u202ef"))
    page = report(model, X, y, new, y)
    assert "most often b\ufffda" in page.text
    assert "\u202e" not in page.html
    assert "\u202e" not in report(model, None, None, new, y).html


def test_the_weight_of_a_page(customers_page, page):
    """Half of it is style, script and pictures, however many rows there are."""
    assert len(customers_page.html) < 110_000
    assert len(page.html) < 130_000


def test_the_policy_names_the_pages_style_and_script_by_hash(page):
    for kind in ("script", "style"):
        text = re.search(rf"<{kind}>(.*?)</{kind}>", page.html, re.S)[1]
        digest = base64.b64encode(sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none'")
    assert "unsafe" not in page.policy


def test_bad_input_is_named(fitted, clouds, tmp_path):
    X, y = clouds[:2]
    path = tmp_path / "report.html"
    for words, message in (
        ((LinearRegression(), X, y, path), "needs a classifier with predict_proba; got Linear"),
        ((fitted, X, y[:5], path), "for each of the 300 training rows"),
        ((fitted, None, None, path), "both are None"),
        ((fitted, X, y, path / "report.html"), "folder that exists"),
    ):
        with pytest.raises(KernelpoolError, match=message):
            write_report(*words)
