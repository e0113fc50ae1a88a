r"""Multinomial logistic regression with a ridge, along a path of ridges.

.. math::

    \max_{v, b} \; \sum_n w_n \log P(C_{y_n} \mid h_n) - \tfrac{\rho}{2} \|v\|^2, \qquad
    P(C_k \mid h) \propto \exp(b_k + v_k \cdot h)

The inputs are rotated to their principal components once. Divided by the square root of a bound of
the curvature (Böhning, "Multinomial logistic regression algorithm", Annals of the Institute of
Statistical Mathematics 44(1), 1992: a quarter of the second moments), the objective is nearly
spherical, and L-BFGS needs about twenty steps for a ridge.
"""

import numpy as np
from scipy.special import log_softmax

from .lbfgs import maximize


class RidgePath:
    """Logistic regressions of the same inputs, each from the solution of the ridge before.

    Parameters
    ----------
    inputs : ndarray of shape (n, P)
        Explanatory variables, without a constant.
    codes : ndarray of shape (n,)
        Classes.
    weight : ndarray of shape (n,)
        Weights of the rows.
    n_classes : int
        Number of classes K.
    """

    def __init__(
        self, inputs: np.ndarray, codes: np.ndarray, weight: np.ndarray, n_classes: int
    ) -> None:
        self.n_rows = weight.sum()
        self.share = weight / self.n_rows
        self.mean = self.share @ inputs
        centered = inputs - self.mean
        value, vector = np.linalg.eigh((centered * self.share[:, None]).T @ centered)
        positive = value > 1e-10 * value[-1]
        self.variance = value[positive]
        self.vector = vector[:, positive]
        self.component = centered @ self.vector
        self.target = np.eye(n_classes)[codes] * self.share[:, None]
        self.weight = np.zeros((len(self.variance), n_classes))
        self.bias = np.log(np.maximum(self.target.sum(axis=0), 1e-12))

    def solve(self, ridge: float, *, max_iter: int = 20, tol: float = 1e-7) -> np.ndarray:
        """Weights and biases with this ridge, (P + 1, K), the biases last.

        A step of L-BFGS that gains less than `tol` of the objective is the last one.
        """
        strength = ridge / self.n_rows
        unit = np.sqrt(0.25 * self.variance + strength)[:, None]
        n_classes = len(self.bias)

        def objective(flat: np.ndarray) -> tuple[np.ndarray, float]:
            point = flat.reshape(-1, n_classes)
            weight = point[:-1] / unit
            scores = self.component @ weight + point[-1]
            log_proba = log_softmax(scores, axis=1)
            penalty = 0.5 * strength * (weight * weight).sum()
            value = (self.target * log_proba).sum() - penalty
            residual = self.target - np.exp(log_proba) * self.share[:, None]
            slope = (self.component.T @ residual - strength * weight) / unit
            return np.vstack([slope, residual.sum(axis=0)]).ravel(), float(value)

        start = np.vstack([self.weight * unit, self.bias]).ravel()
        point = maximize(objective, start, max_iter=max_iter, tol=tol).point
        point = point.reshape(-1, n_classes)
        self.weight = point[:-1] / unit
        self.bias = point[-1]
        weight = self.vector @ self.weight
        return np.vstack([weight, self.bias - self.mean @ weight])
