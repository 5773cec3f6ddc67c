"""Which of the partials that reach a hop may probe there.

What is correct: the choice is a function of what the partials hold, of the batch and of the hop, and of
nothing else. How rows were cut into slices and runs, and in which order they came, does not matter; so all
that reach a hop with a share between 0 and 1 are looked at together, as row numbers, before the first one
probes. Rows that hold the same are interchangeable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from weir.kernel.hop import HopWork
from weir.kernel.keys import Bools, Int64s, combine, mix
from weir.kernel.partial import Partial, Picks
from weir.shed import Allowance
from weir.shed.allowance import Choose
from weir.stats import Hop

_NONE: Picks = np.empty(0, np.intp)


@dataclass(frozen=True, slots=True)
class Gate:
    """The entrance of one hop during one batch."""

    hop: Hop
    batch: int
    share: float = 1.0
    choose: Choose = "newest"

    @staticmethod
    def of(allowance: Allowance | None, hop: Hop, batch: int) -> Gate:
        """The gate of a hop; without an allowance it stands open."""
        if allowance is None:
            return Gate(hop, batch)
        return Gate(hop, batch, allowance.share(hop), allowance.choose)

    def admit(self, partials: Iterable[Partial], work: HopWork) -> Iterator[Partial]:
        """What may probe of each partial, one for one and in their order; what may not is counted."""
        if self.share >= 1:
            yield from partials
        elif self.share == 0:
            for partial in partials:
                work.skipped += partial.rows
                yield partial.pick(_NONE)
        else:
            reached = list(partials)
            started = perf_counter()
            chosen = self._chosen(reached)
            work.skipped += sum(partial.rows for partial in reached) - sum(map(len, chosen))
            work.seconds += perf_counter() - started
            for partial, picks in zip(reached, chosen, strict=True):
                yield partial.pick(picks)

    def _chosen(self, partials: Sequence[Partial]) -> list[Picks]:
        """The row numbers in each partial that are let through."""
        lengths = [partial.rows for partial in partials]
        if not sum(lengths):
            return [_NONE for _ in partials]
        if self.choose == "hash":
            values = ~self._salted(_content(partials))
        else:
            values = np.concatenate([_latest(partial) for partial in partials])
        keep = _highest(values, self._count(values), lambda: _content(partials))
        return [np.flatnonzero(part) for part in np.split(keep, np.cumsum(lengths)[:-1])]

    def _salted(self, values: Int64s) -> Int64s:
        named = "\n".join((str(self.batch), self.hop.driver, self.hop.node, self.hop.partner))
        salt = int.from_bytes(hashlib.blake2b(named.encode(), digest_size=8).digest(), "big", signed=True)
        return combine([np.array([salt]), values])

    def _count(self, values: Int64s) -> int:
        """`floor(share * n + u)`: with u spread evenly over [0, 1), the expected share is right for any n."""
        total = mix(self._salted(values).sum(keepdims=True))  # a sum does not know in which order they came
        u = int(total.view(np.uint64)[0] >> np.uint64(11)) / 2**53
        return min(int(self.share * len(values) + u), len(values))


def _content(partials: Sequence[Partial]) -> Int64s:
    return np.concatenate([partial.content() for partial in partials])


def _latest(partial: Partial) -> Int64s:
    latest = partial.extreme(lambda layout: layout.times, np.maximum)
    assert latest is not None
    return latest


def _highest(values: Int64s, count: int, content: Callable[[], Int64s]) -> Bools:
    """The `count` rows of the highest (value, content); content costs, so only ties are asked for it."""
    if not count:
        return np.zeros(len(values), np.bool_)
    least = np.partition(values, len(values) - count)[len(values) - count]
    keep: Bools = values > least
    ties = np.flatnonzero(values == least)
    wanted = count - int(keep.sum())
    if wanted < len(ties):
        ties = ties[np.argpartition(content()[ties], len(ties) - wanted)[len(ties) - wanted :]]
    keep[ties] = True
    return keep
