"""Whatever the order, the same results; the policies differ in work, and in when results appear."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import permutations
from time import process_time
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.local.query import LocalQuery
from weir.order.policies import (
    INTERLEAVING_POLICIES,
    POLICIES,
    DriverPolicy,
    PendingRows,
    choose_order,
    rank_rows,
)
from weir.plan.tree import Join, hops, join
from weir.query.windows import TimeWindow
from weir.stats.hop import Hop

NAMES = ("a", "b", "c", "d")
PLANS = {
    "mjoin": join(*NAMES),
    "bjtree": join(join(join("a", "b"), "c"), "d"),
    "bushy": join(join("a", "b"), join("c", "d")),
}
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64(), "id": pa.int64()})
Tables = dict[str, pa.Table]


def started(
    plan: Join, driver_order: Any, names: tuple[str, ...] = NAMES, late: Any = "0 seconds"
) -> LocalQuery:
    on = " AND ".join(f"{names[0]}.k = {name}.k" for name in names[1:])
    select = ", ".join(f"{name}.id AS {name}" for name in names)
    return weir.join(
        streams=dict.fromkeys(names, SCHEMA),
        on=on,
        select=select,
        within=TimeWindow(40),
        late=late,
        plan=plan,
        driver_order=driver_order,
    ).start()


def batches(seed: int, count: int, sizes: tuple[int, ...], keys: int = 4) -> list[Tables]:
    rng = np.random.default_rng(seed)
    return [
        {
            name: pa.table(
                [
                    20 * n + rng.integers(0, 20, size),
                    rng.integers(0, keys, size),
                    rng.integers(0, 2**40, size),
                ],
                schema=SCHEMA,
            )
            for name, size in zip(NAMES, sizes, strict=False)
        }
        for n in range(count)
    ]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(PLANS)),
    st.sampled_from(get_args(DriverPolicy)),
    st.integers(0, 99),
    st.tuples(*[st.integers(0, 9)] * 4),
)
def test_every_policy_gives_the_same_results(
    shape: str, policy: DriverPolicy, seed: int, sizes: tuple[int, ...]
) -> None:
    plan, fed = PLANS[shape], batches(seed, 4, sizes)
    by_hand, by_policy = started(plan, NAMES), started(plan, policy)
    for tables in fed:
        expected, results = (bag(query.process(tables)) for query in (by_hand, by_policy))
        assert results == expected


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("shape", PLANS)
@pytest.mark.parametrize("policy", INTERLEAVING_POLICIES)
def test_interleaved_rows_find_what_they_would_one_by_one(shape: str, policy: DriverPolicy) -> None:
    """In one batch every hop has the probes and matches of a join without batches."""
    plan, tables = PLANS[shape], batches(3, 1, (12, 11, 12, 10), keys=3)[0]
    times = {name: table["ts"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    ranks = rank_rows(policy, PendingRows(plan, {}, {}), times)
    rows = [(rank, name, i) for name in NAMES for i, rank in enumerate(ranks[name].tolist())]
    one_by_one = started(plan, NAMES, late="1 second")
    found, hops_one_by_one = Counter[Any](), Counter[Any]()
    for _, name, i in sorted(rows):
        found += bag(one_by_one.process({name: tables[name].slice(i, 1)}))
        hops_one_by_one += per_hop(one_by_one)
    at_once = started(plan, policy, late="1 second")
    assert bag(at_once.process(tables)) == found
    assert found.total() > 100
    assert per_hop(at_once) == hops_one_by_one
    assert all(size.slices == 1 for size in at_once.state.sizes().values())


def per_hop(query: LocalQuery) -> Counter[tuple[Hop, str]]:
    """The probes and matches of each hop in the last batch."""
    assert query.last_report is not None
    return Counter(
        {
            (hop, what): getattr(stats, what)
            for hop, stats in query.last_report.per_hop.items()
            for what in ("probes", "matches")
            if getattr(stats, what)
        }
    )


@given(
    st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=2, max_size=4),
    st.sampled_from(get_args(DriverPolicy)),
)
def test_rows_of_one_rank_belong_to_one_stream(listed: list[list[int]], policy: DriverPolicy) -> None:
    times = {name: np.array(rows, np.int64) for name, rows in zip(NAMES, listed, strict=False)}
    names = tuple(times)
    pending = PendingRows(join(*names), {name: len(rows) for name, rows in times.items()}, {})
    by_stream = rank_rows(policy, pending, times)
    owners: dict[int, set[str]] = {}
    for name in names:
        assert len(by_stream[name]) == len(times[name])
        for rank in by_stream[name].tolist():
            owners.setdefault(rank, set()).add(name)
    assert all(len(owner) == 1 for owner in owners.values())
    if policy == "timestamp":
        rows = [
            (rank, time)
            for name in names
            for rank, time in zip(by_stream[name].tolist(), times[name].tolist(), strict=True)
        ]
        assert [time for _, time in sorted(rows)] == sorted(time for _, time in rows)


def test_round_robin_takes_the_oldest_of_each_in_turn() -> None:
    times = {"a": np.array([7, 3, 5]), "b": np.array([9])}
    by_stream = rank_rows("round-robin", PendingRows(join("a", "b"), {"a": 3, "b": 1}, {}), times)
    # a's 3, b's 9, then the rest of a in one run.
    assert by_stream["a"].tolist() == [2, 0, 2] and by_stream["b"].tolist() == [1]


def test_equation_1_step_by_step() -> None:
    """|buffer| Π |ht| of the others: a 10·20·30, b 40·10·30, c 5·10·20, and b's rows count from then on."""
    plan = join("a", "b", "c")
    pending = PendingRows(plan, {"a": 10, "b": 40, "c": 5}, {"a": 10, "b": 20, "c": 30})
    assert choose_order("initial-output", pending) == ("b", "a", "c")
    # By results for each row: c would have 10·20, b 10·30, a 20·30.
    assert choose_order("output-rate", pending) == ("a", "b", "c")
    assert choose_order("auto", pending) == choose_order("initial-output", pending)


def test_consumption_rate_takes_those_first_that_give_least() -> None:
    pending = PendingRows(join("a", "b", "c"), {}, {}, results_per_row={"a": 100.0, "b": 10.0, "c": 1.0})
    assert choose_order("consumption-rate", pending) == ("c", "b", "a")
    unknown = PendingRows(join("a", "b"), {"a": 1, "b": 2}, {"a": 5, "b": 5})
    assert choose_order("consumption-rate", unknown) == ("b", "a")


def test_streams_without_rows_or_states_do_no_harm() -> None:
    for policy in POLICIES:
        assert sorted(choose_order(policy, PendingRows(join(*NAMES), {}, {}))) == list(NAMES)  # type: ignore[arg-type]
        pending = PendingRows(join(*NAMES), {"a": 5}, {"b": 7})
        assert sorted(choose_order(policy, pending)) == list(NAMES)  # type: ignore[arg-type]


def test_least_work_is_learned_and_does_the_least() -> None:
    """After some batches, no order would have made fewer partials than the one chosen, by one in twenty."""
    sizes = (30, 3, 12, 25)
    fed = batches(5, 6, sizes, keys=6)
    made = {tried: partials(started(PLANS["mjoin"], tried), fed) for tried in permutations(NAMES)}
    chosen = partials(started(PLANS["mjoin"], "least-work"), fed)
    assert chosen <= 1.05 * min(made.values()) < max(made.values())


def partials(query: LocalQuery, fed: list[Tables]) -> int:
    """Probes and matches of the last batch."""
    for tables in fed:
        query.process(tables)
    assert query.last_report is not None
    return sum(hop.probes + hop.matches for hop in query.last_report.per_hop.values())


def test_results_are_told_with_the_time_at_which_they_were_there() -> None:
    query = started(PLANS["mjoin"], "initial-output")
    chunks = list(query.chunks(batches(1, 1, (20, 20, 20, 20))[0]))
    assert query.last_report is not None
    assert [rows for _, rows in query.last_report.produced] == [chunk.num_rows for chunk in chunks]
    times = [seconds for seconds, _ in query.last_report.produced]
    assert times == sorted(times) and times[-1] > 0
    assert sorted(query.last_report.order) == list(NAMES)
    assert query.lastProgress is not None
    assert query.lastProgress["weir"]["decision"]["driverOrder"] == "initial-output"


def test_choosing_grows_no_faster_than_the_hops() -> None:
    """An mjoin of n streams has n² hops; twice the streams, with a margin as tests share the machine."""
    for policy in POLICIES:
        assert _seconds(policy, 20) < 3 * 2**2 * _seconds(policy, 10), policy


def _seconds(policy: str, streams: int) -> float:
    names = tuple(f"s{i}" for i in range(streams))
    plan = join(*names)
    pending = PendingRows(
        plan,
        {n: 10 + i for i, n in enumerate(names)},
        dict.fromkeys(names, 500),
        dict.fromkeys(hops(plan), 1e-3),
    )
    taken = []
    for _ in range(10):
        started_at = process_time()
        choose_order(policy, pending)  # type: ignore[arg-type]
        taken.append(process_time() - started_at)
    return min(taken)


def test_the_type_names_the_policies_of_the_table() -> None:
    assert get_args(DriverPolicy) == tuple(POLICIES)


def test_policies_that_rank_rows_are_named_as_interleaving() -> None:
    times = {"a": np.array([7, 3, 5]), "b": np.array([9])}
    pending = PendingRows(join("a", "b"), {"a": 3, "b": 1}, {}, times=times)
    ranking = [name for name, policy in POLICIES.items() if isinstance(policy(pending), Mapping)]
    assert tuple(ranking) == INTERLEAVING_POLICIES


@pytest.mark.parametrize("wrong", ["fastest", "ab", ("a", "b"), 3, ("a", "b", "c", "c")])
def test_what_is_no_order_is_refused(wrong: Any) -> None:
    with pytest.raises(weir.QueryError, match="driver_order is a list"):
        started(PLANS["mjoin"], wrong)
