"""
Plots of attacks, releases and classifiers
==========================================

Every plot is a display, as in scikit-learn: made from a result or from tables, drawn on given axes or on new ones, with
``ax_`` and ``figure_`` to go on from.
"""

# %%
# Lines and the records where they meet
# -------------------------------------
# The released rows of a SMOTE release lie on lines between real records, and the attack follows them back.

import matplotlib.pyplot as plt
import numpy as np

from oversafe.attack import GroundHog, ReconSMOTE
from oversafe.data import load_dataset
from oversafe.protect import SMOTE, PrivateMixture
from oversafe.report import (
    FrontierDisplay,
    MarginalsDisplay,
    MembershipDisplay,
    PrivateBoundaryDisplay,
    RecallDisplay,
    ReconstructionDisplay,
)

X, y = load_dataset("breast_cancer")
X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
rows, patients = X_new[y_new == "malignant"], X[y == "malignant"]

result = ReconSMOTE().run(rows)
ReconstructionDisplay.from_result(result, rows, real=patients)
plt.show()

# %%
# The more rows, the more records
# -------------------------------
# How many records a release gives away follows from how many rows SMOTE added. The bounds say so before it is made.

records = np.random.default_rng(0).normal(size=(40, 5))
RecallDisplay.from_records(records, [2, 4, 6, 10, 15, 25], n_runs=2, random_state=0)
plt.show()

# %%
# Was this record among the data?
# -------------------------------
# One curve per record that was attacked, the most exposed in red.

rng = np.random.default_rng(1)
table, labels = rng.normal(size=(320, 3)), np.repeat([0, 1], [300, 20])
game = GroundHog(n_targets=10, n_train=100, n_test=100, random_state=0).run(SMOTE(), table, labels)
MembershipDisplay.from_result(game)
plt.show()

# %%
# Real and synthetic columns
# --------------------------
# The figure beside each name is the total variation distance. It tells how useful a release is, not how private.

X_synthetic, y_synthetic = PrivateMixture(epsilon=5.0, random_state=0).fit_resample(X, y)
MarginalsDisplay.from_tables(X, X_synthetic, columns=list(X.columns[:8]))
plt.show()

# %%
# Boundaries under noise
# ----------------------
# Each line is the boundary of one fit. The smaller epsilon is, the more they scatter.

from oversafe.learn import PrivateLogisticRegression

rare = (rng.random(2000) < 0.1).astype(int)
points = rng.normal(size=(2000, 2)) + 2 * rare[:, None]
figure, axes = plt.subplots(1, 2, figsize=(9, 4.3), sharey=True, layout="constrained")
for ax, epsilon in zip(axes, (0.2, 2.0), strict=True):
    model = PrivateLogisticRegression(epsilon, data_norm=3.0, classes=[0, 1])
    PrivateBoundaryDisplay.from_estimator(model, points, rare, n_fits=10, ax=ax)
    ax.set_title(f"epsilon = {epsilon:g}")
plt.show()

# %%
# Privacy against utility
# -----------------------
# Figures from anywhere. Those in red are beaten by no other method in both.

FrontierDisplay.from_arrays(
    ["noise", "private", "half-private", "SMOTE"],
    privacy=[0.0, 0.03, 0.35, 1.0],
    utility=[0.50, 0.86, 0.84, 0.95],
    privacy_intervals=[[0, 0.05], [0, 0.09], [0.25, 0.45], [0.8, 1]],
    utility_label="AUC on other people (made-up figures)",
)
plt.show()
