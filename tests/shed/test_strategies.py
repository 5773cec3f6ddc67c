"""The strategies that `shed=` chooses from, and dropping rows."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weir import QueryError
from weir.plan.tree import join
from weir.shed.drop import random_drop
from weir.shed.expected import ShedForecast
from weir.shed.harvest_model import Direction, compute_cost, full_setting
from weir.shed.proposal import Overload, Proposal
from weir.shed.strategies import STRATEGIES, ShedName, Strategy, choose_strategy, register_strategy
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

from .test_harvest import lagged, problems


def test_the_names_for_type_checkers_are_those_of_the_table() -> None:
    assert get_args(ShedName) == ("auto", *STRATEGIES)


@pytest.mark.parametrize("throttle", [0.02, 0.1, 0.4, 0.9])
def test_auto_is_at_least_every_single_strategy(throttle: float) -> None:
    graph, plan, lags = lagged()
    forecast = ShedForecast(graph, lags, 1.0)
    budget = throttle * forecast.estimate_exact(plan)[1]
    best = choose_strategy(forecast, plan, budget)
    for shed in STRATEGIES:
        proposal = choose_strategy(forecast, plan, budget, shed)
        assert proposal.name == shed
        assert best.results >= proposal.results * (1 - 1e-9)
    best.allowance.check(plan)


def test_auto_tries_a_strategy_that_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, plan, lags = lagged()
    forecast, tried = ShedForecast(graph, lags, 1.0), []

    def notice(overload: Overload) -> Proposal:
        tried.append(overload.budget)
        return STRATEGIES["jaqpot"].propose(overload)

    monkeypatch.setattr("weir.shed.strategies.STRATEGIES", dict(STRATEGIES))
    register_strategy("notice", Strategy(notice))
    choose_strategy(forecast, plan, 100.0, "notice")
    choose_strategy(forecast, plan, 200.0, "auto")
    assert tried == [100.0, 200.0]
    assert "notice" not in STRATEGIES


@pytest.mark.parametrize("name", ["auto", "jaqpot"])
def test_names_that_are_taken_are_refused(name: str) -> None:
    with pytest.raises(QueryError, match=f"a shedding strategy '{name}' already"):
        register_strategy(name, STRATEGIES["jaqpot"])


def test_what_cannot_be_chosen_is_refused() -> None:
    graph, plan, lags = lagged()
    with pytest.raises(QueryError, match=r"unknown strategy 'grub' in shed=; known: 'auto', 'thin'"):
        choose_strategy(ShedForecast(graph, lags), plan, 1.0, "grub")
    with pytest.raises(QueryError, match="above zero"):
        choose_strategy(ShedForecast(graph, lags), plan, 0.0)


def test_streams_that_bring_nothing_give_nothing() -> None:
    graph = JoinGraph.of({"a": 0, "b": 10}, 10.0, {("a", "b"): 0.0}, UnitCosts(compare=1.0))
    for shed in ("auto", "harvest"):
        assert choose_strategy(ShedForecast(graph), join("a", "b"), 1.0, shed).results == 0


@settings(max_examples=30, deadline=None)
@given(problems(), st.floats(0.01, 1))
def test_random_drop_fits_and_beats_dropping_evenly(
    directions: tuple[Direction, ...], throttle: float
) -> None:
    full = compute_cost(directions, full_setting(directions))
    drop = random_drop(directions, max(throttle * full, 1e-9))
    kept = {name: 1 - share for name, share in drop.items()}
    assert thinned_cost(directions, kept) <= throttle * full * (1 + 1e-4) + 1e-6
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        fits = thinned_cost(directions, dict.fromkeys(kept, middle)) <= throttle * full
        low, high = (middle, high) if fits else (low, middle)
    assert math.prod(kept.values()) >= low ** len(kept) * (1 - 1e-4)


def thinned_cost(directions: tuple[Direction, ...], kept: dict[str, float]) -> float:
    """What the join costs when only these shares of the streams reach it."""
    spent = 0.0
    for direction in directions:
        flowing = direction.rate * kept[direction.stream]
        for hop in direction.hops:
            share = kept[hop.hop.partner]
            spent += flowing * share * (hop.compare + hop.match * hop.partials[-1])
            flowing *= hop.partials[-1] * share
    return float(spent)
