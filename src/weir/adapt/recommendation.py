"""Recommendation: what a controller says of the next batch, and the words for it."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from weir.adapt.cpu_limit import CpuLimit
from weir.adapt.throttle import Throttle
from weir.adapt.trial import Base
from weir.plan.explain import format_share
from weir.plan.tree import Join
from weir.shed.allowance import Allowance

_LOG = logging.getLogger("weir")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A plan and an allowance for the next batch, their expected effect, and the reason.

    `cpu` is in CPU seconds per event second. `is_notable` if more changes than the share of a thinned query;
    `seconds` is the CPU time of the analysis behind it.
    """

    plan: Join
    allowance: Allowance | None
    reason: str
    recall: float = 1.0
    cpu: float = 0.0
    memory: float = 0.0
    changes_plan: bool = False
    is_notable: bool = True
    seconds: float = 0.0


def describe_base(base: Base) -> str:
    """Name a base by its way of shedding, else by its plan.

    >>> from weir.plan.tree import join
    >>> describe_base(Base(join("a", "b"))), describe_base(Base(join("a", "b"), strategy="harvest"))
    ('the plan (a b)', 'shedding by harvest')
    """
    return f"shedding by {base.strategy}" if base.strategy else f"the plan {base.plan}"


def explain_share(throttle: Throttle, limit: CpuLimit, base: Base) -> str:
    """Say what a share follows from, e.g. "the exact join takes CPU 31% (limit 15%), so 46% of ..."."""
    taken, allowed = (format_share(seconds / limit.span) for seconds in (throttle.exact, limit.seconds))
    what = describe_base(base) if base.sheds else "the exact join"
    usage = f"{what} takes CPU {taken} (limit {allowed})"
    if throttle.share >= 1:
        return f"{usage}, so no {'more ' if base.sheds else ''}probes are skipped"
    return f"{usage}, so {throttle.share:.0%} of the rows that enter the root probe"


class Warnings:
    """Logs each warning once, whatever its numbers."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Log a warning, unless one of its kind has been logged."""
        kind = re.sub(r"[0-9.]+", "", text)
        if kind not in self._told:
            self._told.add(kind)
            _LOG.warning(text)
