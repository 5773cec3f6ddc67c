"""What a job script says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.adapt.settings import Adapt
from weir.query.model import Budget


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A stream as `CREATE STREAM` declares it; without `columns`, the source itself knows them.

    `rate` is how many rows a second are expected, for the planner.
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
class Into:
    """Where results go; `trigger` is in microseconds, None for batches as fast as they come.

    `adapt` says whether and how easily a running query changes its mind; None leaves that to the budget.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    trigger: int | None = None
    budget: Budget | None = None
    adapt: Adapt | bool | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A whole job; `tables` pairs the declared stream with the name that the FROM list gives it."""

    sources: tuple[StreamSource, ...]
    select: str
    line: int
    tables: tuple[tuple[StreamSource, str], ...]
    into: Into
