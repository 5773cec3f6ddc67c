"""The freshness that is told to be possible is the tightest that the linear program can keep."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from weir import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join, JTree, Leaf, join
from weir.query.windows import RowWindow, TimeWindow, Window
from weir.shed.flow import compute_flow
from weir.shed.freshness import compute_refresh_rates, find_loosening_factor, least_cover
from weir.shed.hop_network import Grants, HopNetwork, HopNetworkBuilder
from weir.shed.linear_program import solve_grants, solve_steady_grants
from weir.stats.join_graph import JoinGraph


class Plan:
    """A chain of streams, a random tree over it, and a budget that often does not suffice."""

    def __init__(self, seed: int, in_time: float) -> None:
        self._random, self._in_time = Random(seed), in_time
        names, uniform = "abcde"[: self._random.randint(3, 5)], self._random.uniform
        self.graph = JoinGraph.of(
            {name: uniform(1, 50) for name in names},
            {name: uniform(0.5, 5) for name in names},
            {pair: uniform(0.001, 0.2) for pair in pairwise(names)},
        )
        root = self._tree(names)
        assert isinstance(root, Join)
        self.builder = HopNetworkBuilder(Space(self.graph), Join(root.inputs, root.orders))
        self.net, self.budget = self.builder.network(), 10 ** uniform(0, 2.5)
        self.fresh = {name: uniform(1, 3) * self.graph.window_seconds(name) for name in names}

    def _tree(self, names: str) -> JTree:
        if len(names) == 1:
            return Leaf(names)
        cut = self._random.randint(1, len(names) - 1)
        both = join(self._tree(names[:cut]), self._tree(names[cut:]))
        return Join(both.inputs, both.orders, self._window())

    def _window(self) -> Window:
        if self._random.random() < self._in_time:
            return TimeWindow(self._random.randint(1, 4) * 1_000_000)
        return RowWindow(self._random.randint(5, 300))

    def loosen(self, factor: float) -> dict[str, float]:
        return {name: seconds * factor for name, seconds in self.fresh.items()}

    def rates(self, factor: float) -> dict[str, float]:
        return compute_refresh_rates(self.graph, self.net, self.loosen(factor), self.net.residences)

    def solve(self, fresh: dict[str, float]) -> tuple[HopNetwork, Grants]:
        rates = compute_refresh_rates(self.graph, self.net, fresh, self.net.residences)
        return solve_steady_grants(self.builder, self.budget, rates)

    def staying(self, net: HopNetwork, grants: Grants) -> dict[str, float]:
        """How long a row of each stream stays in the plan (lemma 1)."""
        inserts = compute_flow(net, grants).inserts
        times = {s: self.net.residences.get(s, net.sizes[s] / inserts[s]) for s in net.states if inserts[s]}
        return {
            path.stream: self.graph.window_seconds(path.stream)
            + sum(times.get(state, 0.0) for state in path.count_inserts(1.0))
            for path in net.paths
        }


def least_cost(net: HopNetwork, rates: dict[str, float]) -> float:
    """What it costs at least to refresh states of fixed sizes, in probes of each link; or infinite."""
    productivity = np.array([link.productivity for link in net.links])
    count = len(net.links)
    reach, refreshed = np.eye(count), np.zeros((len(rates), count))
    for i, link in enumerate(net.links):
        reach[i, list(link.sources)] -= productivity[list(link.sources)]
        for j, state in enumerate(rates):
            refreshed[j, i] = -productivity[i] * (link.feeds == state)
    needed = np.array(list(rates.values()))
    solution = linprog(
        [link.cost for link in net.links],
        A_ub=np.vstack([reach, refreshed / np.maximum(needed, 1e-9)[:, None]]),
        b_ub=[*(link.rate for link in net.links), *(-np.ones(len(rates)))],
    )
    return float(solution.fun) if solution.success else math.inf


seeds = st.integers(0, 2**32)


def test_what_is_told_is_the_tightest_that_is_possible() -> None:
    """States of fixed sizes, where one program more says what freshness costs; most plans need loosening."""
    seen = Counter[str]()

    @settings(max_examples=50, derandomize=True)
    @given(seeds)
    def each(seed: int) -> None:
        plan = Plan(seed, in_time=0.0)
        factor = find_loosening_factor(plan.fresh, plan.solve)
        if not plan.net.states or math.isinf(factor):
            seen["trivial"] += 1
            return
        assert least_cost(plan.net, plan.rates(factor)) <= plan.budget * (1 + 1e-6)
        stays = plan.staying(*plan.solve(plan.loosen(factor)))
        assert all(stays[name] <= length * 1.01 for name, length in plan.loosen(factor).items())
        if factor == 1.0:
            seen["possible"] += 1
            return
        seen["loosened"] += 1
        try:
            rates = plan.rates(0.9 * factor)
        except QueryError:  # shorter than the windows that a row must stay in
            return
        assert least_cost(plan.net, rates) > plan.budget
        cover = sum(least_cover(plan.net, plan.rates(factor)).values())
        seen["too dear for whole paths"] += cover > 1.1 * plan.budget

    each()
    print(dict(seen))
    assert seen["loosened"] >= 25 and seen["possible"] >= 5


@settings(max_examples=10, derandomize=True)
@given(seeds)
def test_windows_of_time_use_up_slack_and_need_no_refreshing(seed: int) -> None:
    plan = Plan(seed, in_time=0.5)
    factor = find_loosening_factor(plan.fresh, plan.solve)
    if not plan.net.states or math.isinf(factor):
        return
    stays = plan.staying(*plan.solve(plan.loosen(factor)))
    refreshed = {state for state in plan.net.states if state not in plan.net.residences}
    for path in plan.net.paths:
        if refreshed & set(path.count_inserts(1.0)):
            assert stays[path.stream] <= plan.loosen(factor)[path.stream] * 1.01
    if factor > 1.0:
        with pytest.raises(QueryError):
            plan.solve(plan.loosen(0.9 * factor))


def test_what_is_fresh_only_until_states_have_shrunk_is_refused() -> None:
    """The grants are for full states; the smaller ones to which they lead feed others too little."""
    plan = Plan(12, in_time=0.5)
    rates = plan.rates(1.5)
    assert any(rates.values()) and solve_grants(plan.net, plan.budget, rates)
    with pytest.raises(QueryError, match="cannot keep the states of this plan as fresh as asked"):
        solve_steady_grants(plan.builder, plan.budget, rates)
