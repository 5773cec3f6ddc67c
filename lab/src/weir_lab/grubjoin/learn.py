"""What a running join tells of its streams: rates, selectivities and correlations, newer batches more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

from weir.adapt.batch_report import BatchReport
from weir.local.query import LocalQuery
from weir.plan.tree import Join
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import UnitCosts

# Of what was known, this share is left after the usual time between two adaptations.
KEPT = 0.7


class Learned:
    """Running sums over the batches of a join; `sampled` counts only rows that look at everything.

    Rows that look at some ages only match more often than others, and would tell too high a selectivity.
    """

    def __init__(self, plan: Join, window: float, every: float, sampled: bool, kept: float = KEPT) -> None:
        self._plan, self._window, self._sampled, self._kept = plan, window, sampled, kept
        self._came: deque[dict[str, int]] = deque(maxlen=round(window / every))
        self._matches: dict[Hop, float] = {}
        self._pairs: dict[Hop, float] = {}
        self._lags: LagHistograms | None = None

    def add(self, query: LocalQuery) -> None:
        """Take in the last batch of a query."""
        stats = query.last_report
        assert stats is not None
        counts = stats.counts
        self._came.append({name: came - counts.dropped.get(name, 0) for name, came in counts.rows_in.items()})
        rows = {name: sum(batch.get(name, 0) for batch in self._came) for name in self._plan.streams}
        for hop, work in stats.per_hop.items():
            probes, matches = (
                (work.sampled, work.sampled_matches) if self._sampled else (work.probes, work.matches)
            )
            self._pairs[hop] = self._pairs.get(hop, 0.0) + probes * rows[hop.partner]
            self._matches[hop] = self._matches.get(hop, 0.0) + matches
        self._see(stats)

    def age(self) -> None:
        """Let what was seen so far count less than what will be."""
        for sums in (self._pairs, self._matches):
            for hop in sums:
                sums[hop] *= self._kept
        if self._lags is not None:
            nothing = {name: _emptied(lags) for name, lags in self._lags.lags.items()}
            self._lags = self._lags.decay_and_add(LagHistograms(self._lags.first, nothing), self._kept)

    @property
    def correlations(self) -> LagHistograms | None:
        """How far apart the rows of sampled results lie."""
        return self._lags

    @property
    def selectivities(self) -> dict[Hop, float]:
        """What each hop has found of all that it could have found; without those that nothing came to."""
        return {hop: self._matches[hop] / pairs for hop, pairs in self._pairs.items() if pairs}

    def graph(self, rates: Mapping[str, float]) -> JoinGraph:
        """Rates and windows, in comparisons; any two streams match like those of the first hops did.

        It is asked only for hops that nothing came to, where it does not matter.
        """
        names = self._plan.streams
        firsts = [
            Hop(names[i], str(self._plan), names[order[0]]) for i, order in enumerate(self._plan.orders)
        ]
        matches, pairs = (sum(sums.get(hop, 0.0) for hop in firsts) for sums in (self._matches, self._pairs))
        usual = matches / pairs if pairs else 0.01
        edges = dict.fromkeys(map(frozenset, combinations(names, 2)), usual)
        windows = dict.fromkeys(names, self._window)
        return JoinGraph(names, dict(rates), windows, edges, costs=UnitCosts(compare=1.0))

    def _see(self, stats: BatchReport) -> None:
        lags = stats.counts.lags
        if lags is not None:
            self._lags = lags if self._lags is None else self._lags.decay_and_add(lags, 1.0)


def _emptied(lags: LagHistogram) -> LagHistogram:
    return replace(lags, counts=(0.0,) * len(lags.counts))
