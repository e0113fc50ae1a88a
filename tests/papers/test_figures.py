"""The redrawn figures show what the papers say they show."""

import re

import pytest

from kernelpool.errors import MissingDatasetError
from papers import figures

pytest.importorskip("matplotlib")


def numbers(sentence):
    return [float(text) for text in re.findall(r"-?\d+\.\d+|-?\d+(?= %)", sentence)]


def test_figure_3_gives_each_class_a_kernel():
    X, y = figures.datasets.make_two_against_one(random_state=0)
    model = figures._two_kernels(X, y, 1.0)
    assert sorted(figures._colors(model)) == sorted([figures.BLUE, figures.ORANGE])
    figure, _ = figures.shared_kernels_3()
    assert len(figure.axes) == 2


def test_figure_4_is_won_by_pooling():
    _, sentence = figures.shared_kernels_4()
    separate, pooled = numbers(sentence)
    assert pooled > separate + 0.3


def test_figure_5_is_won_by_separate_kernels():
    _, sentence = figures.shared_kernels_5()
    pooled, separate = numbers(sentence)
    assert separate < pooled - 5


def test_a_picture_is_a_png_and_a_sentence():
    image, sentence = figures.drawn(figures.Figure("minimal", "Minimal", figures.minimal_2))
    assert image.startswith(b"\x89PNG")
    assert "Editing removes" in sentence


def test_a_picture_without_its_data_says_why():
    def missing():
        raise MissingDatasetError("The data set 'ripley_train' was not found.")

    image, sentence = figures.drawn(figures.Figure("none", "None", missing))
    assert image is None
    assert sentence == "Not drawn. The data set 'ripley_train' was not found."
