"""What a driver policy knows of a batch before it is processed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weir.plan.tree import Join
from weir.stats.hop import Hop

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class PendingRows:
    """Rows of each stream that wait to be processed (`deltas`), and rows that each state of the plan holds.

    `selectivities` is the share of a partner's rows that a probe matches at each hop, and `gains` the results
    per row of each stream: given, or learned from earlier batches. `times` are the event times of the waiting
    rows, where they have been read.
    """

    plan: Join
    deltas: Mapping[str, int]
    states: Mapping[str, int]
    selectivities: Mapping[Hop, float] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, Int64s] = field(default_factory=dict)
