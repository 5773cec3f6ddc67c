"""Load: what the batches of a query did and what CPU that took, of each plan and way of shedding tried.

Counts are known at once and exactly, seconds are noisy: so the work of the next batch follows the last two,
while the seconds that work takes are fitted over many batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from weir.adapt.batch_report import BatchReport
from weir.adapt.cost_fit import CostFit, Measurement, Work
from weir.shed.thin import first_hops

V = TypeVar("V")
# Weight of the last batch in the forecast of the next one's work; the rest is that of the one before.
_LAST_WEIGHT = 0.6
# While windows fill up or drain, work goes on as it went, by at most this factor.
_MOST_TREND = 2.0
# The mean over this many batches must meet the budget: the next one, and those before it.
_BALANCED_BATCHES = 10
# Plans and ways of shedding that are remembered.
_REMEMBERED = 6


@dataclass(frozen=True, slots=True)
class Load:
    """Of each decision tried, its cost fit, and the work per event second if all driver rows probed.

    `works` has that of the last two batches, the newest last. `spent` has the CPU seconds of the last batches
    that shed, each over what it was allowed.
    """

    fits: Mapping[str, CostFit] = field(default_factory=dict)
    works: Mapping[str, tuple[Work, ...]] = field(default_factory=dict)
    spent: tuple[float, ...] = ()

    def after(self, key: str, batch: Measurement, share: float, span: float) -> Load:
        """Add a batch under the decision `key`, in which this share of the driver rows probed."""
        fits = {**self.fits, key: self.fits.get(key, CostFit()).after(batch)}
        if not span or share <= 0:
            return replace(self, fits=_forget(fits, key))
        full = batch.work.scale_root(1 / share) * (1 / span)
        works = {**self.works, key: (*self.works.get(key, ()), full)[-2:]}
        return replace(self, fits=_forget(fits, key), works=_forget(works, key))

    def forecast(self, key: str, is_changing: bool) -> Work | None:
        """The work per event second of the next batch under a decision; None if it has never run.

        `is_changing` if windows fill up or drain, so that work grows or falls batch by batch.
        """
        if not (known := self.works.get(key)):
            return None
        before, last = known[0], known[-1]
        if not is_changing:
            return last * _LAST_WEIGHT + before * (1 - _LAST_WEIGHT)
        trend = last.root / before.root if before.root > 0 else 1.0
        grown = 2 * last.root - before.root
        bounded = min(max(grown, last.root / _MOST_TREND), last.root * min(max(trend, 1.0), _MOST_TREND))
        return Work(last.kept, bounded)

    def balance(self, ratio: float | None) -> Load:
        """Add the seconds of a batch over what it was allowed; None: it did not shed, and all is balanced."""
        return replace(self, spent=() if ratio is None else (*self.spent, ratio)[-(_BALANCED_BATCHES - 1) :])

    def fit(self, key: str) -> CostFit:
        """The fit of a decision; of one that has not run, that of the one that ran last."""
        return self.fits.get(key) or next(reversed(list(self.fits.values())), CostFit())


def count_probing(seen: BatchReport) -> float:
    """The share of the rows at the root's first hops that probed in a batch."""
    hops = [seen.per_hop[hop] for hop in first_hops(seen.plan) if hop in seen.per_hop]
    probes, skipped = sum(hop.probes for hop in hops), sum(hop.skipped + hop.capped for hop in hops)
    return probes / (probes + skipped) if probes else 0.0 if skipped else 1.0


def _forget(known: dict[str, V], newest: str) -> dict[str, V]:
    """Keep the last ones only, and the newest last."""
    known[newest] = known.pop(newest)
    return dict(list(known.items())[-_REMEMBERED:])
