"""Choose a plan: exact search for few streams, else two layers (Zhu et al. 2010, algorithm 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from weir.errors import unknown
from weir.plan.bushy import bushy
from weir.plan.hill_climb import floor, local_search, state_removal, state_selection
from weir.plan.jtree_finder import cheapest, frontier
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.plan_candidate import PlanCandidate, joined, leaves, tree
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join
from weir.stats.join_graph import JoinGraph

PlanPolicy = Literal["least cpu", "least memory", "not dominated", "most headroom"]
_POLICIES = ("least cpu", "least memory", "not dominated", "most headroom")
# The exact search takes milliseconds up to six streams, and for more where few sets of them are connected;
# when the hill-climbers fail, it may take a second.
_ALWAYS_EXACT = 6
EXACT_STREAMS, _EXACT_SETS = 8, 64
SEARCHED_STREAMS, _SEARCHED_SETS = 10, 255
# In a hurry, only where the best plan found is that little over its limits.
_NEAR = 1.2


@dataclass(frozen=True, slots=True)
class RankedPlan:
    """A plan with its CPU (seconds each second) and its memory."""

    plan: Join
    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Choice:
    """The plan taken, whether it fits, what found it, and the two plans everybody knows beside it."""

    taken: RankedPlan
    limits: Limits
    qualified: bool
    found_by: str
    mjoin: RankedPlan
    bjtree: RankedPlan

    @property
    def plan(self) -> Join:
        """The join tree."""
        return self.taken.plan

    @property
    def excess(self) -> float:
        """How many times over the tighter limit the plan is: at most 1 if it fits."""
        return self.limits.excess(self.taken.cpu, self.taken.memory)


def choose(
    graph: JoinGraph, limits: Limits = NO_LIMITS, policy: PlanPolicy = "most headroom", quick: bool = False
) -> Choice:
    """The plan to run: by the policy among all qualified ones for few streams, by two layers for many.

    By two layers the first plan that fits is taken, and the policy only chooses between mjoin and bjtree. If
    it has to be `quick`, what the two layers do not find is searched for only where that may still be found.
    """
    check_plannable(graph)
    if policy not in _POLICIES:
        raise unknown("policy", policy, _POLICIES)
    space = Space(graph)
    if not _is_small(space, EXACT_STREAMS, _EXACT_SETS):
        return _Layers(space, limits, paper=False, quick=quick).run()
    mjoin, bjtree = joined(space, leaves(space.everything)), bushy(space)
    if policy in ("least cpu", "most headroom"):
        first = cheapest(space)
        assert first is not None
        if _is_best(first, limits):
            return _choice(space, limits, first, "exhaustive search", mjoin, bjtree)
    fitting = frontier(space, limits)
    if fitting:
        return _choice(space, limits, by_policy(fitting, limits, policy), "exhaustive search", mjoin, bjtree)
    least = min(frontier(space), key=lambda plan: limits.excess(plan.cpu, plan.memory))
    return _choice(space, limits, least, "exhaustive search", mjoin, bjtree)


def _is_best(first: PlanCandidate, limits: Limits) -> bool:
    """True if the plan with the least CPU is also the least over the tighter limit, as memory is not it."""
    by_cpu = limits.excess(first.cpu, 0.0)
    if not by_cpu:
        return first.memory <= limits.memory
    return by_cpu >= limits.excess(0.0, first.memory)


def _is_small(space: Space, streams: int, sets: int) -> bool:
    """True if all plans can be searched: the work grows with the connected sets, not with the streams."""
    count = len(space.names)
    return count <= _ALWAYS_EXACT or (count <= streams and space.connected_sets <= sets)


def two_layer(graph: JoinGraph, limits: Limits, paper: bool = False) -> Choice:
    """Algorithm 2: mjoin, bjtree, state-selection, state-removal, in that order.

    As printed (`paper`), it gives up as soon as the best bjtree is over the CPU limit. That takes this tree
    for the plan with the least CPU, which it need not be once a stored row costs about as much as a match;
    here only a proven lower bound ends the search early, and a local search has the last word.
    """
    check_plannable(graph)
    return _Layers(Space(graph), limits, paper).run()


def by_policy(plans: Sequence[PlanCandidate], limits: Limits, policy: PlanPolicy) -> PlanCandidate:
    """One of several qualified plans; without a limit on CPU, head-room is best spent on saving it."""
    if policy == "least memory":
        return min(plans, key=lambda plan: (plan.memory, plan.cpu))
    if policy == "most headroom" and not math.isinf(limits.cpu):
        return min(plans, key=lambda plan: (limits.excess(plan.cpu, plan.memory), plan.cpu))
    if policy == "not dominated":
        return next(p for p in plans if not any(q.cpu < p.cpu and q.memory < p.memory for q in plans))
    return min(plans, key=lambda plan: (plan.cpu, plan.memory))


class _Layers:
    """One run of the framework."""

    def __init__(self, space: Space, limits: Limits, paper: bool, quick: bool = False) -> None:
        self._space, self._limits, self._paper, self._quick = space, limits, paper, quick
        self._mjoin = joined(space, leaves(space.everything))
        self._bjtree = bushy(space)

    def run(self) -> Choice:
        limits, mjoin, bjtree = self._limits, self._mjoin, self._bjtree
        if mjoin.memory > limits.memory:
            return self._found(mjoin, "first layer: no plan needs less memory than the mjoin")
        if mjoin.cpu <= limits.cpu:
            return self._found(self._cheaper(), "first layer")
        least = bjtree.cpu if self._paper else floor(self._space).cpu
        if least > limits.cpu:
            whose = "than the bjtree" if self._paper else "than the results themselves"
            return self._found(self._least_over(), f"first layer: no plan needs less CPU {whose}")
        if limits.allow(bjtree.cpu, bjtree.memory):
            return self._found(bjtree, "first layer")
        selected = state_selection(self._space, limits, mjoin, self._paper)
        if selected is not None:
            return self._found(selected, "state-selection")
        fewer = state_removal(self._space, limits, bjtree)
        if fewer is not None:
            return self._found(fewer, "state-removal")
        return self._found(self._least_over(), "none" if self._paper else "local search")

    def _cheaper(self) -> PlanCandidate:
        """The mjoin fits; so may the bjtree with less CPU, which the paper does not ask."""
        if self._paper or not self._limits.allow(self._bjtree.cpu, self._bjtree.memory):
            return self._mjoin
        return by_policy([self._mjoin, self._bjtree], self._limits, "most headroom")

    def _least_over(self) -> PlanCandidate:
        both = [self._mjoin, self._bjtree]
        if self._paper:
            return min(both, key=lambda plan: self._limits.excess(plan.cpu, plan.memory))
        small = _is_small(self._space, SEARCHED_STREAMS, _SEARCHED_SETS)
        if not self._quick:
            fitting = self._fitting() if small else None
            return local_search(self._space, self._limits, both if fitting is None else [fitting])
        plan = local_search(self._space, self._limits, both)
        over = self._limits.excess(plan.cpu, plan.memory)
        # Steps from plan to plan get stuck where both limits are tight, hardly ever where one is.
        if small and not math.isinf(self._limits.memory) and 1 < over <= _NEAR:
            return self._fitting() or plan
        return plan

    def _fitting(self) -> PlanCandidate | None:
        """The one of all plans that fits best, if any does."""
        limits = self._limits
        if math.isinf(limits.memory):
            return cheapest(self._space, limits.cpu)
        plans = frontier(self._space, limits)
        return min(plans, key=lambda plan: limits.excess(plan.cpu, plan.memory), default=None)

    def _found(self, plan: PlanCandidate, how: str) -> Choice:
        return _choice(self._space, self._limits, plan, how, self._mjoin, self._bjtree)


def _choice(
    space: Space, limits: Limits, taken: PlanCandidate, how: str, mjoin: PlanCandidate, bjtree: PlanCandidate
) -> Choice:
    one, usual, other = (_candidate(space, plan) for plan in (taken, mjoin, bjtree))
    return Choice(one, limits, limits.allow(one.cpu, one.memory), how, usual, other)


def _candidate(space: Space, plan: PlanCandidate) -> RankedPlan:
    named = tree(space, plan)
    assert isinstance(named, Join)
    return RankedPlan(named, plan.cpu, plan.memory)
