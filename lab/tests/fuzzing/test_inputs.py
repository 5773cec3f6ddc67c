"""Fuzzing inputs: repeatable, and it finds a planted fault."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest

import weir
from weir.errors import QueryError
from weir_lab.aim import Aim
from weir_lab.fuzz import expressions
from weir_lab.fuzz.experiment import Finding, choose_sizes
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


def test_findings_can_be_written_as_json() -> None:
    # A Counter does not survive asdict.
    outcome = expressions.Outcome(1, (), Counter({"takes numbers": 2}), 0)
    finding = Finding("expressions", Aim("", "", "", True), outcome.differences, dict(outcome.refused))
    assert json.loads(json.dumps(asdict(finding)))["refused"] == {"takes numbers": 2}
