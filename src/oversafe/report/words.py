"""What the report says about each attack to a reader who has never heard of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from oversafe.auditing.verdict import Level


@dataclass(frozen=True)
class Words:
    """An attack in plain words.

    Parameters
    ----------
    question : str
        What it asks, as a person would.
    attacker : str
        What the attacker must have.
    how : str
        How it works.
    risk : str
        What its risk is the share of, and what counts as 0.
    """

    question: str
    attacker: str
    how: str
    risk: str


_ONLY_THE_FILE = "Somebody who has the released file and nothing else."

_ISOLATED = "Of the descriptions that chance leaves open, the share that isolate a person of the table."

_BY_ATTACK: Mapping[str, Words] = {
    "ReconSMOTE": Words(
        "Can real records be computed from the release?",
        _ONLY_THE_FILE,
        "SMOTE puts every new row on a straight line between two real records. Rows on one line give the line away, "
        "and where lines meet there is a real record, even if it was never handed out.",
        "The share of the real records that were read back. With the release alone, an estimate: the share of the "
        "released rows on lines that end in a record read back. Somebody who guesses reads back none.",
    ),
    "DistinSMOTE": Words(
        "Can the real rows be told from the added ones?",
        _ONLY_THE_FILE,
        "Added rows lie between others on a line, real ones at its ends. Whoever sees which rows are real holds the "
        "records of real people.",
        "The share of the real rows that are recognised, less the share of the added rows that are taken for real. "
        "With the release alone, the share of the rows taken for real that are so with certainty.",
    ),
    "ExactCopies": Words(
        "Do real records stand in the release as they are?",
        "Somebody who has the released file, and meets a person whose values they recognise.",
        "Every released row is compared with every real one, value by value. The records of people who had no part in "
        "the release show what chance gives. If clearly more of theirs stand there, the release avoids the real ones.",
        "The share of the real records that stand in the release, less what chance gives. Where real records are "
        "avoided: the share of other people's records that stand there, less that of the real ones.",
    ),
    "Linkability": Words(
        "Can two sources about one person be linked through the release?",
        "Somebody with two lists that share no column, such as a gym's and an insurer's.",
        "For a person on each list the closest released row is looked up. If it is the same row for both, the two "
        "entries are taken to be one person's.",
        "Of the people whom chance does not link, the share whom the release links.",
    ),
    "SinglingOut (univariate)": Words(
        "Can one person be isolated by a single value?",
        _ONLY_THE_FILE,
        "A value that occurs once in the release, such as the highest age, is taken to belong to one real person.",
        _ISOLATED,
    ),
    "SinglingOut (multivariate)": Words(
        "Can one person be isolated by a combination of values?",
        _ONLY_THE_FILE,
        "A description that fits one released row, such as \u201cyounger than 30, from this town, with this blood "
        "pressure\u201d, is taken to fit one real person.",
        _ISOLATED,
    ),
    "AttributeInference": Words(
        "Can an unknown fact about a person be guessed?",
        "Somebody who knows all about a person but one fact, such as a colleague who does not know the diagnosis.",
        "The fact is taken from the released row that is closest in everything else.",
        "Of the facts that do not follow from what holds for everybody, the share that the release gives away.",
    ),
    "ClosestRecord": Words(
        "Are released rows closer to real records than chance allows?",
        "Nobody: this is a figure that is often reported, not an attack.",
        "The distance of each released row to the closest real record is held against its distance to people who "
        "had no part in the release; without such people, to the second closest record.",
        "How much more often the real record is closer than chance has it, or the row next to one record alone. A low "
        "figure proves nothing.",
    ),
    "NaiveDistinguisher": Words(
        "Does a trained classifier recognise the real rows?",
        "Somebody who already knows for half of the rows whether they are real.",
        "A random forest learns the difference from that half and labels the rest.",
        "The share of the real rows that it recognises, less the share of the others that it takes for real. A low "
        "figure proves nothing.",
    ),
    "GroundHog": Words(
        "Can an outsider tell whether a person was in the data?",
        "Somebody who can run the same method on similar data.",
        "The release is made many times with the person and without. A classifier learns to tell which it was from "
        "the statistics of the released columns.",
        "Twice the area under the ROC curve, less one: 0 is a coin, 1 is certainty.",
    ),
    "ShadowClassifier": Words(
        "Does a model betray whether a person was among its training data?",
        "Somebody who can question the model, and train similar ones.",
        "Models are trained with the person and without, and the answers about the person compared.",
        "Twice the area under the ROC curve, less one: 0 is a coin, 1 is certainty.",
    ),
}

_BY_THREAT: Mapping[str, str] = {
    "reconstruction": "Can real records be computed from the release?",
    "distinguishing": "Can the real rows in the release be told from the added ones?",
    "membership": "Can an outsider tell whether a person was in the data?",
    "linkage": "Can two sources about one person be linked through the release?",
    "singling-out": "Can a person be singled out?",
    "attribute": "Can an unknown fact about a person be inferred?",
    "similarity": "Are the rows closer to real ones than chance allows?",
}


def words_for(name: str, threat: str) -> Words:
    """Return an attack in plain words; one that is not known here is described by its threat."""
    known = _BY_ATTACK.get(name)
    if known is not None:
        return known
    return Words(
        _BY_THREAT[threat], "", "", "The attacker's advantage over guessing: 0 is guessing, 1 certainty."
    )


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
