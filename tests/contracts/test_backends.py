"""Every backend of rows gives the same model: NumPy, array-api-strict, torch on the host or a card,
Dask in one process and two.

Where there is no card, tests of `cuda` are skipped; `stand_in` then makes torch's host tensors pass
for those of a card.
"""

import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from zoo import ANSWERS

import kernelpool
from kernelpool import SharedKernelClassifier, Training, arrays
from kernelpool.kernels import FAMILIES, Kernels
from kernelpool.mixtures import e_step
from kernelpool.mixtures.network import Params, SharedKernel
from kernelpool.rows import Block, Frame, as_rows

QUICK = {"unlabeled": 2, "random_state": 0, "max_iter": 6, "tol": 0}
PLAIN = {**QUICK, "training": Training("em", acceleration=None)}
pytestmark = pytest.mark.filterwarnings("ignore::kernelpool.errors.UnfinishedWarning")

BACKENDS = ["array_api_strict", "torch", "cuda", "dask"]


def on_backend(name, x, y):
    if name == "dask":
        da = pytest.importorskip("dask.array")
        return da.from_array(x, chunks=(70, 2)), da.from_array(y, chunks=70)
    if name == "cuda":
        torch = pytest.importorskip("torch")
        if not torch.cuda.is_available():
            pytest.skip("there is no CUDA device")
        return torch.asarray(x, device="cuda"), torch.asarray(y, device="cuda")
    xp = pytest.importorskip(
        name, reason=f"{name} is an optional array library (make arrays installs torch)"
    )
    return xp.asarray(x), xp.asarray(y)


def compute(answer):
    answer = answer.cpu() if hasattr(answer, "cpu") else answer
    return np.asarray(answer.compute() if hasattr(answer, "compute") else answer)


def assert_same(model, reference, tolerance=1e-9):
    for name in ("means_", "covariances_", "mixing_"):
        found, expected = getattr(model, name), getattr(reference, name)
        assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sharing", [0, 0.5])
def test_backends_agree(backend, blobs, family, sharing):
    x, y = blobs
    settings = {"covariance_type": family, "sharing": sharing, **QUICK}
    reference = SharedKernelClassifier.prbf(6, **settings).fit(x, y)
    there, labels = on_backend(backend, x, y)
    other = SharedKernelClassifier.prbf(6, **settings).fit(there, labels)
    assert_same(other, reference)
    assert other.objective_ == pytest.approx(reference.objective_, rel=1e-9)
    for method in (*ANSWERS[:5], "kernel_posterior"):
        answer = getattr(other, method)(there)
        assert type(answer) is type(there)  # it stays where it came from
        assert getattr(answer, "device", None) == getattr(there, "device", None)
        assert_allclose(compute(answer), getattr(reference, method)(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["torch", "array_api_strict", "cuda"])
def test_backends_keep_float32(backend, blobs, family):
    x = blobs[0].astype(np.float32)
    there, labels = on_backend(backend, x, blobs[1])
    for sharing in (0, 0.5):
        settings = {"covariance_type": family, "sharing": sharing, **PLAIN}
        expected = SharedKernelClassifier.prbf(6, **settings).fit(x, blobs[1])
        model = SharedKernelClassifier.prbf(6, **settings).fit(there, labels)
        found = model.predict_proba(there)
        assert str(found.dtype).endswith("float32")
        assert_allclose(compute(found), expected.predict_proba(x), atol=1e-4)
        assert model.objective_ == pytest.approx(expected.objective_, abs=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_check_their_input(backend, blobs):
    x, y = blobs
    infinite = x.copy()
    infinite[3, 1] = np.inf
    there, labels = on_backend(backend, infinite, y)
    with pytest.raises(ValueError, match="infinity in 1 cells"):
        SharedKernelClassifier.prbf(4).fit(there, labels)
    there, labels = on_backend(backend, x, y)
    model = SharedKernelClassifier.prbf(4, random_state=0).fit(there, labels)
    with pytest.raises(
        ValueError, match="X has 2 features, but SharedKernelClassifier is expecting 3"
    ):
        model.predict(there[:, :2])
    integers, _ = on_backend(backend, np.ones((4, 3), int), y[:4])
    with pytest.raises(ValueError, match="must be float32 or float64"):
        model.fit(integers, labels[:4])
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        model.predict(labels)


def plain_sums(columns, pairs, weight, natural):
    """`fused_sums` as its equations read, in float64."""
    torch = pytest.importorskip("torch")
    left, right = torch.asarray(pairs, device=columns.device).T
    phi = (columns[left] * columns[right]).double()
    log_joint = natural.double() @ phi
    responsibility = torch.softmax(log_joint, 0) * (1 if weight is None else weight)
    return phi @ responsibility.T, torch.logsumexp(log_joint, 0).to(columns.dtype)


@pytest.fixture
def stand_in(monkeypatch):
    """Torch's host tensors pass for those of a card, with and without fused kernels."""
    monkeypatch.setattr(arrays, "HOST_DEVICES", ())
    monkeypatch.setattr(arrays, "FLOAT32_ROWS", 64)

    def fuse():
        monkeypatch.setattr(e_step, "can_fuse", lambda x, n_kernels: not isinstance(x, np.ndarray))
        monkeypatch.setattr(e_step, "fused_sums", plain_sums)

    return fuse


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sharing", [0, 0.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_card_gives_the_same_model(stand_in, blobs, family, sharing, weighted, dtype):
    x = blobs[0].astype(dtype)
    y = blobs[1]
    weight = np.random.default_rng(0).uniform(0.1, 2, size=len(y)) if weighted else None
    settings = {"covariance_type": family, "sharing": sharing, **PLAIN}
    expected = SharedKernelClassifier.prbf(6, **settings).fit(x, y, sample_weight=weight)
    for fused in (False, True):
        if fused:
            stand_in()
        rows = on_backend("torch", x, y)
        model = SharedKernelClassifier.prbf(6, **settings).fit(*rows, sample_weight=weight)
        assert_same(model, expected, 1e-9 if dtype == np.float64 else 1e-4)


def test_one_copy_there_and_one_back(stand_in, monkeypatch, blobs):
    torch = pytest.importorskip("torch")
    stand_in()
    there, labels = on_backend("torch", *blobs)
    model = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0, max_iter=3)
    model.fit(there, labels)
    rows = as_rows(there, labels).framed(Frame(np.zeros(3), np.ones(3)), 64)
    network = SharedKernel(FAMILIES["full"](np.zeros(3)), np.ones((6, 3)))
    params = Params(Kernels(model.means_, model.covariances_), model.mixing_, model.class_prior_)
    network.sweep(rows, params)
    counts = {"there": 0, "back": 0}

    def count(name, method):
        def counted(*args, **kwargs):
            counts[name] += 1
            return method(*args, **kwargs)

        return counted

    waiting = ["cpu", "__bool__", "__float__", "__int__", "item", "tolist", "numpy"]
    for name in waiting:  # each would wait for the card
        monkeypatch.setattr(torch.Tensor, name, count("back", getattr(torch.Tensor, name)))
    monkeypatch.setattr(torch, "from_numpy", count("there", torch.from_numpy))
    network.sweep(rows, params)
    assert counts == {"there": 1, "back": 2}  # .cpu().numpy() are two calls and one wait


def test_features_are_products_of_their_factors(family, blobs):
    x, _ = blobs
    kernel = FAMILIES[family](np.zeros(3))
    columns, pairs = kernel.factors(Block(x))
    columns = np.concatenate([columns, np.ones((1, len(x)))])
    assert_allclose(
        np.stack([columns[a] * columns[b] for a, b in pairs]), kernel.features(x), rtol=1e-15
    )


@pytest.mark.parametrize(
    "trouble", [None, "no compiler", "no Triton", "an old card", "another maker"]
)
def test_fused_kernels_are_tried_before_they_are_used(monkeypatch, trouble):
    torch = pytest.importorskip("torch")
    fused = SimpleNamespace(MOST_KERNELS=256, transpose_into=lambda out, x: out.copy_(x.T))
    if trouble == "no compiler":
        monkeypatch.setattr(fused, "transpose_into", lambda out, x: 1 / 0)
    monkeypatch.delattr(kernelpool, "fused", raising=False)  # where another test imported it
    monkeypatch.setitem(sys.modules, "kernelpool.fused", None if trouble == "no Triton" else fused)
    capability = (7, 5) if trouble == "an old card" else (9, 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda card: capability)
    monkeypatch.setattr(torch.version, "hip", "6.2" if trouble == "another maker" else None)
    arrays._fused_on.cache_clear()
    if trouble == "no compiler":
        with pytest.warns(
            UserWarning,
            match="Triton does not work on cpu, .* without fused kernels: division by zero",
        ):
            assert arrays._fused_on(torch.device("cpu")) is None
    else:
        assert arrays._fused_on(torch.device("cpu")) is (fused if trouble is None else None)
    arrays._fused_on.cache_clear()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "n_columns", "n_kernels"),
    [(1, 2, 1), (300, 4, 5), (2500, 5, 64), (4099, 13, 70), (700, 3, 200)],
)
def test_fused_sums_are_as_their_equations(monkeypatch, n, n_columns, n_kernels, weighted):
    """On a card, or anywhere with TRITON_INTERPRET=1."""
    torch = pytest.importorskip("torch")
    fused = pytest.importorskip(
        "kernelpool.fused", exc_type=ImportError, reason="Triton is not installed"
    )
    device = "cpu" if "TRITON_INTERPRET" in os.environ else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    monkeypatch.setattr(fused, "SHARE_BYTES", 4 * 16 * fused.SPLIT)
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(n_columns, n))
    weight = rng.uniform(size=n)
    pairs = tuple((i, j) for i in range(n_columns) for j in range(i, n_columns))
    natural = 0.3 * rng.normal(size=(n_kernels, len(pairs)))
    columns, weight, natural = (
        torch.asarray(a, dtype=torch.float32, device=device) for a in (columns, weight, natural)
    )
    given = (columns, pairs, weight if weighted else None, natural)
    sums, log_evidence = fused.fused_sums(*given)
    expected, expected_evidence = plain_sums(*given)
    scale = float(expected.abs().max())
    assert_allclose(compute(sums), compute(expected), atol=1e-5 * scale)
    assert_allclose(compute(log_evidence), compute(expected_evidence), atol=1e-4)
    out = torch.zeros((n_columns + 1, n), device=device)
    fused.transpose_into(out[:-1, :], columns.T.contiguous())
    assert_array_equal(compute(out[:-1, :]), compute(columns))
