"""What is fixed for one micro-batch before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from weir.errors import QueryError
from weir.plan import Join
from weir.shed import Allowance


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan, which stream's delta goes first, the clock by which freshness is judged (µs), who is idle.

    An idle stream does not hold the watermark back. `candidates` bounds what a hop has in flight, below the
    usual bound: less memory, more time. `allowance` says how much each hop may do; None means everything.
    """

    plan: Join
    driver_order: tuple[str, ...]
    clock: int | None = None
    idle: tuple[str, ...] = ()
    candidates: int | None = None
    allowance: Allowance | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if sorted(self.driver_order) != sorted(self.plan.streams):
            raise QueryError(
                f"the driver order {self.driver_order} must name each stream of the plan {self.plan} once"
            )
        if self.allowance is not None:
            self.allowance.check(self.plan)
