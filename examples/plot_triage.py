"""
Triage: from a table to decisions
=================================

Breast masses, 30 measurements each. A program may decide the clear cases; the others go to a
physician. Three numbers matter: how often the model is right *where it decides*, how many cases are
left to people, and what happens to a case unlike all training cases. Some measurements are
missing.
"""

# %%
# A model that may refuse
# -----------------------
#
# A third of the rows is held out. One case in five lacks the ten "worst" measurements, another one
# in five the standard errors. Nothing is imputed: the network integrates out missing values. It
# refuses a case where an error is more probable than 5 %, and where the density is lower than that
# of all but one training case in a hundred.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from kernelpool import RejectClassifier, SharedKernelClassifier, inspection
from kernelpool.app.report.plots import plot_reject_curve

data = load_breast_cancer(as_frame=True)
X, y = data.data, np.where(data.target == 1, "benign", "malignant")
rng = np.random.default_rng(0)
for kind in ("worst", "error"):
    X.loc[rng.random(len(X)) < 0.2, [name for name in X if kind in name]] = np.nan
X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0, stratify=y)
network = SharedKernelClassifier(random_state=0)
triage = RejectClassifier(network, ambiguity=0.05, novelty=0.01).fit(X, y)

label, decision = triage.predict(X_test), triage.decide(X_test)
for name, code in (("decided", 0), ("ambiguous", 1), ("novel", 2)):
    chosen = decision == code
    would = triage.estimator_.predict(X_test)[chosen]
    print(
        f"{name:>9}: {chosen.sum():3d} cases, {np.sum(would != y_test[chosen])} of them wrong "
        f"without refusals"
    )

# %%
# What refusing buys
# ------------------

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
plot_reject_curve(triage, X_test, y_test, ax=axes)
plt.show()

# %%
# A case that is explained
# ------------------------
#
# The least certain case, with the parts of the features in its log-odds.

unsure = np.argsort(np.abs(triage.predict_proba(X_test)[:, 0] - 0.5))[0]
(why,) = inspection.explain(triage, X_test.iloc[[unsure]])
print(why)
parts = why.features[:8][::-1]
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.barh(
    [f"{part.name} = {part.value:.3g}" for part in parts],
    [part.part for part in parts],
    color=["#b5403a" if part.part < 0 else "#2b6c99" for part in parts],
)
axes.axvline(0, color="0.3", linewidth=0.8)
axes.set(title=f"{why.label} rather than {why.against}?", xlabel="part of the log-odds")
plt.show()

# %%
# Another hospital
# ----------------
#
# Its instrument reads areas 30 % too high. The drift check finds that without labels: it names the
# features that have moved, areas among them. The density of the model has moved most, since an area
# no longer fits its radius.

other = X_test.copy()
other[[name for name in other if "area" in name]] *= 1.3
reference = inspection.DriftReference.of(X, triage.estimator_, held_out=X_test)
print(inspection.check_drift(triage.estimator_, other, reference))
