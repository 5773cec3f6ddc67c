"""Analyse a running query: find the plan and the shedding that should find most results within its limits.

statistics ─ fit ─> join graph ─ search ─> candidate plans ─ shed where over the limit ─> the best one

A pure function. What it finds is a promise of a model; under a CPU limit the controller tries it first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.plan_estimator import PlanEstimator
from weir.adapt.settings import Changeable
from weir.adapt.shedding import choose_shedding
from weir.adapt.statistics import Statistics
from weir.adapt.trial import Base
from weir.plan.choose import choose
from weir.plan.limits import Limits
from weir.plan.probing_orders import choose_probing_orders
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join
from weir.query.model import Query
from weir.shed.allowance import Allowance
from weir.shed.directions import is_harvestable
from weir.shed.strategies import ShedName, find_strategy
from weir.shed.thin import thin
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL, UnitCosts

# While nothing is shed, this share of the rows is sampled to learn lags, for about a hundredth of the work.
_LEARNING_SAMPLE = 0.01
# Shedding aims at this share of the CPU limit, so that a batch that takes a little longer still fits.
_TARGET_SHARE = 0.95
# Recall is compared with this many digits; the rest is rounding.
_RECALL_DIGITS = 6


@dataclass(frozen=True, slots=True)
class AdaptationScope:
    """What of the plan may change, how to shed, unit costs, and the seconds between triggers."""

    changeable: Changeable = "nothing"
    shed: ShedName = "auto"
    costs: UnitCosts = TYPICAL
    interval: float | None = None

    @property
    def has_own_strategy(self) -> bool:
        """True if the user chose how to shed, so that nothing else is tried."""
        return self.shed not in ("auto", "thin")


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of work per event second of the running plan, measured.

    `skippable` are those of probing the root under an allowance, None: if nothing is shed. The joins below
    the root are `kept`.
    """

    kept: float
    skippable: float
    allowance: Allowance | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan with what it sheds, its expected recall, seconds of work per event second, and bytes."""

    base: Base
    recall: float
    cpu: float
    memory: float
    warnings: tuple[str, ...] = ()

    def rank(self, limits: Limits) -> tuple[float, float, float]:
        """Rank by fit into memory, recall and CPU, under a CPU limit by the use of both; more is better."""
        excess = self.cpu if math.isinf(limits.cpu) else limits.excess(self.cpu, self.memory)
        return -max(1.0, limits.excess(0.0, self.memory)), round(self.recall, _RECALL_DIGITS), -excess


@dataclass(frozen=True, slots=True)
class Analysis:
    """The best candidate, and by the same model the running tree as a candidate.

    That is thinned to the limit or, if the user chose how to shed, the best that this does for it.
    """

    best: Candidate
    running: Candidate

    @property
    def gain(self) -> float:
        """The relative gain of the best: in results or, if all are found, in CPU."""
        if self.best.recall > self.running.recall:
            return self.best.recall / self.running.recall - 1 if self.running.recall > 0 else math.inf
        return 1 - self.best.cpu / self.running.cpu if self.running.cpu > 0 else 0.0


def analyse(
    query: Query,
    statistics: Statistics,
    running: Join,
    limits: Limits,
    scope: AdaptationScope,
    usage: Usage | None = None,
    barred: Collection[str] = (),
) -> Analysis | None:
    """Find the best candidate within the limits; None while rates are unknown.

    Limits are seconds of work per event second, and bytes. `usage` corrects the model. Changes of a `barred`
    kind are left out.
    """
    if "tree" in barred and scope.changeable == "tree":
        scope = replace(scope, changeable="orders")
    graph = fit_join_graph(query, statistics, scope.costs)
    if graph is None:
        return None
    check_plannable(graph)
    model = PlanEstimator(query, graph, statistics.reliable_lags)
    if usage is not None:
        model = model.correct(running, usage.kept, usage.skippable, usage.allowance)
    in_force = _thin(model, running, limits, scope.shed)
    found: list[Candidate] = []
    for plan in _candidate_plans(graph, running, _uncorrect(limits, model), scope.changeable):
        found += _list_candidates(model, plan, limits, scope)
    allowed = [candidate for candidate in found if not _is_barred(in_force.base, candidate.base, barred)]
    best = _find_best(allowed or [in_force], limits)
    if scope.has_own_strategy:
        same_tree = [candidate for candidate in allowed if not in_force.base.has_other_tree(candidate.base)]
        in_force = _find_best(same_tree or [in_force], limits)
    return Analysis(best, in_force)


def choose_learning_allowance(windows: Mapping[str, object], plan: Join, shed: ShedName) -> Allowance | None:
    """Return the allowance of a query that sheds nothing yet: in an mjoin, a sample to learn lags from.

    The lags show which ages pay once the query has to shed, and which slices to keep in a bounded memory.
    """
    learns = find_strategy(shed).uses_ages and is_harvestable(plan, windows)
    return Allowance(sample=_LEARNING_SAMPLE) if learns else None


def _is_barred(running: Base, other: Base, barred: Collection[str]) -> bool:
    """True if a change, or the way of shedding that comes with it, is of a barred kind."""
    return other != running and (running.name_change(other) in barred or other.strategy in barred)


def _find_best(candidates: list[Candidate], limits: Limits) -> Candidate:
    return max(candidates, key=lambda candidate: candidate.rank(limits))


def _uncorrect(limits: Limits, model: PlanEstimator) -> Limits:
    """Return limits in seconds by the uncorrected model, by which plans are searched."""
    return Limits(limits.cpu / model.correction.probing, limits.memory)


def _candidate_plans(graph: JoinGraph, running: Join, limits: Limits, changeable: Changeable) -> list[Join]:
    """Return the plans that may run, the running one first."""
    plans = [running]
    if changeable == "tree":
        choice = choose(graph, limits, quick=True)
        plans += [choice.plan, choice.mjoin.plan]
    if changeable != "nothing":
        plans.append(_optimise_orders(Space(graph), running))
    return list(dict.fromkeys(plans))


def _optimise_orders(space: Space, plan: Join) -> Join:
    """Return the same tree with the best probing orders."""
    inputs = tuple(_optimise_orders(space, node) if isinstance(node, Join) else node for node in plan.inputs)
    orders = choose_probing_orders(space, [space.mask(child.streams) for child in inputs]).orders
    return Join(inputs, orders, plan.window)


def _list_candidates(
    model: PlanEstimator, plan: Join, limits: Limits, scope: AdaptationScope
) -> Iterator[Candidate]:
    """Yield a plan thinned to the limit, and with the shedding that the user or the model likes best."""
    thinned = _thin(model, plan, limits, scope.shed)
    if thinned.recall >= 1 or not scope.has_own_strategy:
        yield thinned
    if thinned.recall >= 1 or scope.shed == "thin":
        return
    shedding = choose_shedding(model, plan, Limits(_TARGET_SHARE * limits.cpu), scope.shed)
    if shedding is not None and shedding.strategy != "thin":
        base = Base(plan, shedding.allowance, shedding.strategy)
        yield Candidate(base, shedding.recall, shedding.cpu, thinned.memory, shedding.warnings)


def _thin(model: PlanEstimator, plan: Join, limits: Limits, shed: ShedName) -> Candidate:
    """A plan with as many driver rows at its root as the limit allows."""
    kept, cpu = model.estimate(plan, thin(plan, 0.0))[1], model.estimate(plan)[1]
    fits = cpu <= limits.cpu or cpu <= kept  # where nothing can be skipped, thinning saves nothing
    share = 1.0 if fits else max(0.0, limits.cpu - kept) / (cpu - kept)
    base = Base(plan, choose_learning_allowance(model.graph.windows, plan, shed))
    return Candidate(base, share, min(cpu, max(kept, limits.cpu)), model.estimate_memory(plan))
