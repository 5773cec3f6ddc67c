"""When a running query changes its mind."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from weir.errors import QueryError


@dataclass(frozen=True, slots=True)
class Adapt:
    """How far a statistic moves before all is weighed again, and the gain from which on something changes.

    Both are shares, ε and p of 000, section 5.4. The first `calibrate` batches decide nothing.

    >>> Adapt(gain=0.1)
    Adapt(change=0.05, gain=0.1, calibrate=3)
    """

    change: float = 0.05
    gain: float = 0.05
    calibrate: int = 3

    def __post_init__(self) -> None:
        if not _is_number(self.change) or self.change <= 0:
            raise QueryError(f"change= of weir.Adapt is a share above zero, like 0.05; got {self.change!r}")
        if not _is_number(self.gain) or self.gain < 0:
            raise QueryError(f"gain= of weir.Adapt is a share of zero or more, like 0.05; got {self.gain!r}")
        if isinstance(self.calibrate, bool) or not isinstance(self.calibrate, int) or self.calibrate < 1:
            raise QueryError(
                f"calibrate= of weir.Adapt is a number of batches, 1 or more; got {self.calibrate!r}"
            )


def adapting(given: Any, is_wanted: bool) -> Adapt | None:
    """The settings of what a user passed as `adapt=`; None leaves it to whether it is wanted."""
    if given is None or isinstance(given, bool):
        return Adapt() if given or (given is None and is_wanted) else None
    if not isinstance(given, Adapt):
        raise QueryError(f"adapt= is True, False or weir.Adapt(change=0.05, gain=0.05); got {given!r}")
    return given


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
