"""The model of a job script: stream sources, a SELECT and a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.adapt.settings import Adapt
from weir.query.model import Budget


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A stream declared by `CREATE STREAM`; if `columns` is None, the source provides the schema.

    `rate` is the expected number of rows per second, for the planner; `late` is in microseconds.
    """

    name: str
    columns: str | None
    format: str
    options: Mapping[str, str]
    time: str
    late: int
    line: int
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    """The INTO clause: where results go, and how the query runs.

    `trigger` is the time between batches in microseconds, None for none. `adapt` is as in `weir.join`; None
    adapts if there is a budget.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    trigger: int | None = None
    budget: Budget | None = None
    adapt: Adapt | bool | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A job; `tables` pairs each declared stream of the FROM list with its alias."""

    sources: tuple[StreamSource, ...]
    select: str
    line: int
    tables: tuple[tuple[StreamSource, str], ...]
    sink: Sink
