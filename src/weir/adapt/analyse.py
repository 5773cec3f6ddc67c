"""Analyse a running query: find the best plan and allowance for its statistics and limits (a pure function).

statistics ─ fit ─> join graph ─ search ─> candidate plans ─ shed where over the limit ─> recommendation
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.adapt.change_detection import describe_changes, is_over_limit
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.plan_estimator import PlanEstimator, PlanInForce, measure_correction
from weir.adapt.settings import Adapt, Changeable
from weir.adapt.shedding import Shedding, choose_shedding
from weir.adapt.statistics import Statistics
from weir.plan.choose import choose
from weir.plan.explain import compare_usage
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.probing_orders import choose_probing_orders
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join
from weir.query.model import Query
from weir.shed.allowance import Allowance
from weir.shed.directions import is_harvestable
from weir.shed.strategies import ShedName
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL, UnitCosts

# While nothing is shed, this share of the rows is sampled to learn lags, for about a hundredth of the work.
_LEARNING_SAMPLE = 0.01
# Shedding aims at this share of the CPU limit, so that a batch that takes a little longer still fits.
_TARGET_SHARE = 0.9
# Hysteresis: shedding ends only if the exact join fits into this share of the limit, so that decisions do not
# flap at the limit.
_EXACT_AGAIN_SHARE = 0.8
# Over the limit, another allowance is urgent only if it takes less than this share of what runs now.
_LESS_CPU_SHARE = 0.98
# A reason names at most this many changes.
_MOST_CHANGES = 3
# With more streams than this, mjoins are first compared roughly, and the long search for ages is spent only
# on those whose recall is within this share of the best one.
_MOST_STREAMS_TO_SEARCH, _CLOSE_RECALL_SHARE = 6, 0.98
# Recall above this is complete; the rest is rounding.
_COMPLETE_RECALL = 1 - 1e-9
_RECALL_DIGITS = 9


@dataclass(frozen=True, slots=True)
class AdaptationScope:
    """What of the plan may change, how to shed, unit costs, and the seconds between triggers."""

    changeable: Changeable = "nothing"
    shed: ShedName = "auto"
    costs: UnitCosts = TYPICAL
    interval: float | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The best plan and allowance, their expected effect, and the reason.

    `cpu` is in measured seconds of work per event second; `scale` is measured divided by modelled seconds of
    probing. `gain` is relative to the plan in force; `changes_plan` is true if the plan is another one. An
    `is_urgent` recommendation holds whatever the gain: a limit is exceeded, or shedding can end. `seconds` is
    the CPU time of the analysis.
    """

    plan: Join
    allowance: Allowance | None
    recall: float
    cpu: float
    memory: float
    gain: float
    reason: str
    scale: float
    changes_plan: bool = False
    is_urgent: bool = False
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A plan with its exact CPU, corrected and as modelled, its memory, and what must be shed."""

    plan: Join
    exact_cpu: float
    modelled_cpu: float
    memory: float
    shedding: Shedding | None = None

    @property
    def recall(self) -> float:
        return 1.0 if self.shedding is None else self.shedding.recall

    @property
    def cpu(self) -> float:
        return self.exact_cpu if self.shedding is None else self.shedding.cpu

    def rank(self, limits: Limits) -> tuple[float, float, float, float]:
        """Rank by fit into memory, recall, head-room and CPU; more is better.

        Plans and limits are compared in modelled seconds: the measurements of one plan say whether the budget
        suffices, but not how much faster another plan is.
        """
        memory_excess = max(1.0, limits.excess(0.0, self.memory))
        excess = limits.excess(self.modelled_cpu, self.memory)
        return -memory_excess, round(self.recall, _RECALL_DIGITS), -excess, -self.modelled_cpu


def analyse(
    query: Query,
    statistics: Statistics,
    running: PlanInForce,
    limits: Limits,
    settings: Adapt,
    scope: AdaptationScope,
) -> Recommendation | None:
    """Recommend the best plan within the limits, with shedding if none fits; None while rates are unknown.

    Limits are seconds of work per event second, and bytes.
    """
    graph = fit_join_graph(query, statistics, scope.costs)
    if graph is None:
        return None
    check_plannable(graph)
    model = PlanEstimator(query, graph, statistics.lags)
    correction = measure_correction(statistics, running, model, limits)
    corrected = model.correct(correction)
    # Limits in modelled seconds, as if every plan had the unskippable work of the running one.
    unskippable = model.estimate_unskippable(running.plan)
    for_probing = max(limits.cpu - correction.unskippable * unskippable, 0.0)
    model_limits = Limits(unskippable + for_probing / correction.probing, limits.memory)
    candidates = [
        _Candidate(plan, corrected.estimate(plan)[1], model.estimate(plan)[1], model.estimate_memory(plan))
        for plan in _candidate_plans(graph, running.plan, model_limits, scope.changeable)
    ]
    exact = Limits(limits.cpu if running.is_exact else _EXACT_AGAIN_SHARE * limits.cpu, limits.memory)
    fitting = [candidate for candidate in candidates if exact.allow(candidate.exact_cpu, candidate.memory)]
    allowed = fitting or _add_shedding(corrected, candidates, limits.cpu, exact.cpu, scope.shed)
    best = max(allowed, key=lambda candidate: candidate.rank(model_limits))
    allowance = None if best.shedding is None else best.shedding.allowance
    if best.shedding is None and not math.isinf(limits.cpu):
        allowance = choose_learning_allowance(graph.windows, best.plan, scope.shed)
    recall, cpu = corrected.estimate(running.plan, running.allowance)
    ends_shedding = best.shedding is None and not running.is_exact
    saves_cpu = best.plan != running.plan or best.cpu < _LESS_CPU_SHARE * cpu
    return Recommendation(
        plan=best.plan,
        allowance=allowance,
        recall=best.recall,
        cpu=best.cpu,
        memory=best.memory,
        gain=_gain(best, candidates[0], recall, model_limits),
        reason=_explain(statistics, running, settings, best, limits),
        scale=correction.probing,
        changes_plan=best.plan != running.plan,
        is_urgent=ends_shedding or (is_over_limit(statistics, limits) and saves_cpu),
        warnings=() if best.shedding is None else best.shedding.warnings,
    )


def choose_learning_allowance(windows: Mapping[str, object], plan: Join, shed: ShedName) -> Allowance | None:
    """Return the allowance of a query that sheds nothing yet: in an mjoin, a sample to learn lags from.

    The lags show which ages pay once the query has to shed.
    """
    learns = shed in ("auto", "harvest") and is_harvestable(plan, windows)
    return Allowance(sample=_LEARNING_SAMPLE) if learns else None


def _candidate_plans(graph: JoinGraph, running: Join, limits: Limits, changeable: Changeable) -> list[Join]:
    """Return the plans that may run, the running one first."""
    plans = [running]
    if changeable == "tree":
        choice = choose(graph, limits, quick=True)
        plans += [choice.plan] if choice.qualified else [choice.plan, choice.mjoin.plan]
    if changeable != "nothing":
        plans.append(_optimise_orders(Space(graph), running))
    return list(dict.fromkeys(plans))


def _optimise_orders(space: Space, plan: Join) -> Join:
    """Return the same tree with the best probing orders."""
    inputs = tuple(_optimise_orders(space, node) if isinstance(node, Join) else node for node in plan.inputs)
    orders = choose_probing_orders(space, [space.mask(child.streams) for child in inputs]).orders
    return Join(inputs, orders, plan.window)


def _add_shedding(
    estimator: PlanEstimator, candidates: list[_Candidate], cpu: float, exact_cpu: float, shed: ShedName
) -> list[_Candidate]:
    """Add what must be shed for the limit `cpu` of candidates that take more than `exact_cpu`."""

    def add_shedding(candidate: _Candidate, roughly: bool = False) -> _Candidate:
        shedding = None
        for share in (_TARGET_SHARE, _EXACT_AGAIN_SHARE) if candidate.exact_cpu > exact_cpu else ():
            target = Limits(share * cpu)
            shedding = shedding or choose_shedding(estimator, candidate.plan, target, shed, roughly)
        return replace(candidate, shedding=shedding)

    mjoins = [c for c in candidates if is_harvestable(c.plan, estimator.graph.windows)]
    if len(mjoins) > 1 and len(mjoins[0].plan.streams) > _MOST_STREAMS_TO_SEARCH:
        rough = [add_shedding(candidate, roughly=True) for candidate in mjoins]
        least_recall = _CLOSE_RECALL_SHARE * max(candidate.recall for candidate in rough)
        poor = {candidate.plan for candidate in rough if candidate.recall < least_recall}
        candidates = [candidate for candidate in candidates if candidate.plan not in poor]
    return list(map(add_shedding, candidates))


def _gain(best: _Candidate, running: _Candidate, recall: float, limits: Limits) -> float:
    """Return the relative gain: in results or, if all are found, in head-room (without limits, in CPU)."""
    if best.shedding is not None or recall < _COMPLETE_RECALL:
        return best.recall / recall - 1 if recall > 0 else math.inf
    if limits == NO_LIMITS:
        after, before = best.modelled_cpu, running.modelled_cpu
    else:
        after, before = (limits.excess(plan.modelled_cpu, plan.memory) for plan in (best, running))
    return 1 - after / before if before > 0 else 0.0


def _explain(
    statistics: Statistics, running: PlanInForce, settings: Adapt, best: _Candidate, limits: Limits
) -> str:
    """Say what changed and what follows.

    For example "rates of a, b rose 3.9 times: the exact join takes CPU 71% (limit 40%), so shedding by
    harvest keeps about 97% of the results".
    """
    changes = [] if running.reference is None else describe_changes(running.reference, statistics, settings)
    if is_over_limit(statistics, limits):
        usage = compare_usage(statistics.load.value or 0.0, statistics.bytes, limits)
        changes.insert(0, f"the join takes {usage}")
    conclusion = f"the exact join takes {compare_usage(best.exact_cpu, best.memory, limits)}"
    if best.plan != running.plan:
        has_same_tree = str(best.plan) == str(running.plan)
        other = "other probing orders" if has_same_tree else f"the plan {best.plan}"
        conclusion = f"with {other} {conclusion}"
    outcome = "nothing is shed"
    if best.shedding is not None:
        outcome = f"shedding by {best.shedding.strategy} keeps about {best.recall:.0%} of the results"
    changed = f"{'; '.join(changes[:_MOST_CHANGES])}: " if changes else ""
    return f"{changed}{conclusion}, so {outcome}"
