"""The redrawn figures show what the papers say they show."""

import re

import pytest

from papers import figures

pytest.importorskip("matplotlib")


def numbers(sentence):
    return [float(text) for text in re.findall(r"-?\d+\.\d+|-?\d+(?= %)", sentence)]


def test_figure_4_is_won_by_pooling():
    _, sentence = figures.shared_kernels_4()
    separate, pooled = numbers(sentence)
    assert pooled > separate + 0.3


def test_figure_5_is_won_by_separate_kernels():
    _, sentence = figures.shared_kernels_5()
    pooled, separate = numbers(sentence)
    assert separate < pooled - 5
