"""Run the driver policies on weir's own engine, which joins a whole batch at once.

Whether streams go one by one or row by row, a batch of three streams has three runs through the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import process_time

import numpy as np
import pyarrow as pa

import weir
from weir.kernel.ranges import use_compiled
from weir.local.query import LocalQuery
from weir.order.policies import DriverOrder
from weir.plan.tree import Join
from weir.query.windows import TimeWindow
from weir_lab.driver.course import Course, warm_batches
from weir_lab.driver.play import policies
from weir_lab.driver.settings import BATCH_NAMES, DataSet
from weir_lab.driver.streams import Streams, generate

FIXED = "as in the plan"
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "k": pa.int64()})
Delta = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Batches:
    """One policy on the engine, the mean of the warm batches.

    `beside_fixed` is the time as a multiple of that of the plan's own order, `early` the share of results at
    half of the time that the policy itself takes, `moment` when a result is there on average, as a part of
    that time, and `work` probes and partials.
    """

    data_set: str
    batch: str
    policy: str
    rows: int
    results: int
    milliseconds: float
    beside_fixed: float
    early: float
    moment: float
    work: float


def run_on_engine(
    data_set: DataSet, count: int, repeats: int, tell: Callable[[str], None]
) -> Iterator[Batches]:
    """All policies on a data set."""
    streams = generate(data_set, 0)
    deltas = list(_deltas(streams, count))
    tell(f"data set {data_set.name} on the engine")
    window = TimeWindow(2 * data_set.span)
    yield from compare_with_fixed(
        data_set.name, BATCH_NAMES[count], data_set.plan, window, deltas, policies(data_set), repeats
    )


def compare_with_fixed(
    name: str,
    batch: str,
    plan: Join,
    window: TimeWindow,
    deltas: Sequence[Delta],
    names: Sequence[str],
    repeats: int,
) -> Iterator[Batches]:
    """Each policy over the same deltas, beside the order of the plan."""
    orders: dict[str, DriverOrder] = {FIXED: plan.streams}
    orders |= {policy: policy for policy in names}  # type: ignore[misc]  # weir.order's names
    # The first query of a process pays for what is loaded late, and some batch for the compiled loops.
    use_compiled()
    _processed(_started(plan, window, plan.streams), deltas[0])
    done = [_side_by_side(plan, window, deltas, orders) for _ in range(repeats)]
    for policy in orders:
        courses = [once[policy][i][0] for once in done for i in warm_batches(deltas)]
        fixed = [once[FIXED][i][0] for once in done for i in warm_batches(deltas)]
        there = [course for course in courses if course.results]
        yield Batches(
            data_set=name,
            batch=batch,
            policy=policy,
            rows=sum(table.num_rows for delta in deltas for table in delta.values()),
            results=sum(course.results for course, _ in done[0][policy]),
            milliseconds=1e3 * fmean(course.spent for course in courses),
            beside_fixed=sum(course.spent for course in courses) / sum(course.spent for course in fixed),
            early=fmean(course.share(course.spent / 2) for course in there),
            moment=fmean(course.moment for course in there),
            work=fmean(done[0][policy][i][1] for i in warm_batches(deltas)),
        )


def _side_by_side(
    plan: Join, window: TimeWindow, deltas: Sequence[Delta], orders: Mapping[str, DriverOrder]
) -> dict[str, list[tuple[Course, int]]]:
    """Every batch by all policies, each time another one first: who is first finds the rows out of reach."""
    queries = {policy: _started(plan, window, wanted) for policy, wanted in orders.items()}
    courses: dict[str, list[tuple[Course, int]]] = {policy: [] for policy in orders}
    turns = list(orders)
    for delta in deltas:
        for policy in turns:
            courses[policy].append(_processed(queries[policy], delta))
        turns = [*turns[1:], turns[0]]
    return courses


def build_table(times: np.ndarray, keys: np.ndarray) -> pa.Table:
    """Rows of a stream; a time unit is a microsecond."""
    return pa.table([pa.array(times, pa.int64()).cast(pa.timestamp("us")), pa.array(keys)], schema=SCHEMA)


def _deltas(streams: Streams, count: int) -> Iterator[Delta]:
    cuts = streams.cuts(count)
    for batch in range(count):
        yield {
            name: build_table(
                *(column[name][at[batch] : at[batch + 1]] for column in (streams.times, streams.keys))
            )
            for name, at in cuts.items()
        }


def _started(plan: Join, window: TimeWindow, driver_order: DriverOrder) -> LocalQuery:
    first, *others = plan.streams
    query: LocalQuery = weir.join(
        streams=dict.fromkeys(plan.streams, SCHEMA),
        on=" AND ".join(f"{first}.k = {name}.k" for name in others),
        select=", ".join(f"{name}.ts AS {name}" for name in plan.streams),
        within=window,
        plan=plan,
        driver_order=driver_order,
    ).start()
    return query


def _processed(query: LocalQuery, delta: Delta) -> tuple[Course, int]:
    """The course of a batch in seconds of the processor's, and its work.

    A chunk is there at once, so the results stay as they are until the moment of the next.
    """
    marks: list[tuple[float, int]] = []
    results = 0
    started = process_time()
    for chunk in query.chunks(delta):
        at = process_time() - started
        marks += [(at, results), (at, results + chunk.num_rows)]
        results += chunk.num_rows
    marks.append((process_time() - started, results))
    assert query.last_report is not None
    work = sum(hop.probes + hop.matches for hop in query.last_report.per_hop.values())
    return Course(tuple(marks)), work
