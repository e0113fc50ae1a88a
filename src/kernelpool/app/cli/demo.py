"""`kernelpool demo`: a first look on generated data, and files to try the commands on.

It needs none of the packages of the command line, so that it runs from a bare installation; only
the report that it ends with needs jinja2, and a message names it where it is missing.
"""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ... import PooledClassifier, SharedKernelClassifier, save
from ...datasets import make_clouds

FOLDER = "kernelpool-demo"
MEASURES = "mean radius", "mean texture", "mean smoothness", "mean concavity", "mean symmetry"
NEW_TUMORS = """id,mean radius,mean texture,mean smoothness,mean concavity,mean symmetry,size
A,12.1,17.9,0.092,0.044,0.174,small
B,13.3,20.5,0.1,0.09,0.18,medium
C,14.2,19.3,0.95,0.089,0.181,medium
D,20.1,25.0,,0.21,0.19,large
"""
"""One of these is mistyped, and one is incomplete."""

NEXT = """
What to try next
  from kernelpool import PooledClassifier
  PooledClassifier().fit(X, y).predict_proba(X)
  cd {}; kernelpool fit tumors.csv --target kind; kernelpool predict tumors.safetensors new.csv --reject
  make docs     the guide, with pictures
"""


def run(folder: str) -> None:
    """Compare classifiers on the Clouds data, and write a model, a report and tables."""
    (x, y), (x_test, y_test) = (
        make_clouds(5000, random_state=0),
        make_clouds(50_000, random_state=1),
    )
    print("Clouds: two classes that overlap, 5,000 rows to learn from, 50,000 to test on.")
    print("No classifier errs on less than 9.65 % in the long run.\n")
    svm = make_pipeline(StandardScaler(), SVC(random_state=0))
    models = {
        "kernelpool, PooledClassifier": PooledClassifier("fast", random_state=0),
        "scikit-learn, SVM": CalibratedClassifierCV(svm, ensemble=False),
        "scikit-learn, random forest": RandomForestClassifier(random_state=0),
        "scikit-learn, boosted trees": HistGradientBoostingClassifier(random_state=0),
    }
    print(f"With the defaults of all:\n\n{'':34}{'error, %':>12}{'log-loss':>12}")
    for name, model in models.items():
        proba = model.fit(x, y).predict_proba(x_test)
        error = 100 * np.mean(model.classes_[proba.argmax(axis=1)] != y_test)
        print(f"{name:34}{error:12.2f}{log_loss(y_test, proba):12.3f}", flush=True)
    print(NEXT.format(folder))
    _write(Path(folder), x, y, x_test, y_test)


def _write(folder: Path, x: Any, y: Any, x_test: Any, y_test: Any) -> None:
    """A model file, a report, and tables of tumors."""
    model = SharedKernelClassifier(n_kernels=12, random_state=0).fit(x, y)
    write_tables(folder)
    save(model, folder / "clouds.safetensors")
    print(f"A model of 12 full kernels:    {folder / 'clouds.safetensors'}")
    print(f"A table to try, and new rows:  {folder / 'tumors.csv'}, {folder / 'new.csv'}")
    try:
        from ..report import write_report

        page = folder / "report.html"
        write_report(model, x, y, page, X_test=x_test, y_test=y_test, title="Clouds")
        print(f"A report on the model:         {page}")
    except ImportError:
        print("A report needs jinja2: pip install '.[report]' in kernelpool's folder.")


def write_tables(folder: Path) -> None:
    """Measurements from scikit-learn's data, some of them missing, with the size as a category, and
    new rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "new.csv").write_text(NEW_TUMORS, encoding="utf-8")
    data = load_breast_cancer()
    names = data.feature_names.tolist()
    area = data.data[:, names.index("mean area")]
    size = np.array(["small", "medium", "large"])
    size = size[np.digitize(area, np.quantile(area, [1 / 3, 2 / 3]))]
    cells = data.data[:, [names.index(name) for name in MEASURES]].astype(str)
    cells[np.random.default_rng(0).random(cells.shape) < 0.03] = ""
    with open(folder / "tumors.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*MEASURES, "size", "kind"])
        writer.writerows(np.column_stack([cells, size, data.target_names[data.target]]).tolist())
