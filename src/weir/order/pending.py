"""A batch that is about to be processed, as far as choosing an order needs to know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.plan.tree import Join
from weir.stats.batch import Hop


@dataclass(frozen=True)
class PendingRows:
    """How many rows of each stream have come, and how many each state of the plan holds.

    `selectivities` says how much of what a probe reaches matches at each hop, and `gains` how many results a
    row of each stream has had part in: given, or learned from earlier batches.
    """

    plan: Join
    deltas: Mapping[str, int]
    states: Mapping[str, int]
    selectivities: Mapping[Hop, float] = field(default_factory=dict)
    gains: Mapping[str, float] = field(default_factory=dict)
