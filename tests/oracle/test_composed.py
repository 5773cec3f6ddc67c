"""Composed windows: every operator has its own, and the reference is the plan, operator by operator."""

from __future__ import annotations

from .case import Case
from .composed import by_operators, composed
from .reference import Results, admit
from .run import compare, compare_dropped, explore, run_batches


def check(case: Case) -> Results:
    admitted = admit(case)
    wanted = by_operators(case, admitted)
    found, dropped = run_batches(case)
    compare(found, wanted)
    compare_dropped(dropped, admitted)
    return wanted


def test_every_operator_has_its_own_window() -> None:
    explore(composed(), check, examples=120)
