"""Age filter: restrict the probes of a hop to some ages (window harvesting, Gedik et al. 2007).

An allowance names runs of ages that do not overlap, so each match is found in exactly the run that holds its
age, or in none. Sampled rows probe all ages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weir.kernel.keys import Bools
from weir.kernel.partial import Partial
from weir.kernel.physical_plan import HalfJoinPlan, PhysicalPlan, TimeBounds
from weir.kernel.probe_sample import ProbeSample
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance


@dataclass(frozen=True, slots=True)
class AgeFilter:
    """The partner's times that rows of a partial may probe, at one hop during one batch.

    Rows that are not sampled probe the `runs`; None: all ages. Ages count from the `driver_time`.
    """

    all_ages: TimeBounds
    runs: tuple[TimeBounds, ...] | None
    sample: ProbeSample | None
    ages: Ages | None
    driver_time: str

    @staticmethod
    def of(
        physical: PhysicalPlan, allowance: Allowance | None, hop: HalfJoinPlan, sample: ProbeSample | None
    ) -> AgeFilter:
        """Return the filter that an allowance asks for at a hop."""
        ages = None if allowance is None else allowance.ages.get(hop.hop)
        driver_time = physical.schemas[hop.hop.driver].lead
        runs = None if ages is None else tuple(_bounds_of_runs(hop.lead, driver_time, ages))
        return AgeFilter(hop.lead, runs, sample, ages, driver_time)

    @property
    def is_active(self) -> bool:
        """True if rows that are not sampled probe some ages only."""
        return self.runs is not None

    def includes(self, matches: Partial) -> Bools:
        """Tell which matches of sampled rows the others would find, too."""
        if self.ages is None:
            return np.ones(matches.rows, np.bool_)
        ages = matches.numbers(self.driver_time) - matches.numbers(self.all_ages.name)
        included: Bools = np.isin(np.maximum(ages, 0) // self.ages.every, sorted(self.ages.kept))
        return included

    def apply(self, partial: Partial) -> Iterator[tuple[Partial, TimeBounds]]:
        """Yield rows with the times that they may probe; a row comes once for each run of ages."""
        if self.runs is None:
            yield partial, self.all_ages
            return
        if self.sample is not None:
            sampled = self.sample.mark(partial)
            if sampled.any():
                yield partial.pick(np.flatnonzero(sampled)), self.all_ages
                partial = partial.pick(np.flatnonzero(~sampled))
        for bounds in self.runs if partial.rows else ():
            yield partial, bounds


def _bounds_of_runs(lead: TimeBounds, driver_time: str, ages: Ages) -> Iterator[TimeBounds]:
    """Turn each run of ages into bounds on the partner's time, counted from the driver's."""
    for youngest, oldest in ages.runs():
        highs = () if youngest is None else ((driver_time, -youngest),)
        yield TimeBounds(lead.name, (*lead.lows, (driver_time, oldest)), (*lead.highs, *highs))
