"""Correct the cost model by measurement: how many times the modelled seconds the running plan takes."""

from __future__ import annotations

from weir.adapt.change_detection import is_underused
from weir.adapt.plan_estimator import CostCorrection, PlanEstimator
from weir.adapt.recommendation import PlanInForce
from weir.adapt.statistics import Statistics
from weir.plan.limits import Limits

# While the query sheds and uses too little CPU, each decision assumes that probing is this many times
# cheaper, so that shedding ends step by step (the boost factor of Gedik et al. 2007, section III).
_BOOST = 1.2
# Keep the correction within these bounds, so that a strange measurement cannot make estimates meaningless.
_LEAST_SCALE, _MOST_SCALE = 1e-6, 1e6
# Other work than probing takes at most this share of the measured load.
_MOST_UNSKIPPABLE_SHARE = 0.9
# Windows below this share of their expected rows are still filling up, and work will grow with them.
_FILLED_SHARE = 0.9


def measure_correction(
    statistics: Statistics, running: PlanInForce, modelled: PlanEstimator, limits: Limits
) -> CostCorrection:
    """Compare the measured load with the model.

    The cost of conditions differs between queries, that of storing rows hardly does. So probing explains any
    load beyond the model, and other work is corrected downwards only.
    """
    unskippable = modelled.estimate_unskippable(running.plan)
    probing = modelled.estimate(running.plan, running.allowance)[1] - unskippable
    load = statistics.load.value or 0.0
    share = 1.0
    if load and unskippable > 0:
        share = min(1.0, _MOST_UNSKIPPABLE_SHARE * load / unskippable)
    scale = _measure_probing(statistics, running, unskippable * share, probing, limits)
    return CostCorrection(min(max(scale, _LEAST_SCALE), _MOST_SCALE), share)


def _measure_probing(
    statistics: Statistics, running: PlanInForce, unskippable: float, probing: float, limits: Limits
) -> float:
    """Return measured over modelled seconds of probing."""
    load, before = statistics.load.value or 0.0, statistics.scale
    measured = (load - unskippable) / probing if load and probing > 0 else before or 1.0
    if not before:
        return measured
    if running.is_exact:
        return measured if statistics.window_fill >= _FILLED_SHARE else max(measured, before)
    # While shedding, seconds vary a lot: believe at once that work takes longer, but that it takes less only
    # after some batches, and step by step (the throttle of Gedik et al. 2007, section III).
    if is_underused(statistics, limits):
        return before / _BOOST
    if load > limits.cpu:
        return before * max(1.0, load / (unskippable + before * probing))
    return before
