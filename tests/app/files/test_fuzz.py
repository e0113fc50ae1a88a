"""Damaged files give a clean error or a model that answers: never a crash, a hang, or another
exception.
"""

import contextlib
import subprocess
import sys
import warnings

import numpy as np
import pytest
from zoo import EXAMPLES, example

import kernelpool
from kernelpool import ConformalClassifier, RejectClassifier
from kernelpool.app.files import load_file, read_header
from kernelpool.errors import KernelpoolError, ModelFileError

from .mutations import MUTATIONS, File
from .test_round_trip import recorded

FUZZED = [
    "shared full",
    "shared tied",
    "shared of float32, some unlabeled",
    "sharing average",
    "pool",
    "parzen gaussian",
    "reduced parzen",
    "multi-edit",
    "rbf",
    "em-log of a mixture",
    "regressor",
    "neurons with places",
    "reject",
]


def assert_answers(model, X):
    """For rows like those that the model was fitted to, for rows far away, and for its own
    samples.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for x in (X[:8], 1e6 * X[:2]) if isinstance(X, np.ndarray) else (X[:8],):
            if hasattr(model, "predict_proba"):
                probability = model.predict_proba(x)
                assert probability.shape == (len(x), len(model.classes_))
                np.testing.assert_allclose(probability.sum(axis=1), 1, atol=1e-6)
            if hasattr(model, "predict"):
                assert len(model.predict(x)) == len(x)
        if hasattr(model, "sample"):
            assert model.sample(3, random_state=0)[0].shape == (3, X.shape[1])


def assert_recorded(file, X):
    """What a file holds beside its model can be used."""
    if file.reference is not None:
        with contextlib.suppress(KernelpoolError):  # it may be of other columns
            file.reference.compare(file.reference.count(X))
    if file.calibration is not None:
        for cls in (RejectClassifier, ConformalClassifier):
            with contextlib.suppress(KernelpoolError), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cls.from_predictions(file.model, file.calibration, file.codes).predict(X[:9])


def fuzzed(name, path, n, seed):
    """How many of `n` damaged files were refused, and how many gave a model."""
    X = example(name)[1]
    file = File(recorded(name) if name == "shared full" else example(name)[0], path)
    rng = np.random.default_rng(seed)
    loaded = 0
    for i in range(n):
        path.write_bytes(MUTATIONS[i % len(MUTATIONS)](file, rng))
        with contextlib.suppress(KernelpoolError):
            read_header(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read = load_file(path)
        except KernelpoolError as error:
            if not 20 < len(str(error)) < 2000:
                raise AssertionError("a message says too little or too much") from error
            continue
        loaded += 1
        model = read.model
        assert_recorded(read, X)
        if X.ndim == 2 and getattr(model, "n_features_in_", None) == X.shape[1]:
            assert_answers(model, X)
    return n - loaded, loaded


@pytest.mark.parametrize("name", FUZZED)
def test_damaged_files_give_clean_errors(name, tmp_path):
    refused, loaded = fuzzed(name, tmp_path / "model", 70, seed=sum(map(ord, name)))
    assert refused > 40
    assert loaded > 0  # some damage is none: the test sees models too


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_many_damaged_files_give_clean_errors(name, tmp_path):
    fuzzed(name, tmp_path / "model", 340, seed=1)


def test_no_single_flipped_bit_goes_unnoticed(tmp_path):
    """The digest covers the header and the data; the index around them must fit to the byte, but
    for blanks at its end, which may be tabs as well.
    """
    path = tmp_path / "model"
    file = File(example("shared tied")[0], path)
    rng = np.random.default_rng(0)
    for at in rng.choice(len(file.data), 600, replace=False):
        data = bytearray(file.data)
        data[at] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(data))
        with contextlib.suppress(KernelpoolError):
            kernelpool.load(path)
            assert file.data[at : at + 1] == b" "


# -- small files that would cost much to load ------------------------------------------------------


def nested(depth):
    """Classifiers around classifiers around a model."""
    node = {"model": "SharedKernelClassifier", "fields": {}}
    for _ in range(depth):
        node = {"model": "RejectClassifier", "fields": {"estimator": node}}
    return node


WIDE = {"text": ["x" * 1_000_000] + [""] * 100_000}
ATTACKS = {
    "sizes of nothing": (
        lambda h, m, a: a.update({"model/_fitted/network/means": np.zeros((0, 1 << 20))}),
        "up to 4096 where one is zero",
    ),
    "wide text": (
        lambda h, m, a: m["fields"].update(class_prior=WIDE),
        "value that is not known",
    ),
    "many values": (
        lambda h, m, a: h["overview"].update(summary={"x": [[]] * 3_000_000}),
        "more than 1048576",
    ),
    "models in models": (lambda h, m, a: (h.update(model=nested(20)), a.clear()), "not fitted yet"),
    "threads": (lambda h, m, a: m["fields"].update(n_jobs=100_000), "n_jobs at most 256"),
    "a long word": (lambda h, m, a: m["fields"].update(covariance_type="x" * 10**6), "not fit"),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_is_refused_with_a_short_message(what, tmp_path):
    change, message = ATTACKS[what]
    file = File(example("shared, learned")[0], tmp_path / "model")
    (tmp_path / "model").write_bytes(file.changed(change))
    with pytest.raises(ModelFileError, match=message) as caught:
        kernelpool.load(tmp_path / "model")
    assert len(str(caught.value)) < 1000


LIMITED = """
import kernelpool.app.files, resource, sys
from kernelpool.errors import ModelFileError
before = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (before + (1 << 30),) * 2)
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in sys.argv[1:]:
    try:
        kernelpool.load(path)
    except ModelFileError as error:
        assert "MemoryError" not in str(error), error
        print("refused")
"""


def test_attacks_cost_little_memory(tmp_path):
    """In a process that may have 1 GB more than it needs to import the library; the files have up
    to 6 MB, or are 2 GB of nothing that is refused before it is read.
    """
    file = File(example("shared, learned")[0], tmp_path / "model")
    paths = [tmp_path / what for what in (*ATTACKS, "sparse")]
    for path, (change, _) in zip(paths, ATTACKS.values(), strict=False):
        path.write_bytes(file.changed(change))
    size = 2**31 - 4096
    with open(paths[-1], "wb") as sparse:
        index = b'{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (size, size)
        sparse.write(len(index).to_bytes(8, "little") + index)
        sparse.truncate(8 + len(index) + size)
    words = [sys.executable, "-c", LIMITED, *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n" * len(paths), done.stderr[-2000:]
