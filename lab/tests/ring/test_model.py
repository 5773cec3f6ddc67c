"""The cost model of Wang and Rundensteiner 2009 against its own equations and the simulator."""

from __future__ import annotations

import random
from math import inf

import pytest

from weir import QueryError
from weir.partition.ring_cost import ProbingSteps, best_length, latency
from weir_lab.ring.clock import Clock
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Exact, Expected, Matching
from weir_lab.ring.model import (
    StreamLoad,
    bandwidth_needed,
    central_work,
    count_results,
    equal_steps,
    initial_lengths,
    output_rate,
    ring_work,
    service_rate,
    uneven_latency,
)
from weir_lab.ring.ring import Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally
from weir_lab.ring.task import Task, cyclic_orders

from .joined import run_ring

MACHINE = Hardware(join=2e-7, send=1e-6, hop=4e-5, tuple_bytes=100)


@pytest.mark.parametrize("streams", [2, 3, 5, 9])
@pytest.mark.parametrize("selectivity", [0.05, 0.5])
def test_equation_2_follows_from_counted_comparisons(streams: int, selectivity: float) -> None:
    steps, nodes = equal_steps(streams, 50, 10, selectivity), 7
    factor = 1 + MACHINE.send * nodes / (50 * 10 * MACHINE.join)
    assert ring_work(steps, MACHINE, nodes) == pytest.approx(central_work(steps, MACHINE) * factor)


def test_equation_2_does_not_follow_from_equation_1_as_printed() -> None:
    rows, share, nodes = 500.0, 0.1, 7
    printed = MACHINE.join * (rows * share + (rows * share) ** 2)
    ring = printed + MACHINE.send * nodes * (1 + rows * share)
    assert ring != pytest.approx(printed * (1 + MACHINE.send * nodes / (rows * MACHINE.join)), rel=0.05)
    assert ring == pytest.approx(printed * (1 + MACHINE.send * nodes / (share * rows * MACHINE.join)))


def test_rates_and_latency_are_equations_3_to_5() -> None:
    steps, nodes = equal_steps(3, 50, 10, 0.1), 4
    work = central_work(steps, MACHINE)
    assert service_rate(steps, MACHINE, nodes) == pytest.approx(1 / ring_work(steps, MACHINE, nodes))
    alone = count_results(steps) / work
    share = MACHINE.send / (500 * MACHINE.join)
    assert output_rate(steps, MACHINE, nodes) == pytest.approx(alone / (1 / nodes + share))
    expected = 1.5 * MACHINE.hop + max(work / nodes + share * work, 3 * nodes * MACHINE.hop)
    assert latency(steps, MACHINE, nodes) == pytest.approx(expected)


def test_the_bounds_solve_their_equations_and_no_other_length_is_better() -> None:
    for selectivity in (0.01, 0.1, 0.5):
        steps = equal_steps(3, 50, 10, selectivity)
        best, work = best_length(steps, MACHINE), central_work(steps, MACHINE)
        n1, n2 = best.by_rounds, best.by_spread
        sent = MACHINE.send * work / (500 * MACHINE.join)
        assert work / n1 + sent == pytest.approx(3 * n1 * MACHINE.hop)
        assert (n2 - 1) / 2 * MACHINE.hop == pytest.approx(work / n2)
        assert best.nodes == min(range(1, 200), key=lambda n: latency(steps, MACHINE, n))


def test_bandwidth_is_equation_6() -> None:
    steps = ProbingSteps((500.0, 200.0), (0.1, 0.1))
    assert bandwidth_needed(steps, MACHINE, 10) == pytest.approx(100 / (2e-7 * 20))
    assert bandwidth_needed(ProbingSteps((0.0,), (0.1,)), MACHINE, 10) == inf


def test_uneven_latency_is_equation_5_where_all_are_alike() -> None:
    load = StreamLoad(50, 10, 0.1)
    uneven = uneven_latency([load, load], [6, 6], MACHINE, 6)
    assert uneven == pytest.approx(latency(equal_steps(3, 50, 10, 0.1), MACHINE, 6))


def test_initial_slicing() -> None:
    alike = initial_lengths({name: StreamLoad(50, 10, 0.1) for name in "abc"}, MACHINE, 40)
    best = best_length(equal_steps(3, 50, 10, 0.1), MACHINE).nodes
    assert alike["a"] == best
    assert len(alike) == 3
    uneven = initial_lengths(
        {"big": StreamLoad(100, 20, 0.1), "small": StreamLoad(5, 2, 0.1), "middle": StreamLoad(50, 10, 0.1)},
        MACHINE,
        40,
    )
    assert uneven["small"] <= uneven["middle"] <= uneven["big"]
    assert uneven["small"] < uneven["big"]


def test_what_is_asked_must_make_sense() -> None:
    with pytest.raises(QueryError, match="one selectivity for each partner"):
        ProbingSteps((1.0, 2.0), (0.1,))
    with pytest.raises(QueryError, match="no ring is too long"):
        best_length(equal_steps(3, 50, 10, 0.1), Hardware(join=1e-6, send=0.0, hop=0.0))
    with pytest.raises(QueryError, match="at least one node"):
        latency(equal_steps(3, 50, 10, 0.1), MACHINE, 0)
    with pytest.raises(QueryError, match="at least one node"):
        initial_lengths({"a": StreamLoad(1, 1, 0.1)}, MACHINE, 0)


def _regular(streams: int, per_second: int, seconds: float) -> list[Row]:
    rng = random.Random(3)
    times = [n / (per_second * streams) for n in range(int(seconds * per_second * streams))]
    return [Row(n, n % streams, time, rng.random()) for n, time in enumerate(times)]


def _played(matching: Matching, rows: list[Row], nodes: int) -> tuple[Tally, Ring]:
    task = Task((4.0,) * 3, cyclic_orders(3), matching)
    clock, tally = Clock(), Tally(matching)
    ring = Ring(task, nodes, Hardware(join=1e-5, send=1e-5, hop=1e-4, purge=1e-6), clock, tally.emit)
    run_ring(ring, rows, clock)
    return tally, ring


@pytest.mark.parametrize("nodes", [1, 3, 6])
def test_expected_counts_agree_with_rows(nodes: int) -> None:
    rows = _regular(3, 10, 16)
    # Chains: a row matches a fifth of the rows of the next stream, by values that are evenly spread.
    by_rows, ring = _played(
        Exact(lambda partial, row: (partial[-1].value * 997 + row.value * 991) % 1 < 0.2),  # type: ignore[operator]
        rows,
        nodes,
    )
    by_counts, expected = _played(Expected((0.2, 0.2)), rows, nodes)
    assert by_counts.total == pytest.approx(by_rows.total, rel=0.05)
    assert by_counts.response == pytest.approx(by_rows.response, rel=0.1)
    busy = [sum(node.busy for node in played.nodes) for played in (ring, expected)]
    assert busy[1] == pytest.approx(busy[0], rel=0.05)
    assert expected.rows == ring.rows


@pytest.mark.parametrize("nodes", [2, 5, 12])
def test_the_simulator_works_as_much_as_the_model_says(nodes: int) -> None:
    machine = Hardware(join=1e-6, send=1e-6, hop=1e-5)
    rows = _regular(3, 50, 14)
    task = Task((10.0,) * 3, cyclic_orders(3), Expected((0.02, 0.02)))
    clock, tally = Clock(), Tally(task.matching)
    ring = Ring(task, nodes, machine, clock, tally.emit)
    ring.fill(rows[:1500], 10.0)
    run_ring(ring, rows[1500:], clock)
    work = sum(node.busy for node in ring.nodes) / len(rows[1500:])
    steps = equal_steps(3, 50, 10, 0.02)
    # Beside what the model counts, build rows move and END tuples travel.
    assert work == pytest.approx(ring_work(steps, machine, nodes), rel=0.03)
    assert tally.total / len(rows[1500:]) == pytest.approx(count_results(steps), rel=0.01)
