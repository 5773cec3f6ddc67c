"""A generated join: its streams with their rows in order of arrival, and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from weir.order.policies import DriverOrder
from weir.plan.tree import Join
from weir.query.windows import RowWindow

from .conditions import Condition


@dataclass(frozen=True)
class Input:
    """One stream: `cuts` are the ends of its batches in the table."""

    name: str
    time: str
    table: pa.Table
    cuts: tuple[int, ...]
    window: int | RowWindow | None
    late: int = 0
    absent_when_empty: bool = False

    @cached_property
    def times(self) -> list[int | None]:
        found: list[int | None] = self.table.column(self.time).cast(pa.int64()).to_pylist()
        return found

    def span(self, batch: int) -> tuple[int, int]:
        return (self.cuts[batch - 1] if batch else 0), self.cuts[batch]

    def batch(self, batch: int) -> pa.Table:
        first, last = self.span(batch)
        return self.table.slice(first, last - first)


@dataclass(frozen=True)
class Case:
    """One join of several streams."""

    inputs: tuple[Input, ...]
    conditions: tuple[Condition, ...]
    plan: Join | str = "mjoin"
    driver_order: DriverOrder | None = None
    cross: bool = False
    select_all: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.inputs)

    @property
    def batches(self) -> int:
        return len(self.inputs[0].cuts)

    @property
    def on(self) -> str | None:
        return " AND ".join(condition.text for condition in self.conditions) or None

    def __repr__(self) -> str:
        lines = [
            f"on {self.on}",
            f"plan {self.plan!r}",
            f"drivers {self.driver_order}, select_all {self.select_all}",
        ]
        for one in self.inputs:
            lines.append(f"{one.name}: window {one.window}, late {one.late}, cuts {one.cuts}, {one.time=}")
            lines.append(f"  {one.table.schema.to_string()}".replace("\n", "; "))
            lines += [f"  {row}" for row in one.table.to_pylist()]
        return "\n".join(lines)

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """How Hypothesis shows it."""
        printer.text(repr(self))


def comparable(value: Any) -> Any:
    """A value that equals itself: NaN does not, and -0.0 should differ from 0.0."""
    if isinstance(value, float):
        return repr(value)
    return tuple(map(comparable, value)) if isinstance(value, list) else value
