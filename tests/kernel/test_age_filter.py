"""A hop probes the allowed ages only, however slices are cut; lags are learned from what represents all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weir
from weir.local.query import LocalQuery
from weir.plan.tree import Join, hops, join
from weir.query.windows import TimeWindow
from weir.shed.ages import Ages
from weir.shed.allowance import Allowance
from weir.shed.thin import first_hops
from weir.stats.hop import Hop

SCHEMA = pa.schema({"ts": pa.timestamp("us"), "x": pa.int64(), "id": pa.int64()})
NAMES = ("a", "b", "c")
WINDOW = 60
CONDITIONS: dict[str, tuple[str, Callable[[int, int, int], bool]]] = {
    "equality": ("a.x = b.x AND b.x = c.x", lambda a, b, c: a == b == c),
    "band": ("abs(a.x - b.x) <= 1 AND abs(b.x - c.x) <= 1", lambda a, b, c: abs(a - b) <= 1 >= abs(b - c)),
    "nested loop": ("a.x + b.x < 4 AND b.x + c.x < 4", lambda a, b, c: a + b < 4 > b + c),
}
# Stream, time, x, id.
Row = tuple[str, int, int, int]
Results = Counter[tuple[int, ...]]


def started(on: str, allowance: Allowance | None) -> LocalQuery:
    return weir.join(
        streams=dict.fromkeys(NAMES, SCHEMA),
        on=on,
        select="a.id AS a, b.id AS b, c.id AS c",
        within=TimeWindow(WINDOW),
        plan=join(*NAMES),
        driver_order=NAMES,
        allowance=allowance,
    ).start()


def drawn(seed: int, count: int = 60) -> list[Row]:
    """Rows in time order, no two at the same time."""
    rng = np.random.default_rng(seed)
    streams, times, values = (
        rng.integers(0, 3, count),
        rng.integers(1, 5, count).cumsum(),
        rng.integers(0, 4, count),
    )
    rows = zip(streams.tolist(), times.tolist(), values.tolist(), strict=True)
    return [(NAMES[stream], time, x, i) for i, (stream, time, x) in enumerate(rows)]


def batches(rows: list[Row], size: int) -> Iterator[dict[str, pa.Table]]:
    for start in range(0, len(rows), size):
        named = {name: [row[1:] for row in rows[start : start + size] if row[0] == name] for name in NAMES}
        yield {
            name: pa.table([list(column) for column in zip(*values, strict=True)], schema=SCHEMA)
            for name, values in named.items()
            if values
        }


def run(query: LocalQuery, rows: list[Row], size: int) -> Results:
    results = Results()
    for batch in batches(rows, size):
        results.update(zip(*(column.to_pylist() for column in query.process(batch).columns), strict=True))
    return results


def expected(
    rows: list[Row], holds: Callable[[int, int, int], bool], allowance: Allowance, plan: Join
) -> Results:
    """All triples within the window whose last row may probe the ages of the other two."""
    results = Results()
    of = {name: [row for row in rows if row[0] == name] for name in NAMES}
    for triple in ((a, b, c) for a in of["a"] for b in of["b"] for c in of["c"]):
        last = max(triple, key=lambda row: row[1])
        ages = {row[0]: last[1] - row[1] for row in triple if row is not last}
        allowed = all(
            hop.driver != last[0]
            or (kept := allowance.ages.get(hop)) is None
            or ages[hop.partner] // kept.every in kept.kept
            for hop in hops(plan)
        )
        if max(ages.values()) < WINDOW and allowed and holds(*(row[2] for row in triple)):
            results[tuple(row[3] for row in triple)] += 1
    return results


@st.composite
def allowances(draw: st.DrawFn) -> Allowance:
    every = draw(st.integers(1, 40))
    ranges = st.frozensets(st.integers(0, WINDOW // every))
    ages = {hop: Ages(every, draw(ranges)) for hop in hops(join(*NAMES)) if draw(st.booleans())}
    return Allowance(ages=ages)


@pytest.mark.parametrize("kind", sorted(CONDITIONS))
@settings(max_examples=12, deadline=None, derandomize=True)
@given(allowance=allowances(), seed=st.integers(0, 99))
def test_row_by_row_results_are_exactly_those_of_the_allowed_ages(
    kind: str, allowance: Allowance, seed: int
) -> None:
    on, holds = CONDITIONS[kind]
    rows = drawn(seed)
    assert run(started(on, allowance), rows, 1) == expected(rows, holds, allowance, join(*NAMES))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    allowance=allowances(),
    size=st.integers(2, 30),
    sample=st.floats(0, 1),
    kind=st.sampled_from(sorted(CONDITIONS)),
)
def test_results_of_batches_are_a_subset_without_duplicates(
    allowance: Allowance, size: int, sample: float, kind: str
) -> None:
    on, holds = CONDITIONS[kind]
    rows = drawn(size)
    exact = expected(rows, holds, Allowance(), join(*NAMES))
    for more in (0.0, sample):
        assert run(started(on, Allowance(ages=allowance.ages, sample=more)), rows, size) <= exact
    assert run(started(on, Allowance(ages=allowance.ages, sample=1.0)), rows, size) == exact


def test_ages_that_no_hop_probes_cost_nothing() -> None:
    on, _ = CONDITIONS["nested loop"]
    rows = drawn(5, 600)
    young = {hop: Ages(10, frozenset({0})) for hop in hops(join(*NAMES))}
    whole, part = started(on, None), started(on, Allowance(ages=young))
    exact, subset = run(whole, rows, 10), run(part, rows, 10)
    assert subset < exact
    assert compared(part) < 0.4 * compared(whole)
    assert kept(part) == kept(whole)


def test_sampled_rows_visit_slices_together() -> None:
    """Rows that may probe no age visit no slice, with sampled rows among them or not."""
    on, _ = CONDITIONS["equality"]
    idle = {hop: Ages(10, frozenset()) for hop in hops(join(*NAMES))}
    rows: list[Row] = [(NAMES[i % 3], i // 12, i % 50, i) for i in range(3000)]
    done = []
    for sample in (0.0, 0.2):
        query = started(on, Allowance(ages=idle, sample=sample))
        run(query, rows, 1500)
        assert query.last_report is not None
        done.append(query.last_report.per_hop[Hop("c", str(join(*NAMES)), "a")])
    none, some = done
    assert some.sampled_matches == some.matches > 0 == none.matches
    assert (some.probes, some.narrowed + some.sampled) == (none.probes, none.narrowed)
    assert some.unvisited == none.unvisited > 0


def compared(query: LocalQuery) -> int:
    assert query.last_report is not None
    return sum(hop.comparisons for hop in query.last_report.per_hop.values())


def kept(query: LocalQuery) -> int:
    assert query.last_report is not None
    return sum(size.rows for size in query.last_report.state.values())


def test_dropped_rows_never_reach_the_join_and_are_counted() -> None:
    on, _ = CONDITIONS["equality"]
    rows = drawn(3, 400)
    query = started(on, Allowance(drop={"a": 1.0, "b": 0.5}))
    assert not run(query, rows, 400)
    stats = query.last_report
    assert stats is not None
    assert stats.counts.dropped["a"] == stats.counts.rows_in["a"] and "a" not in alive(query)
    assert 0.3 < stats.counts.dropped["b"] / stats.counts.rows_in["b"] < 0.7
    assert stats.shed == sum(stats.counts.dropped.values())


def alive(query: LocalQuery) -> set[str]:
    return {node for node, slices in query.state.slices.items() if slices}


def lagging() -> list[tuple[str, int, int, int]]:
    """Rows of b follow those of a by 20, those of c by 35."""
    rng = np.random.default_rng(1)
    rows = [
        (name, int(10 * key + lag + rng.integers(-2, 3)), key, 3 * key + i)
        for key in range(300)
        for i, (name, lag) in enumerate(zip(NAMES, (0, 20, 35), strict=True))
    ]
    return sorted(rows, key=lambda row: row[1])


def learned(allowance: Allowance) -> float:
    """The results of which lags were learned, over all that were found."""
    query = started(CONDITIONS["equality"][0], allowance)
    results = run(query, lagging(), 900)
    assert query.last_report is not None and query.last_report.counts.lags is not None and results
    return sum(query.last_report.counts.lags.lags["b"].counts) / sum(results.values())


def test_lags_are_learned_from_all_results_that_have_the_same_chance() -> None:
    """Those of a share of the rows, chosen by hash, which find all their matches."""
    plan = join(*NAMES)
    first = dict.fromkeys(first_hops(plan), 0.4)
    assert learned(Allowance(sample=0.01)) == 1
    assert learned(Allowance(first, choose="hash", sample=0.01)) == 1
    assert learned(Allowance(first, choose="newest", sample=0.1)) < 0.5
    assert learned(Allowance({**first, first_hops(plan)[0]: 0.9}, choose="hash", sample=0.1)) < 0.5
    assert learned(Allowance(dict.fromkeys(hops(plan), 0.8), choose="hash", sample=0.1)) < 0.5
    assert learned(Allowance(drop={"a": 0.3}, sample=0.1)) < 0.5


def test_lags_are_learned_from_the_sample() -> None:
    """The other rows probe no ages at which partners are."""
    young = {hop: Ages(10, frozenset({0})) for hop in hops(join(*NAMES))}
    query = started(CONDITIONS["equality"][0], Allowance(ages=young, sample=0.3))
    results = run(query, lagging(), 900)
    assert query.last_report is not None and query.last_report.counts.lags is not None
    lags = query.last_report.counts.lags
    assert sum(lags.lags["b"].counts) == sum(results.values()) > 20
    for name, lag in (("b", 20e-6), ("c", 35e-6)):
        assert float(lags.lags[name].share(lag - 5e-6, lag + 6e-6)) > 0.99
    scores = lags.age_shares("c", "a", np.arange(0.0, 61e-6, 10e-6))
    assert int(scores.argmax()) == 3


def test_without_a_sample_no_lags_are_learned() -> None:
    query = started(CONDITIONS["equality"][0], Allowance({Hop("a", str(join(*NAMES)), "b"): 0.5}))
    run(query, drawn(1), 20)
    assert query.last_report is not None and query.last_report.counts.lags is None
