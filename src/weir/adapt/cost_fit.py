"""Cost fit: the CPU seconds that the work of a batch takes, learned from the batches of a plan.

Tasks measure the seconds in which they probe the root apart from all others:

    kept    ≈ k · (rows stored, hops below the root)      thinning the root cannot save these
    probing ≈ p + q · (hops of the root, results)         of which it saves the second part

The work in brackets is counted, in seconds by unit costs; k, p, q ≥ 0 correct them. Batches of one share
cannot tell p from q, so a ridge holds p at a small part of probing until batches of other shares show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from weir.adapt.batch_report import BatchReport
from weir.plan.tree import Join
from weir.stats.hop import Hop, HopStats
from weir.stats.unit_costs import UnitCosts

Floats = npt.NDArray[np.float64]
# A fit knows the last batches of a plan, each with this weight relative to the next one.
_BATCHES, _DECAY = 24, 0.9
# The part of probing that does not depend on how many rows probe, unless batches show another one.
_USUAL_FIXED_PART = 0.1
# Strength of the ridge, in batches.
_RIDGE = 0.2
# Batches whose work at the root differs by this factor tell p from q.
_VARIED = 2.0
# Seconds so many times more or less than predicted are a disturbance, unless the batch before was off alike.
_OUTLIER = 1.5


@dataclass(frozen=True, slots=True)
class Work:
    """What a batch did, in seconds by unit costs: at the root, and all else, which is `kept`."""

    kept: float
    root: float

    def scale_root(self, factor: float) -> Work:
        """The work with so many times the probes of the root."""
        return Work(self.kept, factor * self.root)

    def __add__(self, other: Work) -> Work:
        return Work(self.kept + other.kept, self.root + other.root)

    def __mul__(self, factor: float) -> Work:
        return Work(factor * self.kept, factor * self.root)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a batch did, and the CPU seconds of probing the root and of all else."""

    work: Work
    kept: float
    probing: float

    @property
    def seconds(self) -> float:
        """All CPU seconds."""
        return self.kept + self.probing


@dataclass(frozen=True)
class CostFit:
    """Batches of one plan, the newest last.

    `disturbed` is the last one, if it was so far off that it has not been believed yet.
    """

    batches: tuple[Measurement, ...] = ()
    disturbed: Measurement | None = None

    def after(self, batch: Measurement) -> CostFit:
        """Add a batch."""
        if batch.seconds <= 0 or batch.work.kept <= 0:
            return self
        if (direction := self._find_deviation(batch)) != 0:
            if self.disturbed is None or self._find_deviation(self.disturbed) != direction:
                return CostFit(self.batches, batch)
            # Two in a row. If they are the first with another share, p was not known, and all fit together.
            both = CostFit((*self.batches, self.disturbed, batch)[-_BATCHES:])
            if not self.has_varied and both.has_varied and not both._find_deviation(batch):
                return both
            # Otherwise the machine or the data has changed, and what was known of it is old.
            return CostFit((self.disturbed, batch))
        return CostFit((*self.batches, batch)[-_BATCHES:])

    def predict(self, work: Work) -> float:
        """The CPU seconds that such work takes."""
        return sum(self.split(work))

    def split(self, work: Work) -> tuple[float, float]:
        """The seconds that thinning the root cannot save, and those that it can."""
        kept, fixed, root = self._factors
        return kept * work.kept + fixed, root * work.root

    def measure_outside(self, work: Work) -> float:
        """The seconds that such work takes outside the root, which are measured apart."""
        return self._factors[0] * work.kept

    @cached_property
    def has_varied(self) -> bool:
        """True if batches with more and with less work at the root were seen, so that p is no assumption."""
        roots = [batch.work.root for batch in self.batches if batch.work.root > 0]
        return bool(roots) and max(roots) >= _VARIED * min(roots)

    @cached_property
    def _factors(self) -> tuple[float, float, float]:
        """k, p and q; the unit costs themselves before the first batch."""
        if not self.batches:
            return 1.0, 0.0, 1.0
        weights = _DECAY ** np.arange(len(self.batches) - 1, -1, -1.0)
        modelled = np.array([(batch.work.kept, batch.work.root) for batch in self.batches])
        kept, probing = np.array([(batch.kept, batch.probing) for batch in self.batches]).T
        factor = float(weights @ kept / (weights @ modelled[:, 0]))
        return factor, *_fit_line(modelled[:, 1], probing, weights)

    def _find_deviation(self, batch: Measurement) -> int:
        """1 if a batch took far more than predicted, -1 if far less, 0 if neither."""
        ratio = batch.seconds / self.predict(batch.work) if self.batches else 1.0
        return int(ratio > _OUTLIER) - int(ratio < 1 / _OUTLIER)


def _fit_line(work: Floats, seconds: Floats, weights: Floats) -> tuple[float, float]:
    """Fit `seconds = p + q · work` by relative errors, with p, q ≥ 0 and a ridge around the usual p."""
    from scipy.optimize import nnls  # slow to import, and only queries with a budget need it

    used = (work > 0) & (seconds > 0)
    if not used.any():
        return 0.0, 1.0
    work, seconds, weights = work[used], seconds[used], weights[used]
    most, full = float(seconds.max()), float(work[seconds.argmax()])
    # In units of the largest batch, so that both unknowns are of the same size.
    design = np.column_stack([most / seconds, most * work / (full * seconds)])
    ridge = np.sqrt(_RIDGE * weights.max())
    rows = np.vstack([design * np.sqrt(weights)[:, None], [ridge, 0.0]])
    fitted, _ = nnls(rows, np.append(np.sqrt(weights), ridge * _USUAL_FIXED_PART))
    return float(most * fitted[0]), float(most / full * fitted[1])


def model_storing(rows: float, costs: UnitCosts) -> Work:
    """The work of storing so many rows of streams, which every plan has to do."""
    return Work(costs.cut + (costs.insert + costs.merge) * rows, 0.0)


def measure_work(report: BatchReport, costs: UnitCosts, columns: int) -> Measurement:
    """What a batch did by its plan, with results of so many columns, and the seconds it took."""
    plan, root, hops = report.plan, str(report.plan), report.per_hop
    below = [_model_hop(work, costs) for hop, work in hops.items() if hop.node != root]
    at_root = [_model_hop(work, costs) for hop, work in hops.items() if hop.node == root]
    stored = sum(report.rows.values())
    stored += sum(work.matches for hop, work in hops.items() if _feeds_state(hop, plan))
    joined = Work(sum(below), sum(at_root) + costs.out * columns * report.results)
    work = model_storing(stored, costs) + joined
    return Measurement(work, max(0.0, report.work - report.probing), report.probing)


def _model_hop(work: HopStats, costs: UnitCosts) -> float:
    return costs.probe * work.probes + costs.compare * work.comparisons + costs.match * work.matches


def _feeds_state(hop: Hop, plan: Join) -> bool:
    """True if the matches of a hop are stored: it is the last of a path below the root."""
    for node in plan.inner():
        if str(node) == hop.node and node != plan:
            driver = next(i for i, child in enumerate(node.inputs) if str(child) == hop.driver)
            return str(node.inputs[node.orders[driver][-1]]) == hop.partner
    return False
