"""Choose what to shed when a plan exceeds the CPU limit: the allowance with the most results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.adapt.plan_estimator import PlanEstimator
from weir.plan.explain import format_share
from weir.plan.limits import Limits
from weir.plan.tree import Join
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.directions import is_harvestable
from weir.shed.flow import compute_flow, convert_grants
from weir.shed.freshness import FreshnessError, compute_refresh_rates, find_loosening_factor
from weir.shed.linear_program import solve_steady_grants
from weir.shed.strategies import Proposal, ShedName, choose_strategy
from weir.stats.join_graph import JoinGraph
from weir.units import format_interval

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
    estimator: PlanEstimator, plan: Join, limits: Limits, shed: ShedName = "auto", roughly: bool = False
) -> Shedding | None:
    """Choose what to shed so that a plan stays within the CPU limit.

    None if the plan fits, or if shedding would hardly save anything. `roughly` leaves out the long searches:
    good enough to compare plans of the same tree.
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
    if shed == "jaqpot" or (shed == "auto" and not is_harvestable(plan, estimator.graph.windows)):
        best = _shed_probes(estimator, plan, budget / probing_scale, warnings)
    else:
        best = choose_strategy(estimator.forecast, plan, budget / probing_scale, shed, roughly)
    recall = min(1.0, best.results / exact_results) if exact_results else 1.0
    sampled = replace(best.allowance, sample=sample)
    cpu = unskippable + probing_scale * estimator.forecast.estimate(plan, sampled)[1]
    return Shedding(sampled, recall, best.name, cpu, tuple(warnings))


def _shed_probes(estimator: PlanEstimator, plan: Join, budget: float, warnings: list[str]) -> Proposal:
    """Divide the budget among the hops, keeping states as fresh as requested if the budget suffices."""
    graph, builder = estimator.graph, estimator.forecast.network_builder(plan)
    net, freshness = builder.network(), _freshness_seconds(estimator.query, graph)
    try:
        # Only row windows keep old rows when few arrive; other states become small, which the linear program
        # takes into account.
        rates = compute_refresh_rates(graph, net, freshness).items()
        kept_fresh = {state: rate for state, rate in rates if state in net.row_window_states}
        after, grants = solve_steady_grants(builder, budget, kept_fresh)
    except FreshnessError:
        factor = find_loosening_factor(graph, net, freshness, budget)
        warnings.append(
            f"the CPU limit is too low to keep the states of {plan} as fresh as requested, so stale results "
            f"will be found and dropped; {_describe_freshness(freshness, factor)}"
        )
        after, grants = solve_steady_grants(builder, budget)
    return Proposal("jaqpot", convert_grants(after, grants), compute_flow(after, grants).results)


def _describe_freshness(freshness: Mapping[str, float], factor: float) -> str:
    """Say what freshness is possible, e.g. "possible: a 90 seconds, b 3 minutes"."""
    if math.isinf(factor):
        return "no freshness is possible"
    seconds = {name: format_interval(round(factor * fresh * 1e6)) for name, fresh in freshness.items()}
    return "possible: " + ", ".join(f"{name} {interval}" for name, interval in seconds.items())


def _freshness_seconds(query: Query, graph: JoinGraph) -> dict[str, float]:
    """Return the freshness of each stream for which it is longer than the window; rows count at its rate."""
    freshness = {}
    for name, window, fresh in zip(query.names, query.windows, query.fresh, strict=True):
        if fresh is None:
            continue
        seconds = fresh / graph.rates[name] if isinstance(window, RowWindow) else fresh / 1e6
        if seconds > graph.window_seconds(name):
            freshness[name] = seconds
    return freshness
