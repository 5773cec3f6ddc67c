"""The phases of the storm, counted in ticks: one tick is one trigger interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Name = Literal["calm", "rates x5", "lags drift", "selectivities shift", "memory halved", "calm again"]
RATES: Final = "rates x5"
LAGS: Final = "lags drift"
SELECTIVITIES: Final = "selectivities shift"
MEMORY: Final = "memory halved"
FACTOR = 5
# After a change so many batches may pass until all is well again.
SETTLED = 5


@dataclass(frozen=True, slots=True)
class Phase:
    """A named range of ticks; a phase of the storm keeps the changes of the phases before it."""

    name: Name
    begin: int
    end: int

    @property
    def is_calm(self) -> bool:
        """True before and after the storm."""
        return self.name in ("calm", "calm again")

    @property
    def exact(self) -> range:
        """The ticks whose results among themselves have to be exact; None of them if it is no calm phase."""
        if not self.is_calm:
            return range(0)
        return range(self.begin + (0 if self.name == "calm" else SETTLED), self.end)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The phases in order. The first `warm` ticks are calm, and each is fed once the one before was read."""

    warm: int
    phases: tuple[Phase, ...]

    @staticmethod
    def of(warm: int, lengths: Sequence[tuple[Name, int]]) -> Schedule:
        """The phases one after the other.

        >>> [phase.begin for phase in Schedule.of(3, [("calm", 4), ("rates x5", 5)]).phases]
        [3, 7]
        """
        phases, begin = [], warm
        for name, ticks in lengths:
            phases.append(Phase(name, begin, begin + ticks))
            begin += ticks
        return Schedule(warm, tuple(phases))

    @property
    def ticks(self) -> int:
        """The number of ticks, with the warm-up."""
        return self.phases[-1].end

    def begin(self, name: Name) -> int | None:
        """The first tick of a phase; None if it does not come."""
        return next((phase.begin for phase in self.phases if phase.name == name), None)

    def phase(self, tick: int) -> Phase:
        """The phase of a tick; warming up counts as the first one."""
        return next((phase for phase in self.phases if tick < phase.end), self.phases[-1])

    def factor(self, tick: int) -> int:
        """Return the rate of a tick as a multiple of the calm rate."""
        return 1 if self.phase(tick).is_calm else FACTOR

    def drifted(self, tick: float) -> float:
        """How far the lags have moved, from 0 to 1: evenly over their phase."""
        begin = self.begin(LAGS)
        if begin is None:
            return 0.0
        length = self.phase(begin).end - begin
        return min(max((tick - begin) / length, 0.0), 1.0)

    def is_shifted(self, tick: int) -> bool:
        """True from the shift of the selectivities on, to the end of the storm."""
        begin = self.begin(SELECTIVITIES)
        return begin is not None and tick >= begin and not self.phase(tick).is_calm


def build_storm(warm: int, ticks: int, last: int) -> Schedule:
    """All six phases of so many ticks, and the last one of its own length."""
    names: tuple[Name, ...] = ("calm", RATES, LAGS, SELECTIVITIES, MEMORY)
    return Schedule.of(warm, [*((name, ticks) for name in names), ("calm again", last)])


def build_gust(warm: int, ticks: int, last: int) -> Schedule:
    """Calm, a storm of rates alone, and calm: for a driver that is killed in its middle.

    The storm is long enough to go on when the driver is back.
    """
    return Schedule.of(warm, [("calm", ticks), (RATES, 4 * ticks), ("calm again", last)])
