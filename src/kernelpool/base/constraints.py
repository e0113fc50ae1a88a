"""Ranges of parameters that several estimators have, for `_parameter_constraints`."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

COUNT: list[Any] = [Interval(Integral, 1, None, closed="left")]
POSITIVE: list[Any] = [Interval(Real, 0, None, closed="neither")]
NOT_NEGATIVE: list[Any] = [Interval(Real, 0, None, closed="left")]
PRIOR: list[Any] = ["array-like", dict, StrOptions({"balanced"}), None]
N_JOBS: list[Any] = [*COUNT, Interval(Integral, None, -1, closed="right"), None]
