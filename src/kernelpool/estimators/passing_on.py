"""Methods that an estimator around another passes on to it."""

from typing import Any

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

PER_CLASS = "(n_samples, n_classes)"

DOCSTRING = """{what}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        answer : array of shape {shape}
            As the classifier has it.
        """


def delegate_to_estimator(method: str, what: str, shape: str) -> Any:
    """A method of rows that is there where the wrapped classifier has it, and asks it; `what` and `shape` document it."""

    def there(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    def ask(self: Any, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X)

    ask.__name__, ask.__doc__ = method, DOCSTRING.format(what=what, shape=shape)
    return available_if(there)(ask)
