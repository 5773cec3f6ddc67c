"""Products of streams that no condition connects: found where nothing else fits, and run exactly."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.local.join import LocalJoin
from weir.plan.bushy import find_bushy_tree
from weir.plan.choose import choose, search_two_layers
from weir.plan.cost import PlanCost, cost
from weir.plan.hill_climb import least_cpu
from weir.plan.limits import Limits
from weir.plan.plan_candidate import make_mjoin
from weir.plan.products import find_small_products, list_products
from weir.plan.space import Space
from weir.plan.stream_sets import StreamSets
from weir.plan.tree import Join, join
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import TYPICAL

from .graphs import PAPER, graphs, plans_of, unit_costs

# Sums in another order differ in the last bits.
HAIR = 1 + 1e-9
SECOND = 1_000_000


@st.composite
def stars(draw: st.DrawFn) -> JoinGraph:
    """A busy hub and two or three quiet dimensions."""
    dimensions = [f"d{i}" for i in range(draw(st.integers(2, 3)))]
    rates = {"hub": draw(st.floats(20, 200)), **{name: draw(st.floats(0.2, 8)) for name in dimensions}}
    edges = {("hub", name): draw(st.floats(0.05, 1)) for name in dimensions}
    return JoinGraph.of(rates, draw(st.floats(0.5, 3)), edges, draw(unit_costs))


def limits_between(plans: list[PlanCost], cpu: float, memory: float) -> Limits:
    """Limits between those of the thriftiest and of the greediest plans there are."""
    cpus, memories = sorted(plan.cpu for plan in plans), sorted(plan.memory for plan in plans)
    return Limits(
        HAIR * (cpus[0] + cpu * (cpus[-1] - cpus[0])),
        HAIR * (memories[0] + memory * (memories[-1] - memories[0])),
    )


def fits(plans: list[PlanCost], limits: Limits, hair: float = 1.0) -> bool:
    return any(limits.allow(hair * plan.cpu, hair * plan.memory) for plan in plans)


@settings(max_examples=80, deadline=None)
@given(
    st.one_of(stars(), graphs(3, 4)),
    st.one_of(st.floats(-0.1, 0.2), st.floats(0, 1)),
    st.floats(-0.1, 1.1),
    st.booleans(),
)
def test_a_plan_qualifies_if_and_only_if_one_of_all_trees_does(
    graph: JoinGraph, cpu: float, memory: float, quick: bool
) -> None:
    plans = [cost(graph, plan) for plan in plans_of(graph, cross=True)]
    limits = limits_between(plans, cpu, memory)
    choice = choose(graph, limits, quick)
    if fits(plans, limits, HAIR):
        assert choice.qualified
    elif choice.qualified:
        assert fits(plans, limits, 1 / HAIR)
    taken = cost(graph, choice.plan)
    assert limits.allow(taken.cpu / HAIR, taken.memory / HAIR) or not choice.qualified


@settings(max_examples=30, deadline=None)
@given(stars())
def test_no_product_takes_less_than_the_lower_bound(graph: JoinGraph) -> None:
    least = least_cpu(Space(graph))
    assert all(cost(graph, plan).cpu * HAIR >= least for plan in plans_of(graph, cross=True))


def draw_star(seed: int) -> JoinGraph:
    rng = np.random.default_rng(seed)
    dimensions = [f"d{i}" for i in range(rng.integers(2, 4))]
    rates = {"hub": rng.uniform(20, 200), **{name: rng.uniform(0.2, 8) for name in dimensions}}
    edges = {("hub", name): rng.uniform(0.05, 1) for name in dimensions}
    return JoinGraph.of(rates, rng.uniform(0.5, 3), edges, (PAPER, TYPICAL)[seed % 2])


def test_how_often_only_a_product_fits() -> None:
    """Of 100 stars, with the CPU of the cheapest plan and a tenth of the way up to the dearest."""
    only_products = 0
    for seed in range(100):
        graph = draw_star(seed)
        connected, crossed = ([cost(graph, p) for p in plans_of(graph, cross)] for cross in (False, True))
        limits = limits_between(crossed, 0.1, 1.0)
        if not fits(connected, limits):
            only_products += 1
            assert choose(graph, limits).qualified
            assert choose(graph, limits, quick=True).qualified
    assert only_products == 25


def test_the_product_of_two_small_dimensions_before_a_busy_hub() -> None:
    graph = JoinGraph.of({"hub": 100, "d1": 1, "d2": 1}, 1.0, {("hub", "d1"): 0.5, ("hub", "d2"): 0.5}, PAPER)
    best = choose(graph)
    assert str(best.plan) == "(hub (d1 d2))"
    connected = [cost(graph, plan).cpu for plan in plans_of(graph)]
    assert cost(graph, best.plan).cpu < 0.7 * min(connected)
    choice = choose(graph, Limits(cpu=0.7 * min(connected)))
    assert choice.qualified and choice.plan == best.plan


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize("dimensions", [6, 9, 12])
def test_many_streams_search_a_few_products(dimensions: int, quick: bool) -> None:
    """The exact search is out of reach; the product of the two smallest dimensions is tried all the same."""
    names = [f"d{i}" for i in range(dimensions)]
    edges = {("hub", name): 0.5 for name in names}
    graph = JoinGraph.of({"hub": 100.0, **dict.fromkeys(names, 1.0)}, 1.0, edges, PAPER)
    assert len(find_small_products(graph, 3)) == 3
    # Less than any plan without a product is found to take: the one least over a limit that none can meet.
    space = Space(graph)
    none = Limits(cpu=1e-9 + least_cpu(space))
    connected, _ = search_two_layers(space, none, make_mjoin(space), find_bushy_tree(space))
    limits = Limits(cpu=0.9 * connected.cpu)
    choice = choose(graph, limits, quick)
    assert choice.qualified
    sets = StreamSets(graph)
    nodes = [sets.mask(node.streams) for node in choice.plan.inner()]
    assert any(sets.component(mask & -mask, mask) != mask for mask in nodes), str(choice.plan)
    assert choice.found_by.endswith("with products of small streams")
    taken = cost(graph, choice.plan)
    assert choice.excess == pytest.approx(limits.excess(taken.cpu, taken.memory))


def test_only_pairs_that_no_condition_connects_are_products() -> None:
    rates = dict.fromkeys("abcd", 1.0)
    graph = JoinGraph(
        tuple("abcd"), rates, dict.fromkeys("abcd", 1.0), {frozenset("ab"): 0.5}, {frozenset("bcd"): 0.5}
    )
    assert [sorted(pair) for pair in list_products(graph)] == [["a", "c"], ["a", "d"]]


def draw_tables() -> dict[str, pa.Table]:
    """Over half a minute a busy hub with a key of each of two quiet dimensions, of which few values match."""
    rng, tables = np.random.default_rng(5), {}
    for name, count, keys in (("hub", 3000, "xy"), ("d1", 60, "x"), ("d2", 50, "y")):
        times = pa.array(np.sort(rng.integers(0, 30 * SECOND, count)), pa.timestamp("us"))
        values = {key: rng.integers(0, 2, count) for key in keys}
        tables[name] = pa.table({"ts": times, "id": np.arange(count), **values})
    return tables


@pytest.mark.parametrize("plan", [join("hub", join("d1", "d2")), "auto"], ids=["by hand", "auto"])
def test_a_product_plan_finds_what_duckdb_finds(plan: Join | str) -> None:
    tables = draw_tables()
    asked = weir.join(
        streams={name: table.schema for name, table in tables.items()},
        on="hub.x = d1.x AND hub.y = d2.y",
        within={"hub": "2 seconds", "d1": "3 seconds", "d2": "3 seconds"},
        select="hub.id AS h, d1.id AS a, d2.id AS b",
        plan=plan,
        rates={"hub": 20_000.0, "d1": 2.0, "d2": 2.0},
        selectivities={("hub", "d1"): 0.5, ("hub", "d2"): 0.5},
        budget=weir.Budget(memory="64m"),
        adapt=False,
    )
    assert isinstance(asked, LocalJoin)
    assert str(asked.planned.plan) == "(hub (d1 d2))"
    query, found = asked.start(), Counter[tuple[int, ...]]()
    for start, end in pairwise((0, 2, 3, 9, 9.5, 16, 30)):
        low, high = (pa.scalar(round(seconds * SECOND), pa.timestamp("us")) for seconds in (start, end))
        batch = {
            name: table.filter((pc.field("ts") >= low) & (pc.field("ts") < high))
            for name, table in tables.items()
        }
        found.update(tuple(row.values()) for row in query.process(batch).to_pylist())
    with duckdb.connect(config={"threads": 1}) as database:
        for name, table in tables.items():
            database.register(name, table)
        wanted = Counter(
            database.execute(
                """SELECT h.id, a.id, b.id FROM hub h, d1 a, d2 b
                WHERE h.x = a.x AND h.y = b.y AND greatest(a.ts, b.ts) < h.ts + INTERVAL 2 SECOND
                AND greatest(h.ts, b.ts) < a.ts + INTERVAL 3 SECOND
                AND greatest(h.ts, a.ts) < b.ts + INTERVAL 3 SECOND"""
            ).fetchall()
        )
    assert found == wanted and wanted.total() > 10_000
