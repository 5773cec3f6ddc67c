"""Probe shedding: choose which of the partials that reach a hop may probe there.

The choice depends on the content of the partials, the batch and the hop, and on nothing else: neither on how
rows were cut into slices and runs nor on their order.

- At the first hop of a path the driver's rows are in memory anyway: they are compared with each other and
  exactly the allowed share is admitted. Rows of equal content are interchangeable.
- At later hops there may be too many partials to hold: each is judged alone, by a threshold on its hash, so
  that memory stays bounded. Partials of equal content share one fate.

Sampled rows are always admitted and do not change the choice for others. Where the newest rows are admitted,
a cutoff tells which of the sampled ones are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import thread_time

import numpy as np

from weir.kernel.keys import Bools, Int64s, mix
from weir.kernel.partial import Partial
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.row_hash import hash_rows, select_share
from weir.shed.allowance import Allowance, Choose
from weir.stats.hop import Hop, HopStats


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The newest rows: those after a time, and those of that time whose content hash is not below one."""

    time: int
    content: int

    def includes(self, rows: Partial) -> Bools:
        """Tell which rows are among the newest."""
        times = _latest_times(rows)
        newest: Bools = times > self.time
        if (times == self.time).any():
            newest |= (times == self.time) & (rows.content() >= self.content)
        return newest


@dataclass(frozen=True, slots=True)
class ProbeShedding:
    """Shedding at one hop during one batch: admit a share of the probes, and every sampled row."""

    hop: Hop
    batch: int
    share: float = 1.0
    choose: Choose = "newest"
    sample: ProbeSample | None = None

    @staticmethod
    def of(
        allowance: Allowance | None, hop: Hop, batch: int, sample: ProbeSample | None = None
    ) -> ProbeShedding:
        """Return the shedding that an allowance asks for at a hop; without an allowance all rows probe."""
        if allowance is None:
            return ProbeShedding(hop, batch)
        return ProbeShedding(hop, batch, allowance.share(hop), allowance.choose, sample)

    def admit_rows(self, partials: Sequence[Partial], work: HopStats) -> Sequence[Partial]:
        """Reduce the driver's rows at the first hop of a path, partial by partial; count what is skipped."""
        return self._admit(partials, self._choose_rows, work)

    def find_cutoff(self, partials: Sequence[Partial]) -> Cutoff | None:
        """Return which of the driver's rows are admitted for being the newest; None: it is not by time."""
        if self.share >= 1 or self.choose != "newest":
            return None
        rows = sum(partial.rows for partial in partials)
        keep = self._choose_rows(partials) if self.share and rows else np.zeros(rows, np.bool_)
        if not keep.any():
            return Cutoff(2**63 - 1, 2**63 - 1)
        times = np.concatenate([_latest_times(partial) for partial in partials])[keep]
        least = times.min()
        return Cutoff(int(least), int(concat_content(partials)[keep][times == least].min()))

    def admit_partial(self, partial: Partial, work: HopStats) -> Partial:
        """Reduce a chunk of partials at a later hop; count what is skipped."""
        (admitted,) = self._admit([partial], self._judge_rows, work)
        return admitted

    def _admit(
        self, partials: Sequence[Partial], choose: Callable[[Sequence[Partial]], Bools], work: HopStats
    ) -> Sequence[Partial]:
        """Pick sampled rows, and those that `choose` marks among the rows of all partials, concatenated."""
        if self.share >= 1:
            return partials
        started = thread_time()
        ends = np.cumsum([partial.rows for partial in partials])
        keep = choose(partials) if self.share and ends[-1] else np.zeros(ends[-1], np.bool_)
        if self.sample is not None:
            keep |= np.concatenate([self.sample.mark(partial) for partial in partials])
        picks = map(np.flatnonzero, np.split(keep, ends[:-1]))
        work.skipped += len(keep) - int(keep.sum())
        admitted = [partial.pick(rows) for partial, rows in zip(partials, picks, strict=True)]
        work.seconds += thread_time() - started
        return admitted

    def _judge_rows(self, partials: Sequence[Partial]) -> Bools:
        return select_share(self._hash(concat_content(partials)), self.share)

    def _choose_rows(self, partials: Sequence[Partial]) -> Bools:
        if self.choose == "hash":
            values = ~self._hash(concat_content(partials))
        else:
            values = np.concatenate([_latest_times(partial) for partial in partials])
        return mark_highest(values, self._count(values), lambda: concat_content(partials))

    def _hash(self, values: Int64s) -> Int64s:
        return hash_rows(values, self.batch, self.hop.driver, self.hop.node, self.hop.partner)

    def _count(self, values: Int64s) -> int:
        """Return `floor(share * n + u)`, u uniform over [0, 1): the expected share is right for any n."""
        total = mix(self._hash(values).sum(keepdims=True))  # a sum does not depend on the order of rows
        u = int(total.view(np.uint64)[0] >> np.uint64(11)) / 2**53
        return min(int(self.share * len(values) + u), len(values))


def _latest_times(partial: Partial) -> Int64s:
    return partial.latest(lambda schema: schema.times)


def concat_content(partials: Sequence[Partial]) -> Int64s:
    """Return a hash of each row's content, partial after partial."""
    return np.concatenate([partial.content() for partial in partials])


def mark_highest(values: Int64s, count: int, content: Callable[[], Int64s]) -> Bools:
    """Mark the `count` rows of the highest (value, content); content is computed only to break ties."""
    if not count:
        return np.zeros(len(values), np.bool_)
    least = np.partition(values, len(values) - count)[len(values) - count]
    keep: Bools = values > least
    ties = np.flatnonzero(values == least)
    missing = count - int(keep.sum())
    if missing < len(ties):
        ties = ties[np.argpartition(content()[ties], len(ties) - missing)[len(ties) - missing :]]
    keep[ties] = True
    return keep
