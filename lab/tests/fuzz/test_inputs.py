"""Fuzzing inputs: repeatable, and it finds a planted fault."""

from __future__ import annotations

import random
from typing import Any

import pytest

import weir
from weir.errors import QueryError
from weir_lab.fuzz.experiment import choose_sizes
from weir_lab.fuzz.inputs import Input, attempt, draw_inputs, try_inputs


def draw(count: int) -> list[Input]:
    return list(draw_inputs(random.Random(4), count))


def test_a_seed_repeats_its_inputs() -> None:
    assert draw(30) == draw(30)


def test_inputs_are_answered_or_refused() -> None:
    outcome = try_inputs(draw(60))
    assert outcome.failures == ()
    assert outcome.ends["answered"] >= 6
    assert outcome.ends["refused"] >= 6


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str, **arguments: Any) -> None:
        raise KeyError(text)

    monkeypatch.setattr(weir, "sql", fail)
    assert attempt(Input("sql", "SELECT")) == "KeyError: 'SELECT'"
    assert len(try_inputs([Input("sql", "SELECT")]).failures) == 1


def test_a_count_needs_a_part() -> None:
    assert choose_sizes(True, 7, "joins") == {"joins": 7}
    with pytest.raises(QueryError, match="--only"):
        choose_sizes(True, 7, None)
    with pytest.raises(QueryError, match="expressions, joins, inputs"):
        choose_sizes(True, None, "everything")
