"""Past failures of `weir-lab fuzz`, kept as texts: what once crashed, or differed from Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weir.errors import QueryError
from weir.expr.scope import Scope
from weir.expr.session import Session
from weir.query.sql import bind_value, parse_condition
from weir_lab.fuzz.columns import SCHEMA
from weir_lab.fuzz.expressions import compare
from weir_lab.fuzz.inputs import Input, attempt
from weir_lab.fuzz.joins import Case, compare_join
from weir_lab.fuzz.sessions import SESSIONS

CORPUS = Path(__file__).parent / "corpus"


def read_lines(name: str) -> list[str]:
    lines = (CORPUS / name).read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize("given", json.loads((CORPUS / "inputs.json").read_text()), ids=str)
def test_inputs_end_in_no_other_error(given: dict[str, Any]) -> None:
    assert attempt(Input(**given)) in ("answered", "refused", "failed on data")


@pytest.mark.parametrize("text", read_lines("refused.txt"))
def test_what_cannot_be_computed_as_spark_does_is_refused(text: str) -> None:
    with pytest.raises(QueryError):
        bind_value(parse_condition(text), Scope({"a": SCHEMA, "b": SCHEMA}))


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("session", SESSIONS[:4], ids=str)
def test_expressions_equal_spark(session: Session, spark: Any) -> None:
    differences, failing = compare(spark, read_lines("expressions.txt"), session, seed=1)
    assert differences == [], "\n".join(differences)
    assert failing


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "given", json.loads((CORPUS / "joins.json").read_text()), ids=lambda given: given["on"]
)
def test_joins_end_as_on_spark(given: dict[str, Any], spark: Any) -> None:
    drawn = {name: value for name, value in given.items() if name != "end"}
    case = Case(**{**drawn, "session": Session(**given["session"])})
    if given["end"] == "refused":  # Spark refuses it too
        with pytest.raises(QueryError):
            compare_join(spark, case)
    else:
        assert compare_join(spark, case) == given["end"]
