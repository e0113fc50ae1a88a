import numpy as np
import pytest

from kernelpool import SharedKernelClassifier

HOSTILE = [
    "<script>window.pwned=1</script>",
    '"onmouseover="window.pwned=1',
    "{{7*7}}{% raw %}",
    "javascript:window.pwned=1",
    "</title></style><img src=x onerror=window.pwned=1>",
    "' autofocus onfocus=window.pwned=1 x='",
    '=HYPERLINK("http://example.invalid/?"&A1)',
    "<!--<svg/onload=window.pwned=1>",
    "&lt;b&gt; a\nb\u2028c\u202ed\x00e",
    "<base href=http://example.invalid/><link rel=stylesheet href=x.css>",
]
"""Names that a browser, a template or a spreadsheet might take for something else."""


@pytest.fixture(scope="module")
def two_clouds():
    """Two Gaussian classes, 300 rows to train and 200 to test."""
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=500)
    x = rng.normal(size=(500, 2)) * [1.0, 3.0] + np.outer(y, [1.5, 2.0]) + [10.0, -40.0]
    return x[:300], y[:300], x[300:], y[300:]


@pytest.fixture(scope="module")
def fitted(two_clouds):
    return SharedKernelClassifier.prbf(4, covariance_type="full", random_state=0).fit(
        *two_clouds[:2]
    )


@pytest.fixture(scope="module")
def hostile_case():
    """A model whose columns and classes have hostile names, and rows for its report."""
    rng = np.random.default_rng(0)
    y = rng.integers(len(HOSTILE), size=400)
    x = rng.normal(size=(400, len(HOSTILE))) + np.eye(len(HOSTILE))[y] * 4
    labels = np.array(HOSTILE, dtype=object)[y]
    model = SharedKernelClassifier.prbf(len(HOSTILE), covariance_type="diag", random_state=0).fit(
        x[:300], labels[:300]
    )
    return model, x[:300], labels[:300], x[300:], labels[300:]


@pytest.fixture(scope="module")
def hostile_summary(hostile_case):
    from kernelpool.app.report import summarize

    bad = HOSTILE[0] + HOSTILE[1] + HOSTILE[4]
    kwargs = {"title": bad, "source": bad, "test_source": bad, "target_name": bad, "command": bad}
    return summarize(*hostile_case, feature_names=HOSTILE, **kwargs)
