"""Estimate recall, emitted over exact results, from sampled rows, which probe everything.

A sampled row finds all matches in the states of its node. If an input is the output of a lower join, it is
itself only a part of the exact one, so joins are estimated bottom-up. With r for recall (for a stream: the
share of it that is not dropped), s for the sampled share and d for the drivers of node N:

    exact_d(N) = (matches of sampled rows of d at the last hop in N) / s / (r(d) · product of r(partner))
    r(N)       = (matches emitted by N) / (sum of exact_d(N) over d)

This assumes that what is missing below is missing evenly, whether or not it would have matched.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from weir.plan.tree import Join, JTree, hops
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop, HopStats

Shares = Mapping[str, float]
# Weight of a batch relative to the next one; large, as few sampled rows of one batch match.
_DECAY = 0.9
# After this many exact batches, 0.9^44 < 1 %, earlier shedding hardly counts and recall is 1. Row windows
# need this: no clock tells when the rows that were shed would have left them.
_EXACT_BATCHES = 44


@dataclass(frozen=True, slots=True)
class PathSums:
    """Sums over the batches of one driver in one join.

    `matches` emitted, `exact` matches estimated, matches of `sampled` rows, and rows `skipped`: those that
    did not probe, or not all ages.
    """

    matches: float = 0.0
    exact: float = 0.0
    sampled: float = 0.0
    skipped: float = 0.0

    def add_batch(self, batch: PathSums) -> PathSums:
        """Add a batch, with less weight for those before it."""
        return PathSums(
            _DECAY * self.matches + batch.matches,
            _DECAY * self.exact + batch.exact,
            _DECAY * self.sampled + batch.sampled,
            _DECAY * self.skipped + batch.skipped,
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """Evidence of the last batches: sums per (join, driver), and for how many batches nothing was skipped.

    `last_shed_time` is the newest event time (µs) after the last batch that skipped something.
    """

    paths: Mapping[tuple[str, str], PathSums] = field(default_factory=dict)
    exact_batches: int = _EXACT_BATCHES
    last_shed_time: int | None = None

    def after(
        self,
        plan: Join,
        per_hop: Mapping[Hop, HopStats],
        allowance: Allowance | None,
        missing: Shares | None = None,
        clock: tuple[int | None, int | None] = (None, None),
        keep: int | None = None,
    ) -> Recall:
        """Add a batch; one that skips probes without a sample makes all earlier evidence worthless.

        `missing` is the share of each state's remaining results that was evicted. `clock` is the watermark
        before the batch and the newest event time after it. What was skipped more than `keep` before the
        watermark can no longer be missed.
        """
        watermark, newest = clock
        sample = 0.0 if allowance is None else allowance.sample
        drop = {} if allowance is None else {name: share for name, share in allowance.drop.items() if share}
        evicted = missing or {}
        batch = {
            key: _sum_path(tuple(path), per_hop, sample, drop, evicted)
            for key, path in groupby(hops(plan), attrgetter("node", "driver"))
        }
        has_skipped = any(sums.skipped for sums in batch.values())
        if has_skipped and not sample:
            unknown = {key: PathSums(skipped=sums.skipped) for key, sums in batch.items()}
            return Recall(unknown, 0, newest)
        paths = {key: self.paths.get(key, PathSums()).add_batch(sums) for key, sums in batch.items()}
        if has_skipped or drop or evicted:
            return Recall(paths, 0, newest)
        keep = _add_composed_windows(plan, keep)
        shed_at = self.last_shed_time
        if keep is None or watermark is None or shed_at is None or watermark - shed_at <= keep:
            return Recall(paths, self.exact_batches + 1, shed_at)
        return Recall()  # all that was skipped would have left its window by now

    def estimate(self, plan: Join) -> float | None:
        """Estimate emitted over exact results, without regard to freshness; None without sampled matches."""
        if self.exact_batches >= _EXACT_BATCHES:
            return 1.0
        recalls: dict[str, float] = {}
        for node in plan.inner():
            recall = self._estimate_node(node, recalls)
            if recall is None:
                return None
            recalls[str(node)] = recall
        return recalls[str(plan)]

    def _estimate_node(self, node: Join, recalls: Shares) -> float | None:
        """Estimate the recall of one join, given that of the joins below it."""
        paths = [self.paths.get((str(node), str(driver)), PathSums()) for driver in node.inputs]
        if any(path.skipped for path in paths) and not any(path.sampled for path in paths):
            return None
        exact = 0.0
        for driver, path in zip(node.inputs, paths, strict=True):
            partners = (child for child in node.inputs if child != driver and not _has_row_window(child))
            partners_share = math.prod(recalls.get(str(child), 1.0) for child in partners)
            share = recalls.get(str(driver), 1.0) * partners_share
            exact += path.exact / share if share else 0.0
        matches = sum(path.matches for path in paths)
        return min(1.0, matches / exact) if matches and exact else None


def _add_composed_windows(plan: Join, keep: int | None) -> int | None:
    """Add the time windows of a plan's own joins to `keep`; None if one of these windows counts rows."""
    for node in plan.inner():
        if keep is None or isinstance(node.window, RowWindow):
            return None
        keep += node.window.microseconds if isinstance(node.window, TimeWindow) else 0
    return keep


def _sum_path(
    path: Sequence[Hop], per_hop: Mapping[Hop, HopStats], sample: float, drop: Shares, missing: Shares
) -> PathSums:
    """Sum up one batch of a path; if it skipped nothing, all its rows count as sampled.

    Dropped rows and evicted slices make results rarer by the product of the shares kept.
    """
    skipped = sum(per_hop[hop].skipped + per_hop[hop].narrowed for hop in path if hop in per_hop)
    last_hop = per_hop.get(path[-1], HopStats())
    kept = math.prod(1 - drop.get(name, 0.0) for name in (path[0].driver, *(hop.partner for hop in path)))
    kept *= math.prod(1 - missing.get(hop.partner, 0.0) for hop in path)
    exact = last_hop.sampled_matches / sample if skipped and sample else last_hop.matches
    return PathSums(last_hop.matches, exact / kept if kept else 0.0, last_hop.sampled_matches, skipped)


def _has_row_window(node: JTree) -> bool:
    """True if a node keeps a fixed number of rows, so that it stays full however many rows are missing."""
    return isinstance(node, Join) and isinstance(node.window, RowWindow)
