"""Measure how long each policy takes to choose an order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np

from weir.order.policies import POLICIES, PendingRows, apply_policy
from weir.plan.tree import hops, join

STREAMS = 20
_REPEATS = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """Milliseconds for one choice among so many streams."""

    policy: str
    streams: int
    median_milliseconds: float
    longest_milliseconds: float


def time_choices(streams: int = STREAMS) -> Iterator[Choice]:
    """Every policy; timestamp and round-robin rank the rows of a batch of a thousand instead."""
    names = tuple(f"s{i}" for i in range(streams))
    plan = join(*names)
    rng = np.random.default_rng(streams)
    known = {hop: float(share) for hop, share in zip(hops(plan), rng.random(len(hops(plan))), strict=True)}
    rows = 1_000 // streams
    times = {name: np.sort(rng.integers(0, 10**6, rows)) for name in names}
    for policy in POLICIES:
        taken = []
        for _ in range(_REPEATS):
            waiting = PendingRows(
                plan,
                dict.fromkeys(names, rows),
                {name: int(held) for name, held in zip(names, rng.integers(1, 10**5, streams), strict=True)},
                known,
                times=times,
            )
            started = process_time()
            apply_policy(policy, waiting)  # type: ignore[arg-type]
            taken.append(1e3 * (process_time() - started))
        yield Choice(policy, streams, median(taken), max(taken))
