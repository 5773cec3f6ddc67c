"""Which kind each conjunct becomes, and what follows from the equalities."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weir.expr.nodes import Call, Column, Expr, Literal
from weir.expr.scope import Scope
from weir.expr.to_sql import to_sql
from weir.query.attribute_classes import find_attribute_classes
from weir.query.classify import classify
from weir.query.model import Stream
from weir.query.predicate import (
    Band,
    Comparison,
    Cosine,
    Equality,
    Filter,
    Predicate,
    Residual,
)
from weir.query.sql import bind_expression, parse_condition
from weir.query.windows import TimeBound

from .schemas import THREE

SECOND = 1_000_000
STREAMS = tuple(Stream(name, schema, "ts") for name, schema in THREE.items())


def parse(text: str, scope: Scope) -> Expr:
    return bind_expression(parse_condition(text), scope)


def predicate(text: str) -> Predicate:
    return classify(parse(text, Scope(THREE)), STREAMS)


def written(parts: tuple[Filter, ...]) -> list[str]:
    return [to_sql(part.expr) for part in parts if "NOT NULL" not in to_sql(part.expr).upper()]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a.k = b.k", [Equality]),
        ("a.k <=> b.k", [Equality]),
        ("a.k IS NOT DISTINCT FROM b.k", [Equality]),
        ("a.i + b.i = c.l", [Equality]),
        ("a.i = b.d", [Equality]),
        ("upper(a.k) = b.k", [Equality]),
        ("a.i = b.i + a.j", [Residual]),
        ("a.i <> b.i", [Residual]),
        ("NOT (a.k <=> b.k)", [Residual]),
        ("a.i > b.i", [Comparison]),
        ("NOT a.i > b.i", [Comparison]),
        ("NOT (a.i > b.i OR a.k <> b.k)", [Comparison, Equality]),
        ("a.k <= b.k", [Comparison]),
        ("a.day < b.day", [Comparison]),
        ("a.zoned < b.zoned", [Comparison]),
        ("a.flag < b.flag", [Residual]),
        ("a.i - b.i < 1", [Residual]),
        ("a.i BETWEEN b.i - 1 AND b.i + 1", [Comparison, Comparison]),
        ("a.i NOT BETWEEN b.i AND b.j", [Residual]),
        ("abs(a.i - b.i) <= 1", [Band]),
        ("abs(a.i - b.i) < 1", [Band]),
        ("1 >= abs(a.i - b.i)", [Band]),
        ("abs(a.d - b.d) <= 0.5", [Band]),
        ("abs(a.i - b.i) <= 0.5", [Band]),
        ("abs(a.p - b.p) <= 0.5", [Band]),
        ("abs(a.i + 1 - b.i) <= 1", [Band]),
        ("abs(a.i - b.i) <= -1", [Residual]),
        ("abs(a.i - b.i) < 0", [Residual]),
        ("abs(a.i - b.i) <= NULL", [Residual]),
        ("abs(a.d - b.d) <= CAST('inf' AS DOUBLE)", [Residual]),
        ("abs(a.i - b.i) > 1", [Residual]),
        ("abs(a.i - b.i) <= c.i", [Comparison]),
        ("cosine(a.v, b.v) >= 0.9", [Cosine]),
        ("cosine(a.v, b.v) > 0.9", [Cosine]),
        ("0.9 <= cosine(a.v, b.v)", [Cosine]),
        ("cosine(a.v, b.v) < 0.9", [Residual]),
        ("a.k = b.k OR a.i = b.i", [Residual]),
        ("a.k = b.k AND (b.i > c.i AND abs(a.d - c.d) < 2)", [Equality, Comparison, Band]),
        ("a.i = 1 AND b.i = 2", []),
    ],
)
def test_kinds(text: str, kinds: list[type]) -> None:
    assert [type(conjunct) for conjunct in predicate(text).conjuncts] == kinds


def test_sides_of_a_comparison() -> None:
    low, high = predicate("a.i BETWEEN b.i - 1 AND b.i + 1").conjuncts
    assert isinstance(low, Comparison) and isinstance(high, Comparison)
    assert (to_sql(low.left), low.op, to_sql(low.right)) == ("a.i", ">=", "b.i - 1")
    assert (to_sql(high.left), high.op, to_sql(high.right)) == ("a.i", "<=", "b.i + 1")
    assert low.streams == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "width"),
    [("abs(a.i - b.i) <= 1", 1), ("2 > abs(a.i - b.i)", 2), ("abs(a.d - b.d) < 0.5", 0.5)],
)
def test_band_widths(text: str, width: float) -> None:
    (band,) = predicate(text).conjuncts
    assert isinstance(band, Band)
    assert float(band.width.value) == width


def test_cosine_threshold() -> None:
    (cosine,) = predicate("0.9 < cosine(a.v, b.v)").conjuncts
    assert isinstance(cosine, Cosine)
    assert (cosine.threshold, to_sql(cosine.left)) == (0.9, "a.v")


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("b.ts >= a.ts - INTERVAL 5 SECONDS", [("b", "a", 5 * SECOND)]),
        ("b.ts > a.ts - INTERVAL 5 SECONDS", [("b", "a", 5 * SECOND - 1)]),
        ("a.ts - INTERVAL 5 SECONDS <= b.ts", [("b", "a", 5 * SECOND)]),
        ("b.ts <= a.ts + INTERVAL '1' MINUTE", [("a", "b", 60 * SECOND)]),
        ("b.ts < a.ts + INTERVAL 1 MINUTE", [("a", "b", 60 * SECOND - 1)]),
        ("b.ts - a.ts < INTERVAL 1 HOUR", [("a", "b", 3600 * SECOND - 1)]),
        ("INTERVAL 1 HOUR >= b.ts - a.ts", [("a", "b", 3600 * SECOND)]),
        ("b.ts - INTERVAL 1 SECOND - a.ts <= INTERVAL 1 SECOND", [("a", "b", 2 * SECOND)]),
        ("a.ts < b.ts", [("b", "a", -1)]),
        ("a.ts <= b.ts", [("b", "a", 0)]),
        ("NOT a.ts < b.ts", [("a", "b", 0)]),
        ("a.ts = b.ts", [("a", "b", 0), ("b", "a", 0)]),
        (
            "b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 1 MINUTE",
            [("b", "a", 5 * SECOND), ("a", "b", 60 * SECOND)],
        ),
        (
            "b.ts BETWEEN a.ts + INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECONDS AND c.ts > b.ts",
            [("b", "a", -SECOND), ("a", "b", 2 * SECOND), ("c", "b", -1)],
        ),
        ("b.ts - c.ts < a.ts - c.ts", [("a", "b", -1)]),
        ("abs(b.ts - a.ts) <= INTERVAL 5 SECONDS", [("a", "b", 5 * SECOND), ("b", "a", 5 * SECOND)]),
        ("INTERVAL 5 SECONDS > abs(b.ts - a.ts)", [("a", "b", 5 * SECOND - 1), ("b", "a", 5 * SECOND - 1)]),
        ("-(b.ts - a.ts) <= INTERVAL 5 SECONDS", [("b", "a", 5 * SECOND)]),
        ("b.ts - a.ts <= 2 * INTERVAL 5 SECONDS", [("a", "b", 10 * SECOND)]),
        ("abs(b.ts - a.ts) > INTERVAL 5 SECONDS", []),
        ("a.zoned < b.ts", []),
        ("b.ts - a.ts < c.ts - b.ts", []),
        ("a.ts < TIMESTAMP '2024-01-01 00:00:00'", []),
    ],
)
def test_time_bounds(text: str, bounds: list[tuple[str, str, int]]) -> None:
    classified = predicate(text)
    assert {(bound.earlier, bound.later, bound.microseconds) for bound in classified.bounds} == set(bounds)
    kept = [kind for kind in classified.conjuncts if not isinstance(kind, Equality)]
    assert bool(kept) == (not bounds and "TIMESTAMP" not in text)


def test_times_with_and_without_zone_are_bound_too() -> None:
    streams = (Stream("a", THREE["a"], "zoned"), Stream("b", THREE["b"], "ts"))
    scope = Scope({"a": THREE["a"], "b": THREE["b"]})
    assert classify(parse("a.zoned < b.ts", scope), streams).bounds == (TimeBound("b", "a", -1),)


def test_equal_times_are_a_key_as_well() -> None:
    classified = predicate("a.ts = b.ts + INTERVAL 1 SECOND")
    assert [type(kind) for kind in classified.conjuncts] == [Equality]
    assert len(classified.bounds) == 2


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        ("a.k = b.k AND b.k = c.k", [("k", "string", False, ["a.k", "b.k", "c.k"])]),
        ("a.i = b.i AND c.i = b.i", [("i", "int64", False, ["a.i", "b.i", "c.i"])]),
        ("a.i = b.l AND b.l = c.i", [("a.i=b.l=c.i", "int64", False, ["a.i", "b.l", "c.i"])]),
        ("a.i = b.i AND a.i = c.l", [("a.i=b.i=c.l", "int64", False, ["a.i", "b.i", "c.l"])]),
        (
            "a.l = b.l AND b.l = c.d",
            [("l", "int64", False, ["a.l", "b.l"]), ("b.l=c.d", "double", False, ["b.l", "c.d"])],
        ),
        ("a.f = b.f AND b.f = c.d", [("a.f=b.f=c.d", "double", False, ["a.f", "b.f", "c.d"])]),
        ("a.k <=> b.k", [("k", "string", True, ["a.k", "b.k"])]),
        ("a.k <=> b.k AND b.k = c.k", [("k", "string", False, ["a.k", "b.k", "c.k"])]),
        ("a.k <=> b.k AND b.k <=> c.k", [("k", "string", True, ["a.k", "b.k", "c.k"])]),
        (
            "a.k = b.k AND a.i = b.i",
            [("k", "string", False, ["a.k", "b.k"]), ("i", "int64", False, ["a.i", "b.i"])],
        ),
        ("a.p = b.p", [("p", "decimal128(10, 2)", False, ["a.p", "b.p"])]),
        ("a.i > b.i", []),
    ],
)
def test_attribute_classes(text: str, classes: list[tuple[str, str, bool, list[str]]]) -> None:
    classified = predicate(text).classes
    shown = [
        (known.name, str(known.domain), known.null_safe, list(map(to_sql, known.members)))
        for known in classified
    ]
    assert shown == classes


def test_an_explicit_narrowing_cast_stays() -> None:
    (known,) = predicate("CAST(a.l AS INT) = b.i").classes
    assert [member.type for member in known.members] == [pa.int32(), pa.int32()]
    assert not isinstance(known.members[0], Column)


def test_integers_compared_as_float_keep_that_cast() -> None:
    x, y = Column("a", "i", pa.int32()), Column("b", "f", pa.float32())
    rounded = Call("cast", (x,), pa.float32())
    edge = Equality(Call("=", (rounded, y), pa.bool_()), rounded, y, False)
    assert find_attribute_classes([edge])[0].members == (rounded, y)


def test_names_of_classes_are_unique() -> None:
    classified = predicate("a.i = b.i AND a.l = b.l AND a.d = b.l AND b.i = c.l AND c.f = a.d").classes
    names = [known.name for known in classified]
    assert len(set(names)) == len(names) == 3


def test_members_of_one_stream_are_equal_to_each_other() -> None:
    filters = predicate("a.i = b.i AND a.l = b.i").filters
    (derived,) = [part for part in filters if isinstance(part.expr, Call) and part.expr.function == "="]
    assert derived.stream == "a"
    assert {arg.type for arg in derived.expr.args} == {pa.int64()}


def test_null_safe_members_of_one_stream() -> None:
    classified = predicate("a.k <=> b.k AND upper(a.k) <=> b.k")
    assert [(part.stream, part.expr.function) for part in classified.filters] == [("a", "<=>")]


def test_members_of_the_same_two_streams_leave_a_residual() -> None:
    classified = predicate("a.i + b.i = c.i AND a.j + b.j = c.i")
    assert [type(kind) for kind in classified.conjuncts] == [Equality, Equality, Residual]


def test_nulls_that_equal_nothing_are_filtered() -> None:
    filters = predicate("a.l = b.sure AND b.k <=> c.k").filters
    assert [part.stream for part in filters] == ["a", "b"]
    assert all("NOT NULL" in to_sql(part.expr).upper() for part in filters)


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("a.k = b.k AND a.i > 1", ["a.i > 1"]),
        ("a.k = b.k AND a.i > a.j AND b.flag", ["a.i > a.j", "b.flag"]),
        ("a.k = b.k AND 1 = 1", []),
    ],
)
def test_filters(text: str, filters: list[str]) -> None:
    assert written(predicate(text).filters) == filters


@pytest.mark.parametrize("text", ["a.k = b.k AND 1 = 2", "a.k = b.k AND NULL", "FALSE"])
def test_a_condition_that_never_holds_filters_every_stream(text: str) -> None:
    never = [part.stream for part in predicate(text).filters if part.expr == Literal(False, pa.bool_())]
    assert never == ["a", "b", "c"]


def test_parts_cannot_be_built_wrong() -> None:
    x, y = Column("a", "i", pa.int32()), Column("b", "i", pa.int32())
    both = Call("=", (x, y), pa.bool_())
    with pytest.raises(ValueError, match="different streams"):
        Equality(both, x, x, False)
    with pytest.raises(ValueError, match="different streams"):
        Comparison(both, x, Literal(1, pa.int32()), "<")
    with pytest.raises(ValueError, match="is one of"):
        Comparison(both, x, y, "=")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least zero"):
        Band(both, x, y, Literal(-1, pa.int32()))
    with pytest.raises(ValueError, match="other streams"):
        Filter("a", both)
    with pytest.raises(ValueError, match="is a filter"):
        Residual(x)
