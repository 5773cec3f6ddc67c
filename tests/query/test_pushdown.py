"""What is pushed down to one stream, and what remains; `tests/spark/test_projection.py` runs it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from weir.errors import QueryError
from weir.expr.dialect import parse_statements, source_text
from weir.query.build import build_query, push_down_clauses
from weir.query.options import QueryOptions
from weir.query.pushdown import Pushdown
from weir.query.sql import read_clauses
from weir.query.windows import rows

PLACE = pa.struct([("x", pa.int32()), ("in", pa.struct([("z", pa.string())]))])
ROW = pa.schema(
    {
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.string(),
        "x": pa.int32(),
        "st": PLACE,
        "xs": pa.list_(pa.int32()),
    }
)
SCHEMAS = {"a": ROW, "b": ROW.append(pa.field("only", pa.int32()))}


def push(on: str, select: str | None = None, within: Any = "10 minutes", **options: Any) -> Pushdown:
    asked = QueryOptions(on=on, select=select, within=within, **options)
    return push_down_clauses(SCHEMAS, asked, read_clauses(asked))


def remains(pushed: Pushdown) -> list[str]:
    return [node.sql("spark").replace("`", "") for node in pushed.clauses.conditions]


def computed(pushed: Pushdown) -> list[str]:
    return [f"{part.stream}: {part.text}" for part in pushed.computed]


@pytest.mark.parametrize(
    ("on", "parts", "filters"),
    [
        ("a.k = b.k AND a.x < b.x", [], []),
        ("lower(a.k) = lower(b.k)", ["a: lower(a.k)", "b: lower(b.k)"], []),
        ("a.k = b.k AND (a.x > 3 OR a.k = 'x') AND only < 2", [], ["a.x > 3 OR a.k = 'x'", "only < 2"]),
        ("a.x + 1 + b.x > (b.x - 1) * a.x", ["a: a.x + 1", "b: b.x - 1"], []),
        ("b.x + a.x + 1 > 2", [], []),
        ("a.k = b.x AND b.only < a.k", ["a: CAST(a.k AS BIGINT)"], []),
        ("a.k <=> b.x * 0.5", ["a: CAST(a.k AS DOUBLE)", "b: CAST(b.x * 0.5 AS DOUBLE)"], []),
        ("a.k = b.k AND hour(a.ts) = 1", ["a: hour(a.ts) = 1"], []),
        ("b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 MINUTES AND a.k = b.k", [], []),
        ("b.x BETWEEN a.x AND a.x + 5", ["a: a.x + 5"], []),
        ("NOT (a.x > 3 OR lower(a.k) = b.k)", ["a: lower(a.k)"], ["NOT (a.x > 3)"]),
        ("exists(a.xs, e -> e > a.x) AND exists(a.xs, e -> e > b.x)", [], ["exists(a.xs, e -> e > a.x)"]),
        ("timestampadd(HOUR, 1, a.ts) > b.ts", ["a: timestampadd(HOUR, 1, a.ts)"], []),
        ("CASE WHEN a.x > 1 THEN b.x * 2 ELSE 0 END = 3", ["a: a.x > 1", "b: b.x * 2"], []),
        ("near(upper(a.k), b.k) AND near(a.k, a.k)", ["a: upper(a.k)"], []),
        ("a.xs[0] = b.xs[b.x]", ["a: a.xs[0]", "b: b.xs[b.x]"], []),
        ("lower( a.k ) = b.k AND lower( a.k ) > b.k", ["a: lower( a.k )"], []),
    ],
)
def test_maximal_parts_over_one_stream_are_pushed_down(on: str, parts: list[str], filters: list[str]) -> None:
    pushed = push(on, functions={"near": lambda x, y: x})
    assert computed(pushed) == parts
    assert [part.text for part in pushed.filters] == filters


def test_what_remains_refers_to_columns_named_after_their_text() -> None:
    pushed = push(
        "lower(a.k) = lower(b.k) AND date_format(a.ts, 'MM') = b.k AND date_format(a.ts, 'mm') = b.k"
    )
    assert remains(pushed) == [
        "a.weir:lower(a.k) = b.weir:lower(b.k)",
        "a.weir:date_format(a.ts, 'MM') = b.k",
        "a.weir1:date_format(a.ts, 'mm') = b.k",
    ]


@pytest.mark.parametrize(
    ("on", "conjuncts"),
    [
        ("(a.x, a.k) = (b.x, b.k)", ["a.x IS NOT DISTINCT FROM b.x", "a.k IS NOT DISTINCT FROM b.k"]),
        ("struct(a.x) <=> struct(b.x)", ["a.x IS NOT DISTINCT FROM b.x"]),
        (
            "a.st = b.st",
            [
                "a.weir:a.st.x IS NOT DISTINCT FROM b.weir:b.st.x",
                "a.weir:a.st.in IS NULL IS NOT DISTINCT FROM b.weir:b.st.in IS NULL",
                "a.weir:a.st.in.z IS NOT DISTINCT FROM b.weir:b.st.in.z",
            ],
        ),
    ],
)
def test_structs_are_compared_field_by_field(on: str, conjuncts: list[str]) -> None:
    assert remains(push(on)) == conjuncts


@pytest.mark.parametrize("on", ["(a.x, a.k) = (b.k, b.k)", "struct(a.k, a.x) = struct(b.k, upper(b.k))"])
def test_text_in_structs_is_not_compared_with_numbers(on: str) -> None:
    with pytest.raises(QueryError, match=r"fields of structs and rows are not cast: a\.x and"):
        push(on)


def test_a_row_window_keeps_rows_that_a_filter_drops() -> None:
    pushed = push("a.k = b.k AND a.x > 3 AND b.x > 3", within={"a": rows(5), "b": "1 minute"})
    assert computed(pushed) == ["a: a.x > 3"]
    assert [part.text for part in pushed.filters] == ["b.x > 3"]


def test_output_columns_keep_their_names() -> None:
    options = QueryOptions(
        on="a.k = b.k", select="a.x+1, a.st.x, b.k, lower(a.k) AS l, a.x + b.x", within="1 minute"
    )
    pushed = push_down_clauses(SCHEMAS, options, read_clauses(options))
    schemas = dict(SCHEMAS)
    for part in pushed.computed:
        schemas[part.stream] = schemas[part.stream].append(pa.field(part.name, pa.string()))
    asked = build_query(schemas, options, pushed.clauses)
    assert [output.name for output in asked.select] == ["a.x + 1", "a.st.x", "k", "l", "a.x + b.x"]
    everything = build_query(schemas, replace(options, select=None), replace(pushed.clauses, select=None))
    assert [output.name for output in everything.select] == [
        f"{stream}_{name}" for stream, schema in SCHEMAS.items() for name in schema.names
    ]


@pytest.mark.parametrize(
    "text",
    [
        r"lower(a.k) = 'x\q\n\u0041\101'",
        "a.x::int + 1L + 2S + 1.5BD",
        r"a.k RLIKE r'\d+'",
        "array(a.x, 2)[0]",
        "a.ts - interval 1 day 2 hours",
        "a.k = 'a' 'b'",
        "- a.x = +3",
        "a.x == 3 and !(a.x != 4)",
        "a.x & 1 << 2",
        "case a.x when 1 then 'a' else \"b\" end",
        "trim(both 'x' from a.k)",
        "transform(a.xs, (e, i) -> e + i)[0]",
        "a.`k`",
        "X'1F'",
        "date'2024-01-01'",
        "a.x is not distinct from 3",
        "a.k not like 'a\\%' escape '/'",
    ],
)
def test_spark_gets_the_text_as_it_was_written(text: str) -> None:
    (node,) = parse_statements(text, "")
    assert source_text(node) == text
    (node,) = parse_statements(f"f({text}, 1) > b.x", "")
    assert source_text(node.this.expressions[0]) == text
