"""Figure 2 of the minimal-network paper, rerun, and the bounds of its discussion.

M. A. Kraaijveld and R. P. W. Duin, "Generalization capabilities of minimal kernel-based networks",
IJCNN 1991.

The paper has no tables, and of the figure it prints neither data nor numbers. Ours are two round
Gaussians of 300 rows each, two standard deviations apart, so that the best classifier errs on 15.9
% of the rows; hyperspheric kernels; five parts, and three quiet rounds to stop; then the reduction
to 20 kernels.

The discussion compares the bounds of its third section (`kernelpool.bounds`) with two others:

- Baum & Haussler (1989) bound the capacity of any feed-forward network of threshold units by V <= 2
  W log2(e N) for W weights and N units. With one hidden layer of K units in d dimensions, K d
  weights and K + 1 units, this is "roughly a factor d" above the paper's bound, which knows that
  kernels can only be kept or dropped.
- Devroye (1988) bounds absolute deviations of the test error from the error, by Hoeffding's
  inequality: of L networks none deviates by more than t with probability at least 1 - 2 L exp(-2 m
  t^2). With t = gamma epsilon, as in the paper, m >= (ln L + ln(2 / delta)) / (2 gamma^2
  epsilon^2), a factor of order 1 / epsilon more than Corollary 1, which bounds relative deviations.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from kernelpool import MultiEdit, ParzenClassifier, ReducedParzenClassifier, bounds
from kernelpool.datasets.generators import Part, draw

RADIUS = 0.6
"""Of every network here, so that only the kernels differ."""

N_REDUCED = 20
"""Kernels that the reduction leaves."""


class Edited(NamedTuple):
    """A learning set, the rows of it that editing and the reduction kept, and errors on new rows,
    percent.
    """

    X: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    reduced: np.ndarray
    error_before: float
    error_after: float
    error_reduced: float
    error_best: float
    """Of the best possible classifier on the same rows."""


def overlapping(n_samples: int, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two round Gaussians, two standard deviations apart."""
    return draw(
        [Part(0, 0.5, (-1, 0), (1, 1)), Part(1, 0.5, (1, 0), (1, 1))], n_samples, random_state
    )


def figure_2(seed: int = 0) -> Edited:
    """Edit a learning set until the classes no longer overlap, then reduce it."""
    X, y = overlapping(600, seed)
    X_test, y_test = overlapping(20_000, 1000 + seed)
    edit = MultiEdit(
        ParzenClassifier("hypersphere", standardize=False, radius=RADIUS),
        n_splits=5,
        random_state=seed,
    ).fit(X, y)
    kept = np.asarray(edit.sample_indices_)
    small = ReducedParzenClassifier(
        N_REDUCED, radius=RADIUS, edit=False, standardize=False, random_state=seed
    ).fit(X[kept], y[kept])
    reduced = kept[np.asarray(small.kept_indices_)]

    def error(rows: np.ndarray) -> float:
        return 100 * (
            1
            - ParzenClassifier("hypersphere", standardize=False, radius=RADIUS)
            .fit(X[rows], y[rows])
            .score(X_test, y_test)
        )

    best = 100 * float(np.mean((X_test[:, 0] > 0) != (y_test == 1)))
    return Edited(X, y, kept, reduced, error(np.arange(len(X))), error(kept), error(reduced), best)


# -- rows of a test set ----------------------------------------------------------------------------

N_KERNELS = 1000
N_KEPT = 20
DOUBT = 0.05
SLACK = 0.5


def corollary_1(error: float = 0.1) -> float:
    """Rows for 20 of 1000 kernels of a fixed radius."""
    return bounds.test_size(
        n_kernels=N_KERNELS, n_kept=N_KEPT, error=error, alpha=DOUBT, slack=SLACK
    )


def theorem_3(error: float = 0.1) -> float:
    """Rows for 20 of 1000 kernels of a radius that the test rows choose."""
    return bounds.test_size(
        n_kernels=N_KERNELS, n_kept=N_KEPT, error=error, alpha=DOUBT, slack=SLACK, radius="chosen"
    )


def baum_haussler(n_features: int, error: float = 0.1) -> float:
    """Rows for any network with one hidden layer of 20 threshold units."""
    n_units = N_KEPT + 1
    capacity = 2 * N_KEPT * n_features * math.log2(math.e * n_units)
    return bounds.test_size_for_capacity(capacity, error=error, alpha=DOUBT, slack=SLACK)


def absolute(error: float = 0.1) -> float:
    """Rows for 20 of 1000 kernels of a fixed radius by absolute deviations, as Devroye bounds
    them.
    """
    log_networks = N_KEPT * math.log(math.e * N_KERNELS / N_KEPT)
    return (log_networks + math.log(2 / DOUBT)) / (2 * (SLACK * error) ** 2)


def comparison() -> str:
    """The bounds as a table."""
    lines = [
        "Rows of a test set that certify an error with 95 % confidence where the network errs on "
        "half of it at most: 20 of "
        "1000 kernels, kept by the test rows. Left, against the error: bounds of relative "
        "deviations grow like 1 / error, "
        "those of absolute deviations like its square. Right, against the number of features: Baum "
        "& Haussler's bound, which "
        f"holds for any network of 20 hidden units, is {baum_haussler(10) / theorem_3() / 10:.1f} "
        f"d times the paper's, which "
        'does not depend on d. ("Roughly a factor d", says the paper; and "a factor 1 / error" for '
        "the other.)\n",
        "| error | Corollary 1 | absolute deviations | ratio | Theorem 3 | Baum & Haussler, d = 2 "
        "| d = 10 | d = 36 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for error in (0.2, 0.1, 0.05, 0.01):
        fixed = corollary_1(error)
        square = absolute(error)
        cells = [
            f"{error:g}",
            f"{fixed:,.0f}",
            f"{square:,.0f}",
            f"{square / fixed:.1f}",
            f"{theorem_3(error):,.0f}",
        ]
        cells += [f"{baum_haussler(d, error):,.0f}" for d in (2, 10, 36)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print what the figure shows, over ten draws, and the bounds."""
    found = [figure_2(seed) for seed in range(10)]
    kept = np.mean([len(edited.kept) / len(edited.X) for edited in found])
    before, after, reduced, best = np.mean([edited[4:] for edited in found], axis=0)
    print(
        f"Editing keeps {100 * kept:.0f} % of the kernels; error on new rows {before:.1f} % before "
        f"and {after:.1f} % after,"
    )
    print(
        f"{reduced:.1f} % with {N_REDUCED} kernels ({best:.1f} % for the best possible classifier)."
    )
    print(comparison())


if __name__ == "__main__":
    main()
