"""
Plots of a model
================

Functions that draw on given axes or on those of a new figure, and return them. All
take models inside pipelines, searches and `RejectClassifier`.
"""

# %%
# Kernels
# -------
#
# The breast cancer data have 30 features. Kernels are projected on two axes: the directions in
# which the classes differ most, or a pair of features. Along two features the background shows the
# class that the model predicts where these two alone are known. Color and mark tell the class; a
# broken line marks a kernel that both classes use.

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelpool import RejectClassifier, SharedKernelClassifier
from kernelpool.app.report.plots import (
    plot_calibration,
    plot_kernels,
    plot_novelty,
    plot_reject_curve,
)
from kernelpool.datasets import make_ripley

cancer = load_breast_cancer(as_frame=True)
X, y = cancer.data, cancer.target_names[cancer.target]
chain = make_pipeline(
    StandardScaler(), SharedKernelClassifier.prbf(9, kernel_prior="conjugate", random_state=0)
).fit(X, y)

figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
plot_kernels(chain, X, y, ax=panels[0], legend=False)
plot_kernels(chain, X, y, features=("worst radius", "worst concave points"), ax=panels[1])
plt.show()

# %%
# Classes that share kernels
# --------------------------
#
# A row for each kernel, a column for each class, from the attributes of the model; and the
# objective after each step of the training.

network = chain[-1]
joint = network.mixing_ * network.class_prior_
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
shares = left.imshow(joint / joint.sum(axis=1, keepdims=True), cmap="Blues", aspect="auto")
left.set_xticks(range(2), network.classes_)
left.set_ylabel("kernel")
figure.colorbar(shares, ax=left, label="P(class | kernel)")
right.plot(network.history_)
right.set(xlabel="sweep", ylabel="objective per row")
plt.show()

# %%
# Held-out rows
# -------------
#
# Are the probabilities right, what is the error of the rows that are accepted, and are the rows
# like those of the training?

X_train, X_test, y_train, y_test = train_test_split(
    *make_ripley(5000, random_state=1), random_state=0
)
network = SharedKernelClassifier.prbf(6, covariance_type="full", random_state=0)
model = RejectClassifier(network, ambiguity=0.05, ambiguity_rule="error", novelty=0.01).fit(
    X_train, y_train
)

figure, panels = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
plot_calibration(model, X_test, y_test, ax=panels[0])
plot_reject_curve(model, X_test, y_test, ax=panels[1])
plot_novelty(model, X_train, X_test, ax=panels[2])
plt.show()
