"""Where the probes of a hop look: at all that their times reach, or at some ages of it.

What is correct: runs of ages do not overlap, so a pair is found in one of them at most, and in exactly the
one that holds its age. Sampled rows look at everything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weir.kernel.partial import Partial
from weir.kernel.physical_plan import HalfJoinPlan, PhysicalPlan, TimeReach
from weir.kernel.probe_sample import ProbeSample
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance


class AgeFilter:
    """What each row of a partial may look at, at one hop during one batch."""

    def __init__(
        self, plan: HalfJoinPlan, reaches: tuple[TimeReach, ...] | None, sample: ProbeSample | None
    ) -> None:
        self._whole, self._reaches, self._sample = plan.lead, reaches, sample

    @staticmethod
    def of(
        program: PhysicalPlan, allowance: Allowance | None, plan: HalfJoinPlan, sample: ProbeSample | None
    ) -> AgeFilter:
        """What an allowance lets a hop look at."""
        ages = None if allowance is None else allowance.ages.get(plan.hop)
        reaches = None if ages is None else tuple(_reaches(plan, program.layouts[plan.hop.driver].lead, ages))
        return AgeFilter(plan, reaches, sample)

    @property
    def is_narrow(self) -> bool:
        """True if rows that are not sampled look at some ages only."""
        return self._reaches is not None

    def parts(self, partial: Partial) -> Iterator[tuple[Partial, TimeReach]]:
        """Rows, and where in the partner's time they look; a row may come several times."""
        if self._reaches is None:
            yield partial, self._whole
            return
        if self._sample is not None:
            marks = self._sample.marks(partial)
            if marks.any():
                yield partial.pick(np.flatnonzero(marks)), self._whole
                partial = partial.pick(np.flatnonzero(~marks))
        for reach in self._reaches if partial.rows else ():
            yield partial, reach


def _reaches(plan: HalfJoinPlan, driver: str, ages: Ages) -> Iterator[TimeReach]:
    """The partner's times for each run of ages, counted from the driver's own time."""
    for youngest, oldest in ages.runs():
        highs = () if youngest is None else ((driver, -youngest),)
        yield TimeReach(plan.lead.name, (*plan.lead.lows, (driver, oldest)), (*plan.lead.highs, *highs))
