"""Which of the partials that reach a hop may probe there.

What is correct: the choice is a function of what the partials hold, of the batch and of the hop, and of
nothing else. How rows were cut into slices and runs, and in which order they came, does not matter.

At the first hop of a path the driver's rows are in memory anyway: all are looked at together and a counted
share is let in. Partials further on are not, and there may be very many: each is judged by itself, by a
threshold on its hash, so that what is in flight stays bounded. Rows that hold the same are interchangeable at
the first hop, and share one fate further on. Sampled rows pass besides, and change nothing for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from weir.kernel.half_join import HopWork
from weir.kernel.keys import Bools, Int64s, mix
from weir.kernel.partial import Partial
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.row_hash import hash_limit, row_hashes
from weir.shed.allowance import Allowance, Choose
from weir.stats.batch import Hop


@dataclass(frozen=True, slots=True)
class ProbeShedding:
    """The entrance of one hop during one batch."""

    hop: Hop
    batch: int
    share: float = 1.0
    choose: Choose = "newest"
    sample: ProbeSample | None = None

    @staticmethod
    def of(
        allowance: Allowance | None, hop: Hop, batch: int, sample: ProbeSample | None = None
    ) -> ProbeShedding:
        """The gate of a hop; without an allowance it stands open, and to sampled rows it always does."""
        if allowance is None:
            return ProbeShedding(hop, batch)
        return ProbeShedding(hop, batch, allowance.share(hop), allowance.choose, sample)

    def enter(self, partials: Sequence[Partial], work: HopWork) -> Sequence[Partial]:
        """What may probe of each slice at the first hop of a path, one for one; the rest is counted."""
        if self.share >= 1:
            return partials
        started = perf_counter()
        lengths = [partial.rows for partial in partials]
        chosen = np.split(self._chosen(partials), np.cumsum(lengths)[:-1])
        entered = [self._pick(partial, keep) for partial, keep in zip(partials, chosen, strict=True)]
        work.skipped += sum(lengths) - sum(partial.rows for partial in entered)
        work.seconds += perf_counter() - started
        return entered

    def go_on(self, partial: Partial, work: HopWork) -> Partial:
        """What may probe of one chunk of partials at a later hop; the rest is counted."""
        if self.share >= 1:
            return partial
        started = perf_counter()
        keep = hash_limit(self._salted(partial.content()), self.share) if self.share else _none(partial.rows)
        onward = self._pick(partial, keep)
        work.skipped += partial.rows - onward.rows
        work.seconds += perf_counter() - started
        return onward

    def _pick(self, partial: Partial, keep: Bools) -> Partial:
        keep = keep if self.sample is None else keep | self.sample.marks(partial)
        return partial.pick(np.flatnonzero(keep))

    def _chosen(self, partials: Sequence[Partial]) -> Bools:
        """Which of all their rows, one after the other, are let in."""
        rows = sum(partial.rows for partial in partials)
        if not rows or not self.share:
            return _none(rows)
        if self.choose == "hash":
            values = ~self._salted(_content(partials))
        else:
            values = np.concatenate([_latest(partial) for partial in partials])
        return _highest(values, self._count(values), lambda: _content(partials))

    def _salted(self, values: Int64s) -> Int64s:
        return row_hashes(values, self.batch, self.hop.driver, self.hop.node, self.hop.partner)

    def _count(self, values: Int64s) -> int:
        """`floor(share * n + u)`: with u spread evenly over [0, 1), the expected share is right for any n."""
        total = mix(self._salted(values).sum(keepdims=True))  # a sum does not know in which order they came
        u = int(total.view(np.uint64)[0] >> np.uint64(11)) / 2**53
        return min(int(self.share * len(values) + u), len(values))


def _none(rows: int) -> Bools:
    return np.zeros(rows, np.bool_)


def _content(partials: Sequence[Partial]) -> Int64s:
    return np.concatenate([partial.content() for partial in partials])


def _latest(partial: Partial) -> Int64s:
    latest = partial.extreme(lambda layout: layout.times, np.maximum)
    assert latest is not None
    return latest


def _highest(values: Int64s, count: int, content: Callable[[], Int64s]) -> Bools:
    """The `count` rows of the highest (value, content); content costs, so only ties are asked for it."""
    if not count:
        return _none(len(values))
    least = np.partition(values, len(values) - count)[len(values) - count]
    keep: Bools = values > least
    ties = np.flatnonzero(values == least)
    wanted = count - int(keep.sum())
    if wanted < len(ties):
        ties = ties[np.argpartition(content()[ties], len(ties) - wanted)[len(ties) - wanted :]]
    keep[ties] = True
    return keep
