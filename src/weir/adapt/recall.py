"""How much of the exact join is put out, judged by the sampled rows, which passed every gate of their join.

A sampled row finds all that the states of its node hold for it. These states, and the rows that enter, are
themselves a part of the exact ones where they are the output of a join below; so joins are judged inputs
first. With r for recall, s for the sample, and r of a stream the share of it that is not dropped:

    exact_d(N) = (matches of sampled rows of d at the last hop in N) / s / (r(d) * product of r(partner))
    r(N)       = (matches put out by N) / (sum of exact_d(N) over the drivers d)

That takes what is missing below to be missing evenly, not just where it would have matched most or least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.plan.tree import Join, JTree
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop, HopStats

# How a batch weighs beside the next one: few sampled rows match in one, so the last ones count together.
_AGEING = 0.9
# After so many batches what was skipped weighs under one in a hundred: long enough for windows of rows, of
# which no clock tells when what was missed has left them.
_MEMORY = 44


@dataclass(frozen=True, slots=True)
class PathSums:
    """What one driver did in one join: matches put out, those of all its rows, sampled ones, rows held back.

    Rows are held back that did not probe, or did not look at all ages.
    """

    matches: float = 0.0
    exact: float = 0.0
    sampled: float = 0.0
    skipped: float = 0.0

    def then(self, batch: PathSums) -> PathSums:
        """With one batch more, and all before it weighing less."""
        return PathSums(
            _AGEING * self.matches + batch.matches,
            _AGEING * self.exact + batch.exact,
            _AGEING * self.sampled + batch.sampled,
            _AGEING * self.skipped + batch.skipped,
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """What the last batches tell: sums per (join, driver), and for how many batches nothing was skipped.

    `last` is the event time (µs) that the last batch had come to that skipped something.
    """

    paths: Mapping[tuple[str, str], PathSums] = field(default_factory=dict)
    quiet: int = _MEMORY
    last: int | None = None

    def after(
        self,
        plan: Join,
        per_hop: Mapping[Hop, HopStats],
        allowance: Allowance | None,
        missing: Mapping[str, float] | None = None,
        clock: tuple[int | None, int | None] = (None, None),
        keep: int | None = None,
    ) -> Recall:
        """With one batch more; one that skips without a sample makes what was known before worthless.

        `missing` are the shares of states that were let go and could still have been found. The `clock` is
        the watermark before the batch and the newest time after it; what was skipped longer than `keep`
        before the watermark can be missed no more.
        """
        begun, now = clock
        # Where old rows are forgotten, the sample does not see what others miss.
        sample = 0.0 if allowance is None or allowance.forget else allowance.sample
        drop = {} if allowance is None else {name: share for name, share in allowance.drop.items() if share}
        lost = missing or {}
        batch = {where: _sums(path, per_hop, sample, drop, lost) for where, path in _paths(plan).items()}
        skipped = any(sums.skipped for sums in batch.values())
        if skipped and not sample:
            return Recall({where: PathSums(skipped=sums.skipped) for where, sums in batch.items()}, 0, now)
        paths = {where: self.paths.get(where, PathSums()).then(sums) for where, sums in batch.items()}
        if skipped or drop or lost:
            return Recall(paths, 0, now)
        keep = _kept(plan, keep)
        if keep is not None and begun is not None and self.last is not None and begun - self.last > keep:
            return Recall()
        return Recall(paths, self.quiet + 1, self.last)

    def estimate(self, plan: Join) -> float | None:
        """Emitted / exact, freshness aside; None while nothing sampled has matched."""
        if self.quiet >= _MEMORY:
            return 1.0
        found: dict[str, float] = {}
        for node in plan.inner():
            recall = self._of(node, found)
            if recall is None:
                return None
            found[str(node)] = recall
        return found[str(plan)]

    def _of(self, node: Join, below: Mapping[str, float]) -> float | None:
        """The recall of one join, given that of the joins below it."""
        paths = [self.paths.get((str(node), str(driver)), PathSums()) for driver in node.inputs]
        if any(path.skipped for path in paths) and not any(path.sampled for path in paths):
            return None
        exact = 0.0
        for driver, path in zip(node.inputs, paths, strict=True):
            partners = (below.get(str(one), 1.0) for one in node.inputs if one != driver and _shrinks(one))
            share = below.get(str(driver), 1.0) * math.prod(partners)
            exact += path.exact / share if share else 0.0
        matches = sum(path.matches for path in paths)
        return min(1.0, matches / exact) if matches and exact else None


def _paths(plan: Join) -> dict[tuple[str, str], tuple[Hop, ...]]:
    return {
        (str(node), str(driver)): tuple(Hop(str(driver), str(node), str(node.inputs[i])) for i in order)
        for node in plan.inner()
        for driver, order in zip(node.inputs, node.orders, strict=True)
    }


def _kept(plan: Join, keep: int | None) -> int | None:
    """The same of a plan whose joins may keep rows in windows of their own; None if one counts rows."""
    for node in plan.inner():
        if keep is None or isinstance(node.window, RowWindow):
            return None
        keep += node.window.microseconds if isinstance(node.window, TimeWindow) else 0
    return keep


def _sums(
    path: tuple[Hop, ...],
    per_hop: Mapping[Hop, HopStats],
    sample: float,
    drop: Mapping[str, float],
    missing: Mapping[str, float],
) -> PathSums:
    """One batch of a path; where it skipped nothing, all its rows are as good as sampled.

    Of streams that are thinned out, and of states with rows missing, results are as much rarer as the shares
    kept of them multiply to.
    """
    skipped = sum(per_hop[hop].skipped + per_hop[hop].narrowed for hop in path if hop in per_hop)
    last = per_hop.get(path[-1], HopStats())
    kept = math.prod(1 - drop.get(name, 0.0) for name in (path[0].driver, *(hop.partner for hop in path)))
    kept *= math.prod(1 - missing.get(hop.partner, 0.0) for hop in path)
    exact = last.sampled_matches / sample if skipped and sample else last.matches
    exact = exact / kept if kept else 0.0
    return PathSums(last.matches, exact, last.sampled_matches, skipped)


def _shrinks(partner: JTree) -> bool:
    """A window of the last n rows stays full when fewer come, so there it is as if none were missing."""
    return not (isinstance(partner, Join) and isinstance(partner.window, RowWindow))
