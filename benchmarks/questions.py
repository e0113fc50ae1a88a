"""Sets with a promise beside MAPIE's on the same folds, frequencies and drift: python -m
benchmarks.questions.

MAPIE is asked where it is installed (pip install mapie); all that is printed is a mean over `SEEDS`
draws.
"""

import warnings
from importlib.util import find_spec

import numpy as np
from sklearn.model_selection import StratifiedKFold

from kernelpool import ConformalClassifier, SharedKernelClassifier, inspection

SEEDS = 20
ERROR = 0.1
TRUE = SharedKernelClassifier.from_parameters(
    means=[[0.0, 0.0], [2.0, 0.0], [1.0, 2.0]],
    covariances=[1.0, 0.5, 1.0],
    mixing=np.eye(3),
    class_prior=[0.6, 0.3, 0.1],
    classes=[0, 1, 2],
)
SHIFTED = TRUE.with_class_prior([0.2, 0.2, 0.6])
NETWORK = SharedKernelClassifier.prbf(6, random_state=0)


def coverage_and_size(members, y):
    """Shares of rows whose true class is in the set, of all and of the rarest class, and mean
    number of classes.
    """
    inside = members[np.arange(len(y)), y]
    return (
        inside.mean(),
        inside[y == 2].mean(),
        members.sum(axis=1).mean(),
        (members.sum(axis=1) == 0).mean(),
    )


def ours(x, y, folds, **kwargs):
    model = ConformalClassifier(NETWORK, error=ERROR, cv=folds, **kwargs).fit(x, y)
    return model.predict_set


def mapies(x, y, folds):
    from mapie.classification import CrossConformalClassifier

    model = CrossConformalClassifier(
        NETWORK, confidence_level=1 - ERROR, conformity_score="lac", cv=folds, random_state=0
    )
    model.fit_conformalize(x, y)
    return lambda new: model.predict_set(new)[1][:, :, 0]


def sets():
    """Coverage on rows of the same law, where the third class is six times as frequent, and on rows
    far from all classes.
    """
    methods = {
        "probability": lambda *a: ours(*a, conformity="probability"),
        "both (default)": lambda *a: ours(*a),
        "both, per class": lambda *a: ours(*a, per_class=True),
        "density": lambda *a: ours(*a, conformity="density"),
    }
    if find_spec("mapie") is not None:
        methods["MAPIE, LAC"] = mapies
    print(
        f"sets, error {ERROR}: coverage, of class 2, classes in a set; the same where frequencies "
        f"changed; far rows empty"
    )
    for name, method in methods.items():
        rows = []
        for seed in range(SEEDS):
            x, y = TRUE.sample(600, random_state=seed)
            folds = StratifiedKFold(5, shuffle=True, random_state=seed)
            predict_set = method(x, y, folds)
            same = TRUE.sample(2000, random_state=1000 + seed)
            other = SHIFTED.sample(2000, random_state=2000 + seed)
            far = np.random.default_rng(seed).normal(size=(500, 2)) * 3 + [12, -12]
            rows.append(
                [
                    *coverage_and_size(predict_set(same[0]), same[1])[:3],
                    *coverage_and_size(predict_set(other[0]), other[1])[:3],
                    (predict_set(far).sum(axis=1) == 0).mean(),
                ]
            )
        print(f"| {name} | " + " | ".join(f"{v:.3f}" for v in np.mean(rows, axis=0)) + " |")


def priors():
    """Error of estimated frequencies, and how often their intervals hold the true ones."""
    print(
        "frequencies of 500 unlabeled rows: mean error, interval holds the truth, mean width, "
        "change found"
    )
    for name, law in (("as trained", TRUE), ("changed", SHIFTED)):
        rows = []
        for seed in range(SEEDS):
            model = NETWORK.fit(*TRUE.sample(600, random_state=seed))
            found = inspection.estimate_class_prior(
                model, law.sample(500, random_state=3000 + seed)[0]
            )
            holds = (found.low <= law.class_prior_) & (law.class_prior_ <= found.high)
            error = np.abs(found.class_prior - law.class_prior_).mean()
            rows.append(
                [error, holds.mean(), (found.high - found.low).mean(), found.p_value < 0.05]
            )
        print(f"| {name} | " + " | ".join(f"{v:.3f}" for v in np.mean(rows, axis=0)) + " |")


def drift():
    """How often drift is found at the level of 0.05, in batches of 200 rows."""
    print("drift in 200 rows found at 0.05")
    rng = np.random.default_rng(0)
    x, y = TRUE.sample(2000, random_state=0)
    model = NETWORK.fit(x[:1000], y[:1000])
    reference = inspection.DriftReference.of(x[:1000], model, x[1000:])
    kinds = {
        "none": lambda new: new,
        "one feature moved by 0.3 deviations": lambda new: new + np.array([0.3 * x[:, 0].std(), 0]),
        "features exchanged between rows": lambda new: np.column_stack(
            [new[:, 0], rng.permutation(new[:, 1])]
        ),
        "one row in ten far away": lambda new: np.where(
            rng.random((len(new), 1)) < 0.1, new + 4, new
        ),
    }
    for name, change in kinds.items():
        found = [
            inspection.check_drift(
                model, change(TRUE.sample(200, random_state=5000 + seed)[0]), reference
            ).p_value
            < 0.05
            for seed in range(10 * SEEDS)
        ]
        print(f"| {name} | {np.mean(found):.3f} |")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sets()
    priors()
    drift()
