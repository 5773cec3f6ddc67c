"""Adapt a manifest to a query that has changed: what its first batch starts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.adapt.recall import Recall
from weir.adapt.statistics import Statistics
from weir.kernel.migration_state import MigrationState
from weir.kernel.state_schema import StateSchema, derive_schemas
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join
from weir.query.model import Query
from weir.runtime.manifest import Manifest
from weir.runtime.partition_batch import PartitionState


def adapt_manifest(before: Manifest, query: Query) -> Manifest:
    """Return a manifest of an earlier query as this query starts from it.

    The rows of streams stay, with the deadlines that follow from the new windows. Joins of them do not: the
    one join of all streams is active until plan migration has built the decided plan's states again.
    What was learned of the earlier query is forgotten.
    """
    plan = mjoin(query)
    leaves = derive_schemas(query, plan)
    parts = {number: _adapt_part(part, plan, leaves) for number, part in before.parts.items()}
    return replace(before, parts=parts, recall=Recall(), statistics=Statistics())


def _adapt_part(part: PartitionState, plan: Join, leaves: Mapping[str, StateSchema]) -> PartitionState:
    slices = tuple(
        replace(entry, deadline=leaves[entry.node].end_of(entry.spans))
        for entry in part.slices
        if entry.node in leaves
    )
    return replace(part, slices=slices, migration=MigrationState(plan))
