"""
What privacy does to a decision boundary
========================================

A rare class beside a frequent one, and classifiers that must not show whether any single record was among the data.
Each line is the boundary of one run: without privacy all runs agree, and the smaller epsilon is, the more they
scatter. How much they scatter depends on how the rare class is taken into account.
"""

# %%
# The data
# --------
# One record in twenty is rare. The bounds and the labels are public: nothing about them is read from the records.

import numpy as np

from oversafe.learn import PrivateLogisticRegression

rng = np.random.default_rng(0)
y = (rng.random(3000) < 0.05).astype(int)
X = rng.normal(size=(3000, 2)) + 2 * y[:, None]

model = PrivateLogisticRegression(epsilon=1.0, data_norm=3.0, classes=[0, 1]).fit(X, y)
print(model.guarantee_)

# %%
# The boundaries
# --------------
# With weights ("balanced") the noise is as large as without and the signal smaller. With "threshold" the fit is
# unweighted, and the class prior, paid for out of the same epsilon, moves the boundary. The published calibration of
# the weighted fit adds more than four times the noise.

import matplotlib.pyplot as plt

METHODS = {
    "class_weight='threshold'": {},
    "class_weight='balanced'": {"class_weight": "balanced"},
    "class_weight='balanced', calibration='paper'": {"class_weight": "balanced", "calibration": "paper"},
}
EPSILONS = (0.1, 0.5, 2.0)
grid = np.stack(np.meshgrid(np.linspace(-4, 6, 60), np.linspace(-4, 6, 60)), axis=-1)
shown = rng.choice(len(X), 400, replace=False)

figure, axes = plt.subplots(3, 3, figsize=(9, 9), sharex=True, sharey=True, layout="constrained")
for row, (label, settings) in zip(axes, METHODS.items(), strict=True):
    for panel, epsilon in zip(row, EPSILONS, strict=True):
        panel.scatter(*X[shown].T, s=6, c=np.where(y[shown] == 1, "tab:red", "0.75"))
        for _ in range(15):
            private = PrivateLogisticRegression(epsilon, data_norm=3.0, classes=[0, 1], **settings).fit(X, y)
            heights = private.decision_function(grid.reshape(-1, 2)).reshape(60, 60)
            panel.contour(grid[..., 0], grid[..., 1], heights, [0.0], colors="tab:blue", linewidths=0.7)
        if row is axes[0]:
            panel.set_title(f"epsilon = {epsilon:g}")
    row[0].set_ylabel(label, fontsize=8)
plt.show()

# %%
# The records far out bend the lines a little: records are shortened to the public norm before anything is computed, and
# so are those that are predicted.
