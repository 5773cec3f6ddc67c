"""Estimate recall, emitted over exact results, with an interval.

Every result stands for as many exact results as its weight says (`weir.kernel.path_weights`), so the sum of
weights estimates the exact number whatever was shed, dropped or evicted (Horvitz and Thompson 1952). Nothing
is known only of what had no chance to be found: rows that were skipped by a rule, without a sample.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

from weir.plan.tree import Join, hops
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.shed.thin import first_hops
from weir.stats.hop import Hop, HopStats
from weir.stats.weight_sums import WeightSums

# A normal variable is within so many standard deviations of its mean in nine of ten cases.
_NOMINAL = 1.645
# An interval from almost zero says as much as one from zero.
_MOST_LOG = 50.0
# Weight of a batch relative to the next one where no clock tells how much of a window lies between them.
_DECAY = 0.9
# After this many exact batches, 0.9^44 < 1 %, earlier shedding hardly counts and recall is 1. Row windows
# need this: no clock tells when the rows that were shed would have left them.
_EXACT_BATCHES = 44


@dataclass(frozen=True, slots=True)
class RecallEstimate:
    """A recall, and an interval that holds the true one in nine of ten batches."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(results: float, exact: float, deviation: float) -> RecallEstimate | None:
        """Estimate from emitted and estimated exact results; None without results that have a weight."""
        if exact <= 0:
            return None
        value = min(1.0, results / exact)
        # The logarithm of the exact number is closer to normal than the number.
        factor = math.exp(min(_NOMINAL * deviation / exact, _MOST_LOG))
        return RecallEstimate(value, value / factor, min(1.0, value * factor))


EXACT = RecallEstimate(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class BatchEvidence:
    """What a batch tells of its recall.

    `sums` are over all results; `largest` is the greatest weight of a stored row. With `sheds`, something was
    skipped, dropped or is missing from a state; with `is_blind`, there is something among it that had no
    chance to be found, and with `leaves_blind`, it is missing from states as well. Times (µs) are the
    watermark before the batch, the newest event time after it, and by how much that has gone on.
    """

    sums: WeightSums = field(default_factory=WeightSums)
    largest: float = 1.0
    sheds: bool = False
    is_blind: bool = False
    leaves_blind: bool = False
    watermark: int | None = None
    newest: int | None = None
    advance: int = 0


@dataclass(frozen=True, slots=True)
class Recall:
    """The recall of the last batch, and sums over the last windows; None: unknown.

    Of the sums, `own` is the variance of choices in single batches, and `shared` the standard deviation of
    choices that batches share; `relative` is the sum of the relative variances of so many `batches`. Event
    times (µs): at `shed_at` a batch shed, at `unknown_at` one did not know its recall, at `blind_at` one left
    states blind; None: never, or so long ago that nothing is missing.
    """

    batch: RecallEstimate | None = EXACT
    results: float = 0.0
    exact: float = 0.0
    own: float = 0.0
    shared: float = 0.0
    relative: float = 0.0
    batches: float = 0.0
    shed_at: int | None = None
    unknown_at: int | None = None
    blind_at: int | None = None
    exact_batches: int = 0

    @property
    def windows(self) -> RecallEstimate | None:
        """The recall over the last windows, in which earlier batches count less."""
        if self.shed_at is None:
            return EXACT
        if self.unknown_at is not None:
            return None
        return RecallEstimate.of(self.results, self.exact, math.hypot(math.sqrt(self.own), self.shared))

    def after(self, batch: BatchEvidence, keep: int | None) -> Recall:
        """Add a batch; what was shed more than `keep` (µs) before the watermark can no longer be missed."""
        exact_batches = 0 if batch.sheds else self.exact_batches + 1

        def update(earlier: int | None, is_now: bool) -> int | None:
            if is_now or earlier is None:
                return batch.newest if is_now else None
            if keep is None or batch.watermark is None:
                return earlier if exact_batches < _EXACT_BATCHES else None
            return earlier if batch.watermark - earlier <= keep else None

        blind_at = update(self.blind_at, batch.leaves_blind)
        is_unknown = batch.is_blind or blind_at is not None
        shed_at = update(self.shed_at, batch.sheds or is_unknown)
        times = shed_at, update(self.unknown_at, is_unknown), blind_at
        if is_unknown:
            return Recall(None, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *times, exact_batches)
        sums, kept = batch.sums, self._decay(batch.advance, keep) if shed_at is not None else 0.0
        # One result more with the rarest row: perhaps there are such results, and none was found.
        shared = math.sqrt(sums.shared + batch.largest * (batch.largest - 1))
        deviation = math.hypot(math.sqrt(sums.own), shared)
        relative = (deviation / sums.weight) ** 2 if sums.weight else 0.0
        sum_of_relative, batches = kept * self.relative + relative, kept * self.batches + bool(sums.weight)
        if batches:
            # Where too few of the rare results are found, their variance is told too small as well.
            deviation = max(deviation, sums.weight * math.sqrt(sum_of_relative / batches))
        return Recall(
            RecallEstimate.of(sums.results, sums.weight, deviation) if batch.sheds else EXACT,
            kept * self.results + sums.results,
            kept * self.exact + sums.weight,
            kept**2 * self.own + sums.own,
            kept * self.shared + shared,
            sum_of_relative,
            batches,
            *times,
            exact_batches,
        )

    def _decay(self, advance: int, keep: int | None) -> float:
        return math.exp(-advance / keep) if keep else _DECAY


def sum_paths(weights: Mapping[str, WeightSums], plan: Join, per_hop: Mapping[Hop, HopStats]) -> WeightSums:
    """Sum up the results that a partition found, by all drivers of the root.

    Each also stands for those of rows that a work cap kept back; partitions are cut each for itself.
    """
    sums = WeightSums()
    for hop in first_hops(plan):
        work = per_hop.get(hop, HopStats())
        factor = 1 + work.capped / work.probes if work.probes else 1.0
        sums += weights.get(hop.driver, WeightSums()).scale(factor)
    return sums


def find_blind_joins(plan: Join, per_hop: Mapping[Hop, HopStats], allowance: Allowance | None) -> set[str]:
    """Return the joins of a plan that left out rows of which no weight tells.

    Rows that are skipped by a rule have no chance to be found. Rows that start at the root, if any does,
    stand for those that a work cap keeps back there (`sum_paths`); lower joins store what they find before
    the cut is known.
    """
    blind = set()
    for (node, _), path in groupby(hops(plan), attrgetter("node", "driver")):
        for number, hop in enumerate(path):
            work = per_hop.get(hop, HopStats())
            is_cut = work.capped > 0 and (node != str(plan) or not work.probes)
            if is_cut or _skips_by_rule(work, hop, allowance, is_first=number == 0):
                blind.add(node)
    return blind


def _skips_by_rule(work: HopStats, hop: Hop, allowance: Allowance | None, is_first: bool) -> bool:
    if allowance is None or allowance.sample:
        return False
    by_rule = not allowance.share(hop) or (is_first and allowance.choose == "newest")
    return work.narrowed > 0 or (work.skipped > 0 and by_rule)


def add_composed_windows(plan: Join, keep: int | None) -> int | None:
    """Add the time windows of a plan's own joins to `keep`; None if one of these windows counts rows."""
    for node in plan.inner():
        if keep is None or isinstance(node.window, RowWindow):
            return None
        keep += node.window.microseconds if isinstance(node.window, TimeWindow) else 0
    return keep
