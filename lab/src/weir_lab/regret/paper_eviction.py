"""Tuple admission as in GrubJoin (Gedik et al. 2007, section VII), beside the rule by which weir evicts.

Every row is admitted. Harvest fractions say which basic windows the directions probe, and rows go that are
older than every basic window of their stream that is probed:

    ages of stream a    │ 0 ┃ 1 │ 2 ┃ 3 │ 4 │ 5 │      probed: 0, 1 and 3, so that 4 and 5 go

The paper derives the fractions from the CPU. Where memory is short, they are those of the largest throttle
fraction whose rows fit into it. Ages are counted from the newest row of all streams.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from weir.adapt.slice_summary import SliceSummary
from weir.plan.tree import Join
from weir.runtime import memory_limit
from weir.shed.expected import ShedForecast
from weir.shed.harvest_model import Directions, HarvestSetting
from weir.shed.harvest_setting import find_greedy_setting
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms
from weir_lab.regret.machine import COSTS, SimulatedMachine
from weir_lab.regret.phase_statistics import true_graph
from weir_lab.regret.play import WEIR, Truth, ask, find_truth, play_weir, record
from weir_lab.regret.record import Record
from weir_lab.regret.scenarios import Scenario

# The scenarios in which memory is short.
SCENARIOS = frozenset({"memory halved", "catching up"})
PAPER = "GrubJoin's eviction"
_THROTTLES = tuple(number / 20 for number in range(20, 0, -1))
# So little of a slice is left that its bytes do not count: recall is told from it.
_NOTHING = 1 / 1024
_SEED = 1


@dataclass(frozen=True)
class PaperEviction:
    """Chooses what to keep of each slice, in place of `weir.adapt.eviction.choose_shares`."""

    graph: JoinGraph
    plan: Join

    def __call__(
        self,
        slices: Sequence[SliceSummary],
        allowed: int,
        clocks: Mapping[str, int],
        lags: LagHistograms | None = None,
    ) -> list[float]:
        """Return for each slice the share of its rows to keep."""
        if sum(each.bytes for each in slices) <= allowed:
            return [1.0] * len(slices)
        forecast = ShedForecast(self.graph, lags)
        basic_window = round(1e6 * forecast.basic_window(self.plan))
        now, kept = max(each.last for each in slices), list[int]()
        for ages in _list_ages(forecast, self.plan):
            young = {name: now - count * basic_window for name, count in ages.items()}
            kept = [i for i, each in enumerate(slices) if each.is_rest or each.last >= young[each.node]]
            if sum(slices[i].bytes for i in kept) <= allowed:
                break
        whole = _keep_youngest(slices, kept, allowed)
        return [1.0 if i in whole else _NOTHING for i in range(len(slices))]


def _list_ages(forecast: ShedForecast, plan: Join) -> Iterator[dict[str, int]]:
    """Of each stream, up to which basic window rows stay: for one throttle fraction after the other."""
    directions, full = forecast.directions(plan), forecast.estimate_exact(plan)[1]
    for throttle in _THROTTLES:
        yield find_oldest_probed(directions, find_greedy_setting(directions, throttle * full))


def find_oldest_probed(directions: Directions, setting: HarvestSetting) -> dict[str, int]:
    """Of each stream, how many basic windows there are up to the oldest that some direction probes."""
    ages = defaultdict[str, int](int)
    for direction, counts in zip(directions, setting, strict=True):
        for hop, count in zip(direction.hops, counts, strict=True):
            probed = hop.ranking[:count] if all(counts) else ()
            ages[hop.hop.partner] = max(ages[hop.hop.partner], 1 + max(probed, default=-1))
    return dict(ages)


def _keep_youngest(slices: Sequence[SliceSummary], kept: Sequence[int], allowed: int) -> set[int]:
    """Of the slices to be kept, the youngest that fit: even few basic windows may have too many rows."""
    whole, free = set[int](), allowed
    for i in sorted(kept, key=lambda i: (slices[i].is_rest, slices[i].last), reverse=True):
        if slices[i].bytes <= free:
            whole.add(i)
            free -= slices[i].bytes
    return whole


@dataclass(frozen=True, slots=True)
class EvictionRun:
    """A scenario on the simulated machine with an mjoin: the batches by weir's rule, and by the paper's."""

    scenario: str
    ours: Sequence[Record]
    paper: Sequence[Record]


def measure_eviction(scenario: Scenario) -> EvictionRun:
    """Run a scenario by each rule."""
    machine = SimulatedMachine()
    truth = find_truth(scenario, machine, _SEED)

    def play(lane: str) -> list[Record]:
        seen = play_weir(scenario, machine, truth, plan="mjoin")
        return record(scenario, machine, truth, lane, _SEED, seen)

    ours = play(WEIR)
    with patch.object(memory_limit, "choose_shares", _make_rule(scenario, truth)):
        return EvictionRun(scenario.name, ours, play(PAPER))


def _make_rule(scenario: Scenario, truth: Truth) -> PaperEviction:
    graph = true_graph(scenario, truth.feed, 0, COSTS)
    return PaperEviction(graph, ask(scenario, plan="mjoin").planned.plan)
