"""Measures the tables in the guide and the README.

python docs/tables.py [sharing] [families] [starts] [floors] [sweeps] [peers] [trouble] [wild] [overlap]
[learned] [split]
    [reject]

Errors are means over draws of generated data or over folds, in percent. Sets that are not on this
machine are left out and named.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelpool import (
    CompetitiveNeuronsClassifier,
    EMLogClassifier,
    ParzenClassifier,
    PooledClassifier,
    RBFNetworkClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
    Start,
    Training,
)
from kernelpool.datasets import make_clouds, make_ripley

sys.path.insert(0, str(Path(__file__).parent.parent))
from papers.data import (
    load_bupa,
    load_ionosphere,
    load_phoneme,
    load_pima,
    load_satimage,
    missing_reason,
)

DEGREES = (0, 0.25, 0.5, 0.75, 1)
DRAWS = range(10)
FAMILIES = ("spherical", "diag", "full", "tied")


class SeparateMixtures(ClassifierMixin, BaseEstimator):
    """scikit-learn's GaussianMixture, one a class, and Bayes' rule; `floor` is a part of the mean
    variance, like ours.
    """

    def __init__(self, n_components=4, covariance_type="full", floor=None):
        self.n_components, self.covariance_type, self.floor = n_components, covariance_type, floor

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        reg = 1e-6 if self.floor is None else self.floor * X.var(axis=0).mean()
        mixture = GaussianMixture(
            self.n_components, covariance_type=self.covariance_type, reg_covar=reg, random_state=0
        )
        self.mixtures_ = [clone(mixture).fit(X[y == k]) for k in self.classes_]
        self.log_prior_ = np.log([np.mean(y == k) for k in self.classes_])
        return self

    def predict(self, X):
        log_density = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
        return self.classes_[np.argmax(log_density + self.log_prior_, axis=1)]


def fold_errors(model, X, y):
    """Test errors of five stratified folds, three times."""
    folds = [StratifiedKFold(5, shuffle=True, random_state=seed) for seed in range(3)]
    return 100 * (1 - np.concatenate([cross_val_score(model, X, y, cv=fold) for fold in folds]))


def table(head, rows):
    """A Markdown table."""
    print("| " + " | ".join(map(str, head)) + " |\n|" + "---|" * len(head))
    for row in rows:
        print(
            "| "
            + " | ".join(f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row)
            + " |"
        )


def sharing():
    """Clouds: 2500 rows to train, 5000 to test, ten draws, by number of kernels and degree of
    sharing.
    """
    rows = []
    for n_kernels in (4, 6, 8, 12):
        models = [
            SharedKernelClassifier.prbf(n_kernels, sharing=degree, random_state=0)
            for degree in DEGREES
        ]
        models += [
            SharingAverageClassifier(SharedKernelClassifier.prbf(n_kernels, random_state=0)),
            SeparateMixtures(n_kernels // 2, covariance_type="spherical"),
        ]
        errors = [
            [
                100 * (1 - model.fit(X, y).score(*make_clouds(random_state=100 + seed)))
                for model in models
            ]
            for seed in DRAWS
            for X, y in [make_clouds(2500, random_state=seed)]
        ]
        rows.append([n_kernels, *np.mean(errors, axis=0).tolist()])
    table(["kernels", *DEGREES, "average", "scikit-learn, one a class"], rows)


def families():
    """Handwritten digits (1797 x 64, ten classes) and Clouds by covariance type; the number of
    parameters in brackets.
    """
    rows = []
    digits, clouds = load_digits(return_X_y=True), make_clouds(random_state=0)
    for family in FAMILIES:
        row = [family]
        for (X, y), n_kernels in ((clouds, 6), (clouds, 12), (digits, 10), (digits, 40)):
            model = SharedKernelClassifier.prbf(
                n_kernels, covariance_type=family, covariance_floor=1e-2, random_state=0
            )
            row.append(f"{fold_errors(model, X, y).mean():.1f} ({model.fit(X, y).n_parameters()})")
        rows.append(row)
    table(["family", "clouds, 3 a class", "clouds, 6", "digits, 1 a class", "digits, 4"], rows)


def starts():
    """Handwritten digits, 40 diagonal kernels, by start: five halves to train and the other halves
    to test.
    """
    X, y = load_digits(return_X_y=True)
    rows = []
    for init, n_init in (
        ("kmeans", 1),
        ("kmeans", 5),
        ("random", 1),
        ("random", 5),
        ("mixtures", 1),
    ):
        errors, objectives = [], []
        for seed in range(5):
            for train, test in StratifiedKFold(2, shuffle=True, random_state=seed).split(X, y):
                model = SharedKernelClassifier.prbf(
                    40,
                    covariance_type="diag",
                    init=Start(init, n_init),
                    covariance_floor=1e-2,
                    random_state=seed,
                ).fit(X[train], y[train])
                errors.append(100 * (1 - model.score(X[test], y[test])))
                objectives.append(model.objective_)
        rows.append(
            [f'`init="{init}"`', n_init, float(np.mean(errors)), f"{np.mean(objectives):.2f}"]
        )
    table(["start", "`n_init`", "test error, %", "objective"], rows)


def floors():
    """Handwritten digits by covariance floor: five folds, three times, four kernels a class."""
    X, y = load_digits(return_X_y=True)
    rows = []
    for kwargs in (
        *({"covariance_floor": floor} for floor in (1e-6, 1e-4, 1e-2, 1e-1)),
        {"kernel_prior": "conjugate"},
    ):
        models = [
            SharedKernelClassifier.prbf(40, covariance_type=family, random_state=0, **kwargs)
            for family in FAMILIES
        ]
        rows.append(
            [
                ", ".join(f"`{k}={v!r}`" for k, v in kwargs.items()),
                *(float(fold_errors(m, X, y).mean()) for m in models),
            ]
        )
    table(["", *FAMILIES], rows)


def overlapping(distance, n_rows=4000):
    """Two classes of two unit Gaussians each, on the corners of a square of the given side."""
    rng = np.random.default_rng(0)
    corner = rng.integers(4, size=n_rows)
    X = rng.normal(size=(n_rows, 2)) + distance * np.column_stack([corner % 2, corner // 2])
    return X, (corner % 3 == 0).astype(int)


def sweeps():
    """Sweeps until the objective is within 1e-6 a row of the best one found, plain and accelerated,
    from the same start.
    """
    rows = []
    problems = [(f"four Gaussians, {d} apart", overlapping(d), 4) for d in (3, 2, 1.5)]
    problems.append(("Ripley's, 2000 rows", make_ripley(2000, random_state=0), 4))
    for name, (X, y), n_kernels in problems:
        plain, fast = [], []
        for acceleration, seen in ((None, plain), ("squarem", fast)):
            SharedKernelClassifier.prbf(
                n_kernels,
                covariance_type="full",
                training=Training("em", acceleration=acceleration),
                tol=1e-12,
                max_iter=5000,
                random_state=0,
                callback=seen.append,
            ).fit(X, y)
        best = max(plain[-1].objective, fast[-1].objective)
        counts = [
            next((i.sweep for i in seen if i.objective > best - 1e-6), None)
            for seen in (plain, fast)
        ]
        ends = [f"{seen[-1].objective:.4f}" for seen in (plain, fast)]
        rows.append([name, *("not reached" if c is None else c for c in counts), *ends])
    table(["problem", "plain", "accelerated", "objective, plain", "objective, accelerated"], rows)


def peers():
    """Errors beside scikit-learn's, kernels or components a class in brackets; floor 1e-2 for all
    mixtures.

    Features are standardized, but for satimage5 and digits, whose features have a common scale.
    """
    sets = {"clouds": make_clouds(random_state=0), "digits": load_digits(return_X_y=True)}
    for name, load, source in (
        ("phoneme", load_phoneme, "phoneme"),
        ("satimage5", lambda **kwargs: load_satimage(dims=5, **kwargs), "satimage"),
    ):
        if missing_reason(source):
            print(f"left out: {missing_reason(source)}")
        else:
            sets[name] = load(return_X_y=True)
    rows = []
    for name, (X, y) in sets.items():
        k = len(np.unique(y))
        models = [
            SharedKernelClassifier.prbf(
                4 * k, covariance_type="full", covariance_floor=1e-2, random_state=0
            ),
            SharedKernelClassifier.prbf(
                12 * k, covariance_type="diag", covariance_floor=1e-2, random_state=0
            ),
            SharingAverageClassifier(
                SharedKernelClassifier.prbf(
                    4 * k, covariance_type="full", covariance_floor=1e-2, random_state=0
                )
            ),
            SeparateMixtures(4, floor=1e-2),
            SVC(),
        ]
        errors = []
        for model in models:
            chain = make_pipeline(
                StandardScaler(with_std=name not in ("satimage5", "digits")), model
            )
            errors.append(fold_errors(chain, X, y))
        rows.append([name, *(f"{e.mean():.1f}" for e in errors)])
    table(
        [
            "data",
            "shared, full (4)",
            "shared, diag (12)",
            "average, full (4)",
            "GaussianMixture, full (4)",
            "SVC()",
        ],
        rows,
    )


def troublesome(n_rows, seed):
    """Two classes of unit Gaussians in four dimensions, 1.5 apart along each, bent into troublesome
    shapes.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, 4)) + 1.5 * y[:, None]
    group = np.eye(3)[rng.integers(3, size=n_rows)]
    few = np.ones(n_rows, bool)
    few[np.flatnonzero(y == 1)[n_rows // 100 :]] = False
    return {
        "as they are": (X, y),
        "every row twenty times": (np.repeat(X, 20, axis=0), np.repeat(y, 20)),
        "a constant column": (np.column_stack([X, np.full(n_rows, 3.0)]), y),
        "a one-hot column": (np.column_stack([X, group]), y),
        "a column twice": (np.column_stack([X, X[:, 0]]), y),
        "50 features, 40 rows": (np.column_stack([X, rng.normal(size=(n_rows, 46))]), y),
        "rounded to integers": (np.round(X).astype(int), y),
        "classes 99:1": (X[few], y[few]),
        "float32, mean 1000, deviation 0.1": ((0.1 * X + 1000).astype(np.float32), y),
        "mean 1e6, deviation 1e-2": (1e-2 * X + 1e6, y),
        "mean 1e8": (X + 1e8, y),
    }


def trouble():
    """Errors on 4000 new rows after training on 200 (two kernels a class), beside scikit-learn's
    mixtures at their defaults.
    """
    train, test = troublesome(200, seed=0), troublesome(4000, seed=1)
    train["50 features, 40 rows"] = tuple(part[:40] for part in train["50 features, 40 rows"])
    rows = []
    for name, (X, y) in train.items():
        models = [
            SharedKernelClassifier.prbf(4, covariance_type=family, random_state=0)
            for family in FAMILIES
        ]
        models += [SeparateMixtures(2, covariance_type=family) for family in ("diag", "full")]
        models.insert(0, SharedKernelClassifier(4, random_state=0))
        cells = []
        for model in models:
            try:
                cells.append(float(100 * (1 - model.fit(X, y).score(*test[name]))))
            except ValueError as error:
                cells.append("fails" if "ill-defined" in str(error) else str(error))
        rows.append([name, *cells])
    table(["rows", "default", *FAMILIES, "scikit-learn, diag", "scikit-learn, full"], rows)

    print("\nA one-hot column, and what is done about it:\n")
    (X, y), rows = train["a one-hot column"], []
    prbf = SharedKernelClassifier.prbf
    for name, make, kwargs in (
        ("`SharedKernelClassifier(4)`", SharedKernelClassifier, {}),
        ("`prbf(4)`", prbf, {}),
        ("`prbf(4, sharing=0)`", prbf, {"sharing": 0}),
        ("`prbf(4, covariance_floor=0.01)`", prbf, {"covariance_floor": 1e-2}),
        ("`prbf(4, covariance_floor=0.1)`", prbf, {"covariance_floor": 1e-1}),
        ("`prbf(4, kernel_prior='conjugate')`", prbf, {"kernel_prior": "conjugate"}),
    ):
        models = [make(4, covariance_type=family, random_state=0, **kwargs) for family in FAMILIES]
        errors = [
            float(100 * (1 - model.fit(X, y).score(*test["a one-hot column"]))) for model in models
        ]
        rows.append([name, *errors])
    table(["", *FAMILIES], rows)


def wild():
    """Errors on 2000 new rows, means over five draws, where cells of 300 rows are wrong; and the
    part of a rare class that is found far from all other rows.
    """
    models = {
        "default": SharedKernelClassifier(random_state=0),
        "`prbf(4)`": SharedKernelClassifier.prbf(4, random_state=0),
        "pool": PooledClassifier(random_state=0),
        "RBF": RBFNetworkClassifier(random_state=0),
        "Parzen": ParzenClassifier(random_state=0),
        "EM-Log": EMLogClassifier(random_state=0),
        "neurons": CompetitiveNeuronsClassifier(random_state=0),
        "forest": RandomForestClassifier(random_state=0),
        "scaled SVC": make_pipeline(StandardScaler(), SVC()),
    }

    def clouds(n, seed):
        rng, y = np.random.default_rng([7, seed]), np.arange(n) % 2
        return rng.normal(size=(n, 5)) + 2.5 * np.outer(y, np.eye(5)[0]), y

    def far(n, seed):
        rng, y = np.random.default_rng([8, seed]), (np.arange(n) % 100 == 0).astype(int)
        return rng.normal(size=(n, 5)) + 300 * np.outer(y, np.eye(5)[0]), y

    rows = []
    for n_cells, value in ((0, 0), (1, 30), (1, 99), (4, 99), (1, 9999), (4, 9999), (1, 1e9)):
        errors = []
        for draw in range(5):
            X, y = clouds(300, draw)
            X[:n_cells, 0] = value
            test = clouds(2000, 100 + draw)
            errors.append([100 * (1 - m.fit(X, y).score(*test)) for m in models.values()])
        name = f"{n_cells} x {value:g}" if n_cells else "as they are"
        rows.append([f"{name}: error", *np.mean(errors, axis=0)])
    found = []
    for draw in range(5):
        (X, y), (X_test, y_test) = far(1000, draw), far(2000, 100 + draw)
        predicted = [m.fit(X, y).predict(X_test) for m in models.values()]
        found.append([100.0 * p[y_test == 1].mean() for p in predicted])
    rows.append(["a class of 1 % far away: recall", *np.mean(found, axis=0)])
    table(["cells", *models], rows)


def overlap():
    """Penalty on kernels whose classes lie apart: pima with 6 and ionosphere with 8 spherical
    kernels, standardized, five folds three times; the paper's own rule (random rows, plain EM) and
    the defaults.
    """
    strengths, rows = (0, 5, 10, 15, 20), []
    paper = {
        "init": "random",
        "training": Training("em", acceleration=None),
        "empty_kernels": "keep",
    }
    for name, load, n_kernels in (("pima", load_pima, 6), ("ionosphere", load_ionosphere, 8)):
        if reason := missing_reason(name):
            print(f"{name} is left out: {reason}")
            continue
        X, y = load(return_X_y=True)
        for rule, kwargs in (("the paper's rule", paper), ("defaults", {})):
            models = [
                SharedKernelClassifier.prbf(n_kernels, overlap=a, random_state=0, **kwargs)
                for a in strengths
            ]
            errors = [
                float(fold_errors(make_pipeline(StandardScaler(), model), X, y).mean())
                for model in models
            ]
            rows.append([f"{name}, {n_kernels} kernels, {rule}", *errors])
    table(["", *strengths], rows)


def clouds_themselves():
    """The law that Clouds is drawn from, as a model."""
    return SharedKernelClassifier.from_parameters(
        means=[[0, 0], [0, 2], [2, 1], [0, 0]],
        covariances=[[0.04, 0.04], [0.04, 0.04], [0.04, 1], [1, 1]],
        mixing=[[0.25, 0], [0.25, 0], [0.5, 0], [0, 1]],
        class_prior=[0.5, 0.5],
        classes=[0, 1],
        covariance_type="diag",
    )


def sure_of_itself():
    """The same of digits, with full kernels in 64 dimensions."""
    print(
        "\nCost of 100 handwritten digits, 20 full kernels, after training on 900; five draws; in "
        "brackets, % refused:\n"
    )
    (X, y), rows = load_digits(return_X_y=True), []
    network = SharedKernelClassifier.prbf(
        20, covariance_type="full", covariance_floor=1e-2, random_state=0
    )
    for cost in (0.1, 0.2, 0.3):
        row = [str(cost)]
        for kwargs in (
            {"ambiguity": None},
            {"ambiguity": cost},
            {"ambiguity": cost, "ambiguity_rule": "cost"},
        ):
            found = []
            for seed in range(5):
                order = np.random.default_rng(seed).permutation(len(y))
                model = RejectClassifier(network, novelty=None, **kwargs).fit(
                    X[order[:900]], y[order[:900]]
                )
                rest = order[900:]
                found.append(
                    (
                        100 * model.mean_cost(X[rest], y[rest], cost),
                        100 * (~model.accepted(X[rest])).mean(),
                    )
                )
            mean = np.mean(found, axis=0)
            row.append(f"{mean[0]:.2f} ({mean[1]:.0f})")
        rows.append(row)
    table(["a refusal costs", "never refuse", '`"threshold"`', '`"cost"`'], rows)


def reject():
    """Refusals: nominal and actual rates, costs against the least possible, and digits of a class
    that was never seen.
    """
    print(
        "Novel rows among 5000 fresh ones of Clouds, in percent, after training on 400; 100 "
        "draws:\n"
    )
    rows, network = [], SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0)
    for name, fitted in (("fitted to 300 rows, thresholds from the other 100", 300), ("`cv=5`", 0)):
        row = [name]
        for rate in (0.01, 0.05, 0.1):
            novel = []
            for seed in range(100):
                X, y = make_clouds(400, random_state=seed)
                base = clone(network).fit(X[:fitted], y[:fitted]) if fitted else network
                model = RejectClassifier(base, novelty=rate).fit(X[fitted:], y[fitted:])
                novel.append(
                    100 * (model.decide(make_clouds(5000, random_state=1000 + seed)[0]) == 2).mean()
                )
            row.append(f"{np.mean(novel):.1f} ± {np.std(novel):.1f}")
        rows.append(row)
    table(["", "1 %", "5 %", "10 %"], rows)

    print(
        "\nCost of 100 rows of Clouds where an error costs one, after training on 2000; ten draws; "
        "in brackets, % refused:\n"
    )
    rows, truth, tests = (
        [],
        clouds_themselves(),
        [make_clouds(20_000, random_state=100 + seed) for seed in DRAWS],
    )
    for cost in (0.1, 0.2, 0.3):
        row = [str(cost)]
        for base, kwargs in (
            (network, {"ambiguity": None}),
            (network, {"ambiguity": cost}),
            (network, {"ambiguity": cost, "ambiguity_rule": "cost"}),
            (truth, {"ambiguity": cost}),
        ):
            found = []
            for seed, (X_test, y_test) in zip(DRAWS, tests, strict=True):
                model = RejectClassifier(base, novelty=None, **kwargs)
                model.fit(*make_clouds(2000, random_state=seed))
                found.append(
                    (
                        100 * model.mean_cost(X_test, y_test, cost),
                        100 * (~model.accepted(X_test)).mean(),
                    )
                )
            mean = np.mean(found, axis=0)
            row.append(f"{mean[0]:.2f} ({mean[1]:.0f})")
        rows.append(row)
    head = ["a refusal costs", "never refuse", '`"threshold"`', '`"cost"`', "best possible"]
    table(head, rows)

    sure_of_itself()

    print(
        "\nDigits of which one class is left out of training, each in turn; 20 diagonal kernels; "
        "percent of new rows:\n"
    )
    (X, y), rows = load_digits(return_X_y=True), []
    half = np.random.default_rng(0).permutation(len(y))
    train, test = half[:900], half[900:]
    network = SharedKernelClassifier.prbf(
        20, covariance_type="diag", covariance_floor=1e-1, random_state=0
    )
    for name, kwargs in (
        ("`novelty=0.05`", {}),
        ("`novelty=0.05, ambiguity=0.1`", {"ambiguity": 0.1}),
    ):
        told = []
        for digit in range(10):
            seen, rest = train[y[train] != digit], test[y[test] != digit]
            model = RejectClassifier(network, novelty=0.05, **kwargs).fit(X[seen], y[seen])
            known, unknown = model.decide(X[rest]), model.decide(X[y == digit])
            shares = [
                (known == 2).mean(),
                (known == 1).mean(),
                1 - model.estimator_.score(X[rest], y[rest]),
            ]
            told.append(
                [
                    *shares,
                    1 - model.score(X[rest], y[rest]),
                    (unknown == 2).mean(),
                    (unknown == 1).mean(),
                ]
            )
        rows.append([name, *(100 * np.mean(told, axis=0)).tolist()])
    head = [
        "",
        "known: novel",
        "known: ambiguous",
        "error of all",
        "error of accepted",
        "unseen: novel",
        "unseen: ambiguous",
    ]
    table(head, rows)


def small_sets(*names):
    """Data sets by name, standardized but for satimage5, and the number of kernels for each; what
    is missing is named.
    """
    known = {
        "pima": (lambda: load_pima(return_X_y=True), 10),
        "ionosphere": (lambda: load_ionosphere(return_X_y=True), 8),
        "bupa": (lambda: load_bupa(return_X_y=True), 6),
        "wdbc": (lambda: load_breast_cancer(return_X_y=True), 6),
        "clouds": (lambda: make_clouds(random_state=0), 8),
        "phoneme": (lambda: load_phoneme(return_X_y=True), 12),
        "satimage5": (lambda: load_satimage(dims=5, return_X_y=True), 36),
    }
    for name in names:
        if name not in ("wdbc", "clouds") and (reason := missing_reason(name.removesuffix("5"))):
            print(f"{name} is left out: {reason}")
        else:
            yield name, *known[name][0](), known[name][1]


def fold_scores(model, X, y, name, repeats=3):
    """Mean error in percent and mean log-loss, as one cell."""
    chain = make_pipeline(StandardScaler(with_std=name != "satimage5"), model)
    found = [
        cross_validate(
            chain,
            X,
            y,
            cv=StratifiedKFold(5, shuffle=True, random_state=seed),
            scoring=("accuracy", "neg_log_loss"),
        )
        for seed in range(repeats)
    ]
    error, loss = (
        np.mean([f[f"test_{score}"] for f in found]) for score in ("accuracy", "neg_log_loss")
    )
    return f"{100 - 100 * error:.1f} / {-loss:.3f}"


def learned():
    """Degrees of sharing, and learned sharing: error in percent / log-loss, spherical kernels, five
    folds three times.
    """
    rows = []
    for name, X, y, n_kernels in small_sets(
        "pima", "ionosphere", "bupa", "wdbc", "clouds", "phoneme", "satimage5"
    ):
        models = [
            SharedKernelClassifier.prbf(n_kernels, sharing=s, random_state=0)
            for s in (*DEGREES, "learned")
        ]
        rows.append(
            [f"{name}, {n_kernels} kernels", *(fold_scores(model, X, y, name) for model in models)]
        )
    table(["", *DEGREES, "learned"], rows)


class SplitByClass(ClassifierMixin, BaseEstimator):
    """A network whose kernels are split by class after training."""

    def __init__(self, network, anchor):
        self.network, self.anchor = network, anchor

    def fit(self, X, y):
        self.model_ = clone(self.network).fit(X, y).split_by_class(X, y, anchor=self.anchor)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


def split():
    """Kernels split by class: error in percent / log-loss, five folds three times.

    Beside them one mixture a class with as many kernels as the split can have.
    """
    rows = []
    for name, X, y, n_kernels in small_sets(
        "phoneme", "clouds", "pima", "bupa", "ionosphere", "wdbc"
    ):
        for family in ("spherical", "diag", "full") if name == "phoneme" else ("spherical", "diag"):
            common = {"covariance_type": family, "random_state": 0}
            models = [
                SharedKernelClassifier.prbf(n_kernels, **common),
                *(
                    SplitByClass(SharedKernelClassifier.prbf(n_kernels, **common), anchor)
                    for anchor in (np.inf, 100, 20, 0)
                ),
                SharedKernelClassifier.prbf(n_kernels * len(np.unique(y)), sharing=0, **common),
            ]
            cells = [fold_scores(model, X, y, name) for model in models]
            rows.append([f"{name}, {n_kernels} {family} kernels", *cells])
    table(
        [
            "",
            "shared",
            "split, as born",
            "split, anchor 100",
            "anchor 20",
            "anchor 0",
            "separate, as many",
        ],
        rows,
    )


SHARING_TABLES = ("learned", "split")

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # a few fits stop at max_iter
    every = (
        "sharing",
        "families",
        "starts",
        "floors",
        "sweeps",
        "peers",
        "trouble",
        "wild",
        "overlap",
        *SHARING_TABLES,
        "reject",
    )
    for name in sys.argv[1:] or every:
        print(f"\n{name}: {globals()[name].__doc__.strip()}\n")
        globals()[name]()
