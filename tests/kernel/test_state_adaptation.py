"""Slices of one query, adapted to another, hold what that one would have stored of the same rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weir.kernel.decision import Decision
from weir.kernel.ingest import ingest
from weir.kernel.keys import decode, encode, is_decodable
from weir.kernel.physical_plan import compile_plan
from weir.kernel.slice import Slice
from weir.kernel.state import State
from weir.kernel.state_adaptation import Missing, StateAdapter, describe_form
from weir.plan.default_plan import mjoin
from weir.query.build import build_query
from weir.query.model import Query
from weir.query.options import QueryOptions
from weir.stats.batch_counts import BatchCounts

ROW = pa.schema(
    {
        "ts": pa.timestamp("us"), "k": pa.int64(), "v": pa.int32(), "f": pa.float64(), "s": pa.string(),
        "d": pa.decimal128(9, 2), "day": pa.date32(), "flag": pa.bool_(), "id": pa.int64(),
    }
)  # fmt: skip
EVERYTHING = "a.ts, a.k, a.v, a.f, a.s, a.d, a.day, a.flag, a.id, b.k AS x"
CONDITIONS = (
    "a.k = b.k", "b.k = a.k AND a.v < b.v", "a.v = b.v", "a.k <=> b.k", "a.s = b.s AND a.k = b.k",
    "a.s <=> b.s", "a.d = b.d", "a.day = b.day", "a.flag = b.flag AND a.k < b.k", "a.ts = b.ts", "a.f = b.f",
    "a.k = b.k AND a.v = b.k", "a.k + 1 = b.k", "a.d = b.k", "a.s = b.s AND upper(a.s) = b.s", "a.v = b.f",
    "a.k = b.k AND a.s = b.s AND a.day = b.day",
)  # fmt: skip
SELECTS = (EVERYTHING, "a.k", "a.v, a.ts AS t", "a.s", "a.d, a.day", "b.k AS x", "a.f, a.flag")


def ask(on: str, select: str, schema: pa.Schema = ROW) -> Query:
    options = QueryOptions(on=on, select=select, within="9 seconds", cross=True)
    return build_query({"a": schema, "b": schema}, options)


def rows(rng: np.random.Generator, count: int = 40) -> pa.Table:
    def some(values: Any, share: float = 0.15) -> pa.Array:
        return pa.array(values, mask=rng.random(count) < share)

    columns = {
        "ts": pa.array(rng.integers(0, 20, count)),
        "k": some(rng.integers(0, 4, count)),
        "v": some(rng.integers(0, 4, count)),
        "f": some(rng.choice([-0.0, 0.0, 1.5, np.nan], count)),
        "s": some(rng.choice(["A", "b", "a LONG NAME OF IT", "A LONG NAME OF IT"], count)),
        "d": some(rng.integers(0, 4, count)).cast(pa.decimal128(21, 2)),
        "day": some(rng.integers(0, 4, count).astype(np.int32)),
        "flag": some(rng.random(count) < 0.5),
        "id": pa.array(np.arange(count)),
    }
    return pa.table({n: c.cast(ROW.field(n).type) for n, c in columns.items()}, ROW)


def store(query: Query, table: pa.Table) -> Slice | None:
    """The slice of stream a that a query stores of some rows; None if it drops all."""
    physical = compile_plan(query, mjoin(query))
    state = ingest(physical, Decision(mjoin(query), ("a", "b")), State(), {"a": table}, 0, BatchCounts())
    slices = state.of("a")
    return slices[0] if slices else None


def bag(data: pa.RecordBatch) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in data.to_pylist())


@pytest.mark.parametrize("first", CONDITIONS)
def test_adapted_rows_are_those_that_the_new_query_would_have_stored(first: str) -> None:
    """The first query keeps every column; the rows that its keys dropped stay dropped."""
    filled = 0
    for number, second in enumerate(CONDITIONS):
        table = rows(np.random.default_rng(number))
        stored, new = store(ask(first, EVERYTHING), table), ask(second, SELECTS[number % len(SELECTS)])
        assert stored is not None
        schema = compile_plan(new, mjoin(new)).schemas["a"]
        adapter = StateAdapter(describe_form(stored.schema), schema, {"a": "ts", "b": "ts"})
        assert adapter.find_missing() is None
        adapted, kept = adapter.adapt(stored.data)
        assert kept is None or int(kept.sum()) == adapted.num_rows
        assert adapted.schema.equals(schema.arrow_schema)
        wanted = store(new, table.filter(pc.is_in(table["id"], stored.data["a.id"])))
        assert bag(adapted) == (Counter() if wanted is None else bag(wanted.data))
        filled += wanted is not None
    assert filled >= 0.9 * len(CONDITIONS)


@pytest.mark.parametrize("on", CONDITIONS)
def test_a_query_needs_nothing_that_it_stored_itself(on: str) -> None:
    for select in SELECTS:
        stored = store(ask(on, select), rows(np.random.default_rng(1)))
        assert stored is not None
        adapter = StateAdapter(describe_form(stored.schema), stored.schema, {"a": "ts", "b": "ts"})
        assert adapter.find_missing() is None
        assert str(adapter.adapt(stored.data)[0].to_pylist()) == str(stored.data.to_pylist())


@pytest.mark.parametrize(
    ("stored", "asked", "missing"),
    [
        (("a.k = b.k", "a.k"), ("a.k = b.k", "a.v"), Missing("a.v", "int")),
        (("a.k = b.k", "a.k"), ("a.k = b.k AND a.s = b.s", "a.k"), Missing("a.s", "string")),
        (("a.f = b.f", "a.k"), ("a.f = b.f", "a.f"), Missing("a.f", "double")),
        (("a.k + 1 = b.k", "a.v"), ("a.k = b.k", "a.v"), Missing("a.k", "bigint")),
        (("a.k + 1 = b.k", "a.v"), ("a.k + 1 = b.k", "a.v"), None),
        (("a.k + 1 = b.k", "a.v"), ("a.k + 1 = b.f", "a.v"), Missing("a.k", "bigint")),
        (("a.k + 1 = b.k", "a.v"), ("a.k + 1 = b.k AND a.v = b.k", "a.v"), None),
        (("a.d = b.d", "a.v"), ("a.k < b.k AND a.d = b.d", "a.d"), Missing("a.k", "bigint")),
        (("a.d = b.d AND a.day = b.day", "a.v"), ("a.v = b.v", "a.d, a.day, a.ts"), None),
        (("a.s = b.s", "a.v"), ("a.s <=> b.s", "a.v"), None),
    ],
)
def test_what_the_state_lacks_is_named(
    stored: tuple[str, str], asked: tuple[str, str], missing: Missing | None
) -> None:
    old, new = (compile_plan(query, mjoin(query)).schemas["a"] for query in (ask(*stored), ask(*asked)))
    assert StateAdapter(describe_form(old), new, {"a": "ts", "b": "ts"}).find_missing() == missing


def test_columns_become_wider_and_new_ones_are_null() -> None:
    table = rows(np.random.default_rng(3))
    wide = pa.schema([*ROW, pa.field("new", pa.string())])
    for name, kind in (("v", pa.int64()), ("d", pa.decimal128(20, 4))):
        wide = wide.set(wide.get_field_index(name), pa.field(name, kind))
    stored = store(ask("a.k = b.k AND a.d = b.d", "a.v"), table)
    new = ask("a.k = b.k AND a.d = b.d AND a.v = b.v", "a.v, a.d, a.new", wide)
    schema = compile_plan(new, mjoin(new)).schemas["a"]
    assert stored is not None
    form = describe_form(stored.schema)
    assert StateAdapter(form, schema, {"a": "ts"}).find_missing() == Missing("a.new", "string")
    adapted, _ = StateAdapter(form, schema, {"a": "ts"}, ["a.new"]).adapt(stored.data)
    again = store(new, table.cast(pa.schema([wide.field(name) for name in ROW.names])).append_column(
        wide.field("new"), pa.nulls(len(table), pa.string())
    ))  # fmt: skip
    assert again is not None and again.rows > 5 and bag(adapted) == bag(again.data)


@pytest.mark.parametrize("column", [name for name in ROW.names if is_decodable(ROW.field(name).type)])
def test_values_are_decoded_from_their_codes(column: str) -> None:
    kind = ROW.field(column).type
    values = rows(np.random.default_rng(2))[column].combine_chunks().drop_null()
    assert len(values) > 20 and decode(encode(values, kind, False)[0], kind).equals(values)
