"""
Sensors: states that were never seen
====================================

A pump with six sensors. Three states are known, each with some hundred rows of training. The
program watches new readings, one a second: it names the state, says when it cannot tell, and raises
an alarm when readings are like nothing in the training. Sensors fail now and then, so that rows
have missing values.
"""

# %%
# Readings
# --------
#
# Vibration along two axes, temperature, pressure, current and flow. In each state they hang
# together in another way. One cell in twenty is missing.

import matplotlib.pyplot as plt
import numpy as np

from kernelpool import RejectClassifier, SharedKernelClassifier, inspection

SENSORS = ["vibration x", "vibration y", "temperature", "pressure", "current", "flow"]
STATES = {  # means, and what load does to each sensor
    "idle": ([0.2, 0.2, 35, 1.0, 2, 0.5], [0.05, 0.05, 2, 0.1, 0.4, 0.3]),
    "pumping": ([0.6, 0.5, 55, 4.0, 9, 12], [0.15, 0.1, 5, 0.8, 2.5, 4]),
    "worn bearing": ([1.4, 0.9, 68, 3.6, 11, 11], [0.4, 0.2, 6, 0.7, 2.5, 4]),
}
NOISE = np.array([0.05, 0.05, 1.0, 0.1, 0.3, 0.4])
rng = np.random.default_rng(0)


def readings(mean, slope, n):
    x = np.array(mean) + rng.normal(size=(n, 1)) * np.array(slope) + rng.normal(size=(n, 6)) * NOISE
    x[rng.random(x.shape) < 0.05] = np.nan  # a sensor that did not answer
    return x


X = np.concatenate([readings(*state, 400) for state in STATES.values()])
y = np.repeat(list(STATES), 400)

# %%
# A model that may refuse
# -----------------------
#
# Missing values are taken as they are. A row is *novel* where its density is lower than that of
# all but one in a thousand of the training rows, *ambiguous* where the state would be wrong with a
# probability above 10 %.

network = SharedKernelClassifier(
    n_kernels=3, random_state=0
)  # one a state: load moves the sensors along a line
watch = RejectClassifier(network, ambiguity=0.1, novelty=0.001).fit(X, y)

# %%
# An hour
# -------
#
# The pump idles, pumps, and its bearing wears. Then the inlet is blocked, which the training has
# never shown: the motor draws its current, and nothing flows. Each sensor alone reads what it has
# read before.

blocked = ([0.6, 0.5, 55, 4.0, 9, 1.0], [0.15, 0.1, 5, 0.8, 2.5, 0.1])
hour = [("idle", 150), ("pumping", 200), ("worn bearing", 150), ("blocked inlet", 100)]
stream = np.concatenate([readings(*STATES.get(name, blocked), n) for name, n in hour])
truth = np.repeat([name for name, _ in hour], [n for _, n in hour])
decision, label = watch.decide(stream), watch.predict(stream)
print(f"{'state':>14} {'right':>12} {'wrong':>12} {'ambiguous':>10} {'novel':>6}")
for name, n in hour:
    at = truth == name
    right, wrong = np.sum(label[at] == name), np.sum((decision[at] == 0) & (label[at] != name))
    print(
        f"{name:>14} {right:12d} {wrong:12d} {np.sum(decision[at] == 1):10d} "
        f"{np.sum(decision[at] == 2):6d}  of {n}"
    )

# %%
# Why the alarm
# -------------
#
# The blocked inlet is missed where the sensor of the flow itself did not answer: without it there
# is nothing to see. What was expected of each sensor, given the others: a flow that goes with this
# current and this pressure.

first = np.flatnonzero(
    (truth == "blocked inlet") & (decision == 2) & ~np.isnan(stream).any(axis=1)
)[0]
(why,) = inspection.explain(watch, stream[[first]])
spread = {f"feature {i}": np.nanstd(X[:, i]) for i in range(X.shape[1])}
surprise = {p.name: (p.value - p.expected) / spread[p.name] for p in why.features}
figure, panels = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained", width_ratios=[2, 1])
score = np.maximum(watch.score_samples(stream), -60)
for code, (name, color) in enumerate(
    (("accepted", "#2b6c99"), ("ambiguous", "#d59b2d"), ("novel", "#b5403a"))
):
    panels[0].plot(
        np.flatnonzero(decision == code),
        score[decision == code],
        ".",
        color=color,
        label=name,
        markersize=4,
    )
panels[0].axhline(watch.novelty_threshold_, color="0.3", linewidth=0.8, linestyle="--")
start = 0
for name, n in hour:
    panels[0].text(start + n / 2, 8, name, ha="center", fontsize=9)
    panels[0].axvline(start, color="0.85", linewidth=0.8, zorder=0)
    start += n
panels[0].set(xlabel="second", ylabel="log p(x)", ylim=(-62, 12), xlim=(0, start))
panels[0].legend(loc="lower left")
names = [SENSORS[int(name.split()[-1])] for name in surprise][::-1]
panels[1].barh(names, list(surprise.values())[::-1], color="#b5403a")
panels[1].axvline(0, color="0.3", linewidth=0.8)
panels[1].set(title=f"second {first}: blocked inlet", xlabel="deviations from what was expected")
plt.show()

# %%
# A sensor that drifts
# --------------------
#
# The thermometer reads 3 degrees too high from now on. That is far from novel; a check of the last
# 200 readings against the training finds it. Both hold the states in equal parts, so that only the
# thermometer has changed.

later = np.concatenate([readings(*state, 70) for state in STATES.values()])
print(inspection.check_drift(watch.estimator_, later, X))
later[:, 2] += 3
print(inspection.check_drift(watch.estimator_, later, X))
