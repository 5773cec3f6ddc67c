"""The cost model against the equations of Zhu et al. 2010, symbol by symbol."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.graphs import graphs

from weir.plan.cost import cost
from weir.plan.space import Space
from weir.plan.tree import join
from weir.query.windows import rows
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

amount = st.floats(0.1, 50)
share = st.floats(0.001, 1)

# Figure 4b: A probes B then C, B probes A then C, C probes B then A.
MJOIN = join("A", "B", "C", orders=[(1, 2), (0, 2), (1, 0)])
BJTREE = join(join("A", "B"), "C")


@given(amount, amount, amount, st.floats(0.1, 20), share, share, amount, amount, amount)
def test_equations_1_to_7(
    a: float, b: float, c: float, w: float, ab: float, bc: float, cj: float, ci: float, cd: float
) -> None:
    graph = JoinGraph.of(
        {"A": a, "B": b, "C": c}, w, {("A", "B"): ab, ("B", "C"): bc}, UnitCosts.per_match(cj, ci, cd)
    )
    mjoin, bjtree = cost(graph, MJOIN), cost(graph, BJTREE)
    leaves = {node.node: node.cpu for node in mjoin.nodes}
    abc = ab * bc

    # (1): what stream A causes in the mjoin; its hops are found as what is gone when A sends nothing.
    cpu_a = a * (ci + cd) + a * b * ab * w * cj + a * b * ab * c * bc * w**2 * cj
    cpu_b = b * (ci + cd) + a * b * ab * w * cj + a * b * ab * c * bc * w**2 * cj
    cpu_c = c * (ci + cd) + c * b * bc * w * cj + a * b * ab * c * bc * w**2 * cj
    assert leaves["A"] == pytest.approx(a * (ci + cd))
    assert mjoin.cpu == pytest.approx(cpu_a + cpu_b + cpu_c)
    # (2) and (3)
    inserts = (a + b + c) * (ci + cd)
    assert mjoin.cpu == pytest.approx(
        inserts + b * c * bc * w * cj + 3 * a * b * c * abc * w**2 * cj + 2 * a * b * ab * w * cj
    )
    assert mjoin.rows == pytest.approx(a * w + b * w + c * w)
    # (4) and (5)
    assert bjtree.cpu == pytest.approx(
        inserts + 3 * a * b * c * abc * w**2 * cj + 2 * a * b * ab * w * (cj + ci + cd)
    )
    assert bjtree.rows == pytest.approx(mjoin.rows + a * b * ab * w**2)
    # (6) and (7): their difference is that of the two plans, so its sign says which one takes less CPU.
    recompute, maintain = b * c * bc * w * cj, 2 * a * b * ab * w * (ci + cd)
    assert mjoin.cpu - bjtree.cpu == pytest.approx(recompute - maintain, abs=1e-9 * mjoin.cpu)


def test_windows_may_differ_and_may_count_rows() -> None:
    graph = JoinGraph.of(
        {"A": 10.0, "B": 5.0}, {"A": 2.0, "B": rows(30)}, {("A", "B"): 0.1}, UnitCosts.per_match(1.0)
    )
    plan = cost(graph, join("A", "B"))
    assert plan.rows == 20 + 30
    # Each of 10 rows a second meets 30 of B, each of 5 meets 20 of A.
    assert plan.cpu == pytest.approx(0.1 * (10 * 30 + 5 * 20))


def test_the_other_papers_count_probes_or_comparisons() -> None:
    rates, edges = {"A": 10.0, "B": 5.0, "C": 1.0}, {("A", "B"): 0.1, ("B", "C"): 0.5}
    probes = cost(JoinGraph.of(rates, 2.0, edges, UnitCosts(probe=1.0)), MJOIN)
    # Every row probes once, and once more for each match of its first hop.
    assert probes.cpu == pytest.approx(10 + 5 + 1 + 10 * 10 * 0.1 + 5 * 20 * 0.1 + 1 * 10 * 0.5)
    looked_at = cost(JoinGraph.of(rates, 2.0, edges, UnitCosts(compare=1.0)), MJOIN)
    first = 10 * 10 + 5 * 20 + 1 * 10
    assert looked_at.cpu == pytest.approx(
        first + (10 * 10 * 0.1) * 2 + (5 * 20 * 0.1) * 2 + (1 * 10 * 0.5) * 20
    )


def test_a_set_may_be_less_selective_than_its_edges_say() -> None:
    rates = {"A": 10.0, "B": 10.0, "C": 10.0}
    edges = {("A", "B"): 0.1, ("B", "C"): 0.1}
    independent = JoinGraph.of(rates, 1.0, edges, UnitCosts(out=1.0))
    dependent = JoinGraph.of(rates, 1.0, {**edges, ("A", "B", "C"): 0.1}, UnitCosts(out=1.0))
    assert cost(independent, MJOIN).cpu == pytest.approx(3 * 1000 * 0.01)
    assert cost(dependent, MJOIN).cpu == pytest.approx(3 * 1000 * 0.1)
    assert dependent.selectivity({"A"}, {"B", "C"}) == pytest.approx(1.0)


def test_an_attribute_that_all_share_counts_once_per_further_stream() -> None:
    graph = JoinGraph(
        streams=("A", "B", "C"),
        rates=dict.fromkeys("ABC", 10.0),
        windows=dict.fromkeys("ABC", 1.0),
        selectivities={},
        classes={frozenset("ABC"): 0.1},
        costs=UnitCosts(out=1.0),
    )
    # A third stream on the same key matches one in ten, not one in a hundred: a.k = c.k follows.
    assert cost(graph, MJOIN).cpu == pytest.approx(3 * 1000 * 0.01)
    assert graph.selectivity("ABC") == pytest.approx(0.01)
    assert graph.selectivity("A", "BC") == pytest.approx(0.1)


def test_bytes_are_counted_where_sizes_are_known() -> None:
    graph = JoinGraph(
        streams=("A", "B", "C"),
        rates=dict.fromkeys("ABC", 10.0),
        windows=dict.fromkeys("ABC", 1.0),
        selectivities={frozenset("AB"): 0.1, frozenset("BC"): 0.1},
        row_bytes=lambda streams: 8.0 * len(streams) + 4.0 * ("B" in streams),
    )
    assert cost(graph, BJTREE).memory == 80 + 120 + 80 + 10 * 20
    assert cost(graph, join(join("A", "C"), "B")).memory == 80 + 120 + 80 + 100 * 16


@settings(max_examples=40, deadline=None)
@given(graphs(3, 5))
def test_tables_over_all_sets_say_what_is_said_of_each(graph: JoinGraph) -> None:
    space = Space(graph)
    masks = range(1, space.everything + 1)
    connected = [mask for mask in masks if (space.component(mask & -mask, mask) == mask)]
    assert np.flatnonzero(space.connected_table).tolist() == connected
    new_slices, visited, overhead, maintenance = space.state_tables
    for mask in connected:
        state = space.slice_model(mask)
        tabulated = (new_slices[mask], visited[mask], overhead[mask], maintenance[mask])
        seconds = (space.hop_overhead(mask), space.maintenance_seconds(mask))
        single = (state.new_slices / graph.batch, state.visited_slices, *seconds)
        assert tabulated == pytest.approx(single)
    for bound in masks:
        for i, partner in enumerate(connected):
            if not bound & partner:
                assert space.extension_table[bound, i] == pytest.approx(
                    space.extension_seconds(bound, partner)
                )
