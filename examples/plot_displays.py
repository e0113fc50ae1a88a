"""
Pictures of a model
===================

Six displays, by scikit-learn's convention: ``from_estimator`` makes one and draws it, ``plot(ax=...)`` draws it again
elsewhere, ``ax_`` and ``figure_`` say where. All take models inside pipelines, searches and `RejectClassifier`; of a model that
has nothing to draw, an error says why.
"""

# %%
# Kernels
# -------
#
# The breast cancer data have 30 features. Kernels are drawn as the shadows that they cast on two axes: those along which the
# classes differ most, or a pair of features. The background is the best decision on these two coordinates alone, which a
# mixture of Gaussians knows exactly. Color and mark tell the class, a broken line a kernel that both classes use.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import (
    EMLogClassifier,
    RejectClassifier,
    SharedKernelClassifier,
    SharingAverageClassifier,
)
from kernelpool.app.report.plots import (
    CalibrationDisplay,
    HistoryDisplay,
    KernelDisplay,
    NoveltyDisplay,
    RejectCurveDisplay,
    SharingDisplay,
)
from kernelpool.datasets import make_ripley

cancer = load_breast_cancer(as_frame=True)
X, y = cancer.data, cancer.target_names[cancer.target]
chain = make_pipeline(
    StandardScaler(), SharedKernelClassifier.prbf(9, kernel_prior="conjugate", random_state=0)
).fit(X, y)

figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
KernelDisplay.from_estimator(chain, X, y, ax=panels[0], legend=False)
KernelDisplay.from_estimator(
    chain, X, y, features=("worst radius", "worst concave points"), ax=panels[1]
)
plt.show()

# %%
# Who uses which kernel
# ---------------------
#
# One line a kernel, one column a class; the class that owns a kernel is framed.

SharingDisplay.from_estimator(chain)
plt.show()

# %%
# How training went
# -----------------
#
# The objective after each step, or on a logarithmic axis how far it still was from the best; of RBF networks, the loss on rows
# left out, and which sweep was kept.

X, y = make_ripley(1000, random_state=0)
average = SharingAverageClassifier(
    6, sharing=(0, 0.5, 1), covariance_type="full", random_state=0
).fit(X, y)
network = EMLogClassifier(6, random_state=0).fit(X, y)

figure, panels = plt.subplots(1, 3, figsize=(11.5, 3.6), layout="constrained")
HistoryDisplay.from_estimator(average, ax=panels[0]).plot(ax=panels[1], gap=True)
HistoryDisplay.from_estimator(network, ax=panels[2])
plt.show()

# %%
# Can it be trusted?
# ------------------
#
# Three questions to rows that the model was not fitted to: are its probabilities right, what does refusing doubtful rows buy,
# and are the rows like those it knows?

X_train, X_test, y_train, y_test = train_test_split(
    *make_ripley(5000, random_state=1), random_state=0
)
model = RejectClassifier(average, ambiguity=0.05, ambiguity_rule="error", novelty=0.01).fit(
    X_train, y_train
)

figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
CalibrationDisplay.from_estimator(model, X_test, y_test, ax=panels[0])
RejectCurveDisplay.from_estimator(model, X_test, y_test, ax=panels[1])
NoveltyDisplay.from_estimator(model, X_train, X_test, ax=panels[2])
plt.show()
