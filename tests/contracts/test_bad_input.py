"""Every message is triggered once, and says what was expected, what was found and what to do."""

import numpy as np
import pytest

from kernelpool import SharedKernelClassifier, Start
from kernelpool.datasets import make_clouds

X, Y = make_clouds(200, random_state=0)


def refused(match, X=X, y=Y, error=ValueError, fit=None, **parameters):
    return pytest.param(parameters, X, y, fit or {}, error, match, id=match[:40])


CASES = [
    refused(r"sharing must lie in \[0, 1\]; got 1.5\.", sharing=1.5),
    refused(
        r"sharing must lie in \[0, 1\]; got values from 0 to 2",
        n_kernels=2,
        sharing=[[0, 1], [2, 1]],
    ),
    refused(
        r"sharing must have shape \(4, 2\); got \(3, 2\)\.", n_kernels=4, sharing=np.ones((3, 2))
    ),
    refused("sharing leaves class 1 without a kernel", n_kernels=2, sharing=[[1, 0], [1, 0]]),
    refused(
        r"n_kernels=1 leaves class 1 .* Use 2 kernels or more, at least one for each",
        n_kernels=1,
        sharing=0,
    ),
    refused("n_kernels.*must be an int in the range", n_kernels=0),
    refused("n_kernels=500 is more than the 200 rows of X. Use at most", n_kernels=500),
    refused(
        "n_kernels asks for 150 kernels in class 1, which has 100 distinct rows", n_kernels=[1, 150]
    ),
    refused(r"n_kernels must be a whole number for each class.*got \[1.5, 3\]", n_kernels=[1.5, 3]),
    refused(
        r"means of Start must have shape \(3, 2\); got \(3, 1\)\.", init=Start(means=X[:3, :1])
    ),
    refused(
        r"covariances of Start must have shape \(4,\); got \(2,\)\.",
        n_kernels=4,
        init=Start(covariances=[1, 1]),
    ),
    refused(
        "covariances of Start must be positive .* that of kernel 1",
        n_kernels=2,
        init=Start(covariances=[1, -1]),
    ),
    refused(
        "symmetric and positive definite; that of kernel 0",
        n_kernels=4,
        covariance_type="tied",
        init=Start(covariances=[[1, 2], [2, 1]]),
    ),
    refused(
        r"mixing of Start must have shape \(2, 2\); got \(2, 3\)\.",
        n_kernels=2,
        init=Start(mixing=np.ones((2, 3)) / 2),
    ),
    refused(
        r"mixing of Start must sum to one, column by column; the sums are \[2.0, 2.0\]",
        n_kernels=2,
        init=Start(mixing=np.ones((2, 2))),
    ),
    refused(
        "mixing of Start must not be negative", n_kernels=2, init=Start(mixing=[[2, 1], [-1, 0]])
    ),
    refused(
        "mixing of Start gives a class no weight",
        n_kernels=2,
        sharing=0,
        init=Start(mixing=[[0, 0], [1, 1]]),
    ),
    refused(r"owners must be labels of y, \[0, 1\]; got 7", n_kernels=2, init=Start(owners=[0, 7])),
    refused(r"owners must have shape \(3,\); got \(2,\)", n_kernels=3, init=Start(owners=[0, 1])),
    refused("requires y to be passed", y=None),
    refused("at least two classes; found no labeled row", y=np.full(200, -1), unlabeled=-1),
    *(
        refused("Input y contains NaN: 1 of 200 labels are missing", y=[missing, *labels[1:]])
        for missing, labels in ((np.nan, Y), (None, Y.astype(object)), (None, Y.astype(str)))
    ),
    refused(r"inconsistent numbers of samples: \[200, 199\]", y=Y[:-1]),
    refused("contains infinity", X=np.where(np.arange(400).reshape(200, 2) == 7, np.inf, X)),
    refused("could not convert string to float", X=np.full((200, 2), b"red")),
    refused(
        r"means of Start must lie near the rows; one lies 9e\+299 standard deviations",
        n_kernels=2,
        init=Start(means=[[1e300] * 2, [0.0] * 2]),
    ),
    refused(
        "Negative values in data passed to `sample_weight`|sample_weight",
        fit={"sample_weight": -np.ones(200)},
    ),
    refused(
        "Every class needs a row of positive weight; class 0 has none",
        y=np.where(np.arange(200) < 100, Y, -1),
        fit={"sample_weight": (np.arange(200) >= 100) * 1.0},
        unlabeled=-1,
    ),
]


@pytest.mark.parametrize(("parameters", "x", "y", "fit", "error", "match"), CASES)
def test_fit_refuses(parameters, x, y, fit, error, match):
    with pytest.raises(error, match=match):
        SharedKernelClassifier.prbf(**parameters).fit(x, y, **fit)


GOOD = {
    "means": [[0.0, 0], [1, 1], [2, 2]],
    "covariances": [1.0, 1, 1],
    "mixing": [[0.5, 0], [0.5, 0.5], [0, 0.5]],
    "class_prior": [0.5, 0.5],
    "classes": [0, 1],
}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            {"covariances": [1.0, 1]},
            r"covariances of shape \(2,\) for means of shape \(3, 2\) fits none",
        ),
        (
            {"means": [[0.0, 0], [1, 1]], "mixing": [[1, 0], [0, 1]], "covariances": np.eye(2)},
            "may be of type diag or tied",
        ),
        ({"covariance_type": "diag"}, r"covariances must have shape \(3, 2\); got \(3,\)"),
        ({"covariance_type": "round"}, "covariance_type must be one of"),
        ({"covariances": [1.0, 0, 1]}, "that of kernel 1 is not"),
        ({"classes": [1, 0]}, r"classes must be distinct and sorted; got \[1, 0\]"),
    ],
)
def test_from_parameters_refuses(change, match):
    with pytest.raises(ValueError, match=match):
        SharedKernelClassifier.from_parameters(**{**GOOD, **change})


def test_warm_start_refuses_what_has_changed():
    model = SharedKernelClassifier.prbf(4, warm_start=True, random_state=0).fit(X, Y)
    with pytest.raises(
        ValueError, match="warm_start needs the covariance_type of the previous fit"
    ):
        model.set_params(covariance_type="full").fit(X, Y)
    model.set_params(covariance_type="spherical", n_kernels=7)
    with pytest.raises(ValueError, match="warm_start needs the n_kernels"):
        model.fit(X, Y)
