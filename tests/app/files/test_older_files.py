"""Files that version 0.1 wrote (commit ebd8978): they load and answer as they did then, or say what to do.

``data/answers.npz`` holds rows and what 0.1 said of them.
"""

from pathlib import Path

import numpy as np
import pytest

import kernelpool
from kernelpool.errors import ModelFileError

DATA = Path(__file__).parent / "data"
ANSWERS = np.load(DATA / "answers.npz")


@pytest.mark.parametrize("name", sorted(set(ANSWERS) - {"rows"}))
def test_answers_are_those_of_0_1(name):
    model = kernelpool.load(DATA / f"{name}.safetensors")
    answer = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    np.testing.assert_allclose(answer(ANSWERS["rows"]), ANSWERS[name], rtol=1e-12, atol=1e-15)


def test_pipelines_of_other_transformers_are_to_be_fitted_again():
    with pytest.raises(
        ModelFileError,
        match=r"ColumnTransformer of scikit-learn, which only version 0\.1 .* Fit the model",
    ):
        kernelpool.load(DATA / "encoded.safetensors")
