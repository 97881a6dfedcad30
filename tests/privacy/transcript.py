"""An accountant that writes down what it is asked and answers without looking at the data."""

from dataclasses import dataclass, field

import numpy as np

from oversafe.privacy import Accountant


@dataclass
class Question:
    """What a mechanism was asked, and how far a unit may move it."""

    what: str
    numbers: np.ndarray
    l1: float = np.inf
    l2: float = np.inf
    largest: float = np.inf


@dataclass
class Transcript:
    """The questions of one run."""

    questions: list[Question] = field(default_factory=list)

    def moved_beyond(self, other):
        """Return the questions that two neighbours move by more than was stated; both must be asked alike."""
        assert [q.what for q in self.questions] == [q.what for q in other.questions]
        wrong = []
        for mine, theirs in zip(self.questions, other.questions, strict=True):
            assert mine.numbers.shape == theirs.numbers.shape
            moved = np.abs(mine.numbers.astype(float) - theirs.numbers)
            if (
                moved.sum() > mine.l1
                or np.sqrt((moved**2).sum()) > mine.l2 * (1 + 1e-12)
                or moved.max() > mine.largest
            ):
                wrong.append(mine.what)
        return wrong


class RecordingAccountant(Accountant):
    """Answers come from a seed alone, so that two neighbours get the same ones and are asked the same questions."""

    def __init__(self, *arguments, seed, **facts):
        super().__init__(*arguments, **facts)
        self.transcript = Transcript()
        self.answers = np.random.default_rng(seed)

    def counts(self, counts, share, *, what, tables=1, l1=None, l2=None):
        super().counts(counts, share, what=what, tables=tables, l1=l1, l2=l2)
        if l1 is None:
            l1, l2 = self.sensitivity(tables)
        self.transcript.questions.append(Question(what, np.array(counts), l1, l2))
        # Some cells far above all doubt, the others empty.
        return np.where(self.answers.random(np.shape(counts)) < 0.1, 10**7, 0).astype(np.int64)

    def choose(self, scores, share, *, what, sensitivity, monotonic=False):
        super().choose(scores, share, what=what, sensitivity=sensitivity, monotonic=monotonic)
        self.transcript.questions.append(Question(what, np.array(scores), largest=sensitivity))
        return int(self.answers.integers(len(scores)))

    def frequent(self, counts, share, *, what, delta, delta_paid=False):
        super().frequent(counts, share, what=what, delta=delta, delta_paid=delta_paid)
        # The values that occur are part of the question; the tests keep the frequent ones the same.
        return np.where(np.asarray(counts) > 5, counts, 0)
