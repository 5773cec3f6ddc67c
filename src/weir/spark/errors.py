"""Errors of queries that run on Spark."""

from __future__ import annotations

from weir.errors import QueryError


class DamagedStateError(QueryError):
    """A file of the checkpoint is missing, damaged, or not what it should be; nothing was read from it."""


class ChangedQueryError(QueryError):
    """The query differs from the one that wrote the checkpoint; the message says in what."""
