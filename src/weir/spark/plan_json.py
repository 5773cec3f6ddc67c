"""Plans, and how far partitions are on the way to them, as they stand in the checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from weir.kernel.migration_state import MigrationState, StateBuild
from weir.plan.tree import Join, JTree, Leaf
from weir.query.windows import RowWindow, TimeWindow


def tree_to_json(tree: JTree) -> Any:
    """A join tree with its probing orders and windows."""
    if isinstance(tree, Leaf):
        return tree.stream
    window = {
        TimeWindow: lambda w: {"microseconds": w.microseconds},
        RowWindow: lambda w: {"rows": w.rows},
    }.get(type(tree.window), lambda w: None)(tree.window)
    return {
        "inputs": [tree_to_json(node) for node in tree.inputs],
        "orders": [list(order) for order in tree.orders],
        "window": window,
    }


def tree_from_json(found: Any) -> JTree:
    """The tree of `tree_to_json`."""
    if isinstance(found, str):
        return Leaf(found)
    window = found["window"]
    return Join(
        tuple(tree_from_json(node) for node in found["inputs"]),
        tuple(tuple(order) for order in found["orders"]),
        None if window is None else (RowWindow if "rows" in window else TimeWindow)(**window),
    )


def plan_from_json(found: Any) -> Join:
    """The plan of `tree_to_json`."""
    plan = tree_from_json(found)
    assert isinstance(plan, Join)
    return plan


def standing_to_json(standing: MigrationState) -> dict[str, Any]:
    """The plan that answers in a partition, and what is being made for another."""
    building = None if standing.building is None else asdict(standing.building)
    return {"plan": tree_to_json(standing.plan), "done": list(standing.done), "building": building}


def standing_from_json(found: Mapping[str, Any]) -> MigrationState:
    """The standing of `standing_to_json`."""
    building = None if found["building"] is None else StateBuild(**found["building"])
    return MigrationState(plan_from_json(found["plan"]), tuple(found["done"]), building)
