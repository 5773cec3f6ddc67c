"""What is left of a partition's state when another plan is decided, whether or not it gets rows."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from weir.kernel.migration_state import MigrationState, StateBuild
from weir.kernel.plan_migration import PhysicalPlans
from weir.plan.tree import join as tree
from weir.query.build import build_query
from weir.query.options import QueryOptions
from weir.runtime.memory_limit import fit_into_memory
from weir.runtime.partition_batch import PartitionState, SliceEntry

ROW = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
QUERY = build_query(
    dict.fromkeys("abc", ROW), QueryOptions(on="a.k = b.k AND b.k = c.k", within="10 seconds")
)
MJOIN, FIRST, OTHER = tree("a", "b", "c"), tree(tree("a", "b"), "c"), tree(tree("b", "c"), "a")
HELD = ("a", "b", "c", "(a b)")


def part(migration: MigrationState) -> PartitionState:
    def entry(node: str) -> SliceEntry:
        spans = {f"{name}@time": (0, 9) for name in "abc" if name in node}
        return SliceEntry(node, f"{node}.arrow", 0, 1, 0, 10, 100, spans, min(spans), 99, "")

    return PartitionState(tuple(map(entry, HELD)), migration=migration)


def test_what_was_made_for_a_third_plan_goes_and_the_rest_can_be_weighed() -> None:
    programs = PhysicalPlans(QUERY)
    left = part(MigrationState(MJOIN, building=StateBuild("(a b)", "a", 1))).prepare_for(OTHER, programs)
    assert left.migration == MigrationState(MJOIN)
    assert [entry.node for entry in left.slices] == ["a", "b", "c"]
    kept, gone = fit_into_memory({0: left}, 250, 3, dict.fromkeys("abc", 50), None)
    assert [entry.rows for entry in kept[0].slices] == [10, 10, 2] and gone == {"c": 8}
    rest = kept[0].slices[2]
    assert rest.is_rest and rest.thinning is not None and rest.thinning.rows == 10
    assert rest.weight == pytest.approx(1 / rest.thinning.share)
    again = rest.thin(0.5, 4)
    assert again.thinning == replace(rest.thinning, share=rest.thinning.share / 2), "a part of the same rows"


def test_what_is_being_made_for_the_plan_stays() -> None:
    half = part(MigrationState(MJOIN, building=StateBuild("(a b)", "a", 1)))
    assert half.prepare_for(FIRST, PhysicalPlans(QUERY)) == half


def test_a_plan_that_needs_no_other_states_is_active_at_once() -> None:
    left = part(MigrationState(FIRST)).prepare_for(MJOIN, PhysicalPlans(QUERY))
    assert left.migration == MigrationState(MJOIN)
    assert [entry.node for entry in left.slices] == ["a", "b", "c"]
