from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.cost import cost
from weir.plan.limits import Limits
from weir.plan.tree import Join, join
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts
from weir_lab.charge import count_alive_rows
from weir_lab.qualified.overload import start_query
from weir_lab.qualified.table2 import TABLE_3
from weir_lab.virtual_machine import Machine, Tick
from weir_lab.workload import Arrivals, Workload

# Few AB, many BC: an mjoin makes BC again and again, the bjtree keeps AB.
GRAPH = JoinGraph.of({"A": 20, "B": 20, "C": 50}, 2, {("A", "B"): 0.005, ("B", "C"): 0.5}, TABLE_3)
MJOIN = join("A", "B", "C", orders=[(1, 2), (0, 2), (1, 0)])
BJTREE = join(join("A", "B"), "C")


def run(
    plan: Join,
    limits: Limits,
    seconds: float = 12,
    arrivals: Arrivals = "poisson",
    costs: UnitCosts = TABLE_3,
) -> list[Tick]:
    work = Workload(GRAPH, arrivals)
    machine = Machine(costs, limits, every=0.25)
    return list(machine.run(start_query(work, plan), plan, work.feed(seconds, 0.25)))


def test_the_same_run_twice() -> None:
    assert run(MJOIN, Limits(0.001), 5) == run(MJOIN, Limits(0.001), 5)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([MJOIN, BJTREE]), st.floats(1e-4, 1e-2), st.floats(50, 1000))
def test_every_row_is_processed_or_queued(plan: Join, cpu: float, memory: float) -> None:
    ticks = run(plan, Limits(cpu, memory), 4)
    feed = list(Workload(GRAPH).feed(4, 0.25))
    arrived = 0
    for tick, delta in zip(ticks, feed, strict=False):
        arrived += sum(table.num_rows for table in delta.values())
        assert tick.arrived == arrived == tick.processed + tick.queued
        assert tick.stopped == (tick.state + tick.queued > memory)
    assert len(ticks) == len(feed) or ticks[-1].stopped
    assert [tick.stopped for tick in ticks[:-1]] == [False] * (len(ticks) - 1)


def test_no_more_is_spent_than_there_is() -> None:
    """A batch that has begun is finished, so the machine may be ahead by one batch and no more."""
    ticks = run(MJOIN, Limits(0.002))
    dearest = max(after.cpu - before.cpu for before, after in pairwise(ticks))
    for tick in ticks:
        assert tick.cpu <= 0.002 * tick.seconds + dearest


def test_a_starved_mjoin_queues_while_a_bjtree_does_not() -> None:
    taken = {plan: cost(GRAPH, plan).cpu for plan in (MJOIN, BJTREE)}
    limits = Limits((taken[MJOIN] + taken[BJTREE]) / 2)
    slow, fast = run(MJOIN, limits), run(BJTREE, limits)
    assert fast[-1].queued <= 50
    assert slow[-1].queued > 200
    assert fast[-1].results > 1.2 * slow[-1].results


def test_with_room_for_all_every_plan_finds_the_same() -> None:
    mjoin, other = run(MJOIN, Limits(), 6)[-1], run(BJTREE, Limits(), 6)[-1]
    assert mjoin.results == other.results > 0
    assert mjoin.queued == other.queued == 0


def test_a_plan_without_memory_is_stopped() -> None:
    ticks = run(BJTREE, Limits(memory=150))
    assert ticks[-1].stopped
    assert ticks[-1].state > 150
    assert len(ticks) < 48


def test_a_stopped_clock_stands_still() -> None:
    work = Workload(GRAPH)
    clock = Machine(TABLE_3, Limits(memory=1)).start(start_query(work, MJOIN), MJOIN)
    stopped = clock.tick(work.delta(0, 1))
    assert stopped.stopped
    assert clock.tick(work.delta(1, 1)) == stopped


@pytest.mark.parametrize("plan", [MJOIN, BJTREE])
def test_what_is_charged_is_what_the_model_predicts(plan: Join) -> None:
    """The formulas of Zhu et al. 2010 against what the engine did: CPU each second, and rows in state."""
    expected = cost(GRAPH, plan)
    ticks = run(plan, Limits(), 32, "regular")
    first, last = ticks[len(ticks) // 4], ticks[-1]
    assert (last.cpu - first.cpu) / (last.seconds - first.seconds) == pytest.approx(expected.cpu, rel=0.1)
    states = [tick.state for tick in ticks[len(ticks) // 4 :]]
    assert sum(states) / len(states) == pytest.approx(expected.rows, rel=0.1)
    assert last.stored >= last.state


def test_each_cost_is_charged_for_what_it_is_for() -> None:
    last = {
        name: run(BJTREE, Limits(), 4, costs=replace(UnitCosts(), **{name: 1.0}))[-1]
        for name in ("probe", "match", "out", "insert", "delete")
    }
    assert last["out"].cpu == last["out"].results
    assert last["insert"].cpu - last["delete"].cpu == last["insert"].state
    # Each of a row's two or one hops begins with a probe, but for the first rows, whom nobody waits for.
    assert last["probe"].cpu >= 0.9 * last["probe"].processed
    assert last["match"].cpu > last["match"].results


def test_rows_that_may_still_join_are_at_most_those_stored() -> None:
    work = Workload(GRAPH)
    query = start_query(work, BJTREE)
    for delta in work.feed(8, 0.5):
        query.process(delta)
    alive = count_alive_rows(query.state)
    stored = {name: size.rows for name, size in query.state.sizes().items()}
    assert set(alive) == {"A", "B", "C", "(A B)"}
    assert all(alive[name] <= stored[name] for name in alive)
    assert alive["A"] == pytest.approx(40, abs=25)


def test_a_clock_must_tick() -> None:
    with pytest.raises(QueryError, match="above zero"):
        Machine(TABLE_3, every=0)
