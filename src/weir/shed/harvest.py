"""GrubJoin (Gedik et al. 2007): choose the ages each hop of an mjoin probes, within a share of full cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weir.plan.tree import Join
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance, check_sample
from weir.shed.directions import Direction, Setting, basic_window, cost, directions, everything, output
from weir.shed.harvest_setting import exchanged, greedy, greedy_reverse
from weir.shed.throttle import check_throttle
from weir.stats.batch import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms


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
    correlations: LagHistograms | None = None,
    basic: float | None = None,
    sample: float = 0.0,
    measured: Mapping[Hop, float] | None = None,
) -> Harvest:
    """The ages worth looking at when the join may cost `throttle` times what it costs in full.

    `basic` is the length of a range in seconds; `measured` selectivities of hops go before the graph's. A
    share `sample` of the cost is spent on learning: in Gedik et al. 2007 so many rows look at `throttle` of
    their first window; here `sample · throttle` of the rows look at everything, which costs the same and
    favours no age.
    """
    check_throttle(throttle)
    check_sample(sample)
    every = basic_window(graph, plan, basic)
    found = directions(graph, plan, every, correlations, measured)
    whole, learning = everything(found), sample * throttle
    full = cost(found, whole)
    # What is left, for each row that is not sampled.
    budget = throttle * full * (1 - sample) / (1 - learning) if learning < 1 else full
    best = harvested(found, budget, every)
    return Harvest(
        replace(best.allowance, sample=learning),
        (1 - learning) * best.results + learning * output(found, whole),
        (1 - learning) * best.cost + learning * full,
    )


def harvested(
    found: Sequence[Direction], budget: float, every: float, setting: Setting | None = None
) -> Harvest:
    """The same for a budget and no sample; by the best setting, or by a given one that fits."""
    setting, shares = _filled(found, setting or best_setting(found, budget), budget)
    results, spent = (
        sum(shares[one.stream] * one.worth(taken)[i] for one, taken in zip(found, setting, strict=True))
        for i in (0, 1)
    )
    allowed = looking(found, setting, every)
    partly = {one.looks[0].hop: shares[one.stream] for one in found if 0 < shares[one.stream] < 1}
    return Harvest(replace(allowed, probes={**allowed.probes, **partly}, choose="hash"), results, spent)


def _filled(found: Sequence[Direction], setting: Setting, budget: float) -> tuple[Setting, dict[str, float]]:
    """Let directions of which not one range fits begin with a share of their rows, for what is left.

    The first step of a direction may cost more than a small throttle allows: where all matches of the first
    hop have one age, one range of each hop costs as much as a range's share of the last window does.
    """
    taken = dict(zip((one.stream for one in found), setting, strict=True))
    shares = {one.stream: float(all(taken[one.stream])) for one in found}
    left = budget - cost(found, setting)
    idle = [(one, (1,) * len(one.looks)) for one in found if not shares[one.stream]]
    for one, least in sorted(idle, key=lambda step: -_gain(*step)):
        results, spent = one.worth(least)
        if results > 0 and left > 0:
            shares[one.stream] = min(1.0, left / spent) if spent else 1.0
            taken[one.stream] = least
            left -= shares[one.stream] * spent
    return tuple(taken[one.stream] for one in found), shares


def _gain(one: Direction, taken: tuple[int, ...]) -> float:
    results, spent = one.worth(taken)
    return results / spent if spent else 0.0


def best_setting(found: Sequence[Direction], budget: float) -> Setting:
    """The better of what the two greedy searches find, made better by exchanges.

    The two miss the best in different places; at a small budget both may fall below the 0.98 of it that Gedik
    et al. 2007 report.
    """
    return exchanged(found, budget, good_setting(found, budget))


def good_setting(found: Sequence[Direction], budget: float) -> Setting:
    """The same without exchanges, which take most of the time."""
    if cost(found, everything(found)) <= budget:
        return everything(found)
    tried = (greedy(found, budget), greedy_reverse(found, budget))
    return max(tried, key=lambda setting: output(found, setting))


def looking(found: Sequence[Direction], setting: Setting, every: float) -> Allowance:
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
    return Allowance(idle, ages=ages)
