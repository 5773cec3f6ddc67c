"""Parked slices change no result: whatever stream is ahead, and whatever the plan, or the plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import strategies as st

from weir.local.engine import LocalEngine, Memory
from weir.runtime import commit

from .case import Case
from .generate import cuts, relational
from .reference import Results, admit, by_duckdb
from .run import compare, explore, run_batches
from .test_replan import changing, cut_finely, dense, everything
from .time_bounds import time_bounds

BATCHES = 10


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Park every slice that may be, on the local engine, and count those that are not opened."""
    counted: Counter[str] = Counter()
    park = commit._park

    def count_parked(*given: Any) -> Any:
        parts = park(*given)
        counted["parked"] += sum(entry.parked for part in parts.values() for entry in part.slices)
        return parts

    read = Memory.read

    def count_opened(memory: Memory, entry: Any, physical: Any) -> Any:
        counted["opened again"] += entry.parked
        return read(memory, entry, physical)

    monkeypatch.setattr(LocalEngine, "parks", True)
    monkeypatch.setattr(commit, "MIN_PARKED_ROWS", 1)
    monkeypatch.setattr(commit, "_park", count_parked)
    monkeypatch.setattr(Memory, "read", count_opened)
    yield counted
    assert counted["parked"] > 1000 and 100 < counted["opened again"] < 0.8 * counted["parked"], counted


@st.composite
def unequally_fast(draw: st.DrawFn) -> Case:
    """Joins in several batches, of which each stream brings another share of its rows."""
    case = draw(st.one_of(relational(), time_bounds()))
    rng = Random(draw(st.integers(0, 2**32)))
    return replace(
        case,
        inputs=tuple(replace(one, cuts=cuts(len(one.table), BATCHES, rng)) for one in case.inputs),
    )


def wanted(case: Case) -> Results:
    return by_duckdb(case, {name: [row for _, row in rows] for name, rows in admit(case).rows.items()})


def test_parked_slices_are_opened_in_time(seen: Counter[str]) -> None:
    def check(case: Case) -> Results:
        expected = wanted(case)
        compare(run_batches(case)[0], expected)
        return expected

    explore(unequally_fast(), check, examples=150)


def test_a_plan_that_changes_finds_what_was_parked(seen: Counter[str]) -> None:
    def check(case: Case) -> Results:
        expected = wanted(case)
        compare(changing(case, everything, Counter()), expected)
        return expected

    explore(st.one_of(cut_finely(), dense()), check, examples=80)
