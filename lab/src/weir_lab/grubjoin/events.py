"""Two video feeds as vectors (Gedik et al. 2007, section VII): which planted events does a join still see?

An event shows in a few shots of one feed and, some seconds later, in as many of the other; shots of one event
point nearly the same way, all others anywhere. It is seen if one pair of its shots is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import weir
from weir.local.join import LocalJoin
from weir.plan.tree import join
from weir.shed.allowance import Allowance
from weir.shed.drop import random_drop
from weir.shed.harvest_model import compute_cost, full_setting
from weir_lab.grubjoin.learn import Learned
from weir_lab.grubjoin.play import HARVEST, PERIOD, RANDOM_DROP, SAMPLE
from weir_lab.grubjoin.throttle import measured_directions, throttled_harvest
from weir_lab.virtual_machine import Delta

FEEDS = ("a", "b")
SIZE, RATE, WINDOW, SHOTS = 512, 20, 20.0, 4
# Every so many seconds an event; its second feed follows by a normal number of seconds.
EVENT_EVERY, LAG, SPREAD, BURST = 0.5, 8.0, 1.0, 1.0
LIKE, NOISE = 0.9, 0.2
EVERY = 0.5
BASIC = 1.0
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "v": pa.list_(pa.float32(), SIZE), "event": pa.int64()})


@dataclass(frozen=True, slots=True)
class Seen:
    """At a throttle fraction: the share of the planted events found, and of the full join's comparisons."""

    way: str
    throttle: float
    seed: int
    events: int
    detected: float
    spent: float


@dataclass(frozen=True, slots=True)
class Feeds:
    """Both feeds; rows that show no event have number -1."""

    seconds: float
    seed: int

    def deltas(self) -> Iterator[Delta]:
        """All rows, tick by tick."""
        rng = np.random.default_rng([512, self.seed])
        starts = np.arange(0.0, self.seconds, EVENT_EVERY)
        bases = rng.normal(size=(len(starts), SIZE)).astype(np.float32)
        lags = {"a": np.zeros(len(starts)), "b": rng.normal(LAG, SPREAD, len(starts))}
        rows = {name: self._rows(rng, starts + lags[name], bases) for name in FEEDS}
        for tick in range(round(self.seconds / EVERY)):
            yield {name: _between(*table, tick * EVERY, (tick + 1) * EVERY) for name, table in rows.items()}

    def _rows(
        self, rng: np.random.Generator, starts: np.ndarray, bases: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shots = (starts[:, None] + rng.uniform(0, BURST, (len(starts), SHOTS))).ravel()
        others = rng.uniform(0, self.seconds, round(self.seconds * RATE) - len(shots))
        times = np.concatenate([shots, others])
        events = np.concatenate([np.repeat(np.arange(len(starts)), SHOTS), np.full(len(others), -1)])
        vectors = rng.normal(size=(len(times), SIZE)).astype(np.float32)
        vectors[: len(shots)] = bases[events[: len(shots)]] + NOISE * vectors[: len(shots)]
        order = np.argsort(times)
        return times[order], events[order], vectors[order]

    def planted(self, start: float) -> set[int]:
        """The events whose shots all come after a time, and early enough to be seen."""
        begins = np.arange(0.0, self.seconds, EVENT_EVERY)
        inside = (begins >= start) & (begins + LAG + 5 * SPREAD + BURST < self.seconds)
        return set(np.flatnonzero(inside).tolist())


def detect_events(throttle: float, way: str, seed: int, seconds: float, warm: float) -> Seen:
    """One run; until the end of the warm-up everything is looked at, and a window later counting begins."""
    feeds, plan = Feeds(seconds, seed), join(*FEEDS)
    query = _asked().start()
    learned = Learned(plan, WINDOW, EVERY, sampled=way == HARVEST, kept=0.9)
    query.allow(Allowance(sample=SAMPLE))
    wanted, detected = feeds.planted(warm + WINDOW), set()
    spent = full = 0
    for tick, delta in enumerate(feeds.deltas()):
        for results in query.chunks(delta):
            detected.update(results.column("event").to_pylist())
        learned.add(query)
        stats = query.last_report
        assert stats is not None
        if tick * EVERY >= warm + WINDOW:
            spent += sum(hop.comparisons for hop in stats.per_hop.values())
            full += round(2 * RATE * EVERY * RATE * WINDOW)
        if (tick + 1) * EVERY >= warm and (tick + 1) % round(PERIOD / EVERY) == 0:
            query.allow(_allowed(way, throttle, learned))
    return Seen(way, throttle, seed, len(wanted), len(wanted & detected) / len(wanted), spent / full)


def _asked() -> LocalJoin:
    asked = weir.join(
        streams=dict.fromkeys(FEEDS, SCHEMA),
        on=f"cosine(a.v, b.v) >= {LIKE}",
        within=f"{WINDOW:g} seconds",
        select="a.event AS event",
        plan=join(*FEEDS),
    )
    assert isinstance(asked, LocalJoin)
    return asked


def _allowed(way: str, throttle: float, learned: Learned) -> Allowance:
    graph, measured, plan = (
        learned.graph(dict.fromkeys(FEEDS, float(RATE))),
        learned.selectivities,
        join(*FEEDS),
    )
    lags = learned.correlations
    learned.age()
    if way == RANDOM_DROP:
        directions = measured_directions(graph, plan, BASIC, measured=measured)
        full = compute_cost(directions, full_setting(directions))
        return Allowance(drop=random_drop(directions, throttle * full))
    return throttled_harvest(graph, plan, throttle, lags, BASIC, SAMPLE, measured).allowance


def _between(
    times: np.ndarray, events: np.ndarray, vectors: np.ndarray, start: float, end: float
) -> pa.Table:
    first, last = np.searchsorted(times, (start, end))
    stamps = pa.array((times[first:last] * 1e6).astype(np.int64)).cast(pa.timestamp("us"))
    flat = pa.array(vectors[first:last].ravel())
    columns = [stamps, pa.FixedSizeListArray.from_arrays(flat, SIZE), pa.array(events[first:last])]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
