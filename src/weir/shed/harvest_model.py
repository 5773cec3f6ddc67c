"""Output and cost of window harvesting (Gedik et al. 2007, section IV-C).

Every window is divided into logical basic windows, each a range of ages. A direction is the path of one
stream through the mjoin; at each of its hops it probes some basic windows of the partner, the likeliest
first. A setting says how many; its output and cost are sums over the directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from weir.shed.harvest_moves import Counts, HarvestMoves
from weir.stats.hop import Hop

Floats = NDArray[np.float64]
# A setting of the harvest fractions: how many basic windows each hop probes, direction by direction.
HarvestSetting = tuple[Counts, ...]


@dataclass(frozen=True)
class HopHarvest:
    """One hop of a direction: the partner's window, basic window by basic window.

    `scores[k]` is how likely the partner's row in a result has an age in basic window k. Probing the whole
    window costs `search` to find the candidates and `compare` to compare them; each match costs `match`.
    """

    hop: Hop
    rows: float
    selectivity: float
    scores: tuple[float, ...]
    search: float = 0.0
    compare: float = 0.0
    match: float = 0.0

    @cached_property
    def ranking(self) -> tuple[int, ...]:
        """The basic windows, the likeliest first; of equal ones the youngest."""
        return tuple(np.argsort(-np.asarray(self.scores), kind="stable").tolist())

    @cached_property
    def match_shares(self) -> Floats:
        """P for 0, 1, .. basic windows: their share of all matches (Gedik et al. 2007, section IV-C)."""
        scores = np.asarray(self.scores)[list(self.ranking)]
        total = scores.sum()
        shares = scores / total if total else np.full(len(scores), 1 / len(scores))
        return np.concatenate(([0.0], np.cumsum(shares)))

    @property
    def partials(self) -> Floats:
        """Partials of one probe into 0, 1, .. basic windows: P σ S."""
        return self.match_shares * self.selectivity * self.rows

    @property
    def costs(self) -> Floats:
        """Cost of one probe into 0, 1, .. basic windows; Gedik et al. 2007 count comparisons alone, z S."""
        harvest_fractions = np.linspace(0.0, 1.0, len(self.scores) + 1)
        return (self.search + self.compare) * harvest_fractions + self.match * self.partials


@dataclass(frozen=True)
class Direction:
    """The hops that the rows of one stream go through, `rate` rows a second."""

    stream: str
    rate: float
    hops: tuple[HopHarvest, ...]

    @cached_property
    def tables(self) -> tuple[tuple[list[float], list[float]], ...]:
        """Of each hop, the partials and the cost of one probe into 0, 1, .. basic windows."""
        return tuple((hop.partials.tolist(), hop.costs.tolist()) for hop in self.hops)

    @cached_property
    def full_counts(self) -> Counts:
        """All basic windows of every hop."""
        return tuple(len(hop.scores) for hop in self.hops)

    @cached_property
    def moves(self) -> HarvestMoves:
        """The moves that searches for a setting make."""
        return HarvestMoves(self.rate, self.tables)

    def evaluate(self, counts: Counts) -> tuple[float, float]:
        """Output and cost each second: λ_i N_(i,m) and λ_i C_i (Gedik et al. 2007, section IV-C)."""
        return self.moves.evaluate(counts)


Directions = Sequence[Direction]


def compute_output(directions: Directions, setting: HarvestSetting) -> float:
    """O: the results each second of a setting."""
    return sum(direction.evaluate(counts)[0] for direction, counts in zip(directions, setting, strict=True))


def compute_cost(directions: Directions, setting: HarvestSetting) -> float:
    """C: the cost each second of a setting."""
    return sum(direction.evaluate(counts)[1] for direction, counts in zip(directions, setting, strict=True))


def full_setting(directions: Directions) -> HarvestSetting:
    """The setting that skips nothing."""
    return tuple(direction.full_counts for direction in directions)
