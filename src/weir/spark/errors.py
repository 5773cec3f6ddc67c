"""Errors of queries that run on Spark."""

from __future__ import annotations

from weir.errors import QueryError


class DamagedStateError(QueryError):
    """A file of the checkpoint is missing, damaged, or not what it should be; nothing was read from it."""


class ChangedQueryError(QueryError):
    """The query differs from the one that wrote the checkpoint; the message says in what."""


class TakenOverError(QueryError):
    """Another driver started a query from the same checkpoint, so this one stops."""


class DiskFullError(QueryError):
    """A file could not be written for lack of room; once there is some, the next start goes on."""


def damaged_state(damage: str) -> DamagedStateError:
    """Return the error for what is wrong with a file, with what to do about it."""
    return DamagedStateError(f"{damage}; restore it, or start with a new checkpointLocation")
