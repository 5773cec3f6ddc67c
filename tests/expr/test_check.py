"""Every expression is tried when a query is built: what cannot run is refused, data errors are not."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.expr.test_spark_coverage import CASES, TABLES

import weir
from weir.expr.check import check_expression
from weir.expr.evaluate import FUNCTIONS
from weir.expr.scope import Scope
from weir.expr.session import Session
from weir.query.sql import bind_expression, parse_condition


@pytest.mark.parametrize("session", [Session(), Session("America/New_York", ansi=False)], ids=str)
def test_no_expression_that_spark_can_evaluate_is_refused(session: Session) -> None:
    scope = Scope({name: table.schema for name, table in TABLES.items()}, session=session)
    for text in CASES:
        check_expression(bind_expression(parse_condition(text), scope))


def test_an_expression_that_cannot_run_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_for_long_text(out: pa.DataType, text: pa.Array) -> pa.Array:
        raise NotImplementedError("no kernel for this")

    monkeypatch.setitem(FUNCTIONS, "upper", replace(FUNCTIONS["upper"], run=fail_for_long_text))
    schema = pa.schema({"ts": pa.timestamp("us"), "s": pa.string()})
    with pytest.raises(weir.QueryError, match=r"upper\(a.s\) = b.s cannot be evaluated: no kernel for this"):
        weir.join(a=schema, b=schema, on="upper(a.s) = b.s AND a.s <> b.s", within="1 second")
