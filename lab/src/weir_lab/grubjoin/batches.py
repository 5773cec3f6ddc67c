"""What a batch of the kernel costs at a throttle fraction, in CPU seconds, beside the same batch in full.

Two streams, the second 8 s ahead of the first and blurred by 3 s; the first looks at the ages that harvesting
chooses by the true correlation. A batch is run on the same state again and again, full and throttled in turn.

    nested loop     every row in the ages looked at is a candidate
    band, and more  the band is on a column that no time tells, with a condition without index on the other:
                    the index leaves candidates of all ages
    band alone      the band is the correlated condition itself: candidates have the ages of the matches
    equality        the same with a key
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
import pyarrow as pa

import weir
from weir.adapt.calibrate import calibrate_costs
from weir.adapt.estimate import estimate_join_graph
from weir.local.join import LocalJoin
from weir.local.query import LocalQuery
from weir.plan.tree import join
from weir.shed.allowance import Allowance
from weir.stats.hop import Hop
from weir.stats.lag_histogram import LagHistograms
from weir_lab.fork import fork
from weir_lab.grubjoin.play import BASIC
from weir_lab.grubjoin.streams import DOMAIN, PERIOD, WINDOW
from weir_lab.grubjoin.throttle import throttled_harvest
from weir_lab.virtual_machine import Delta

LAG, SPREAD = 8.0, 3.0
NAMES = ("a", "b")
SCHEMA = pa.schema({"ts": pa.timestamp("us"), "x": pa.float64(), "y": pa.float64(), "k": pa.int64()})
# The condition, rows a second and seconds of a batch.
KINDS = {
    "nested loop": ("(a.x - b.x) * (a.x - b.x) <= 1", 600, 0.25),
    "band, and more": ("abs(a.y - b.y) <= 8 AND (a.x - b.x) * (a.x - b.x) <= 100", 4_000, 0.25),
    "band alone": ("abs(a.x - b.x) <= 0.3", 20_000, 0.25),
    "equality": ("a.k = b.k", 20_000, 0.25),
}


@dataclass(frozen=True, slots=True)
class BatchCost:
    """Medians at one throttle fraction, as shares of the same batch in full.

    `predicted` is the cost that harvesting expects, `ranges` the share of the ranges that it probes, and
    `storing` what the batch costs without any probe, which no throttle spares.
    """

    kind: str
    throttle: float
    cpu: float
    storing: float
    predicted: float
    ranges: float
    slices: float
    comparisons: float
    results: float
    full_ms: float

    @property
    def is_kept(self) -> bool:
        """True if it costs no more than it may."""
        return self.cpu <= 1.15 * self.throttle + 0.05


def measure_batches(kind: str, throttles: Sequence[float], repeats: int) -> Iterator[BatchCost]:
    """All throttle fractions of one kind of join."""
    on, rate, every = KINDS[kind]
    asked = weir.join(
        streams=dict.fromkeys(NAMES, SCHEMA), on=on, within=f"{WINDOW:g} seconds", select="a.x AS x",
        plan=join(*NAMES), basic=f"{BASIC:g} seconds",
    )  # fmt: skip
    assert isinstance(asked, LocalJoin)
    query = asked.start()
    no_probes = Allowance(dict.fromkeys(_hops(), 0.0))
    query.allow(no_probes)  # fill the windows without joining
    steps = round((WINDOW + 2.0) / every)
    for number in range(steps):
        for _ in query.chunks(_rows(rate, number * every, every)):
            pass
    batch = _rows(rate, steps * every, every)
    lags, measured = _learned(query, batch, rate)
    graph = estimate_join_graph(
        asked.query, dict.fromkeys(NAMES, float(rate)), _pairs(measured), calibrate_costs(), every
    )
    chosen = {z: throttled_harvest(graph, join(*NAMES), z, lags, BASIC, measured=measured) for z in throttles}
    full_cost = throttled_harvest(graph, join(*NAMES), 1.0, lags, BASIC, measured=measured).cost
    _run(query, batch, None)  # indexes are made by who needs them first
    runs = {z: [_both(query, batch, chosen[z].allowance) for _ in range(repeats)] for z in throttles}
    idle = [_both(query, batch, no_probes) for _ in range(repeats)]
    for z, pairs in runs.items():
        whole, throttled_first = pairs[0]
        yield BatchCost(
            kind=kind,
            throttle=z,
            cpu=median(throttled.seconds / full.seconds for full, throttled in pairs),
            storing=median(stored.seconds / full.seconds for full, stored in idle),
            predicted=chosen[z].cost / full_cost,
            ranges=_ranges(chosen[z].allowance),
            slices=throttled_first.slices / max(whole.slices, 1),
            comparisons=throttled_first.comparisons / max(whole.comparisons, 1),
            results=throttled_first.results / max(whole.results, 1),
            full_ms=1000 * median(full.seconds for full, _ in pairs),
        )


def _both(query: LocalQuery, batch: Delta, allowed: Allowance) -> tuple[_Run, _Run]:
    """The batch in full and throttled, one right after the other, so that both see the same computer."""
    return _run(query, batch, None), _run(query, batch, allowed)


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    comparisons: int
    slices: int
    results: int


def _run(query: LocalQuery, batch: Delta, allowed: Allowance | None) -> _Run:
    mine = fork(query)
    mine.allow(allowed)
    started = process_time()
    for _ in mine.chunks(batch):
        pass
    seconds = process_time() - started
    stats = mine.last_report
    assert stats is not None
    hops = stats.per_hop.values()
    slices = sum(hop.visited for hop in hops)
    return _Run(seconds, sum(hop.comparisons for hop in hops), slices, stats.results)


def _learned(query: LocalQuery, batch: Delta, rate: float) -> tuple[LagHistograms, dict[Hop, float]]:
    mine = fork(query)
    mine.allow(Allowance(sample=1.0))
    for _ in mine.chunks(batch):
        pass
    stats = mine.last_report
    assert stats is not None and stats.counts.lags is not None
    pairs = {hop: work.probes * rate * WINDOW for hop, work in stats.per_hop.items()}
    return stats.counts.lags, {hop: work.matches / pairs[hop] for hop, work in stats.per_hop.items()}


def _pairs(measured: dict[Hop, float]) -> dict[frozenset[str], float]:
    return {frozenset(NAMES): sum(measured.values()) / len(measured)}


def _hops() -> list[Hop]:
    return [Hop(driver, str(join(*NAMES)), other) for driver, other in (NAMES, NAMES[::-1])]


def _ranges(allowed: Allowance) -> float:
    count = round(WINDOW / BASIC)
    looked = [
        0 if allowed.share(hop) == 0 else len(allowed.ages[hop].kept) if hop in allowed.ages else count
        for hop in _hops()
    ]
    return sum(looked) / (2 * count)


def _rows(rate: int, start: float, every: float) -> Delta:
    tables = {}
    for i, name in enumerate(NAMES):
        rng = np.random.default_rng([5, i, round(1000 * start)])
        times = start + every * np.sort(rng.random(round(rate * every)))
        values = DOMAIN / PERIOD * (times + LAG * i + SPREAD * i * rng.normal(size=len(times))) % DOMAIN
        stamps = pa.array((times * 1e6).astype(np.int64)).cast(pa.timestamp("us"))
        others = pa.array(rng.uniform(0, DOMAIN, len(times)))
        keys = pa.array((values * 25).astype(np.int64))
        tables[name] = pa.Table.from_arrays([stamps, pa.array(values), others, keys], schema=SCHEMA)
    return tables
