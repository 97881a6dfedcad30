"""Parameters and attributes that many protectors share, described once in their docstrings.

A line such as ``{schema, classes}`` in the docstring of a class that :func:`described` decorates stands for the
entries of these names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

_Class = TypeVar("_Class", bound=type)

# Of imbalanced-learn's samplers.
SAMPLER = """
sampling_strategy : str, dict or callable, default="auto"
    As in imbalanced-learn.
random_state : int, optional
    Makes the result repeatable.
schema : Schema, optional
    What the columns are; read from the table when not given.
k_neighbors : int, default=5
    How many neighbours a row has.
"""

# Of synthesizers without noise.
PLAIN = """
sampling_strategy : None, str, float or dict, default=None
    Class shares of a sample: as in the data; balanced ("auto", "not majority" or "all"); the rarest class raised
    to the largest ("minority"); for two classes the ratio of the rarer to the other; or counts per label, where classes
    not named keep theirs.
schema : Schema, optional
    What the columns are; read from the table when not given.
random_state : int, optional
    Makes fit and sample repeatable.
schema_ : Schema
    What the feature columns are.
classes_ : array
    The labels.
class_counts_ : array of int
    Their counts.
"""

# Of synthesizers under differential privacy.
PRIVATE = """
epsilon : float, default=1.0
    Of the whole fit, domains and class counts included.
schema : Schema, optional
    What the columns are. Only public bounds and categories (and ``classes``), or ``domains="private"``, give a
    proven guarantee.
domains : {"data", "private"}, default="data"
    Where bounds and categories come from that the schema does not declare public: read from the data, with a
    nominal guarantee, or estimated out of the same budget.
classes : sequence, optional
    The labels that exist, when they are public; also taken from the schema's label column.
n_bins : int, default=20
    How many intervals a number is cut into at most.
binning : {"uniform", "quantile"}, default="uniform"
    Intervals of one width, or of about as many rows each, which is paid for.
sampling_strategy : None, str, float or dict, default=None
    Class shares of a sample: as in the data (with noise); balanced ("auto", "not majority" or "all"); the rarest class
    raised to the largest ("minority"); for two classes the ratio of the rarer to the other; or counts per label, where
    classes not named keep theirs.
relation : {"replace-one", "add-remove"}, default="replace-one"
    Which tables count as neighbours.
rows_per_person : int, optional
    With a person column in the schema and in X, where it must be given: how many rows of each person are used, drawn
    at random. The guarantee is then for a person; the result does not have the column.
n_jobs : int, default=1
    How many threads count; -1 takes one for each core.
random_state : int, optional
    Makes fit and sample repeatable, for experiments; the guarantee is then nominal.
ledger : DatasetLedger, optional
    The budget that every fit is charged to before its noise is drawn, from
    :meth:`Ledger.for_dataset <oversafe.privacy.Ledger.for_dataset>`.
call_context : {"checked", "vouched"}, default="checked"
    What is done to the data around a fit: "checked" makes the guarantee nominal inside of anything that is not
    known; with "vouched" you state that nothing of that kind looks at them, and the guarantee says so.
guarantee_ : Guarantee
    What the result promises.
schema_ : Schema
    What the feature columns are.
classes_ : array
    The labels.
class_counts_ : array of int
    Their noisy counts; each class keeps at least one row.
ledger_entry_ : str or None
    The budget entry that paid for the fit.
"""


def described(entries: str) -> Callable[[_Class], _Class]:
    """Return a decorator that puts entries into the docstring of a class."""
    texts = {text.partition(" : ")[0]: text.strip() for text in re.split(r"\n(?=\S)", entries)}

    def stand_for(line: re.Match[str]) -> str:
        found = "\n".join(texts[name] for name in re.split(r",\s+", line["names"]))
        return re.sub("^", line["indent"], found, flags=re.M)

    def decorate(cls: _Class) -> _Class:
        # Python with -OO has no docstrings, and from 3.13 on they are not indented.
        if cls.__doc__ is not None:
            line = r"^(?P<indent> *)\{(?P<names>\w[\w,\s]*)\}$"
            cls.__doc__ = re.sub(line, stand_for, cls.__doc__, flags=re.M)
        return cls

    return decorate
