"""`weir.Adapt`: when a running query changes its plan or what it sheds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, Literal

import numpy as np

from weir.errors import QueryError, strict, unknown

# What may change of a running plan: the tree with its probing orders, the probing orders alone, or nothing.
Movable = Literal["tree", "orders", "nothing"]


@strict
@dataclass(frozen=True, slots=True)
class Adapt:
    """How much a statistic must change to start an analysis, and the gain that justifies a change.

    Both are relative: ε and p of Mukherji et al. 2011, section 5.4. The first `calibrate` batches only
    collect statistics.

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
        is_integer = isinstance(self.calibrate, Integral) and not isinstance(self.calibrate, bool)
        if not is_integer or self.calibrate < 1:
            raise QueryError(
                f"calibrate= of weir.Adapt is a whole number of batches, 1 or more; got {self.calibrate!r}"
            )


def resolve_adapt(given: Any, is_wanted: bool) -> Adapt | None:
    """Return the settings for a user's `adapt=`; None stands for True if adaptation `is_wanted`."""
    if given is None or isinstance(given, bool):
        return Adapt() if given or (given is None and is_wanted) else None
    known = [field.name for field in fields(Adapt)]
    for key in given if isinstance(given, Mapping) else ():
        if key not in known:
            raise unknown("key", str(key), known, where=" in adapt=")
    if not isinstance(given, Adapt):
        raise QueryError(f"adapt= is True, False or weir.Adapt(change=0.05, gain=0.05); got {given!r}")
    return given


def _is_number(given: object) -> bool:
    number = int | float | np.integer | np.floating
    return isinstance(given, number) and not isinstance(given, bool) and bool(-math.inf < given < math.inf)
