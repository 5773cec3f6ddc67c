"""Probes and partials of every order, counted without joining.

What a row finds follows from the rows of its key that went before it. So all rows are numbered as they go,
and for each the rows of its key with lower numbers are counted, stream by stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from weir.order.policies import DriverOrder
from weir_lab.driver.arrivals import Int64s
from weir_lab.driver.course import MARKS, Course, mean_early_share, mean_time_ratio, warm_batches
from weir_lab.driver.play import as_policy, order_rows, policies
from weir_lab.driver.settings import BATCH_NAMES, TIMESTAMP, DataSet
from weir_lab.driver.streams import Known, Streams, count_statistics, generate


@dataclass(frozen=True, slots=True)
class Counted:
    """The work of a policy, or of one order for all batches, beside timestamp-based's.

    `early` is the share of results at half of timestamp-based's work.
    """

    data_set: str
    batch: str
    order: str
    work: float
    beside_timestamp: float
    early: float
    results: int


def count_orders(
    data_set: DataSet, batches: Sequence[int], fixed: bool, tell: Callable[[str], None]
) -> Iterator[Counted]:
    """All policies, and if `fixed` every order of the streams."""
    streams = generate(data_set, 0)
    facts = count_statistics(streams)
    for count in batches:
        tell(f"counting data set {data_set.name}, {count} batches")
        beside = count_work(streams, count, as_policy(TIMESTAMP), facts)
        orders: list[DriverOrder] = [as_policy(policy) for policy in policies(data_set)]
        orders += list(permutations(data_set.streams)) if fixed else []
        for wanted in orders:
            courses = count_work(streams, count, wanted, facts)
            yield Counted(
                data_set.name,
                BATCH_NAMES[count],
                wanted if isinstance(wanted, str) else " ".join(wanted),
                sum(courses[i].spent for i in warm_batches(courses)),
                mean_time_ratio(courses, beside),
                mean_early_share(courses, beside),
                sum(course.results for course in courses),
            )


def count_work(streams: Streams, count: int, wanted: DriverOrder, facts: Known) -> list[Course]:
    """The course of each batch over probes and partials."""
    cuts = streams.cuts(count)
    rows = [order_rows(streams, cuts, batch, wanted, facts) for batch in range(count)]
    owners, places = (np.concatenate(columns) for columns in zip(*rows, strict=True))
    work, results = _of_rows(streams, owners, places)
    ends = np.cumsum([len(stamps) for stamps, _ in rows])
    return [_course(work[a:b], results[a:b]) for a, b in zip((0, *ends), ends, strict=False)]


def _of_rows(streams: Streams, owners: Int64s, places: Int64s) -> tuple[Int64s, Int64s]:
    """The work and the results of every row; a row without a shared key probes once, in vain."""
    names, shared = streams.data_set.streams, streams.data_set.shared
    keys = np.empty(len(owners), np.int64)
    for number, name in enumerate(names):
        keys[owners == number] = streams.keys[name][places[owners == number]]
    # Rows of a key lie together, in the order in which they go.
    codes = keys * len(owners) + np.arange(len(owners))
    sorted_codes = [np.sort(codes[(owners == number) & (keys < shared)]) for number in range(len(names))]
    work, results = np.ones(len(owners), np.int64), np.zeros(len(owners), np.int64)
    for driver in range(len(names)):
        mine = np.flatnonzero((owners == driver) & (keys < shared))
        partials = np.ones(len(mine), np.int64)
        spent = np.zeros(len(mine), np.int64)
        for partner in range(len(names)):
            if partner != driver:
                spent += partials
                before, first = (
                    np.searchsorted(sorted_codes[partner], at)
                    for at in (codes[mine], keys[mine] * len(owners))
                )
                partials = partials * (before - first)
                spent += partials
        work[mine], results[mine] = spent, partials
    return work, results


def _course(work: Int64s, results: Int64s) -> Course:
    if not len(work):
        return Course(())
    at = np.unique(np.linspace(0, len(work) - 1, MARKS + 1).astype(np.int64)[1:])
    return Course(
        tuple(zip(np.cumsum(work)[at].astype(float).tolist(), np.cumsum(results)[at].tolist(), strict=True))
    )
