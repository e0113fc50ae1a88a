"""The RBF network as users see it."""

import numpy as np
import pytest

from kernelpool import RBFNetworkClassifier
from kernelpool.errors import KernelpoolError


def test_narrowed_copies_try_one_width(rows):
    X, y = rows
    network = RBFNetworkClassifier(40, random_state=0).fit(X, y)
    copy = network.narrowed()
    assert not hasattr(copy, "means_")
    again = copy.fit(X, y)
    assert len(again.losses_) <= 5 < len(network.losses_)
    np.testing.assert_allclose(again.predict_proba(X), network.predict_proba(X), atol=0.05)


def test_metric_and_few_features_exclude_each_other(rows):
    with pytest.raises(KernelpoolError, match="max_features and metric='learned' exclude"):
        RBFNetworkClassifier(metric="learned", max_features=2).fit(*rows)
