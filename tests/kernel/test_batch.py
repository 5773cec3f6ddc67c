"""Results do not depend on how rows are cut into batches; every hop is counted."""

from __future__ import annotations

from itertools import permutations

import pyarrow as pa
import pytest

import weir
from weir.plan.tree import join
from weir.stats.hop import Hop

from .timeline import SCHEMA, Batch, Row, play, process, started, table

ABC = join("a", "b", "c")


def test_duplicates_are_kept() -> None:
    play(
        started("ab", within=10),
        Batch([Row("a", t=1), Row("a", t=1)]),
        Batch([Row("b", t=2), Row("b", t=2)], expect=["a1 b2"] * 4),
        Row("a", t=1, expect=["a1 b2"] * 2),
    )


@pytest.mark.parametrize("order", list(permutations("abc")), ids="".join)
@pytest.mark.parametrize("plan", ["mjoin", join(join("c", "a"), "b")], ids=str)
def test_each_result_once_for_every_driver_order(order: tuple[str, ...], plan: object) -> None:
    play(
        started("abc", within=10, late=10, driver_order=order, plan=plan),
        Batch([Row("a", t=1), Row("b", t=2), Row("c", t=3)], expect=["a1 b2 c3"]),
        Batch([Row("a", t=4), Row("c", t=5)], expect=["a1 b2 c5", "a4 b2 c3", "a4 b2 c5"]),
        Row("b", t=0, expect=["a1 b0 c3", "a1 b0 c5", "a4 b0 c3", "a4 b0 c5"]),
    )


def test_a_stream_joined_with_itself() -> None:
    """Every row joins itself, and each pair is pairs in both directions."""
    rows = table([Row("x", t=1), Row("x", t=4), Row("x", t=20)])
    pairs = weir.join(
        a=rows, b=rows, on="a.k = b.k", within="10 us", select="a.name || b.name AS result"
    ).to_arrow()
    assert sorted(pairs.column("result").to_pylist()) == ["x1x1", "x1x4", "x20x20", "x4x1", "x4x4"]


def test_an_empty_batch_changes_nothing() -> None:
    query = started("ab", within=10)
    play(query, Row("a", t=1))
    before = query.state.sizes()
    assert query.process().num_rows == 0
    assert query.process(a=SCHEMA.empty_table(), b=SCHEMA.empty_table()).num_rows == 0
    assert query.state.sizes() == before
    play(query, Row("b", t=2, expect=["a1 b2"]))


def test_no_result_while_a_stream_has_no_rows() -> None:
    play(started("abc", within=10), Batch([Row("a", t=1), Row("b", t=2)]), Row("a", t=3), Row("b", t=4))


def test_an_empty_result_has_its_columns() -> None:
    query = started("ab", within=10, select="a.k AS k, b.ts - a.ts AS gap")
    assert query.process().schema == pa.schema({"k": pa.int64(), "gap": pa.duration("us")})


def test_null_keys_join_only_null_safe() -> None:
    rows = [Row("a", t=1, k=None), Row("b", t=2, k=None)]
    play(started("ab", within=10), Batch(rows))
    play(started("ab", within=10, on="a.k <=> b.k"), Batch(rows, expect=["a1 b2"]))


def test_statistics_of_every_hop() -> None:
    """
    b's delta of 2 finds 1 row of a by key; that partial finds 3 rows of c, of which 2 pass the residual.
    """
    query = started("abc", on="a.k = b.k AND b.k = c.k AND (c.name <> 'c3' OR a.k < 0)", within=10, plan=ABC)
    play(query, Batch([Row("a", t=1, k=1), Row("a", t=1, k=2), *(Row("c", t=t, k=1) for t in (2, 3, 4))]))
    process(query, Batch([Row("b", t=5, k=1), Row("b", t=5, k=9)]))
    assert query.last_report is not None
    first, second = (query.last_report.per_hop[Hop("b", "(a b c)", partner)] for partner in "ac")
    assert (first.probes, first.comparisons, first.matches) == (2, 1, 1)
    assert (second.probes, second.comparisons, second.matches) == (1, 3, 2)
    assert query.last_report.results == 2
    assert second.visited == 1, "few rows lie in one slice"
