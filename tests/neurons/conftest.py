"""Rows for neurons."""

import pytest

from papers.data.generators import make_one_against_two


@pytest.fixture(scope="module")
def plane():
    return make_one_against_two(300, random_state=0)
