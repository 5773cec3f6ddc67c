"""Choose what to shed when a plan exceeds the CPU limit: the allowance with the most results."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weir.adapt.plan_estimator import PlanEstimator
from weir.plan.explain import format_share
from weir.plan.limits import Limits
from weir.plan.tree import Join
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName, choose_strategy
from weir.stats.join_graph import JoinGraph

# Reasons of decisions that no analysis made: the user's own, and the first one of a query that must shed.
AS_REQUESTED = "as requested"
SHED_FROM_START = "the plan exceeds the CPU limit, so some work is shed"
# If other work takes the whole CPU limit, probing still gets this share of what it would take exactly ...
_LEAST_PROBING_SHARE = 0.01
# ... and this share of the other work: shedding more would hardly save anything.
_LEAST_SHARE_OF_UNSKIPPABLE = 0.1
# Sampling takes this share of the CPU for probing, as only sampled rows show when selectivities and lags
# change ...
_SAMPLE_CPU_SHARE = 0.05
# ... but at least this share of the rows is sampled.
_LEAST_SAMPLE = 0.002


@dataclass(frozen=True, slots=True)
class Shedding:
    """An allowance with its expected recall and CPU (seconds per second), and the strategy that found it."""

    allowance: Allowance
    recall: float
    strategy: str
    cpu: float
    warnings: tuple[str, ...] = ()


def choose_shedding(
    estimator: PlanEstimator, plan: Join, limits: Limits, shed: ShedName = "auto"
) -> Shedding | None:
    """Choose what to shed so that a plan stays within the CPU limit.

    None if the plan fits, or if shedding would hardly save anything.
    """
    probing_scale = estimator.correction.probing
    exact_results, probing = estimator.forecast.estimate_exact(plan)
    probing *= probing_scale
    unskippable = estimator.estimate_unskippable(plan)
    least = max(_LEAST_PROBING_SHARE * probing, _LEAST_SHARE_OF_UNSKIPPABLE * unskippable)
    budget = limits.cpu - unskippable
    if probing <= max(budget, least):
        return None
    warnings = []
    if budget < least:
        warnings.append(
            f"work that cannot be shed takes {format_share(unskippable)} of CPU and the limit is "
            f"{format_share(limits.cpu)}, so almost every probe is skipped"
        )
        budget = least
    # Sampled rows come on top of the allowance, which has to leave room for them.
    sample = max(_SAMPLE_CPU_SHARE * budget / probing, _LEAST_SAMPLE)
    budget = max(budget - sample * probing, _LEAST_PROBING_SHARE * probing)
    fresh = _freshness_seconds(estimator.query, estimator.graph)
    best = choose_strategy(estimator.forecast, plan, budget / probing_scale, shed, fresh)
    warnings += best.warnings
    recall = min(1.0, best.results / exact_results) if exact_results else 1.0
    sampled = replace(best.allowance, sample=sample)
    cpu = unskippable + probing_scale * estimator.forecast.estimate(plan, sampled)[1]
    return Shedding(sampled, recall, best.name, cpu, tuple(warnings))


def _freshness_seconds(query: Query, graph: JoinGraph) -> dict[str, float]:
    """Return the freshness of each stream that has one, at least its window; rows count at its rate."""
    freshness = {}
    for name, window, fresh in zip(query.names, query.windows, query.fresh, strict=True):
        if fresh is None:
            continue
        seconds = fresh / graph.rates[name] if isinstance(window, RowWindow) else fresh / 1e6
        freshness[name] = max(seconds, graph.window_seconds(name))
    return freshness
