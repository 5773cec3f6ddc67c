"""What an analysis starts from and what it returns: the plan in force and a recommendation."""

from __future__ import annotations

from dataclasses import dataclass

from weir.adapt.statistics import Statistics
from weir.plan.tree import Join
from weir.shed.allowance import Allowance


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """The running plan, its allowance, and the statistics of the last analysis (None: not analysed yet)."""

    plan: Join
    allowance: Allowance | None = None
    reference: Statistics | None = None

    @property
    def is_exact(self) -> bool:
        """True if nothing is shed."""
        return self.allowance is None or not self.allowance.sheds


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The best plan and allowance, their expected effect, and the reason.

    `cpu` is in measured seconds of work per event second; `scale` is measured divided by
    modelled seconds of probing. `gain` is relative to the plan in force; `changes_plan` is true if the plan
    is another one. An `is_urgent` recommendation holds whatever the gain: a limit is exceeded, or shedding
    can end. `seconds` is the CPU time of the analysis.
    """

    plan: Join
    allowance: Allowance | None
    recall: float
    cpu: float
    memory: float
    gain: float
    reason: str
    scale: float
    changes_plan: bool = False
    is_urgent: bool = False
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0
