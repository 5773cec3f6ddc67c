"""Fork a running query, so that the same batch can run from the same state several times."""

from __future__ import annotations

from copy import deepcopy

from weir.local.query import LocalQuery


def fork(query: LocalQuery) -> LocalQuery:
    """Copy a query between two batches: both go on from the same state, and neither sees the other's batches.

    What no batch changes in place is shared: slices with their indexes, compiled plans, manifests, reports.
    """
    engine, batches = query._engine, query._batches
    shared = [query.query, query.schema, query._plans, query.manifest, engine._running]
    shared += query._memory._slices.values()
    shared += [batches.last_report, *batches.progress.values()]
    return deepcopy(query, {id(part): part for part in shared})
