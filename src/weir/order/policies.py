"""Policies that process one stream's delta after another's (Valsomatzis and Gounaris 2013, section 3.2).

In one batch a row finds rows of earlier batches and of streams that went before it, so the order decides who
finds what and when, and how many partials are made on the way; never what is found in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Literal, get_args

import numpy as np

from weir.errors import QueryError
from weir.order.pending import PendingRows
from weir.plan.tree import Join
from weir.stats.batch import Hop

DriverPolicy = Literal[
    "auto",
    "timestamp",
    "round-robin",
    "consumption-rate",
    "initial-output",
    "output-rate",
    "least-work",
]
# What these choose depends on what earlier batches matched.
LEARNING: tuple[DriverPolicy, ...] = ("consumption-rate", "least-work")
# An order by hand, or the policy that chooses one for each batch.
DriverOrder = tuple[str, ...] | DriverPolicy
# All orders of so many streams are weighed against each other.
_FEW = 5
# Where nothing is known of a hop, it matches rarely.
_UNKNOWN = 1e-3


def order(policy: DriverPolicy, waiting: PendingRows) -> tuple[str, ...]:
    """The streams in the order that a policy gives them; in the plan's, if it interleaves them."""
    check_policy(policy)
    choose = POLICIES.get(policy)
    return waiting.plan.streams if choose is None else choose(waiting)


def check_policy(policy: str) -> None:
    """Refuse a policy that does not exist."""
    if policy not in get_args(DriverPolicy):
        known = ", ".join(map(repr, get_args(DriverPolicy)))
        raise QueryError(f"driver_order is a list of the streams or one of {known}; got {policy!r}")


def consumption_rate(waiting: PendingRows) -> tuple[str, ...]:
    """First the streams whose rows have part in the fewest results, by ascending σ_S.

    σ_S is the results over the stream's rows, so as long as nothing is known, the larger streams go first.
    """
    sizes = {s: waiting.states.get(s, 0) + waiting.deltas.get(s, 0) for s in waiting.plan.streams}
    return tuple(sorted(sizes, key=lambda s: (waiting.gains.get(s, 0.0), -sizes[s])))


def initial_output(waiting: PendingRows) -> tuple[str, ...]:
    """Next the stream whose delta gives the most results (Valsomatzis and Gounaris 2013, equation 1).

    The selectivity of the whole join is the same for all, so it does not matter.
    """
    return _greedy(waiting, lambda delta, others: math.log(delta) + others if delta else -math.inf)


def output_rate(waiting: PendingRows) -> tuple[str, ...]:
    """Each time the stream whose rows will give the most results each."""
    return _greedy(waiting, lambda delta, others: others if delta else -math.inf)


def _greedy(waiting: PendingRows, score: Callable[[int, float], float]) -> tuple[str, ...]:
    """Again and again the stream of the best score, by its delta and log Π |ht_l| over the other streams."""
    deltas = {s: waiting.deltas.get(s, 0) for s in waiting.plan.streams}
    visible = {s: waiting.states.get(s, 0) for s in deltas}
    logs = {s: math.log(rows) if rows else 0.0 for s, rows in visible.items()}
    empty, whole = sum(not rows for rows in visible.values()), sum(logs.values())
    waits = dict.fromkeys(deltas)
    chosen: list[str] = []
    while waits:
        best, best_score = "", (-math.inf, -1)
        for stream in waits:
            others = -math.inf if empty > (not visible[stream]) else whole - logs[stream]
            found = (score(deltas[stream], others), deltas[stream])
            if found > best_score:
                best, best_score = stream, found
        del waits[best]
        chosen.append(best)
        if deltas[best]:
            empty -= not visible[best]
            visible[best] += deltas[best]
            whole += math.log(visible[best]) - logs[best]
            logs[best] = math.log(visible[best])
    return tuple(chosen)


def least_work(waiting: PendingRows) -> tuple[str, ...]:
    """The order with the fewest probes and partials: the best of all for few streams, else a good one."""
    streams = waiting.plan.streams
    known = waiting.selectivities
    paths = {
        stream: [(hop.partner, known.get(hop, _UNKNOWN), feeds) for hop, feeds in steps]
        for stream, steps in _paths(waiting.plan).items()
    }
    if len(streams) <= _FEW:
        return min(permutations(streams), key=lambda found: _work(waiting, paths, found))
    tried = (initial_output(waiting), _cheapest_first(waiting, paths))
    return min(tried, key=lambda found: _work(waiting, paths, found))


@lru_cache(maxsize=32)
def _paths(plan: Join) -> dict[str, list[tuple[Hop, str | None]]]:
    """The hops of every stream up to the root, each with the state that its end feeds."""
    found: dict[str, list[tuple[Hop, str | None]]] = {stream: [] for stream in plan.streams}
    for node in plan.inner():
        for driver, sequence in zip(node.inputs, node.orders, strict=True):
            hops = [Hop(str(driver), str(node), str(node.inputs[i])) for i in sequence]
            feeds = [None] * (len(hops) - 1) + [None if node is plan else str(node)]
            for stream in driver.streams:
                found[stream] += zip(hops, feeds, strict=True)
    return found


# One hop of a stream's way to the root: its partner's state, its selectivity, the state that its end feeds.
_Step = tuple[str, float, str | None]


def _work(waiting: PendingRows, paths: Mapping[str, Sequence[_Step]], found: Sequence[str]) -> float:
    """Probes and partials of a batch that is processed in an order, as far as selectivities tell."""
    visible: dict[str, float] = dict(waiting.states)
    work = 0.0
    for stream in found:
        flow = float(waiting.deltas.get(stream, 0))
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


def _cheapest_first(waiting: PendingRows, paths: Mapping[str, Sequence[_Step]]) -> tuple[str, ...]:
    """Again and again the stream that would now make the fewest partials; for all at once, as arrays."""
    streams = waiting.plan.streams
    place = {
        name: i
        for i, name in enumerate(dict.fromkeys((*streams, *(p for s in streams for p, _, _ in paths[s]))))
    }
    longest = max(map(len, paths.values()))
    partners = np.zeros((len(streams), longest), np.intp)
    matching = np.zeros((len(streams), longest))
    for i, stream in enumerate(streams):
        for j, (partner, selectivity, _) in enumerate(paths[stream]):
            partners[i, j], matching[i, j] = place[partner], selectivity
    visible = np.array([float(waiting.states.get(name, 0)) for name in place])
    deltas = np.array([float(waiting.deltas.get(s, 0)) for s in streams])
    left = np.ones(len(streams), np.bool_)
    chosen = []
    for _ in streams:
        work = deltas * np.cumprod(matching * visible[partners], axis=1).sum(axis=1)
        best = int(np.argmin(np.where(left, work, np.inf)))
        chosen.append(streams[best])
        left[best] = False
        visible[best] += deltas[best]
    return tuple(chosen)


# `auto` gives results early: by counted work alone orders differ by a few per cent at most.
POLICIES: Mapping[str, Callable[[PendingRows], tuple[str, ...]]] = {
    "auto": initial_output,
    "consumption-rate": consumption_rate,
    "initial-output": initial_output,
    "output-rate": output_rate,
    "least-work": least_work,
}
