"""Values as JSON: what each kind must look like, and what is no value."""

import numpy as np
import pytest

from kernelpool.app.files.models import read_model, write_model
from kernelpool.app.files.values import Reader, Writer
from kernelpool.errors import ModelFileError


def reader(**arrays):
    return Reader(arrays, read_model)


KEY = np.ones(624, np.uint32)
STATE = {"random_state": "a", "position": 5, "has_gauss": 0, "gauss": 0.0}

WRONG = {
    "unknown kind": ({"eval": "1"}, {}, "unknown kind 'eval'"),
    "empty object": ({}, {}, "unknown kind None"),
    "float": ({"float": "1.5"}, {}, "'nan', 'inf' or '-inf'"),
    "float and more": ({"float": "nan", "x": 1}, {}, "'nan', 'inf' or '-inf'"),
    "tuple of nothing": ({"tuple": 3}, {}, "must be a list and nothing else; got 3"),
    "tuple and more": ({"tuple": [], "x": 1}, {}, "must be a list and nothing else"),
    "dict of no pairs": ({"dict": [[1, 2, 3]]}, {}, "list of pairs"),
    "dict of keys that are none": ({"dict": [[None, 2]]}, {}, "keys are text or whole numbers"),
    "dict with a key twice": ({"dict": [["a", 1], ["a", 2]]}, {}, "holds a key twice"),
    "array that is not there": (
        {"array": "b"},
        {"a": np.ones(1)},
        "asks for an array 'b', which is not in the file",
    ),
    "array without a name": ({"array": 3}, {"a": np.ones(1)}, "asks for an array 3"),
    "array and more": ({"array": "a", "x": 1}, {"a": np.ones(1)}, "entries that are not known"),
    "array of another order": (
        {"array": "a", "order": "K"},
        {"a": np.ones(1)},
        "order must be 'C' or 'F'; got 'K'",
    ),
    "scalar of many": ({"scalar": "a"}, {"a": np.ones(2)}, r"must have shape \(\); got \(2,\)"),
    "text of floats": ({"text": "a"}, {"a": np.ones((2, 3))}, "code points of type U32"),
    "text without width": ({"text": "a"}, {"a": np.ones((2, 0), np.uint32)}, "with a width"),
    "text of one number": ({"text": "a"}, {"a": np.array(3, np.uint32)}, "with a width"),
    "text of no code points": (
        {"text": "a"},
        {"a": np.array([0x110000], np.uint32)},
        "1114112, which is no code point",
    ),
    "objects of another number": (
        {"objects": [1], "shape": [2]},
        {},
        r"1 objects cannot have shape \[2\]",
    ),
    "objects without shape": ({"objects": [1]}, {}, "1 objects cannot have shape None"),
    "objects that are none": ({"objects": [[1]], "shape": [1]}, {}, "text, numbers and None only"),
    "slice": ({"slice": [1, 2, 3]}, {}, "unknown kind 'slice'"),
    "type": ({"type": "float64"}, {}, "unknown kind 'type'"),
    "dtype": ({"dtype": "float64"}, {}, "unknown kind 'dtype'"),
    "objects of long shapes": (
        {"objects": [1], "shape": [1] * 9},
        {},
        "1 objects cannot have shape",
    ),
    "objects without entries in a huge shape": (
        {"objects": [], "shape": [0, 2**40]},
        {},
        "0 objects cannot have shape",
    ),
    "text that is too wide": ({"text": "a"}, {"a": np.ones((1, 5000), np.uint32)}, "with a width"),
    "state of another size": (STATE, {"a": KEY[:623]}, "624 numbers of type U32"),
    "state of another type": (STATE, {"a": KEY.astype(float)}, "624 numbers of type U32"),
    "state beyond its end": (STATE | {"position": 625}, {"a": KEY}, "624 numbers of type U32"),
    "state before its start": (STATE | {"position": -1}, {"a": KEY}, "624 numbers of type U32"),
    "state with two spare deviates": (STATE | {"has_gauss": 2}, {"a": KEY}, "a spare deviate"),
    "state with a deviate that is none": (STATE | {"gauss": "0"}, {"a": KEY}, "a spare deviate"),
    "same": ({"same": "a b"}, {}, "must name a parameter"),
    "model": ({"model": {"class": "X"}}, {}, "must have class, parameters and fitted"),
    "model and more": ({"model": {}, "x": 1}, {}, "entries that are not known"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_value_is_refused(what):
    node, arrays, message = WRONG[what]
    with pytest.raises(ModelFileError, match=message):
        reader(**arrays).value(node)


def test_an_array_may_be_asked_for_once():
    again = reader(a=np.ones(2))
    again.value({"array": "a"})
    with pytest.raises(ModelFileError, match="already taken"):
        again.value({"array": "a"})


def test_nothing_may_be_left_over():
    with pytest.raises(ModelFileError, match="an array 'a' that no part of the model asks for"):
        reader(a=np.ones(2)).finished()


@pytest.mark.parametrize(
    "value",
    [
        np.float32(1.5),
        np.int8(-3),
        np.bool_(True),
    ],
)
def test_numpys_own_values_come_back_with_their_type(value):
    writer = Writer(write_model)
    node = writer.value(value, "it")
    again = Reader(writer.arrays, read_model).value(node)
    assert again == value
    assert type(again) is type(value)


def test_objects_keep_none_and_nan_and_text_that_ends_in_zeros():
    value = np.array([["a\0", None, float("nan")], [True, 3, -0.0]], object)
    writer = Writer(write_model)
    again = Reader(writer.arrays, read_model).value(writer.value(value, "it"))
    assert again.shape == value.shape
    assert [repr(part) for part in again.ravel()] == [repr(part) for part in value.ravel()]


def test_types_cannot_be_saved():
    for value in (np.float64, np.dtype("float32"), slice(1, 2)):
        with pytest.raises(ModelFileError, match=r"it is .*, which cannot be saved"):
            Writer(write_model).value(value, "it")


def test_models_are_not_nested_without_end():
    node = {"class": "RejectClassifier", "parameters": {"estimator": None}, "fitted": None}
    for _ in range(9):
        node = {
            "class": "RejectClassifier",
            "parameters": {"estimator": {"model": node}},
            "fitted": None,
        }
    with pytest.raises(ModelFileError, match="nested too deep; at most 6"):
        reader().value({"model": node})
