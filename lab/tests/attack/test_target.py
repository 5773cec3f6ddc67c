from __future__ import annotations

import pyarrow as pa
import pytest

from weir_lab.attack.target import compare
from weir_lab.attack.trial import Report, Trial


@pytest.mark.parametrize(
    ("written", "lost", "twice", "wrong"),
    [
        ([1, 2, 2, 3], 0, 0, 0),
        ([1, 2, 3], 1, 0, 0),
        ([1, 2, 2, 3, 3], 0, 1, 0),
        ([1, 2, 2, 9], 1, 0, 1),
        ([], 4, 0, 0),
    ],
)
def test_rows_are_compared_as_multisets(written: list[int], lost: int, twice: int, wrong: int) -> None:
    compared = compare(pa.table({"k": [3, 1, 2, 2]}), pa.table({"k": pa.array(written, pa.int64())}))
    assert (compared.lost, compared.twice, compared.wrong) == (lost, twice, wrong)
    assert compared.is_exact == (written == [1, 2, 2, 3])


def test_an_output_without_results_proves_nothing() -> None:
    nothing = pa.table({"k": pa.array([], pa.int64())})
    assert not compare(nothing, nothing).is_exact


def test_an_attack_is_reached_by_enough_good_trials() -> None:
    good, bad = Trial("a", "b", "refused"), Trial("a", "b", "unclear")
    assert Report("a", "", (good, good), 2, 1.0, 0, "").is_reached
    assert not Report("a", "", (good,), 2, 1.0, 0, "").is_reached
    assert not Report("a", "", (good, good, bad), 2, 1.0, 0, "").is_reached
    assert not Report("a", "", (good, good), 2, 1.0, 0, "", "not run: it needs root").is_reached
