"""Mixture of neurons against a multi-layer perceptron with as many hidden units, on 100,000 rows,
in one run.

    python -m benchmarks.competitive

The problem has bent class boundaries and a known ceiling: the Clouds problem (Bayes error 9.65 %)
with eight features of noise. Both classifiers run with their default stopping rules on standardized
features.
"""

import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import CompetitiveNeuronsClassifier
from kernelpool.datasets import make_clouds

N_ROWS = 100_000
N_NOISE = 8
N_UNITS = 16


def rows(seed):
    X, y = make_clouds(N_ROWS, random_state=seed)
    return np.column_stack([X, np.random.default_rng(seed).normal(size=(len(X), N_NOISE))]), y


def main():
    X, y = rows(0)
    X_test, y_test = rows(1)
    competitors = {
        f"MLPClassifier({N_UNITS})": MLPClassifier((N_UNITS,), random_state=0),
        f"MLPClassifier({N_UNITS}, early_stopping)": MLPClassifier(
            (N_UNITS,), early_stopping=True, random_state=0
        ),
        "LogisticRegression": LogisticRegression(),
        f"CompetitiveNeurons({N_UNITS})": CompetitiveNeuronsClassifier(N_UNITS, random_state=0),
        f"CompetitiveNeurons({N_UNITS}, margin)": CompetitiveNeuronsClassifier(
            N_UNITS, margin=True, random_state=0
        ),
        f"CompetitiveNeurons({N_UNITS}, local)": CompetitiveNeuronsClassifier(
            N_UNITS, local=True, random_state=0
        ),
    }
    print(f"{len(X)} rows, {X.shape[1]} features, {N_UNITS} units")
    print(f"{'':42}{'fit, s':>8}{'passes':>8}{'predict, s':>12}{'test error':>12}")
    for name, model in competitors.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pipeline = make_pipeline(StandardScaler(), model)
            begin = time.perf_counter()
            pipeline.fit(X, y)
            fitted = time.perf_counter()
            error = 1 - pipeline.score(X_test, y_test)
            done = time.perf_counter()
        passes = int(np.max(model.n_iter_))
        print(
            f"{name:42}{fitted - begin:8.1f}{passes:8d}{done - fitted:12.2f}{100 * error:11.2f}%",
            flush=True,
        )


if __name__ == "__main__":
    main()
