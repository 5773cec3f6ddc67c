"""GrubJoin (002): the ages that each hop of an mjoin looks at, for a share of what the full join costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.plan import Join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance, check_sample
from weir.shed.directions import Direction, Setting, basic_window, cost, directions, everything, output
from weir.shed.setting import greedy, greedy_reverse
from weir.shed.throttle import check_throttle
from weir.stats import Correlations, JoinGraph


@dataclass(frozen=True, slots=True)
class Harvest:
    """What an mjoin looks at, and the results and cost each second that are expected of it."""

    allowance: Allowance
    results: float
    cost: float


def harvest(
    graph: JoinGraph,
    plan: Join,
    throttle: float,
    correlations: Correlations | None = None,
    basic: float | None = None,
    sample: float = 0.0,
) -> Harvest:
    """The ages worth looking at when the join may cost `throttle` times what it costs in full.

    `basic` is the length of a range in seconds. A share `sample` of the cost is spent on learning: 002 lets
    so many rows look at `throttle` of their first window; here `sample · throttle` of the rows look at
    everything, which costs the same and favours no age.
    """
    check_throttle(throttle)
    check_sample(sample)
    every = basic_window(graph, plan, basic)
    found = directions(graph, plan, every, correlations)
    whole, learning = everything(found), sample * throttle
    full = cost(found, whole)
    # What is left, for each row that is not sampled.
    budget = throttle * full * (1 - sample) / (1 - learning) if learning < 1 else full
    setting = best_setting(found, budget)
    return Harvest(
        looking(found, setting, every, learning),
        (1 - learning) * output(found, setting) + learning * output(found, whole),
        (1 - learning) * cost(found, setting) + learning * full,
    )


def best_setting(found: Sequence[Direction], budget: float) -> Setting:
    """The better of what the two greedy searches find: they miss the best in different places."""
    if cost(found, everything(found)) <= budget:
        return everything(found)
    tried = (greedy(found, budget), greedy_reverse(found, budget))
    return max(tried, key=lambda setting: output(found, setting))


def looking(found: Sequence[Direction], setting: Setting, every: float, sample: float = 0.0) -> Allowance:
    """A setting as an allowance: hops look at their likeliest ranges; directions without any never start."""
    width = round(every * 1e6)
    idle = {one.looks[0].hop: 0.0 for one, taken in zip(found, setting, strict=True) if not all(taken)}
    ages = {
        look.hop: Ages(width, frozenset(look.ranking[:count]))
        for one, taken in zip(found, setting, strict=True)
        if all(taken)
        for look, count in zip(one.looks, taken, strict=True)
        if count < len(look.scores)
    }
    return Allowance(idle, sample=sample, ages=ages)
