"""What earlier batches matched, as the policies of driver order need it; old batches fade."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.stats import Hop, HopStats

# How a batch weighs beside the next one.
_AGEING = 0.9


@dataclass(frozen=True, slots=True)
class Matching:
    """Per hop, matches and the pairs they were found among; per stream its rows; and the results."""

    hops: Mapping[Hop, tuple[float, float]] = field(default_factory=dict)
    rows: Mapping[str, float] = field(default_factory=dict)
    results: float = 0.0

    def after(
        self,
        per_hop: Mapping[Hop, HopStats],
        states: Mapping[str, int],
        rows_in: Mapping[str, int],
        results: int,
        order: Sequence[str] | None = None,
    ) -> Matching:
        """With one batch more, for the rows that each state held before it, and the order in which it went.

        Without one order for all its rows, a row saw half of what came with it.
        """
        hops = {hop: (_AGEING * matches, _AGEING * pairs) for hop, (matches, pairs) in self.hops.items()}
        # A hop that looks at some ages only says nothing of all.
        for hop, found in ((hop, found) for hop, found in per_hop.items() if not found.narrowed):
            matches, pairs = hops.get(hop, (0.0, 0.0))
            came = rows_in.get(hop.partner, 0) * _seen(hop, order)
            reached = states.get(hop.partner, 0) + came
            hops[hop] = matches + found.matches, pairs + found.probes * reached
        rows = {name: _AGEING * self.rows.get(name, 0.0) + count for name, count in rows_in.items()}
        return Matching(hops, {**self.rows, **rows}, _AGEING * self.results + results)

    @property
    def selectivities(self) -> dict[Hop, float]:
        """The share of pairs that match at each hop; without a match yet nothing is said of a hop."""
        return {hop: matches / pairs for hop, (matches, pairs) in self.hops.items() if matches and pairs}

    @property
    def gains(self) -> dict[str, float]:
        """The results that a row of each stream has part in (003, table 1: σ_S)."""
        return {name: self.results / count for name, count in self.rows.items() if count}

    def to_json(self) -> dict[str, Any]:
        """As it stands in a manifest."""
        hops = [[hop.driver, hop.node, hop.partner, *sums] for hop, sums in self.hops.items()]
        return {"hops": hops, "rows": dict(self.rows), "results": self.results}

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> Matching:
        """The sums of `to_json`."""
        hops = {Hop(*hop): (matches, pairs) for *hop, matches, pairs in found["hops"]}
        return Matching(hops, found["rows"], found["results"])


def _seen(hop: Hop, order: Sequence[str] | None) -> float:
    """The share of a partner's new rows that a row of the driver sees."""
    if order is None or hop.driver not in order or hop.partner not in order:
        return 0.5
    return float(order.index(hop.partner) < order.index(hop.driver))
