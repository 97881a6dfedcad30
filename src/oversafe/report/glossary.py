"""The verdicts and the terms of a report, explained to a reader who has never heard of them."""

from __future__ import annotations

from collections.abc import Mapping

from oversafe.auditing.verdict import Level

MEANING: Mapping[Level, tuple[str, str, str]] = {
    # The word, the colour of the light, what it means for the person who decides.
    "exposed": ("Exposed", "red", "Do not hand this table out as it is."),
    "unproven": (
        "Unproven",
        "amber",
        "That these attacks failed does not mean that others will fail too. Hand it out only to people you trust "
        "with the original.",
    ),
    "protected": (
        "Protected",
        "green",
        "The guarantee holds against attacks that nobody has thought of yet, within its figures below.",
    ),
}

GLOSSARY: tuple[tuple[str, str], ...] = (
    (
        "Advantage, risk",
        "How much better an attacker does than somebody without the release: 0 % is guessing, 100 % is certainty.",
    ),
    (
        "Baseline",
        "What the same effort gives without a leak: guessing, or the same attack on people who had no part.",
    ),
    (
        "Class, minority class",
        "The groups that the label column names. The smaller one holds few people, and oversampling repeats them.",
    ),
    (
        "Delta",
        "The part of the promise of differential privacy that may fail; a sound value is far below one in the "
        "number of people.",
    ),
    (
        "Differential privacy",
        "A promise about a method: whatever anyone concludes from the release, they would have concluded almost as "
        "readily had one person's record been another.",
    ),
    (
        "Epsilon",
        "How much \u201calmost\u201d is: at most a factor of e to the epsilon. 1 is strong, above 3 it is weak. Two "
        "releases of the same people add up.",
    ),
    (
        "Holdout",
        "Real people of the same kind who had no part in the release. What works on them is no leak.",
    ),
    (
        "Interval (95 %)",
        "The figure is an estimate from a number of attempts. In 95 of 100 audits the interval holds the true value.",
    ),
    (
        "Manifest",
        "A small file beside the release that says how it was made and what it promises. It counts where somebody you "
        "trust signed it.",
    ),
    (
        "Oversampling, SMOTE",
        "Making more rows of a rare class so that a model learns it better. SMOTE makes them on straight lines "
        "between two real records.",
    ),
    (
        "Proven, nominal",
        "Proven: every look at the data is accounted for. Nominal: a figure is stated, but something is left out, and "
        "the caveats say what.",
    ),
    ("Reconstruction", "Computing the values of a real record from a release in which it does not stand."),
    ("Release", "The table that is, or will be, handed out."),
    (
        "Synthetic row",
        "A row that a program made. That a row belongs to nobody does not mean that it tells nothing about anybody.",
    ),
)
