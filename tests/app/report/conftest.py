import numpy as np
import pytest

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report import page as page_module
from kernelpool.app.report import write_report

from .parsed import Page

HOSTILE = [
    "<script>window.pwned=1</script>",
    '"onmouseover="window.pwned=1',
    "{{7*7}}{% raw %}",
    "javascript:window.pwned=1",
    "</title></style><img src=x onerror=window.pwned=1>",
    "' autofocus onfocus=window.pwned=1 x='",
    "$x^2$ _y_ \\frac",
    "<!--<svg/onload=window.pwned=1>",
    "&lt;b&gt; a\nb\u2028c\u202ed\x00e",
    "<base href=http://example.invalid/><link rel=stylesheet href=x.css>",
]
"""Names that a browser, a template or matplotlib might take for something else."""


@pytest.fixture(scope="session")
def clouds():
    """Two Gaussian classes, 300 rows to train and 200 to test."""
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=500)
    x = rng.normal(size=(500, 2)) * [1.0, 3.0] + np.outer(y, [1.5, 2.0]) + [10.0, -40.0]
    return x[:300], np.array(["no", "yes"])[y[:300]], x[300:], np.array(["no", "yes"])[y[300:]]


@pytest.fixture(scope="session")
def fitted(clouds):
    model = SharedKernelClassifier.prbf(4, covariance_type="full", random_state=0, tol=0.02)
    return model.fit(*clouds[:2])


@pytest.fixture(scope="session")
def customers():
    """Numbers and categories with missing cells, and a network of 300 of the 400 rows."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=400)
    X = pd.DataFrame(
        {
            "age": rng.normal(40 + 10 * y, 8),
            "plan": np.where(rng.random(400) < 0.2 + 0.6 * y, "premium", "basic"),
            "spend": rng.gamma(2 + y, 20),
            "region": rng.choice(["north", "south", "east"], 400),
        }
    )
    X = X.mask(rng.random(X.shape) < 0.1)
    y = np.array(["leaves", "stays"])[y]
    model = SharedKernelClassifier(4, random_state=0, training="em", tol=0.02)
    return model.fit(X[:300], y[:300]), X, y


@pytest.fixture(scope="session")
def dated(tmp_path_factory):
    """A report of dates, large numbers and a category that was never seen, and its rows."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    plan = rng.choice(["basic", "plus", "plus"], 120)
    day = np.datetime64("2020-01-01") + rng.integers(0, 400, 120)
    big = 1e8 + rng.integers(0, 1300, 120)
    X = pd.DataFrame({"day": day, "big": big, "plan": plan})
    model = SharedKernelClassifier(2, training="em", random_state=0).fit(X, y)
    X.loc[0, "plan"] = "student"
    path = tmp_path_factory.mktemp("dated") / "report.html"
    return write_report(model, None, None, path, X_test=X, y_test=y), X


@pytest.fixture(scope="session")
def rejecting(clouds):
    """A classifier that refuses rows, and test rows of which three are far away."""
    X, y, X_test, y_test = clouds
    inner = SharedKernelClassifier.prbf(4, covariance_type="full", random_state=0, tol=0.02)
    model = RejectClassifier(
        inner, ambiguity=0.3, ambiguity_rule="threshold", novelty=-12.0, novelty_rule="threshold"
    ).fit(X, y)
    return model, np.vstack([X_test, [[40.0, 0.0]] * 3]), np.append(y_test, ["no"] * 3)


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """A function that writes a report and reads it; without charts, unless asked for."""

    def read(model, X, y, X_test=None, y_test=None, *, charts=False, **kwargs):
        path = tmp_path_factory.mktemp("report") / "report.html"
        with pytest.MonkeyPatch.context() as patch:
            if not charts:
                patch.setattr(page_module, "chart_of", lambda *_: "data:,")
            return Page(write_report(model, X, y, path, X_test=X_test, y_test=y_test, **kwargs))

    return read


@pytest.fixture(scope="session")
def page(report, fitted, clouds):
    return report(fitted, *clouds, charts=True)


@pytest.fixture(scope="session")
def customers_page(report, customers):
    model, X, y = customers
    return report(model, X[:300], y[:300], X[300:], y[300:], charts=True)


@pytest.fixture(scope="session")
def hostile_path(tmp_path_factory):
    """A report whose columns, classes, title, rows and command have hostile names."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    k = len(HOSTILE)
    y = rng.integers(k, size=400)
    X = pd.DataFrame(rng.normal(size=(400, k)) + np.eye(k)[y] * 4 - 5, columns=HOSTILE)
    labels = np.array(HOSTILE, dtype=object)[y]
    model = SharedKernelClassifier.prbf(k, covariance_type="diag", random_state=0, tol=0.02)
    model.fit(X[:300], labels[:300])
    bad = HOSTILE[0] + HOSTILE[1] + HOSTILE[4]
    return write_report(
        model,
        X[:300],
        labels[:300],
        tmp_path_factory.mktemp("hostile") / "report <b>&'.html",
        X_test=X[300:],
        y_test=labels[300:],
        row_ids=[f"{bad}{i}" for i in range(300)],
        title=bad,
        facts={bad: bad},
        command=bad,
    )
