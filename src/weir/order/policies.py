"""Driver policies choose the order in which the rows of a batch are processed.

In one batch a row finds rows of earlier batches and rows that were processed before it. So the order decides
which row finds a result, and how many partials are made on the way; it never changes the results
(Valsomatzis and Gounaris 2013, section 3.2).

To add a policy, write a function of `PendingRows`, enter it into `POLICIES`, and name it in `DriverPolicy`
and, if it reads `selectivities` or `results_per_row`, in `LEARNING_POLICIES`; if it alternates between
streams, in `INTERLEAVING_POLICIES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weir.errors import QueryError, suggest_name
from weir.plan.tree import Join
from weir.stats.hop import Hop

DriverPolicy = Literal[
    "auto", "timestamp", "round-robin", "consumption-rate", "initial-output", "output-rate", "least-work"
]
# A list of the streams, or the policy that chooses the order of each batch.
DriverOrder = tuple[str, ...] | DriverPolicy
Int64s = NDArray[np.int64]
# What a policy returns: streams, each processed as a whole, or the rank of every row if streams interleave.
Streams = tuple[str, ...]
Ranks = dict[str, Int64s]
# Up to this many streams, least-work tries every order.
_MAX_PERMUTED = 5
# Selectivity of a hop that has not been measured yet.
_UNKNOWN_SELECTIVITY = 1e-3


@dataclass(frozen=True)
class PendingRows:
    """Rows of each stream that wait to be processed (`deltas`), and rows that each state of the plan holds.

    `selectivities` is the share of a partner's rows that a probe matches at each hop; these and the
    `results_per_row` of each stream are given, or learned from earlier batches. `times` are the event times
    of the waiting rows, where they have been read.
    """

    plan: Join
    deltas: Mapping[str, int]
    states: Mapping[str, int]
    selectivities: Mapping[Hop, float] = field(default_factory=dict)
    results_per_row: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, Int64s] = field(default_factory=dict)


def check_policy(policy: str) -> None:
    """Refuse a policy that does not exist."""
    if policy not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        hint = suggest_name(policy, POLICIES)
        raise QueryError(f"driver_order is a list of the streams or one of {known}; got {policy!r}{hint}")


def apply_policy(policy: DriverPolicy, pending: PendingRows) -> Streams | Ranks:
    """Choose the order of a batch by the policy of a name."""
    check_policy(policy)
    return POLICIES[policy](pending)


def choose_order(policy: DriverPolicy, pending: PendingRows) -> Streams:
    """Choose the order of streams by a policy; the plan's order if the policy interleaves rows."""
    chosen = apply_policy(policy, pending)
    return pending.plan.streams if isinstance(chosen, dict) else chosen


def rank_rows(order: DriverOrder, pending: PendingRows, times: Mapping[str, Int64s]) -> Ranks:
    """Return the rank of every row of a batch, given the event times of each stream's rows.

    Rows of one rank belong to one stream, and of two rows of different streams one has the lower rank, so
    that exactly one of them sees the other.

    >>> from weir.plan.tree import join
    >>> pending = PendingRows(join("a", "b"), {"a": 3, "b": 1}, {})
    >>> by_stream = rank_rows("timestamp", pending, {"a": np.array([5, 1, 9]), "b": np.array([7])})
    >>> by_stream["a"].tolist(), by_stream["b"].tolist()
    ([0, 0, 2], [1])
    """
    chosen = apply_policy(order, replace(pending, times=times)) if isinstance(order, str) else order
    if isinstance(chosen, dict):
        return chosen
    return {name: np.full(len(rows), chosen.index(name), np.int64) for name, rows in times.items()}


def timestamp(pending: PendingRows) -> Ranks:
    """Strictly by event time, as an mjoin without batches does."""
    return _interleave(pending.times, list(pending.times.values()))


def round_robin(pending: PendingRows) -> Ranks:
    """The oldest row left of each stream in turn."""
    # The n-th oldest row of each stream goes in round n.
    rounds = [np.argsort(np.argsort(times, kind="stable")) for times in pending.times.values()]
    return _interleave(pending.times, rounds)


def _interleave(times: Mapping[str, Int64s], moments: list[Int64s]) -> Ranks:
    """Rank rows by (moment, stream); neighbours of one stream share a rank."""
    if not moments:
        return {}
    lengths = [len(rows) for rows in moments]
    streams = np.repeat(np.arange(len(lengths)), lengths)
    sequence = np.lexsort((streams, np.concatenate(moments)))
    changes = np.diff(streams[sequence], prepend=streams[sequence[:1]]) != 0
    ranks = np.empty(len(sequence), np.int64)
    ranks[sequence] = np.cumsum(changes)
    return dict(zip(times, np.split(ranks, np.cumsum(lengths)[:-1]), strict=True))


def consumption_rate(pending: PendingRows) -> Streams:
    """First the streams whose rows have part in the fewest results, by ascending σ_S.

    σ_S is the results over the stream's rows, so as long as nothing is known, larger streams go first.
    """
    sizes = {s: pending.states.get(s, 0) + pending.deltas.get(s, 0) for s in pending.plan.streams}
    return tuple(sorted(sizes, key=lambda s: (pending.results_per_row.get(s, 0.0), -sizes[s])))


def initial_output(pending: PendingRows) -> Streams:
    """Next the stream whose delta gives the most results (Valsomatzis and Gounaris 2013, equation 1).

    The selectivity of the whole join is the same for all, so it does not matter.
    """
    return _greedy(pending, lambda delta, others: math.log(delta) + others if delta else -math.inf)


def output_rate(pending: PendingRows) -> Streams:
    """Next the stream that gives the most results per row."""
    return _greedy(pending, lambda delta, others: others if delta else -math.inf)


def _greedy(pending: PendingRows, score: Callable[[int, float], float]) -> Streams:
    """Take the stream with the best score next, by its delta and log Π |ht_l| over the other streams."""
    deltas = {s: pending.deltas.get(s, 0) for s in pending.plan.streams}
    visible = {s: pending.states.get(s, 0) for s in deltas}
    logs = {s: math.log(rows) if rows else 0.0 for s, rows in visible.items()}
    empty, whole = sum(not rows for rows in visible.values()), sum(logs.values())
    remaining, chosen = list(deltas), []

    def rank(stream: str) -> tuple[float, int]:
        others = -math.inf if empty > (not visible[stream]) else whole - logs[stream]
        return score(deltas[stream], others), deltas[stream]

    while remaining:
        best = max(remaining, key=rank)
        remaining.remove(best)
        chosen.append(best)
        if deltas[best]:
            empty -= not visible[best]
            visible[best] += deltas[best]
            whole += math.log(visible[best]) - logs[best]
            logs[best] = math.log(visible[best])
    return tuple(chosen)


def least_work(pending: PendingRows) -> Streams:
    """The order with the fewest probes and partials: the best of all for few streams, else a good one."""
    streams, known = pending.plan.streams, pending.selectivities
    paths = {
        stream: [(hop.partner, known.get(hop, _UNKNOWN_SELECTIVITY), feeds) for hop, feeds in hops]
        for stream, hops in _paths(pending.plan).items()
    }
    few = len(streams) <= _MAX_PERMUTED
    orders = permutations(streams) if few else (initial_output(pending), _cheapest_first(pending, paths))
    return min(orders, key=lambda tried: _count_work(pending, paths, tried))


@lru_cache(maxsize=32)
def _paths(plan: Join) -> dict[str, list[tuple[Hop, str | None]]]:
    """The hops of every stream up to the root, each with the state that its matches enter, if any."""
    paths: dict[str, list[tuple[Hop, str | None]]] = {stream: [] for stream in plan.streams}
    for node in plan.inner():
        for driver, sequence in zip(node.inputs, node.orders, strict=True):
            hops = [Hop(str(driver), str(node), str(node.inputs[i])) for i in sequence]
            feeds = [None] * (len(hops) - 1) + [None if node is plan else str(node)]
            for stream in driver.streams:
                paths[stream] += zip(hops, feeds, strict=True)
    return paths


# The hops of each stream: the partner's state, its selectivity, the state that the matches enter.
_Paths = Mapping[str, Sequence[tuple[str, float, str | None]]]


def _count_work(pending: PendingRows, paths: _Paths, streams: Sequence[str]) -> float:
    """Estimate the probes and partials of a batch whose streams are processed in an order."""
    visible: dict[str, float] = dict(pending.states)
    work = 0.0
    for stream in streams:
        flow = float(pending.deltas.get(stream, 0))
        visible[stream] = visible.get(stream, 0.0) + flow
        for partner, selectivity, feeds in paths[stream]:
            if not flow:
                break
            work += flow
            flow *= selectivity * visible.get(partner, 0.0)
            if feeds is not None:
                visible[feeds] = visible.get(feeds, 0.0) + flow
        work += flow
    return work


def _cheapest_first(pending: PendingRows, paths: _Paths) -> Streams:
    """Take the stream that would now make the fewest partials next."""
    visible = dict(pending.states)
    remaining, chosen = list(pending.plan.streams), []

    def count_partials(stream: str) -> float:
        partials, per_row = 0.0, 1.0
        for partner, selectivity, _ in paths[stream]:
            per_row *= selectivity * visible.get(partner, 0)
            partials += per_row
        return pending.deltas.get(stream, 0) * partials

    while remaining:
        best = min(remaining, key=count_partials)
        remaining.remove(best)
        chosen.append(best)
        visible[best] = visible.get(best, 0) + pending.deltas.get(best, 0)
    return tuple(chosen)


# Every driver policy. `auto` gives results early: by counted work, orders differ by a few per cent at most.
POLICIES: Mapping[str, Callable[[PendingRows], Streams | Ranks]] = {
    "auto": initial_output,
    "timestamp": timestamp,
    "round-robin": round_robin,
    "consumption-rate": consumption_rate,
    "initial-output": initial_output,
    "output-rate": output_rate,
    "least-work": least_work,
}
# These alternate between streams row by row, so that their order is that of one partition.
INTERLEAVING_POLICIES: tuple[DriverPolicy, ...] = ("timestamp", "round-robin")
# These choose by statistics of earlier batches.
LEARNING_POLICIES: tuple[DriverPolicy, ...] = ("consumption-rate", "least-work")
