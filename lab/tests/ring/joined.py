"""Small joins: rows, the answer by brute force, and runs that give theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from hypothesis import strategies as st

from weir_lab.ring.clock import Clock, feed
from weir_lab.ring.hardware import Hardware
from weir_lab.ring.matching import Exact, Partial
from weir_lab.ring.ring import Ring
from weir_lab.ring.stored import Row
from weir_lab.ring.tally import Tally
from weir_lab.ring.task import Task

Result = tuple[int, ...]


def symmetric(partial: Partial, row: Row) -> bool:
    """No hash and no sort order finds these; the same whoever probes whom."""
    return all((earlier.value * row.value + earlier.value + row.value) % 3 != 1 for earlier in partial)  # type: ignore[operator]


def oracle(rows: Sequence[Row], windows: Sequence[float]) -> Counter[Result]:
    """All combinations of one row per stream inside the windows that match pair by pair."""
    results: Counter[Result] = Counter()
    for combination in product(*([r for r in rows if r.stream == s] for s in range(len(windows)))):
        latest = max(row.time for row in combination)
        inside = all(latest - row.time < windows[row.stream] for row in combination)
        pairs = all(symmetric(combination[:k], row) for k, row in enumerate(combination))
        if inside and pairs:
            results[tuple(row.number for row in combination)] += 1
    return results


def results(tally: Tally) -> Counter[Result]:
    return Counter(
        tuple(r.number for r in sorted(result, key=lambda r: r.stream)) for result in tally.outputs
    )


@st.composite
def arrivals(draw: st.DrawFn, streams: int, most: int = 14) -> list[Row]:
    """Rows in order of arrival, several of one time among them."""
    steps = draw(
        st.lists(
            st.tuples(st.sampled_from((0.0, 0.5, 1.0, 2.0)), st.integers(0, streams - 1), st.integers(0, 5)),
            max_size=most,
        )
    )
    time, rows = 0.0, []
    for number, (step, stream, value) in enumerate(steps):
        time += step
        rows.append(Row(number, stream, time, value))
    return rows


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    streams = draw(st.integers(2, 4))
    windows = tuple(draw(st.sampled_from((1.0, 2.5, 4.0))) for _ in range(streams))
    orders = tuple(
        tuple(draw(st.permutations([s for s in range(streams) if s != driver]))) for driver in range(streams)
    )
    return Task(windows, orders, Exact(symmetric))


# From links that are faster than everything to those that are slower than the rows come.
machines = st.builds(
    Hardware,
    join=st.sampled_from((0.0, 0.01, 0.3)),
    send=st.sampled_from((0.0, 0.02)),
    hop=st.sampled_from((0.0, 0.05, 1.5)),
    insert=st.just(0.01),
    purge=st.sampled_from((0.0, 0.2)),
    bandwidth=st.sampled_from((float("inf"), 100.0)),
    tuple_bytes=st.just(10.0),
)


def run_ring(ring: Ring, rows: Sequence[Row], clock: Clock) -> None:
    feed(clock, rows, ring.arrive)
    clock.run()
