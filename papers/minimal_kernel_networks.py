"""Figure 2 of the minimal-network paper, rerun: editing leaves of each class only where it is the densest.

M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks", IJCNN 1991.

The paper has no tables, and of the figure it prints neither data nor numbers. Ours are two round Gaussians of 300 rows each,
two standard deviations apart, so that the best classifier errs on 15.9 % of the rows; hyperspheric kernels; five parts, and
three quiet rounds to stop. The bounds of its third section are `kernelpool.bounds`.
"""

from typing import Any, NamedTuple

import numpy as np

from kernelpool import MultiEdit, ParzenClassifier
from kernelpool.datasets.gaussians import Part, draw

RADIUS = 0.6
"""Of every network here, so that only the kernels differ."""


class Edited(NamedTuple):
    """A learning set, the rows of it that editing kept, and the errors of both networks on new rows, percent."""

    X: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    error_before: float
    error_after: float
    error_best: float
    """Of the best possible classifier on the same rows."""


def overlapping(n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two round Gaussians, two standard deviations apart."""
    return draw([Part(0, 0.5, (-1, 0), (1, 1)), Part(1, 0.5, (1, 0), (1, 1))], n_samples, random_state)


def figure_2(seed: int = 0) -> Edited:
    """Edit a learning set until the classes no longer overlap."""
    X, y = overlapping(600, seed)
    X_test, y_test = overlapping(20_000, 1000 + seed)
    edit = MultiEdit(ParzenClassifier(radius=RADIUS), n_parts=5, random_state=seed).fit(X, y)
    kept = np.asarray(edit.sample_indices_)

    def error(rows: np.ndarray) -> float:
        return 100 * (1 - ParzenClassifier(radius=RADIUS).fit(X[rows], y[rows]).score(X_test, y_test))

    best = 100 * float(np.mean((X_test[:, 0] > 0) != (y_test == 1)))
    return Edited(X, y, kept, error(np.arange(len(X))), error(kept), best)


def main() -> None:
    """Print what the figure shows, over ten draws."""
    found = [figure_2(seed) for seed in range(10)]
    kept = np.mean([len(edited.kept) / len(edited.X) for edited in found])
    before, after, best = np.mean([edited[3:] for edited in found], axis=0)
    print(f"Editing keeps {100 * kept:.0f} % of the kernels; error on new rows {before:.1f} % before and {after:.1f} % after")
    print(f"({best:.1f} % for the best possible classifier).")


if __name__ == "__main__":
    main()
