"""`weir.Adapt`: when a running query changes its plan or what it sheds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np

from weir.errors import QueryError, refuse_unknown_keys

# What may change of a running plan: the tree with its probing orders, the probing orders alone, or nothing.
Changeable = Literal["tree", "orders", "nothing"]


@refuse_unknown_keys
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


def _is_number(given: object) -> bool:
    number = int | float | np.integer | np.floating
    return isinstance(given, number) and not isinstance(given, bool) and bool(-math.inf < given < math.inf)
