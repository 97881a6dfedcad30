"""Copies are found however the release has its numbers written."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oversafe.attack import ExactCopies
from oversafe.auditing.plan.attack_steps import relabelled_tables
from oversafe.data.infer import column_decimals, count_decimals
from oversafe.data.rows import as_released, is_copied, is_copy, match_precision


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "small": rng.normal(size=n) / 100,
            "wide": np.exp(rng.normal(0, 5, n)),
            "large": rng.normal(size=n) * 1e6,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "age": rng.integers(20, 90, n),
        }
    )


def from_text(table: pd.DataFrame) -> pd.DataFrame:
    # Before pandas 3.1 its own reader may miss the last digit.
    return pd.read_csv(BytesIO(table.to_csv(index=False).encode()), engine="pyarrow")


def in_single(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({name: np.float32 for name in table.columns[:4]})


@pytest.mark.parametrize(
    "write", [in_single, lambda table: from_text(in_single(table)), lambda table: table.round(8)]
)
def test_copies_in_fewer_digits_are_copies(write) -> None:
    real = people()
    release = write(pd.concat([real.head(100), people(200, seed=1)], ignore_index=True))
    assert is_copy(release, real).tolist() == [True] * 100 + [False] * 200
    result = ExactCopies().run(release, real, people(300, seed=2))
    assert result.details["copied"] == 100 and result.details["copied_holdout"] == 0
    rewritten = as_released(real, release)
    assert all(np.isin(release[name].dropna().head(50), rewritten[name]).all() for name in real.columns)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("write", [in_single, lambda table: from_text(in_single(table))])
def test_copies_are_found_wherever_they_stand(write, first) -> None:
    rng = np.random.default_rng(0)
    real, others = (pd.DataFrame(rng.uniform(0.1, 0.9, (n, 5)), columns=list("abcde")) for n in (5000, 2000))
    parts = [real.head(2000), others] if first else [others, real.head(2000)]
    assert is_copy(write(pd.concat(parts, ignore_index=True)), real).sum() == 2000


def test_rounded_values_in_single_precision_are_copies() -> None:
    real = people().drop(columns="wide")
    assert is_copy(in_single(real.round(3)), real).all()
    # Tiny ones too, which a column of probabilities has.
    tiny = pd.DataFrame({"p": np.exp(-np.linspace(1, 60, 200)), "x": np.linspace(0, 1, 200) ** 0.5})
    assert is_copy(from_text(tiny.astype(np.float32)), tiny).all()


def test_whole_numbers_are_compared_to_their_last_digit() -> None:
    real = pd.DataFrame({"number": [640_000_001 + 64 * i for i in range(50)]})
    assert not is_copy(real - 1, real).any()


@pytest.mark.parametrize(
    "write", [in_single, lambda table: from_text(in_single(table)), lambda table: table.round(3)]
)
def test_rewritten_copies_are_found_under_other_labels(write) -> None:
    real = people().drop(columns="wide").assign(state=np.where(np.arange(300) % 4, "well", "ill"))
    # The last hundred keep theirs, and are neither added nor missing.
    swapped = real["state"].map({"ill": "well", "well": "ill"}).where(np.arange(300) < 200, real["state"])
    release = write(real).assign(state=swapped)
    (tables,) = relabelled_tables("state", list(real.columns[:-1]), (release, real, None))
    assert len(tables.release) == 200
    # As they were before: what is shown is the real record.
    pd.testing.assert_frame_equal(tables.real, real.drop(columns="state").head(200))
    assert is_copied(real.drop(columns="state"), release.drop(columns="state")).all()


def test_a_release_of_full_precision_has_no_copies_of_coarser_people() -> None:
    real = people()
    assert not is_copy(real, in_single(real)).any() and not is_copy(real, real.round(6)).any()


@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False),
        min_size=1,
        max_size=40,
    )
)
def test_printed_as_text_prints_them(numbers: list[float]) -> None:
    expected = [float(str(np.float32(number))) for number in numbers]
    assert match_precision._printed(np.array(numbers)).tolist() == expected


@given(
    st.lists(
        st.lists(
            st.sampled_from([0.1, 2.25, 3.0, np.nan, np.inf, 1e20, 1 / 3, -0.0, 12345.678]),
            min_size=4,
            max_size=4,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_decimals_of_columns_are_those_of_each(rows: list[list[float]]) -> None:
    values = np.array(rows)

    def plainly(numbers: np.ndarray) -> int | None:
        numbers = numbers[np.isfinite(numbers)]
        digits = 15 - int(np.ceil(np.log10(max(np.abs(numbers).max(initial=0), 1.0))))
        fitting = (d for d in range(min(12, digits) + 1) if (np.round(numbers, d) == numbers).all())
        return next(fitting, None) if len(numbers) else None

    expected = [plainly(column) for column in values.T]
    assert column_decimals(values) == expected
    assert [count_decimals(column) for column in values.T] == expected
