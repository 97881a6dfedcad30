"""
Low similarity is no evidence of privacy
========================================

Before a table is handed out, somebody trains a classifier to tell its real rows from the synthetic ones, finds that it
cannot, and calls the table safe. This example asks the same table other questions.
"""

# %%
# The release and the holdout
# ---------------------------
# A table with a few malignant cases is balanced with SMOTE and handed out, real and synthetic rows together. Other
# patients of the same kind, who had no part in it, show what chance gives.

from oversafe.data import load_dataset
from oversafe.protect import SMOTE

X, y = load_dataset("breast_cancer")
X_other, y_other = load_dataset("breast_cancer_holdout")
X_released, y_released = SMOTE(random_state=0).fit_resample(X, y)

released = X_released[y_released == "malignant"]
patients = X[y == "malignant"]
others = X_other[y_other == "malignant"]
print(f"{len(released)} released rows, {len(patients)} of them patients, {len(others)} other patients")

# %%
# What is usually asked
# ---------------------
# A random forest that has seen half of the answers recognises none of the patients in the other half. The result says
# itself what that is worth, once it is given what a reconstruction attack gets out of the same rows.

from oversafe.attack import NaiveDistinguisher, ReconSMOTE

synthetic = released.iloc[len(patients) :]
reconstruction = ReconSMOTE().run(synthetic, real=patients)
forest = NaiveDistinguisher(random_state=0).run(released, patients, reconstruction=reconstruction)
print(f"patients that the forest recognises: {forest.details['recall']:.0%}")
print(forest.details["warning"])

# %%
# What else can be asked
# ----------------------
# The linkage attacks are made on the patients and on the others. What works on both is knowledge about the disease;
# what works on the patients alone is a leak.

import pandas as pd

from oversafe.attack import AttributeInference, ClosestRecord, Linkability

rows = {}
for attack in (Linkability(random_state=0), AttributeInference(random_state=0)):
    result = attack.run(released, patients, others)
    rows[result.name] = {
        "patients": result.details["main_rate"],
        "others": result.details["control_rate"],
        "risk": result.risk,
        "low": result.interval[0],
        "high": result.interval[1],
    }
pd.DataFrame(rows).T.round(2)

# %%
# The synthetic rows are also closer to the patients than other patients are, in each of the usual figures:

closest = ClosestRecord(random_state=0).run(synthetic, patients, others)
closest.evidence.round(3)

# %%
# Side by side
# ------------
# Five attacks on one table. The first is the one that is usually reported.

import matplotlib.pyplot as plt

from oversafe.attack import DistinSMOTE
from oversafe.data.rows import is_copy

distinguished = DistinSMOTE().run(released, truth=is_copy(released, patients))
risks = {
    "random forest": forest,
    "Linkability": Linkability(random_state=0).run(released, patients, others),
    "AttributeInference": AttributeInference(random_state=0).run(released, patients, others),
    "DistinSMOTE": distinguished,
    "ReconSMOTE": reconstruction,
}
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
for place, (name, result) in enumerate(risks.items()):
    colour = "tab:blue" if name == "random forest" else "tab:red"
    axes.plot(result.interval, [place, place], color=colour, linewidth=3)
    axes.scatter(result.risk, place, s=70, color=colour, zorder=3)
axes.set(
    yticks=range(len(risks)), yticklabels=risks, xlim=(-0.03, 1.03), xlabel="attacker's advantage over chance"
)
axes.axvline(0.1, color="0.6", linestyle="--", linewidth=1)
axes.invert_yaxis()
plt.show()
