"""What a constant decides is not evaluated, as in Spark; `tests/fuzz` compares errors with Spark itself."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.query.sql import bind_value, parse_condition

SCOPE = Scope({"a": pa.schema({"s": pa.string(), "ok": pa.bool_(), "x": pa.int32(), "y": pa.int32()})})


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("cast(a.s AS INT) > 3 AND false", "false"),
        ("true OR cast(a.s AS INT) > 3", "true"),
        ("a.ok AND true", "a.ok"),
        ("a.ok AND NOT (a.ok OR true)", "false"),
        ("cast(a.s AS INT) + NULL", "NULL"),
        ("cast(a.s AS INT) <=> cast(a.s AS INT)", "true"),
        ("a.x <=> NULL", "a.x IS NULL"),
        ("a.x = a.x", "a.x = a.x"),
        ("(cast(a.s AS INT) <=> 3) IS NULL", "false"),
        ("coalesce(cast(a.s AS INT), 3) IS NOT NULL", "true"),
        ("(a.x > a.y) IS NULL", "a.x IS NULL OR a.y IS NULL"),
        ("if(cast(a.s AS INT) > 3, a.x, a.x)", "a.x"),
        ("if(a.ok AND NULL, a.x, a.y)", "a.y"),
        ("CASE WHEN a.ok THEN a.x WHEN true THEN a.y ELSE 7 END", "CASE WHEN a.ok THEN a.x ELSE a.y END"),
        ("if(NULL, a.x, a.y)", "a.y"),
        ("nvl2(cast(a.s AS INT), a.x, a.x)", "a.x"),
        ("nullif(a.x, NULL)", "a.x"),
        ("a.s IN (NULL, NULL)", "NULL"),
        ("lower(upper(a.s))", "lower(a.s)"),
        ("2 + a.x + a.y + 3", "a.x + a.y + 5"),
        ("(a.x + 2147483647) + -2147483647", "a.x"),
        ("try_multiply(2, a.x * a.y)", "try_multiply(try_multiply(a.x, a.y), 2)"),
        ("a.x + try_add(a.y, 2)", "a.x + a.y + 2"),
        ("cast(cast(a.x AS FLOAT) AS DOUBLE)", "a.x"),
        ("coalesce(a.x, NULL, a.y)", "coalesce(a.x, NULL, a.y)"),
    ],
)
def test_what_a_constant_decides_is_left_out(text: str, simple: str) -> None:
    assert to_sql(bind_value(parse_condition(text), SCOPE)) == simple
