"""GrubJoin's rule keeps all ages up to the oldest that is probed, and fits into the memory."""

from dataclasses import replace

import pytest

from weir.adapt.slice_summary import SliceSummary
from weir.plan.tree import join
from weir.runtime import memory_limit
from weir.shed.harvest_model import Direction, HopHarvest
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistogram, LagHistograms
from weir.stats.unit_costs import TYPICAL
from weir_lab.regret.bars import eviction_bar
from weir_lab.regret.paper_eviction import EvictionRun, PaperEviction, find_oldest_probed, measure_eviction
from weir_lab.regret.scenarios import Phase, Scenario
from weir_lab.regret.streams import SECOND, Shape

from .records import make

_PLAN = join("a", "b")
_GRAPH = JoinGraph.of({"a": 10, "b": 10}, 10, {("a", "b"): 0.1}, TYPICAL)


def _slices(count: int) -> list[SliceSummary]:
    """Slices of a second, the newest first."""
    ends = [(name, (20 - age) * SECOND) for age in range(count) for name in "ab"]
    return [SliceSummary(name, 10, 100, end - SECOND, end, end + 10 * SECOND) for name, end in ends]


def test_rows_stay_up_to_the_oldest_age_that_is_probed() -> None:
    hop = HopHarvest(Hop("a", "(a b)", "b"), 10, 0.1, (0.5, 0.0, 0.4, 0.1))
    directions = [
        Direction("a", 1.0, (hop,)),
        Direction("b", 1.0, (replace(hop, hop=Hop("b", "(a b)", "a")),)),
    ]
    assert find_oldest_probed(directions, ((2,), (0,))) == {"b": 3, "a": 0}
    assert find_oldest_probed(directions, ((1,), (4,))) == {"b": 1, "a": 4}


def test_what_is_kept_fits_and_is_the_youngest() -> None:
    slices, rule = _slices(10), PaperEviction(_GRAPH, _PLAN)
    assert rule(slices, 2000, {}) == [1.0] * 20
    for allowed in (1500, 700, 50):
        shares = rule(slices, allowed, {})
        assert 100 * shares.count(1.0) <= allowed
        for own in (shares[0::2], shares[1::2]):
            assert own == sorted(own, reverse=True)


def test_ages_that_no_result_has_go_first() -> None:
    """All rows of a lie three seconds before those of b, so that older ones are of no use."""
    lags = LagHistograms("a", {"b": LagHistogram(-10, 10, tuple(100.0 * (i == 13) for i in range(20)))})
    slices = _slices(10)
    shares = PaperEviction(_GRAPH, _PLAN)(slices, 900, {}, lags)
    kept = {
        (each.node, 20 - each.last // SECOND)
        for each, share in zip(slices, shares, strict=True)
        if share == 1
    }
    assert {("a", age) for age in range(4)} <= kept and ("a", 6) not in kept


def test_a_scenario_by_each_rule() -> None:
    shape = Shape(dict.fromkeys("abc", 20.0), keys=10)
    usual = memory_limit.choose_shares
    run = measure_eviction(Scenario("tiny", "nothing", (Phase("calm", 12, shape, memory=0.6),)))
    assert memory_limit.choose_shares is usual
    assert [each.results for each in run.ours] != [each.results for each in run.paper]
    assert "of the memory" in eviction_bar(run).measured


@pytest.mark.parametrize(("ours", "is_reached"), [(80, True), (70, False)])
def test_the_paper_may_not_find_more(ours: int, is_reached: bool) -> None:
    run = EvictionRun("made up", make(9, results=ours, most_bytes=10), make(9, results=75, most_bytes=10))
    assert eviction_bar(run).reached is is_reached
