"""What one micro-batch did, half-way join by half-way join."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Hop:
    """One half-way join: rows of `driver` on their way through `node` probe the state of `partner`."""

    driver: str
    node: str
    partner: str

    def __str__(self) -> str:
        return f"{self.driver} ⋉ {self.partner} in {self.node}"


@dataclass(frozen=True, slots=True)
class HopStats:
    """The work of one hop in one batch.

    `comparisons` are the candidates the index left over, `matches` those that passed; `visited`
    are the slices that were looked into. `skipped`
    are the rows that reached the hop and did not probe; `narrowed` those that did, but did not look at all
    ages, and `unvisited` the slices that were left out for that, run by run. `sampled` are the probes by
    rows that an allowance samples, and `sampled_matches` what they found; both are parts of `probes` and
    `matches`.
    """

    probes: int = 0
    comparisons: int = 0
    matches: int = 0
    seconds: float = 0.0
    visited: int = 0
    skipped: int = 0
    sampled: int = 0
    sampled_matches: int = 0
    narrowed: int = 0
    unvisited: int = 0

    def __add__(self, other: HopStats) -> HopStats:
        return HopStats(
            probes=self.probes + other.probes,
            comparisons=self.comparisons + other.comparisons,
            matches=self.matches + other.matches,
            seconds=self.seconds + other.seconds,
            visited=self.visited + other.visited,
            skipped=self.skipped + other.skipped,
            sampled=self.sampled + other.sampled,
            sampled_matches=self.sampled_matches + other.sampled_matches,
            narrowed=self.narrowed + other.narrowed,
            unvisited=self.unvisited + other.unvisited,
        )


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much one state holds."""

    rows: int
    bytes: int
    slices: int
