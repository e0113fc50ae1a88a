"""Made-up copies of the data sets: right in shape, labels and class counts, random in everything
else.
"""

import gzip

import numpy as np

from papers.data import sets

# Spelled by hand, from the sources' own documentation, not taken from the code under test.
OPENML_LABELS = {
    "phoneme": ["1", "2"],
    "satimage": ["1.", "2.", "3.", "4.", "5.", "7."],
    "pima": ["tested_negative", "tested_positive"],
    "ionosphere": ["b", "g"],
    "ripley_train": ["0", "1"],
}
OPENML_NUMBERS = {
    "phoneme": 1489,
    "satimage": 182,
    "pima": 37,
    "ionosphere": 59,
    "ripley_train": 464,
}
PIMA_ZEROS = {1: 5, 2: 35, 3: 227, 4: 374, 5: 11}


def made_up(name, lost=0, seed=0):
    """Rows and classes of a set that has lost some rows of its first class; values have at most
    three decimals.
    """
    dataset = sets.KNOWN[name]
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(dataset.counts)), dataset.counts)[lost:]
    rng.shuffle(y)
    X = np.round(rng.uniform(1, 9, size=(len(y), len(dataset.features))), 3)
    if name == "pima":
        for column, count in PIMA_ZEROS.items():
            X[rng.choice(len(y), count, replace=False), column] = 0
    return X, y


def csv_text(name, X, y, header=None):
    header = header or [*sets.KNOWN[name].features, "class"]
    lines = [
        ",".join(header),
        *(
            ",".join([*map(str, row), str(label)])
            for row, label in zip(X.tolist(), y.tolist(), strict=True)
        ),
    ]
    return "\n".join(lines) + "\n"


def write_folder(folder, name, text):
    with gzip.open(folder / f"{name}.csv.gz", "wt", encoding="utf-8") as file:
        file.write(text)
