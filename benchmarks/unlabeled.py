"""Do unlabeled rows help? Test errors with and without them, for kernels that suit the data and
kernels that do not.

python -m benchmarks unlabeled

Of 60 % of the rows, a few of each class keep their label; the rest of the rows is for testing.
Every network has the same kernels, the same start (it sees labeled rows only) and the conjugate
prior. The number in brackets counts the draws in which the unlabeled rows lowered the error.
"""

import sys
import warnings

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from kernelpool import SharedKernelClassifier
from kernelpool.datasets import make_clouds, make_ripley
from papers.data import load_phoneme, load_pima, load_satimage, load_wdbc, missing_reason

WEIGHTS = (1, 0.1, 0.01)
LABELS = (10, 50)

# name, source to look for, rows for a seed, covariance type, kernels a class
PROBLEMS = [
    ("ripley", None, lambda seed: make_ripley(2000, random_state=seed), "spherical", 2),
    ("clouds", None, lambda seed: make_clouds(random_state=seed), "diag", 3),
    ("clouds", None, lambda seed: make_clouds(random_state=seed), "spherical", 3),
    ("wdbc", None, lambda _: load_wdbc(return_X_y=True), "diag", 1),
    ("pima", "pima", lambda _: load_pima(return_X_y=True), "diag", 1),
    ("phoneme", "phoneme", lambda _: load_phoneme(return_X_y=True), "full", 3),
    ("satimage5", "satimage", lambda _: load_satimage(dims=5, return_X_y=True), "full", 1),
]


def errors_of(X, y, seed, per_class, standardize, family, kernels_a_class):
    """Test errors, percent: labeled rows only, then with unlabeled rows at each weight."""
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.4, random_state=seed, stratify=y
    )
    if standardize:
        scaler = StandardScaler().fit(X_train)
        X_train = scaler.transform(X_train)
        X_test = scaler.transform(X_test)
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(y_train == k))[:per_class] for k in classes]
    )
    hidden = np.full(len(y_train), -1)
    hidden[kept] = y_train[kept]
    model = SharedKernelClassifier.prbf(
        kernels_a_class * len(classes),
        covariance_type=family,
        sharing=0,
        kernel_prior="conjugate",
        random_state=seed,
    )
    scores = [model.fit(X_train[kept], y_train[kept]).score(X_test, y_test)]
    for weight in WEIGHTS:
        model.set_params(unlabeled=-1).fit(X_train, hidden, np.where(hidden < 0, weight, 1.0))
        scores.append(model.score(X_test, y_test))
    return [100 * (1 - score) for score in scores]


def main(n_draws=20):
    warnings.simplefilter("ignore")  # a few fits stop at max_iter
    print(
        "| data | kernels | labels | labeled only | "
        + " | ".join(f"weight {w}" for w in WEIGHTS)
        + " |"
    )
    print("|---|---|---|" + "---|" * (1 + len(WEIGHTS)))
    for name, source, rows, family, kernels in PROBLEMS:
        if source is not None and (reason := missing_reason(source)):
            print(f"{name} left out: {reason}", file=sys.stderr)
            continue
        for per_class in LABELS:
            with threadpool_limits(1):  # small fits: threads cost more than they bring
                table = np.array(
                    [
                        errors_of(
                            *rows(seed), seed, per_class, name != "satimage5", family, kernels
                        )
                        for seed in range(n_draws)
                    ]
                )
            better = (table < table[:, :1]).sum(axis=0)
            cells = [f"{table[:, 0].mean():.1f}"]
            cells += [f"{table[:, i].mean():.1f} ({better[i]})" for i in range(1, table.shape[1])]
            print(
                f"| {name} | {kernels} {family} | {per_class} | " + " | ".join(cells) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
