"""What would be best now? A pure function of what is known, of what stands, and of what is allowed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from weir.adapt.change_detection import describe_changes, is_over_limit, is_underused
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.settings import Adapt
from weir.adapt.shedding import SAMPLE, Pace, Shedding, Weighing
from weir.adapt.statistics import Statistics
from weir.plan.choose import choose
from weir.plan.explain import show_bytes, show_share
from weir.plan.limits import NO_LIMITS, Limits
from weir.plan.probing_orders import probing_orders
from weir.plan.space import Space, check_plannable
from weir.plan.tree import Join, Leaf
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

# What of a plan may change while it runs: all of it, or the orders in which each driver probes, or nothing.
Movable = Literal["tree", "orders", "nothing"]
# What skips aims below the limit, so that a batch that takes a little longer than others is still within it.
_AIM = 0.9
# Nothing is skipped any more only where all fits into so much of the limit: at the limit itself that would
# change with every breath.
_BACK = 0.8
# While work is skipped, the model is held to be so many times too pessimistic at most, from one decision to
# the next (the boost factor of Gedik et al. 2007, section III).
_BOOST = 1.2
_SCALES = (1e-6, 1e6)
# What cannot be skipped takes this share of the work at most.
_MOST_BESIDE = 0.9
# Windows are full from this share on of the rows that they will hold.
_FULL = 0.9
# What is expected to take more than this share of what runs would not help it.
_LESS = 0.98
# A reason names so many changes at most.
_MOST_CHANGES = 3
# With more streams, only probing orders that roughly give almost the most results are searched to the end.
_FEW, _CLOSE = 6, 0.98
# More than this are all results; and what differs by less is the same, but for rounding.
_ALL = 1 - 1e-9
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class PlanInForce:
    """What runs now, a plan and what is skipped in it, and what was known when that was last weighed."""

    plan: Join
    allowance: Allowance | None = None
    basis: Statistics | None = None

    @property
    def is_exact(self) -> bool:
        """True if nothing is skipped."""
        return self.allowance is None or not self.allowance.sheds


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What would be best, what it is expected to give and take, and why.

    `cpu` is work per event second, in seconds of this machine; `scale` how many times those of the model it
    takes to probe. The `gain` is over what stands; `moves` tells if the plan is another. If it `is_pressing`,
    it is due whatever it gains: a budget is missed, or nothing need be skipped any more. Whoever asked says
    how many CPU `seconds` it took to find.
    """

    plan: Join
    allowance: Allowance | None
    recall: float
    cpu: float
    memory: float
    gain: float
    reason: str
    scale: float
    moves: bool = False
    is_pressing: bool = False
    warnings: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Option:
    """A plan, what it takes if nothing is skipped, here and by the model alone, and what must be skipped."""

    plan: Join
    cpu: float
    modelled: float
    memory: float
    shedding: Shedding | None = None

    @property
    def recall(self) -> float:
        return 1.0 if self.shedding is None else self.shedding.recall

    @property
    def takes(self) -> float:
        return self.cpu if self.shedding is None else self.shedding.cpu

    def rank(self, limits: Limits) -> tuple[float, float, float, float]:
        """Better is more: within the memory, with more results, with more head-room, for less CPU.

        Plans are compared by the seconds of the model, and so are its limits: what one plan took tells that
        the budget suffices, but little of how much faster another one is.
        """
        over = max(1.0, limits.excess(0.0, self.memory))
        return -over, round(self.recall, _DIGITS), -limits.excess(self.modelled, self.memory), -self.modelled


def analyse(
    query: Query,
    statistics: Statistics,
    running: PlanInForce,
    limits: Limits,
    costs: UnitCosts,
    settings: Adapt,
    shed: ShedName = "auto",
    movable: Movable = "nothing",
) -> Recommendation | None:
    """The best plan within the limits, or the best of what must be skipped; None while too little is known.

    Limits are seconds of work per event second, and bytes.
    """
    graph = fit_join_graph(query, statistics, costs)
    if graph is None:
        return None
    check_plannable(graph)
    modelled = Weighing(query, graph, statistics.lags)
    pace = _pace(statistics, running, modelled, limits)
    weighing = modelled.at(pace)
    recall, takes = weighing.taken(running.plan, running.allowance)
    within = _in_model(limits, modelled.rest(running.plan), pace)
    options = [
        _Option(plan, weighing.taken(plan)[1], modelled.taken(plan)[1], modelled.memory(plan))
        for plan in _plans(graph, running.plan, within, movable)
    ]
    exact = 1.0 if running.is_exact else _BACK
    best, now = _best(weighing, options, limits, within, shed, exact), options[0]
    is_back = best.shedding is None and not running.is_exact
    is_other = best.plan != running.plan or best.takes < _LESS * takes
    return Recommendation(
        plan=best.plan,
        allowance=_allowance(graph, best, limits, shed),
        recall=best.recall,
        cpu=best.takes,
        memory=best.memory,
        gain=_gain(best, now, recall, within),
        reason=_reason(statistics, running, settings, best, limits),
        scale=pace.probing,
        moves=best.plan != running.plan,
        is_pressing=is_back or (is_over_limit(statistics, limits) and is_other),
        warnings=() if best.shedding is None else best.shedding.warnings,
    )


def allowance_for_learning(windows: Mapping[str, object], plan: Join, shed: ShedName) -> Allowance | None:
    """What is allowed while nothing is skipped: in an mjoin a sample, which tells the lags of its results.

    These tell what to look at once something must be skipped.
    """
    in_time = not any(isinstance(window, RowWindow) for window in windows.values())
    is_flat = all(isinstance(child, Leaf) for child in plan.inputs)
    return Allowance(sample=SAMPLE) if in_time and is_flat and shed in ("auto", "harvest") else None


def _pace(statistics: Statistics, running: PlanInForce, modelled: Weighing, limits: Limits) -> Pace:
    """How many times the model's seconds the work takes; of what cannot be skipped, the model's at most.

    Conditions take what they take, while storing rows is the same for all queries: so what is too much is
    held to be probing.
    """
    rest = modelled.rest(running.plan)
    probing = modelled.taken(running.plan, running.allowance)[1] - rest
    load, before = statistics.load.value or 0.0, statistics.scale
    beside = min(1.0, _MOST_BESIDE * load / rest) if load and rest > 0 else 1.0
    rest *= beside
    found = (load - rest) / probing if load and probing > 0 else before or 1.0
    if before and not running.is_exact:
        # Seconds vary: what takes too long is believed at once, that it takes too little after some batches,
        # and then a little only (the throttle of Gedik et al. 2007, section III).
        if is_underused(statistics, limits):
            found = before / _BOOST
        elif load > limits.cpu:
            found = before * max(1.0, load / (rest + before * probing))
        else:
            found = before
    elif before and statistics.full < _FULL:
        # Windows that fill up yet make the work seem less than it will be.
        found = max(found, before)
    return Pace(min(max(found, _SCALES[0]), _SCALES[1]), beside)


def _in_model(limits: Limits, rest: float, pace: Pace) -> Limits:
    """Limits for the seconds of the model, if a plan takes about as much beside its probes as the running."""
    left = max(limits.cpu - pace.beside * rest, 0.0)
    return Limits(rest + left / pace.probing, limits.memory)


def _plans(graph: JoinGraph, running: Join, limits: Limits, movable: Movable) -> list[Join]:
    """What may run: first what does."""
    found = [running]
    if movable == "tree":
        choice = choose(graph, limits, quick=True)
        found += [choice.plan] if choice.qualified else [choice.plan, choice.mjoin.plan]
    if movable != "nothing":
        found.append(_reordered(Space(graph), running))
    return list(dict.fromkeys(found))


def _reordered(space: Space, plan: Join) -> Join:
    """The same tree with the best probing orders."""
    inputs = tuple(_reordered(space, child) if isinstance(child, Join) else child for child in plan.inputs)
    orders = probing_orders(space, [space.mask(child.streams) for child in inputs]).orders
    return Join(inputs, orders, plan.window)


def _best(
    weighing: Weighing,
    options: Sequence[_Option],
    limits: Limits,
    within: Limits,
    shed: ShedName,
    exact: float,
) -> _Option:
    """The best of some plans; if one fits into the share `exact` of the CPU, none is shed."""

    def rank(option: _Option) -> tuple[float, ...]:
        return option.rank(within)

    fitting = [one for one in options if one.cpu <= exact * limits.cpu and one.memory <= limits.memory]
    if fitting:
        return max(fitting, key=rank)
    mjoins = [one for one in options if weighing.is_harvestable(one.plan)]
    if len(mjoins) > 1 and len(mjoins[0].plan.streams) > _FEW:
        # What is skipped in an mjoin is worth a long search, but not once for each of its probing orders.
        rough = [_shed(weighing, one, limits, shed, exact, roughly=True) for one in mjoins]
        least = _CLOSE * max(one.recall for one in rough)
        poor = [one.plan for one in rough if one.recall < least]
        options = [one for one in options if one.plan not in poor]
    return max((_shed(weighing, one, limits, shed, exact) for one in options), key=rank)


def _shed(
    weighing: Weighing, option: _Option, limits: Limits, shed: ShedName, exact: float, roughly: bool = False
) -> _Option:
    """A plan with what must be skipped, if it takes more than the share `exact` of the limit."""
    found = None
    for share in (_AIM, _BACK) if option.cpu > exact * limits.cpu else ():
        found = found or weighing.shedding(option.plan, Limits(share * limits.cpu), shed, roughly)
    return replace(option, shedding=found)


def _allowance(graph: JoinGraph, best: _Option, limits: Limits, shed: ShedName) -> Allowance | None:
    """What is skipped; where nothing is, a sample learns the lags that harvesting would need."""
    if best.shedding is not None:
        return best.shedding.allowance
    return None if math.isinf(limits.cpu) else allowance_for_learning(graph.windows, best.plan, shed)


def _gain(best: _Option, now: _Option, recall: float, limits: Limits) -> float:
    """By how much what is best is better than what stands: in results or, if all are found, in head-room."""
    if best.shedding is not None or recall < _ALL:
        return best.recall / recall - 1 if recall > 0 else math.inf
    after, before = (
        limits.excess(one.modelled, one.memory) if limits != NO_LIMITS else one.modelled
        for one in (best, now)
    )
    return 1 - after / before if before > 0 else 0.0


def _reason(
    statistics: Statistics,
    running: PlanInForce,
    settings: Adapt,
    best: _Option,
    limits: Limits,
) -> str:
    """What has changed, and what follows, with numbers."""
    changes = [] if running.basis is None else describe_changes(running.basis, statistics, settings)
    if is_over_limit(statistics, limits):
        changes.insert(0, f"the join takes {_usage(statistics.load.value, statistics.bytes, limits)}")
    takes = f"all of it takes {_usage(best.cpu, best.memory, limits)}"
    if best.plan != running.plan:
        other = f"the plan {best.plan}" if str(best.plan) != str(running.plan) else "other probing orders"
        takes = f"with {other} {takes}"
    if best.shedding is None:
        follows = f"{takes}, so nothing is skipped"
    else:
        follows = f"{takes}, so about {best.recall:.0%} of the results are looked for, by {best.shedding.way}"
    return f"{'; '.join(changes[:_MOST_CHANGES])}: {follows}" if changes else follows


def _usage(cpu: float | None, memory: float, limits: Limits) -> str:
    used = []
    if not math.isinf(limits.cpu):
        used.append(f"CPU {show_share(cpu or 0.0)} of {show_share(limits.cpu)} allowed")
    if not math.isinf(limits.memory):
        used.append(f"state {show_bytes(memory)} of {show_bytes(limits.memory)} allowed")
    return " and ".join(used) or f"CPU {show_share(cpu or 0.0)}"
