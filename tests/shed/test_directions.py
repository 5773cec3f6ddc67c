"""How long basic windows are by default, and which ages score what without lags."""

from __future__ import annotations

import pytest

from weir.errors import QueryError
from weir.plan.tree import join
from weir.query.windows import RowWindow
from weir.shed.directions import check_harvestable, choose_basic_window, default_basic_window, score_ages
from weir.stats.join_graph import JoinGraph

GRAPH = JoinGraph.of(rates={"a": 20, "b": 20}, window=5, selectivities={("a", "b"): 0.05})
PLAN = join("a", "b")


def test_the_shortest_window_is_divided_by_ten() -> None:
    assert default_basic_window([5.0, 20.0]) == 0.5
    assert choose_basic_window(GRAPH, PLAN) == 0.5
    assert choose_basic_window(GRAPH, PLAN, 2.5) == 2.5


@pytest.mark.parametrize("seconds", [0.0, 5.1, 1e-6])
def test_a_length_that_cannot_divide_the_windows_is_refused(seconds: float) -> None:
    with pytest.raises(QueryError, match=r"basic window"):
        choose_basic_window(GRAPH, PLAN, seconds)


def test_without_lags_all_ages_are_alike() -> None:
    assert score_ages(GRAPH, 1.25, None, "a", "b") == ((0.25,) * 4, 1.0)


def test_only_an_mjoin_over_time_windows_sheds_ages() -> None:
    with pytest.raises(QueryError, match="not in the tree"):
        check_harvestable(join(join("a", "b"), "c"), {})
    with pytest.raises(QueryError, match="'b' has a window of rows"):
        check_harvestable(PLAN, {"a": 5.0, "b": RowWindow(9)})
