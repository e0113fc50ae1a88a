"""What a fitted mixture answers beside labels and probabilities: missing cells, models of some
features, criteria for model choice, and how far the classes of a kernel lie apart.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state

from ..arrays import safe_log, to_numpy
from ..base.classifier import DensityClassifier, RowFunction
from ..data.door import encoded_rows
from ..data.labels import class_codes
from ..errors import KernelpoolError
from ..inspection.description import Description, classes_text, features_text, training_text
from ..kernels import Gaussian, as_diag
from ..penalties import Overlap
from ..penalties.penalty import Subkernels
from ..rows import Frame, RowsInMemory, as_rows
from ..tables.columns import Columns, as_table
from ..text import plural
from .description import gaussians_text, kernel_table, sharing_of, sharing_text
from .e_step import shares_of_classes
from .fitted import ClassDensities, FittedSharedKernel
from .onnx import to_graph


class FittedMixture(OneToOneFeatureMixin, TransformerMixin, DensityClassifier):  # type: ignore[misc]
    """The answers of a `SharedKernelClassifier`."""

    _fitted: FittedSharedKernel

    unlabeled: Any
    n_jobs: int | None
    random_state: Any

    @classmethod
    def _model(cls, network: ClassDensities, classes: np.ndarray, columns: Columns) -> Self:
        """A ready model from a network."""
        model = cls(len(network.means), covariance_type=network.covariance_type)
        model._fitted = FittedSharedKernel.of(network, columns, classes)
        return model

    # -- the fitted network ------------------------------------------------------------------------

    def _discriminative(self, rows: RowsInMemory) -> RowFunction | None:
        return self._fitted.log_proba(rows) if self._fitted.discriminative else None

    # -- missing cells -----------------------------------------------------------------------------

    def impute(
        self, X: Any, y: Any = None, *, n_draws: int | None = None, random_state: Any = None
    ) -> np.ndarray:
        r"""Impute missing cells by their conditional mean, or draw them.

        .. math:: E[x_h \mid x_o] = \sum_j P(j \mid x_o)\, (\mu_{jh} + \Sigma_{jho} \Sigma_{joo}^{-1} (x_o - \mu_{jo}))

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN marks the cells to impute.
        y : array-like of shape (n_samples,), default=None
            Their classes, where they are known; otherwise the class is summed out.
        n_draws : int or None, default=None
            How many imputations to draw from the conditional density of the missing cells, for
            multiple imputation; None gives the conditional mean.
        random_state : int, RandomState instance or None, default=None
            Seed of the draws; None uses the estimator's own `random_state`.

        Returns
        -------
        X_imputed : ndarray of shape (n_samples, n_features) or (n_draws, n_samples, n_features)
            Cells that are known are as they were. A data frame like X where the model was fitted to
            one and X is one, except of draws: in columns that held whole numbers alone, imputed
            cells are whole and within their range. With categorical columns, objects: a missing
            category is the most probable one, or one that is drawn.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0, 0.0], [4.0, 8.0]],
        ...     covariances=[[[1.0, 0.5], [0.5, 1.0]]] * 2,
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.5, 0.5],
        ...     classes=["a", "b"],
        ... )
        >>> print(model.impute([[0.5, np.nan], [4.0, np.nan]], ["a", "b"]))
        [[0.5  0.25]
         [4.   8.  ]]
        """
        x = encoded_rows(self, X, dtype=np.float64)
        codes = None if y is None else class_codes(np.asarray(y), self.classes_, self.unlabeled)
        columns = self.columns_
        network = self._fitted.network
        if n_draws is None:
            return columns.imputed(X, x, network.imputed(x, codes, n_jobs=self.n_jobs))
        rng = check_random_state(self.random_state if random_state is None else random_state)
        arrays = replace(columns, frame=None)
        draws = []
        for _ in range(n_draws):
            drawn = rng.uniform(size=len(x)), rng.normal(size=x.shape)
            draws.append(arrays.imputed(X, x, network.imputed(x, codes, drawn, self.n_jobs)))
        return np.stack(draws)

    def transform(self, X: Any) -> np.ndarray:
        """Impute missing cells as `impute` does, the class summed out: a step of a pipeline.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_imputed : ndarray of shape (n_samples, n_features)
            Conditional means of numbers, the most probable categories.

        Examples
        --------
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> from kernelpool import SharedKernelClassifier
        >>> from kernelpool.datasets import make_ripley
        >>> X, y = make_ripley(random_state=0)
        >>> X[::3, 1] = np.nan
        >>> imputer = SharedKernelClassifier(training="em", random_state=0)
        >>> model = make_pipeline(imputer, LogisticRegression()).fit(X, y)
        >>> print(f"{model.score(X, y):.1f}")
        0.8
        """
        return self.impute(X)

    def marginal(self, features: Sequence[Any]) -> Self:
        """The model of some of the features: the others are integrated out.

        Parameters
        ----------
        features : sequence of int or str
            Positions, or names where the model has them.

        Returns
        -------
        model : SharedKernelClassifier
            Of these features alone, in the order given.
        """
        columns = self.columns_.positions(features, "features")
        network = self._fitted.network.marginal(columns)
        return self._model(network, self.classes_, self.columns_.select(columns))

    def conditional(self, x: Any, given: Sequence[Any] | None = None) -> Self:
        """The model of the other features once some are known, for one row: its class priors are
        P(C_k|known).

        Parameters
        ----------
        x : array-like of shape (n_features,)
            One row.
        given : sequence of int or str or None, default=None
            The features that count as known, by position or name; None takes those that are not
            missing in `x`.

        Returns
        -------
        model : SharedKernelClassifier
            Of the features that are not given. Its `sample`, `means_` and `log_density` say what
            they are likely to be, its `class_prior_` which class.

        Examples
        --------
        >>> from kernelpool import SharedKernelClassifier
        >>> model = SharedKernelClassifier.from_parameters(
        ...     means=[[0.0, 0.0], [4.0, 8.0]],
        ...     covariances=[[[1.0, 0.5], [0.5, 1.0]]] * 2,
        ...     mixing=[[1, 0], [0, 1]],
        ...     class_prior=[0.5, 0.5],
        ...     classes=["a", "b"],
        ... )
        >>> known = model.conditional([2.0, np.nan])
        >>> print(known.class_prior_, known.means_.ravel(), known.covariances_.ravel())
        [0.5 0.5] [1. 7.] [0.75 0.75]
        """
        (row,) = self.columns_.encode(as_table(x))
        at = np.flatnonzero(~np.isnan(row)).tolist()
        at = at if given is None else self.columns_.positions(given, "given")
        rest = [i for i in range(self.n_features_in_) if i not in at]
        if not rest or not np.isfinite(row[at]).all():
            raise KernelpoolError(
                "conditional needs known values of the features that are given, and one that is "
                f"not given; got {row.tolist()} and given={list(at)}."
            )
        network = self._fitted.network.conditional(row, at, rest)
        return self._model(network, self.classes_, self.columns_.select(rest))

    # -- model choice ------------------------------------------------------------------------------

    def n_parameters(self) -> int:
        """Number of free parameters: kernels, mixing weights that are not fixed at zero, and class
        priors.
        """
        return self._fitted.n_parameters

    @property
    def class_posterior_(self) -> np.ndarray:
        """P(C_k|j), equation (22): the share of each class in each kernel, (n_kernels,
        n_classes).
        """
        return shares_of_classes(self.mixing_ * self.class_prior_)

    def kernel_overlap(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        r"""How far the classes of each kernel lie apart (Constantinopoulos, Titsias & Likas 2002,
        equation (16)).

        .. math:: \delta_j = \sum_k P(C_k \mid j)\, \beta_{jk}

        with :math:`\beta_{jk}` the Bhattacharyya distance of kernel j from what the rows of class k
        alone make of it. Zero where the classes overlap completely, and where a kernel serves one
        class alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, such as those of `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        overlap : ndarray of shape (n_kernels,)
            :math:`\delta_j`, which the overlap penalty adds up.
        """
        kernel, kernels, subkernels, _ = self._subkernels(X, y, sample_weight)
        distance = Overlap(1.0, units="raw").exact(kernel, kernels, subkernels)
        return np.asarray(np.sum(subkernels.posterior * distance, axis=1))

    def subkernels(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""Each kernel as each class alone sees it (Constantinopoulos, Titsias & Likas 2002,
        equations (11), (12)).

        .. math::

            \mu_{jk} = \frac{\sum_{x \in C_k} h_{jk}(x)\, x}{\sum_{x \in C_k} h_{jk}(x)}, \qquad
            \Sigma_{jk} = \frac{\sum_{x \in C_k} h_{jk}(x) (x - \mu_{jk})(x - \mu_{jk})'}{\sum_{x \in C_k} h_{jk}(x)}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, such as those of `fit`.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        means : ndarray of shape (n_kernels, n_classes, n_features)
            :math:`\mu_{jk}`; the mean of the kernel itself where a class has no rows in it.
        covariances : ndarray of shape (n_kernels, n_classes, ...)
            :math:`\Sigma_{jk}`, by `covariance_type`; of tied kernels one matrix a class, (n_classes, n_features, n_features).
        """
        kernel, _, subkernels, frame = self._subkernels(X, y, sample_weight)
        if not isinstance(kernel, Gaussian):
            raise KernelpoolError(
                "subkernels has means and covariances of numbers; this model has categories "
                "besides."
            )
        by_class = list(subkernels.kernels)
        if kernel.name != self.covariance_type_:
            by_class = list(map(as_diag, by_class))
        data_kernel = self._fitted.network.kernel
        by_class = [data_kernel.out_of(kernels, frame) for kernels in by_class]
        axis = 0 if kernel.name == "tied" else 1
        means = np.stack([np.asarray(kernels.mean) for kernels in by_class], axis=1)
        return means, np.stack([np.asarray(kernels.covariance) for kernels in by_class], axis=axis)

    def _subkernels(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Subkernels, Frame]:
        """The family, the kernels and their subkernels by some labeled rows, in a frame, and that
        frame.
        """
        X = encoded_rows(self, X)
        codes = class_codes(np.asarray(y), self.classes_, self.unlabeled)
        weight = None if sample_weight is None else np.asarray(sample_weight, float)
        return self._fitted.subkernels(as_rows(X, codes, weight))

    def log_likelihood(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """log p(X, y) under the model, equation (8); rows marked by `unlabeled` count with their
        class summed out.

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
        codes = class_codes(np.asarray(y), self.classes_, self.unlabeled)
        joint = to_numpy(self.log_density(X)) + safe_log(self.class_prior_)
        known = joint[np.arange(len(codes)), np.maximum(codes, 0)]
        by_row = np.where(codes < 0, np.logaddexp.reduce(joint, axis=1), known)
        return float(by_row.sum() if sample_weight is None else np.asarray(sample_weight) @ by_row)

    def bic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, -2 log p(X, y) + (number of parameters) log n: the lower
        the better.

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
        return -2 * self.log_likelihood(X, y, sample_weight) + self.n_parameters() * float(
            np.log(n)
        )

    def aic(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Akaike information criterion, -2 log p(X, y) + 2 (number of parameters): the lower the
        better.

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

    def _to_graph(self, x: Any) -> dict[str, Any]:
        return to_graph(x, self._fitted)

    def _describe(self) -> Description:
        n = plural(len(self.means_), f"{gaussians_text(self.covariance_type_)} Gaussian kernel")
        split = "" if self._fitted.parents is None else ", split by class,"
        return Description(
            f"{n} {sharing_text(sharing_of(self))} {classes_text(self)}{split} in "
            f"{features_text(self)}{training_text(self)}",
            kernel_table(self),
        )
