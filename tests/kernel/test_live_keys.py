"""Partials that a later partner cannot complete are skipped, and the results stay those of the join."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import weir
from weir.kernel import live_keys, path
from weir.local.query import LocalQuery
from weir.plan.tree import join as tree
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop, HopStats

NAMES = "fabd"
WINDOW = 40
STAR = "f.k = a.k AND f.j = b.j AND f.i = d.i"
CHAIN = "a.k = b.k AND b.j = f.j AND f.i = d.i"
TWO_KEYS = "f.k = a.k AND f.j = b.j AND f.i = d.i AND f.j = d.j"
TEXT = "f.k = a.k AND f.j = b.j AND f.t = d.t"
CLASS = "f.k = a.k AND a.k = b.k AND b.k = d.k"
PLANS = {"mjoin": tree(*NAMES), "tree": tree(tree("f", "a", "b"), "d")}
Tables = dict[str, pa.Table]
Counts = dict[Hop, HopStats]


def make_batches(seed: int, count: int, rows: int, keys: int) -> list[Tables]:
    """Batches in which few of the keys `i` and `t` of d are those of other streams."""
    rng = np.random.default_rng(seed)
    batches: list[Tables] = []
    for number in range(count):
        tables = {}
        for name in NAMES:
            i = rng.integers(0, 3, rows) * (4 if name == "d" else 1)
            columns = {
                "ts": pa.array(np.sort(number * 30 + rng.integers(0, 40, rows))).cast(pa.timestamp("us")),
                "k": rng.integers(0, keys, rows),
                "j": pa.array(rng.integers(0, keys, rows), mask=rng.random(rows) < 0.1),
                "i": i,
                "t": pa.array([f"a key of more than sixteen bytes {value}" for value in i]),
                "n": np.arange(rows) + number * rows,
            }
            tables[name] = pa.table(columns)
        batches.append(tables)
    return batches


def oracle(batches: list[Tables], on: str) -> Counter[Any]:
    latest = f"greatest({', '.join(f'{s}.ts' for s in NAMES)})"
    timely = " AND ".join(f"{latest} - {s}.ts < INTERVAL {WINDOW} MICROSECONDS" for s in NAMES)
    with duckdb.connect() as database:
        for name in NAMES:
            database.register(name, pa.concat_tables(batch[name] for batch in batches))
        sql = f"SELECT {', '.join(f'{s}.n' for s in NAMES)} FROM {', '.join(NAMES)} WHERE {on} AND {timely}"
        return Counter(database.sql(sql).fetchall())


def start(batches: list[Tables], on: str, **options: Any) -> LocalQuery:
    select = ", ".join(f"{s}.n AS {s}" for s in NAMES)
    # Batches overlap by ten microseconds.
    join = weir.join(
        streams=batches[0], on=on, within=f"{WINDOW} microseconds", late="1 second", select=select, **options
    )
    return join.start()


def run(query: LocalQuery, batches: list[Tables]) -> tuple[Counter[Any], list[Counts]]:
    found: Counter[Any] = Counter()
    counts = []
    for batch in batches:
        found.update(tuple(row.values()) for row in query.process(batch).to_pylist())
        assert query.last_report is not None
        counts.append(
            {hop: replace(work, seconds=0.0) for hop, work in query.last_report.counts.hops.items()}
        )
    return found, counts


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Look up all partials, however few, and count the rows that were looked up and kept."""
    monkeypatch.setattr(live_keys, "_FEW_ROWS", 1)
    monkeypatch.setattr(live_keys, "_SAMPLE", 1)
    monkeypatch.setattr(live_keys, "_WORTH_SKIPPING", 1.0)
    monkeypatch.setattr(live_keys, "_MOST_ROWS_PER_PARTIAL", 10**9)
    seen: Counter[str] = Counter()
    skip = live_keys.LiveKeys.skip

    def count(self: live_keys.LiveKeys, partial: Any) -> Any:
        kept = skip(self, partial)
        seen.update(asked=partial.rows, kept=kept.rows)
        return kept

    monkeypatch.setattr(live_keys.LiveKeys, "skip", count)
    return seen


def run_without(batches: list[Tables], on: str, **options: Any) -> tuple[Counter[Any], list[Counts]]:
    """The same query, in which nothing is skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(path, "find_live_keys", lambda *_: ())
        return run(start(batches, on, **options), batches)


@pytest.mark.parametrize(
    ("on", "plan"), [*((on, "mjoin") for on in (STAR, CHAIN, TWO_KEYS, TEXT, CLASS)), (STAR, "tree")]
)
def test_results_are_those_of_the_join(on: str, plan: str, eager: Counter[str]) -> None:
    answered = 0

    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.integers(0, 2**20), st.integers(1, 4), st.sampled_from([5, 12]), st.sampled_from([2, 12]))
    @example(7, 4, 12, 12)  # of which some partials are skipped
    def check(seed: int, count: int, rows: int, keys: int) -> None:
        nonlocal answered
        batches = make_batches(seed, count, rows, keys)
        expected = oracle(batches, on)
        answered += bool(expected)
        found, _ = run(start(batches, on, plan=PLANS[plan]), batches)
        assert found == expected

    check()
    assert answered >= 1  # a fifth of the cases at least
    assert 0 < eager["kept"] < eager["asked"]


@pytest.mark.parametrize("order", ["auto", "timestamp", "round-robin"])
def test_skipped_rows_count_as_probes_without_matches(order: str, eager: Counter[str]) -> None:
    batches = make_batches(7, 4, 14, 4)
    found, counts = run(start(batches, STAR, driver_order=order), batches)
    assert 0 < eager["kept"] < eager["asked"]
    expected, all_counts = run_without(batches, STAR, driver_order=order)
    assert found == expected == oracle(batches, STAR)
    assert found
    for ours, theirs in zip(counts, all_counts, strict=True):
        assert set(ours) == set(theirs)
        first = [Hop("f", "(f a b d)", "a"), *(Hop(s, "(f a b d)", "f") for s in "abd")]
        last = [Hop("f", "(f a b d)", "d"), *(Hop(s, "(f a b d)", t) for s, t in ("ad", "bd", "db"))]
        for hop in theirs:
            if hop in first:
                assert ours[hop].probes == theirs[hop].probes
            if hop in last:
                assert ours[hop].matches == theirs[hop].matches
            assert ours[hop].probes <= theirs[hop].probes
            assert ours[hop].matches <= theirs[hop].matches
            assert ours[hop].skipped == 0
    assert sum(work.matches for ours in counts for work in ours.values()) < sum(
        work.matches for theirs in all_counts for work in theirs.values()
    )


@pytest.mark.parametrize("options", [{"adapt": True}, {"driver_order": "least-work"}])
def test_nothing_is_skipped_where_counts_are_learned_from(
    options: dict[str, Any], eager: Counter[str]
) -> None:
    batches = make_batches(7, 3, 14, 4)
    found, counts = run(start(batches, STAR, plan=PLANS["mjoin"], **options), batches)
    assert not eager
    assert (found, counts) == run_without(batches, STAR, plan=PLANS["mjoin"], **options)


def test_nothing_is_skipped_where_an_allowance_samples(eager: Counter[str]) -> None:
    batches = make_batches(7, 3, 14, 4)
    query = start(batches, STAR)
    query.allow(Allowance(sample=0.5))
    run(query, batches)
    assert not eager


def test_keys_are_not_looked_up_where_most_are_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_keys, "_FEW_ROWS", 128)
    batches = make_batches(7, 2, 200, 100)
    live, dead = run(start(batches, CLASS), batches), run(start(batches, STAR), batches)
    assert live == run_without(batches, CLASS)
    assert dead[0] == run_without(batches, STAR)[0]
    assert dead[1] != run_without(batches, STAR)[1]
