"""Small files that would cost much to load: each is refused at once, in little memory, with a
message of bounded length.
"""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from zoo import example

import kernelpool
from kernelpool.app.files import container
from kernelpool.errors import ModelFileError

from .mutations import File


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def taken_apart(name, path):
    kernelpool.save(example(name)[0], path)
    return File(path.read_bytes(), container.read_contents(path, 1 << 30))


def nested(depth):
    """Classifiers around classifiers around a model."""
    node = {"model": "SharedKernelClassifier", "parameters": {}, "fitted": None}
    for _ in range(depth):
        node = {"model": "RejectClassifier", "parameters": {"estimator": node}, "fitted": None}
    return node


def claimed(file):
    """Text without entries that claims to be wide, beside many classes: comparing them would widen
    each class.
    """
    arrays, n = dict(file.arrays), 1500
    arrays["classes_"] = np.arange(1, n + 1, dtype=np.uint32)[:, None]
    arrays["owners_"] = np.zeros((0, 1 << 20), np.uint32)
    return file.header, arrays


def long_shape(file):
    header = json.loads(json.dumps(file.header))
    header["model"]["parameters"]["class_prior"] = {"objects": [], "shape": [2**40] * 50_000 + [0]}
    return header, file.arrays


def many_values(file):
    header = json.loads(json.dumps(file.header))
    header["summary"] = {"rows": [[]] * 3_000_000}
    return header, file.arrays


def deep_models(file):
    header = json.loads(json.dumps(file.header))
    header["model"] = nested(20)
    return header, {}


def many_threads(file):
    header = json.loads(json.dumps(file.header))
    header["model"]["parameters"]["n_jobs"] = 100_000
    return header, file.arrays


def long_word(file):
    header = json.loads(json.dumps(file.header))
    header["model"]["parameters"]["covariance_type"] = "x" * 1_000_000
    return header, file.arrays


ATTACKS = {
    "sizes claimed by nothing": (claimed, "has no entries; its sizes may be at most 4096"),
    "a long shape": (long_shape, "0 objects cannot have shape"),
    "many values": (many_values, "holds more than 1048576 values"),
    "models inside models": (deep_models, "nested too deep"),
    "threads": (many_threads, "n_jobs must be at most 256"),
    "a long word": (long_word, "out of range"),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_an_attack_is_refused_with_a_short_message(what, path):
    change, message = ATTACKS[what]
    file = taken_apart("shared, learned", path)
    path.write_bytes(file.sealed(*change(file)))
    with pytest.raises(ModelFileError, match=message) as caught:
        kernelpool.load(path)
    assert len(str(caught.value)) < 1000


def test_attacks_cost_little_memory(tmp_path):
    """In a process that may have 1 GB more than it needs to import the library; the files have up
    to 6 MB.
    """
    file, paths = taken_apart("shared, learned", tmp_path / "model"), []
    for i, (change, _) in enumerate(ATTACKS.values()):
        paths.append(str(tmp_path / f"attack{i}"))
        (tmp_path / f"attack{i}").write_bytes(file.sealed(*change(file)))
    code = textwrap.dedent(f"""
        import kernelpool.app.files, resource
        from kernelpool.errors import ModelFileError
        before = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (before + (1 << 30),) * 2)
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        for path in {paths!r}:
            try:
                kernelpool.load(path)
            except ModelFileError as error:
                assert "memory" not in str(error).lower(), error
                print("refused")
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n" * len(ATTACKS), done.stderr[-2000:]


def test_loading_costs_some_times_the_size_of_the_file(path):
    """Peak memory of an honest load, in a process of its own: at most 4 times the file beyond what
    an import takes.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40_000, 50)), np.arange(40_000) % 2
    model = kernelpool.ParzenClassifier(radius=1.0).fit(X, y)
    kernelpool.save(model, path)
    code = textwrap.dedent(f"""
        import kernelpool.app.files, resource
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        kernelpool.load({str(path)!r})
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 4 * path.stat().st_size + (64 << 20)
