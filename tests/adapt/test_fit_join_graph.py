from __future__ import annotations

import pytest
from tests.adapt.simulated_machine import Machine, asked, collect_statistics

from weir.adapt.average import Average
from weir.adapt.fit_join_graph import fit_join_graph
from weir.adapt.statistics import Statistics, iterate_steps
from weir.plan.default_plan import mjoin
from weir.plan.tree import join
from weir.stats.unit_costs import TYPICAL

QUERY = asked()
MJOIN = mjoin(QUERY)
TREE = join(join("a", "b"), "c")


def test_the_graph_has_the_measured_rates_and_selectivities() -> None:
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0})
    known = collect_statistics(machine, MJOIN, batches=6)
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert graph is not None
    assert graph.rates == {name: pytest.approx(rate, rel=0.1) for name, rate in machine.rates.items()}
    assert graph.selectivities == {pair: pytest.approx(0.002, rel=0.1) for pair in graph.selectivities}
    assert graph.row_bytes is not None and graph.row_bytes(frozenset("a")) == pytest.approx(40)


def test_evidence_of_an_earlier_plan_fades() -> None:
    """The mjoin measured b+c with a; the tree has no such step, and a and b now match ten times as often."""
    machine = Machine(QUERY, {"a": 300.0, "b": 200.0, "c": 100.0}, share=0.002)
    known = collect_statistics(machine, MJOIN, batches=10)
    machine.share = 0.02
    for _ in range(60):
        known = known.after(QUERY, machine.step(TREE))
    graph = fit_join_graph(QUERY, known, TYPICAL)
    assert graph is not None
    assert graph.selectivity(["a"], ["b"]) == pytest.approx(0.02, rel=0.15)
    unmeasured = [
        one for step, one in known.matches.items() if step not in {step for _, step in iterate_steps(TREE)}
    ]
    assert unmeasured and all(one.total <= 1.01 for one in unmeasured)


def test_without_a_match_the_selectivity_is_at_most_that_of_one_match() -> None:
    rows = {name: Average(1000, 1) for name in "ab"}
    statistics = Statistics(rows=rows, matches={(("a",), ("b",)): Average(0, 95_000)})
    graph = fit_join_graph(asked("ab", "{0}.k = {1}.k"), statistics, TYPICAL)
    assert graph is not None
    (share,) = graph.classes.values()
    assert 1e-6 < share < 1e-4, "one in a hundred was assumed"
