"""Path weights: how many exact outputs each output of a path stands for (Horvitz and Thompson 1952).

An output that was found with probability p stands for 1 / p outputs. Rows of states have weights of their
own: some were dropped or evicted, and joined rows carry those of the rows they are made of. To them, a path
adds that of its choices:

- a hop that admits a share of its probes by hash finds an output with that probability;
- a sampled row, one of a share s, finds everything. What other rows find with probability q, be it 1 or, for
  ages and rows that are left out, 0, is found with probability s + (1 - s) q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weir.kernel.age_filter import AgeFilter
from weir.kernel.keys import Bools, Floats
from weir.kernel.partial import Partial
from weir.kernel.probe_sample import ProbeSample
from weir.kernel.probe_shedding import Cutoff, ProbeShedding


@dataclass(frozen=True, slots=True)
class PathWeights:
    """Weighs the outputs of one path during one batch.

    `share` is the probability that rows which are not sampled find an output that they may find; with
    `by_time`, only the newest rows may. Which those are is known where the `cutoff` is: elsewhere only
    sampled rows have a weight.
    """

    share: float
    sample: ProbeSample | None
    age_filters: tuple[AgeFilter, ...]
    by_time: bool
    cutoff: Cutoff | None

    @staticmethod
    def of(
        shedding: Sequence[ProbeShedding],
        age_filters: Sequence[AgeFilter],
        sample: ProbeSample | None,
        cutoff: Cutoff | None,
    ) -> PathWeights:
        """Return the weights of a path with this shedding and these ages at its hops."""
        first, *later = shedding
        by_time = first.choose == "newest" and first.share < 1
        shares = (1.0 if by_time else first.share, *(hop.share for hop in later))
        active = tuple(ages for ages in age_filters if ages.is_active)
        return PathWeights(math.prod(shares), sample, active, by_time, cutoff)

    @property
    def is_exact(self) -> bool:
        """True if the path finds all that the states hold."""
        return self.share >= 1 and not self.age_filters and not self.by_time

    def weigh(self, outputs: Partial) -> Partial:
        """Return outputs of the path with their weights."""
        weights = None if self.is_exact else self._weigh_path(outputs)
        for group in outputs.groups:
            rows = group.weights
            if rows is not None:
                weights = rows if weights is None else weights * rows
        return Partial(outputs.groups, outputs.rows, weights)

    def _weigh_path(self, outputs: Partial) -> Floats:
        share = 0.0 if self.sample is None else self.sample.share
        probability = share + (1 - share) * self.share
        if self.sample is None or not (self.age_filters or self.by_time):
            return np.broadcast_to(np.float64(1 / probability), outputs.rows)  # one number for all
        sampled = self.sample.mark(outputs)
        if self.by_time and self.cutoff is None:
            return np.where(sampled, 1 / share, 0.0)
        rows, weights = np.flatnonzero(sampled), np.full(outputs.rows, 1 / probability)
        weights[rows[~self._includes(outputs.pick(rows))]] = 1 / share
        return weights

    def _includes(self, outputs: Partial) -> Bools:
        """Tell which outputs of sampled rows others may find as well."""
        included = np.ones(outputs.rows, np.bool_)
        for ages in self.age_filters:
            included &= ages.includes(outputs)
        return included if self.cutoff is None else included & self.cutoff.includes(outputs.driver)
