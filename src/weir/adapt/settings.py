"""When a running query changes its mind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np

from weir.errors import QueryError, strict, unknown


@strict
@dataclass(frozen=True, slots=True)
class Adapt:
    """How far a statistic moves before all is weighed again, and the gain from which on something changes.

    Both are shares: ε and p of Mukherji et al. 2011, section 5.4. The first `calibrate` batches decide
    nothing.

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
        whole = isinstance(self.calibrate, Integral) and not isinstance(self.calibrate, bool)
        if not whole or self.calibrate < 1:
            raise QueryError(
                f"calibrate= of weir.Adapt is a whole number of batches, 1 or more; got {self.calibrate!r}"
            )


def resolve_adapt(given: Any, is_wanted: bool) -> Adapt | None:
    """The settings of what a user passed as `adapt=`; None leaves it to whether it is wanted."""
    if given is None or isinstance(given, bool):
        return Adapt() if given or (given is None and is_wanted) else None
    known = [one.name for one in fields(Adapt)]
    for key in given if isinstance(given, Mapping) else ():
        if key not in known:
            raise unknown("key", str(key), known, where=" in adapt=")
    if not isinstance(given, Adapt):
        raise QueryError(f"adapt= is True, False or weir.Adapt(change=0.05, gain=0.05); got {given!r}")
    return given


def _is_number(given: object) -> bool:
    number = int | float | np.integer | np.floating
    return isinstance(given, number) and not isinstance(given, bool) and bool(-math.inf < given < math.inf)
