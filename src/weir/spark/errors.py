"""Errors of queries that run on Spark."""

from __future__ import annotations

from weir.errors import QueryError


class DamagedStateError(QueryError):
    """A file of the checkpoint is missing, damaged, or not what it should be; nothing was read from it."""

    def __init__(self, damage: str, hint: str = "") -> None:
        super().__init__(f"{damage}; {hint}" if hint else damage)
        self.damage = damage


class ChangedQueryError(QueryError):
    """The query differs from the one that wrote the checkpoint; the message says in what."""


class TakenOverError(QueryError):
    """Another driver started a query from the same checkpoint, so this one stops."""


class DiskFullError(QueryError):
    """A file could not be written for lack of room; once there is some, the next start goes on."""


def damaged_state(damage: str) -> DamagedStateError:
    """Return the error for what is wrong with a file, with what to do about it."""
    repair = "go back to a batch that is whole by: weir state repair CHECKPOINT"
    return DamagedStateError(damage, f"restore it, {repair}, or start with a new checkpointLocation")


def lost_state(damage: str) -> DamagedStateError:
    """Return the error for what no batch can do without, so that none is whole to which to go back."""
    return DamagedStateError(
        damage, "restore it, or start with a new checkpointLocation, which reads the streams again"
    )
