"""What a shared-kernel network says once it is there, however it was trained: densities, samples and criteria."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..kernels import FAMILIES, Kernels, NaturalParams
from ..networks.shared_kernel import SharedKernel
from ..rows import Block, Frame, Rows
from ..training.validation import class_codes, is_unlabeled, mixture_frame
from ._base import DensityClassifier, Question

CLOSED = 1e-8
"""Sharing at or below this is none."""


class SharedKernelNetwork(DensityClassifier):
    """Kernels that classes share, and answers from them; a subclass says how they are trained."""

    means_: np.ndarray
    covariances_: np.ndarray
    covariance_type_: str
    mixing_: np.ndarray

    def _network(self, frame: Frame | None = None) -> tuple[SharedKernel, Kernels, Frame]:
        """The fitted network, its kernels in a frame (their own, if none is given), and that frame."""
        kernel = FAMILIES[self.covariance_type_](np.zeros(self.means_.shape[1]))
        kernels = Kernels(np.asarray(self.means_), np.asarray(self.covariances_))
        if frame is None:
            share = self.mixing_ @ self.class_prior_
            frame = mixture_frame(kernel, kernels, share / share.sum())
        return SharedKernel(kernel, np.ones_like(self.mixing_)), kernel.into(kernels, frame), frame

    def _density(self, rows: Rows) -> Question:
        network, kernels, frame = self._network()
        natural_params = network.kernel.natural_params(kernels, rows.eps)
        framed = rows.framed(frame, natural_params.weight.shape[0] + natural_params.weight.shape[1] + 2 * len(self.classes_))
        return framed, _log_density, (network, natural_params, self.mixing_, frame.log_volume)

    def _posterior(self, rows: Rows) -> Question:
        framed, _, (network, natural_params, mixing, _) = self._density(rows)
        return framed, _kernel_posterior, (network, natural_params, mixing, self.class_prior_)

    def _sample_rows(self, codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        network, kernels, frame = self._network()
        x = np.empty((len(codes), self.n_features_in_))
        chosen = np.empty(len(codes), int)
        for k in range(len(self.classes_)):
            mine = codes == k
            chosen[mine] = rng.choice(len(self.mixing_), size=mine.sum(), p=self.mixing_[:, k] / self.mixing_[:, k].sum())
        for j in np.unique(chosen):
            mine = chosen == j
            noise = rng.standard_normal((mine.sum(), x.shape[1]))
            covariance = network.kernel.of_kernel(kernels.covariance, j)
            x[mine] = kernels.mean[j] + network.kernel.deviate(covariance, noise)
        outside: np.ndarray = frame.outside(x)
        return outside

    # -- model choice -----------------------------------------------------------------------------------------------

    def n_parameters(self) -> int:
        """Number of free parameters: kernels, mixing weights that are not fixed at zero, and class priors."""
        check_is_fitted(self)
        n_kernels, n_classes = self.mixing_.shape
        kernel = FAMILIES[self.covariance_type_](np.zeros(self.n_features_in_))
        # a weight that learned sharing has all but closed is no longer free
        free = getattr(self, "sharing_", np.ones_like(self.mixing_)) > CLOSED
        n_mixing = int(free.sum()) - n_classes
        return n_kernels * self.n_features_in_ + kernel.n_parameters(n_kernels, self.n_features_in_) + n_mixing + n_classes - 1

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """log p(X, y) under the model, equation (8); rows marked by `unlabeled` count with their class summed out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        log_likelihood : float
            Summed over the rows.
        """
        check_is_fitted(self)
        labels = np.asarray(y)
        unlabeled = is_unlabeled(labels, self.unlabeled)
        unknown = set(labels[~unlabeled].tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(f"y contains labels that were not seen in fit: {sorted(map(str, unknown))[:5]}.")
        codes = class_codes(labels, self.classes_, self.unlabeled)
        with np.errstate(divide="ignore"):
            joint = np.asarray(self.log_density(X)) + np.log(self.class_prior_)
        known = joint[np.arange(len(codes)), np.maximum(codes, 0)]
        by_row = np.where(codes < 0, np.logaddexp.reduce(joint, axis=1), known)
        return float(by_row.sum() if sample_weight is None else np.asarray(sample_weight) @ by_row)

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, -2 log p(X, y) + (number of parameters) log n: the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        bic : float
            The criterion.
        """
        n = len(y) if sample_weight is None else float(np.sum(sample_weight))
        return -2 * self.log_likelihood(X, y, sample_weight) + self.n_parameters() * float(np.log(n))

    def aic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Akaike information criterion, -2 log p(X, y) + 2 (number of parameters): the lower the better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        aic : float
            The criterion.
        """
        return -2 * self.log_likelihood(X, y, sample_weight) + 2 * self.n_parameters()


def _log_density(block: Block, network: SharedKernel, natural_params: NaturalParams, mixing: Any, log_volume: float) -> Any:
    return network.log_density(block, natural_params, mixing) - log_volume


def _kernel_posterior(block: Block, network: SharedKernel, natural_params: NaturalParams, mixing: Any, class_prior: Any) -> Any:
    return network.kernel_posterior(block, natural_params, mixing, class_prior)
