"""
Reading patients back from a SMOTE release
==========================================

A medical table has a few patients with a malignant tumour among many with a benign one. To share it, somebody
balances it with SMOTE and hands out only the malignant rows that SMOTE made: none of them belongs to a patient.
This example reads the patients back.
"""

# %%
# The release
# -----------
# SMOTE puts every new row somewhere on the segment between two patients. imbalanced-learn appends the new
# rows to the real ones, so what follows the real rows is synthetic.

from oversafe.data import load_dataset
from oversafe.protect import SMOTE

X, y = load_dataset("breast_cancer")
patients = X[y == "malignant"]
sampler = SMOTE(random_state=0)
X_augmented, y_augmented = sampler.fit_resample(X, y)
X_released = X_augmented.iloc[len(X) :]

print(f"{len(patients)} patients, {len(X_released)} synthetic rows")
print(f"guarantee: {sampler.guarantee_.status}")

# %%
# The attack
# ----------
# Rows made from the same two patients lie on one line, and where several lines cross there is a patient. The
# attack sees the synthetic rows and nothing else; the real records are used only afterwards, to count how
# many it got right.

from oversafe.attack import ReconSMOTE

result = ReconSMOTE().run(X_released)
precision, recall = result.score(patients)

print(f"{len(result.records)} records reconstructed")
print(f"{precision:.0%} of them are real patients")
print(f"{recall:.0%} of the patients were found")

# %%
# The first of them, and some of their measurements, in the table's own units:

result.records.iloc[:5, :4].round(3)

# %%
# What it looks like
# ------------------
# Two of the ten columns are enough to see it. The synthetic rows draw the segments, and the reconstructed
# records sit where the segments meet, on the real ones.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
columns = ["mean_texture", "mean_smoothness"]
axes.scatter(*X_released[columns].to_numpy().T, s=9, color="0.6", label="synthetic rows (released)")
axes.scatter(
    *patients[columns].to_numpy().T,
    s=110,
    facecolors="none",
    edgecolors="tab:blue",
    linewidths=1.5,
    label="real patients (not released)",
)
axes.scatter(
    *result.records[columns].to_numpy().T,
    s=45,
    marker="x",
    color="tab:red",
    label="reconstructed by the attack",
)
axes.set(
    xlabel="mean texture", ylabel="mean smoothness", title=f"What {len(X_released)} synthetic rows give away"
)
axes.legend(frameon=False)
plt.show()

# %%
# A release can only be safe from this if it is not made of pieces of real records: see
# :class:`oversafe.protect.HistogramSynthesizer`.
