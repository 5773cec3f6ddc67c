"""Allowances and ages: what they hold, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.tree import join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop

PLAN = join("a", "b", "c")


@given(st.frozensets(st.integers(0, 20)), st.integers(1, 50), st.integers(-200, 1500))
def test_runs_hold_exactly_the_ages_kept(kept: frozenset[int], every: int, age: int) -> None:
    runs = [(first is None or first <= age) and age <= last for first, last in Ages(every, kept).runs()]
    assert sum(runs) == (max(age, 0) // every in kept)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: Ages(0, frozenset()), "1 or more; got 0"),
        (lambda: Ages("2 seconds", frozenset()), "1 or more; got '2 seconds'"),
        (lambda: Ages(10, frozenset({0.5})), "numbered 0, 1, 2"),
        (lambda: Allowance(sample="x"), "a share from 0 to 1"),
        (lambda: Allowance(sample=1.5), "a share from 0 to 1"),
        (lambda: Allowance(ages={Hop("a", str(PLAN), "b"): frozenset({1})}), "are written weir.Ages"),
        (lambda: Allowance(drop={"a": 2.0}), "from 0 to 1"),
        (lambda: Allowance(drop={"x": 0.5}).check(PLAN), "'x'"),
    ],
)
def test_what_is_no_allowance_is_refused(ask: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        ask()


def test_unknown_fields_are_refused_with_the_known_ones() -> None:
    with pytest.raises(QueryError, match=r"unknown key 'probe' .* did you mean 'probes'"):
        Allowance(probe={})  # type: ignore[call-arg]
    with pytest.raises(QueryError, match=r"unknown key 'keep' .* did you mean 'kept'"):
        Ages(1, keep={0})  # type: ignore[call-arg]
