"""What can go wrong while a query runs on Spark."""

from __future__ import annotations

from weir.errors import QueryError


class DamagedStateError(QueryError):
    """A file of the checkpoint is missing, damaged, or not what it should be; nothing was read from it."""


class ChangedQueryError(QueryError):
    """The checkpoint belongs to another query; the message says what differs."""
