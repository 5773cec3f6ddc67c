from __future__ import annotations

import numpy as np
import pytest

from weir import QueryError
from weir.stats.join_graph import JoinGraph
from weir_lab.workload import Arrivals, Workload

GRAPH = JoinGraph.of({"a": 400, "b": 300.5, "c": 7}, 2, {("a", "b"): 0.15, ("b", "c"): 1.0})


@pytest.mark.parametrize("arrivals", ["regular", "poisson"])
def test_rates_and_times(arrivals: Arrivals) -> None:
    work = Workload(GRAPH, arrivals)
    for name, rate in GRAPH.rates.items():
        tables = [delta[name] for delta in work.feed(20, 0.5)]
        assert sum(map(len, tables)) == pytest.approx(20 * rate, rel=0.2 if name == "c" else 0.05)
        for number, table in enumerate(tables):
            times = table["ts"].cast("int64").to_numpy()
            assert (np.diff(times) >= 0).all()
            assert ((times >= number * 500_000) & (times < (number + 1) * 500_000)).all()


def test_regular_streams_leave_no_row_out_between_deltas() -> None:
    work = Workload(GRAPH, "regular")
    assert sum(len(delta["b"]) for delta in work.feed(20, 0.3)) == sum(
        len(delta["b"]) for delta in work.feed(20.1, 20.1)
    )


def test_selectivities() -> None:
    delta = Workload(GRAPH).delta(0, every=20)
    for left, right, key in (("a", "b", "ab"), ("b", "c", "bc")):
        mine, theirs = delta[left][key].to_numpy(), delta[right][key].to_numpy()
        share = (mine[:, None] == theirs).mean()
        assert share == pytest.approx(GRAPH.selectivities[frozenset((left, right))], rel=0.03)


def test_the_same_seed_the_same_rows() -> None:
    assert Workload(GRAPH, seed=4).delta(3, 1) == Workload(GRAPH, seed=4).delta(3, 1)
    assert Workload(GRAPH, seed=4).delta(3, 1) != Workload(GRAPH, seed=5).delta(3, 1)


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(QueryError, match="above zero"):
        Workload(JoinGraph.of({"a": 1, "b": 1}, 1, {("a", "b"): 0.0}))
    two = JoinGraph.of({"a": 1, "b": 1}, {"a": 1, "b": 2}, {("a", "b"): 0.5})
    with pytest.raises(QueryError, match="one window for all"):
        _ = Workload(two).within
