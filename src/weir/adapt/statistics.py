"""What the batches so far tell: windowed averages of all that decisions hang on (monitor)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from weir.adapt.average import KEPT, Average
from weir.adapt.batch_report import BatchReport
from weir.plan.tree import Join, nodes
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.shed.allowance import Allowance
from weir.stats.batch import Hop, HopStats
from weir.stats.lag_histogram import LagHistograms

# The streams of a partial, and those of the state that it probes, both sorted: whatever the plan.
Step = tuple[tuple[str, ...], tuple[str, ...]]
# A batch may have waited for its rows if it goes on by so many times the last one, with so many times fewer
# rows a second than usual; it is put aside for that if as many before it were not as averages remember.
_SILENCE, _REMEMBERED = 4.0, 10
# So is one that spans less than that share of the last, as when a file of one stream came alone.
_SLIVER = 0.04
# Lags that lie so far from the earlier ones (as a share of results) make these worthless.
_DRIFTED = 0.25
# Two samples of one distribution lie further apart than this, by the root of 1/n + 1/m, once in a thousand
# times (Kolmogorov and Smirnov); of fewer than so many results nothing is said.
_CHANCE, _FEWEST = 1.95, 10


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known after so many batches; all of it is kept in the manifest.

    `rows` are per event second, `matches` per pair of a partial and a row it could reach, `results` per event
    second, `row_bytes` per stored row. `load` is the join's work per event second since its last decision,
    with the plan that `loaded` names; `fixed` are a batch's other seconds; `pace` is event seconds per
    second. `scale` is how many times the model's seconds it took to probe when that was last weighed. Of the
    last batch there are its `span` (event seconds), `seconds`, `work` and `recall`, the `bytes` of all
    states, the watermark's `lag` (s), the `oldest` age put out (s), and how `full` the windows were of what
    they hold at the rates of now. `silent` is how many batches there were before the last one that was put
    aside, because no rows came for most of its span or it had next to none.
    """

    batches: int = 0
    rows: Mapping[str, Average] = field(default_factory=dict)
    matches: Mapping[Step, Average] = field(default_factory=dict)
    results: Average = field(default_factory=Average)
    lags: LagHistograms | None = None
    row_bytes: Mapping[tuple[str, ...], Average] = field(default_factory=dict)
    load: Average = field(default_factory=Average)
    loaded: str = ""
    fixed: Average = field(default_factory=Average)
    pace: Average = field(default_factory=Average)
    scale: float | None = None
    span: float = 0.0
    seconds: float = 0.0
    work: float = 0.0
    recall: float | None = None
    bytes: int = 0
    lag: float | None = None
    oldest: float | None = None
    silent: int = 0
    full: float = 1.0

    def after(self, query: Query, seen: BatchReport) -> Statistics:
        """With one batch more."""
        # A silence tells no rates. Streams that become slow stay so, and then the next batch counts.
        is_aside = self._is_aside(seen)
        span, plan = 0.0 if is_aside else seen.span, named(seen.plan)
        load = self.load if plan == self.loaded else Average()
        came = {name: _came(seen, name) for name in query.names}
        known = {name: self.rows.get(name, Average()) for name in query.names}
        # More rows that took longer, too, are no accident of either.
        leaps = load.jumps(seen.work, span, counted=False) > 0 and any(
            known[name].jumps(came[name], span) > 0 for name in query.names
        )
        # The clock does not tell over what time the rows of the first batch came.
        rows = {name: known[name].after(came[name], span, sure=leaps) for name in query.names}
        full = _full(query, seen, rows)
        # What comes in a batch has piled up since the one before it began.
        period = 0.0 if seen.interval is None or is_aside else max(seen.interval, self.seconds)
        return Statistics(
            batches=self.batches + 1,
            rows=rows,
            matches=self.matches if is_aside else _matched(self.matches, query, seen),
            results=self.results.after(seen.results, span),
            lags=_drifted(self.lags, seen.lags, self.results_each),
            row_bytes=_sized(self.row_bytes, seen),
            load=load.after(seen.work / max(1.0, full), span, counted=False, sure=leaps),
            loaded=plan,
            fixed=self.fixed.after(max(0.0, seen.seconds - seen.work), 1.0, counted=False),
            pace=self.pace.after(span, period, counted=False),
            scale=self.scale,
            span=span or self.span,
            seconds=seen.seconds,
            work=seen.work,
            recall=seen.recall,
            bytes=sum(size.bytes for size in seen.state.values()),
            lag=_lag(seen),
            oldest=None if seen.oldest is None else seen.oldest / 1e6,
            silent=self.batches if is_aside else self.silent,
            full=full,
        )

    def anew(self, scale: float) -> Statistics:
        """The same when something was decided: what the work takes is measured anew."""
        return replace(self, load=Average(), scale=scale)

    @property
    def rates(self) -> dict[str, float]:
        """Rows per event second of each stream whose rate is known."""
        return {name: found.value for name, found in self.rows.items() if found.value is not None}

    @property
    def gains(self) -> dict[str, float]:
        """Results per row of each stream (Valsomatzis and Gounaris 2013, table 1: σ_S)."""
        results = self.results.value or 0.0
        return {name: results / rate for name, rate in self.rates.items() if rate > 0}

    @property
    def results_each(self) -> float:
        """The results that one sampled row tells of, one at least: they are not independent of each other."""
        return max(1.0, max(self.gains.values(), default=1.0) / (self.recall or 1.0))

    def selectivities(self, plan: Join) -> dict[Hop, float]:
        """The share of pairs that match at each hop; without a match yet nothing is said of a hop."""
        known = {hop: self.matches[step].value for hop, step in steps(plan) if step in self.matches}
        return {hop: share for hop, share in known.items() if share}

    def _is_aside(self, seen: BatchReport) -> bool:
        """True if a batch seems to have waited for its rows, which then came as usual, or had hardly any."""
        if self.batches < self.silent + _REMEMBERED:
            return False
        if seen.span <= _SILENCE * self.span:
            return seen.span < _SLIVER * self.span
        came = sum(_came(seen, name) for name in self.rates)
        return _SILENCE * came < seen.span * sum(self.rates.values())


def named(plan: Join) -> str:
    """A plan with its probing orders."""
    return f"{plan} {[node.orders for node in plan.inner()]}"


def steps(plan: Join) -> Iterator[tuple[Hop, Step]]:
    """Every hop of a plan with the streams that are bound when it comes to it, and those of its partner."""
    for node in plan.inner():
        for driver, order in zip(node.inputs, node.orders, strict=True):
            bound = driver.streams
            for i in order:
                partner = node.inputs[i]
                yield (
                    Hop(str(driver), str(node), str(partner)),
                    (tuple(sorted(bound)), tuple(sorted(partner.streams))),
                )
                bound += partner.streams


def _came(seen: BatchReport, name: str) -> float:
    """The rows of a stream, those included that were dropped before they entered."""
    drop = 0.0 if seen.allowance is None else seen.allowance.drop.get(name, 0.0)
    return seen.rows.get(name, 0) / (1 - drop) if drop < 1 else 0.0


def _matched(known: Mapping[Step, Average], query: Query, seen: BatchReport) -> dict[Step, Average]:
    found: dict[Step, tuple[float, float]] = {}
    for hop, step in steps(seen.plan):
        did = seen.per_hop.get(hop)
        if did is None:
            continue
        probes, matches = _told(did, seen.allowance)
        before = found.get(step, (0.0, 0.0))
        found[step] = before[0] + matches, before[1] + probes * _reached(query, seen, hop)
    # What another plan told stays, but the longer ago, the less it weighs beside what this one tells.
    faded = {step: one if step in found else one.faded() for step, one in known.items()}
    return {**faded, **{step: known.get(step, Average()).after(*sums) for step, sums in found.items()}}


def _told(did: HopStats, allowance: Allowance | None) -> tuple[int, int]:
    """Probes that looked at all ages, and what they found."""
    if not did.narrowed:
        return did.probes, did.matches
    # Where old rows are forgotten, sampled rows do not see them either.
    is_sampled = allowance is not None and not allowance.forget
    return (did.sampled, did.sampled_matches) if is_sampled else (0, 0)


def _full(query: Query, seen: BatchReport, rows: Mapping[str, Average]) -> float:
    """How many times as many rows a batch could reach as there will be at the rates of now.

    When rates have fallen, windows are full of what came before, which tells nothing of what the work takes.
    """
    there = usual = 0.0
    for name in query.names:
        window, rate = _window(query, name), rows[name].value
        if window is not None and rate is not None:
            there += _within_reach(query, seen, name, 0.5)
            usual += rate * window
    return there / usual if usual > 0 else 1.0


def _reached(query: Query, seen: BatchReport, hop: Hop) -> float:
    """How many rows of the partner a row that probes could reach, on average over the batch."""
    return _within_reach(query, seen, hop.partner, _seen_of_batch(hop, seen.order))


def _within_reach(query: Query, seen: BatchReport, node: str, own: float) -> float:
    """How many rows of a state could be reached, with a share `own` of the batch's."""
    held, came = seen.held.get(node, 0), seen.rows.get(node, 0)
    window = _window(query, node)
    if window is None or not seen.span:
        return held + own * came
    # Rows come over a time L. One that comes after u of it reaches back by W, and in its batch ahead, too.
    length = seen.span
    old = 1 - length / (2 * window) if length <= window else window / (2 * length)
    new = 1.0 if length <= window else (2 * window * length - window * window) / (length * length)
    return held * old + own * came * new


def _window(query: Query, node: str) -> float | None:
    """The seconds that rows of a stream can be reached; None for joined states and windows of rows."""
    if node not in query.names:
        return None
    i = query.names.index(node)
    kept = query.bounds.retention(i)
    return None if isinstance(query.windows[i], RowWindow) or not kept or kept < 0 else kept / 1e6


def _seen_of_batch(hop: Hop, order: tuple[str, ...] | None) -> float:
    """The share of a partner's new rows that a row of the driver sees; half without one order for all."""
    if order is None or hop.driver not in order or hop.partner not in order:
        return 0.5
    return float(order.index(hop.partner) < order.index(hop.driver))


def _sized(known: Mapping[tuple[str, ...], Average], seen: BatchReport) -> dict[tuple[str, ...], Average]:
    streams = {str(node): tuple(sorted(node.streams)) for node in nodes(seen.plan)}
    changed = {
        streams[node]: known.get(streams[node], Average()).after(size.bytes, size.rows, counted=False)
        for node, size in seen.state.items()
        if node in streams
    }
    return {**known, **changed}


def _lag(seen: BatchReport) -> float | None:
    if seen.watermark is None or not seen.reached:
        return None
    return max(0, max(seen.reached.values()) - seen.watermark) / 1e6


def _drifted(known: LagHistograms | None, seen: LagHistograms | None, each: float) -> LagHistograms | None:
    if known is None or seen is None:
        return known or seen
    return seen if differ(known, seen, _DRIFTED, each) else known.aged(seen, KEPT)


def _count(lags: LagHistograms) -> float:
    """How many results the lags were counted in."""
    return max((sum(one.counts) for one in lags.lags.values()), default=0.0)


def differ(one: LagHistograms, other: LagHistograms, change: float, each: float) -> bool:
    """True if the lags of some stream differ by more than a share of results, and by more than chance.

    How far they lie apart is the largest difference of shares below a lag. Of `each` results, one counts.
    """
    counts = _count(one) / each, _count(other) / each
    if min(counts) < _FEWEST:
        return False
    apart = max(
        float(np.abs(np.cumsum(one.lags[name].shares) - np.cumsum(other.lags[name].shares)).max())
        for name in one.lags.keys() & other.lags.keys()
    )
    return apart > max(change, _CHANCE * math.sqrt(sum(1 / n for n in counts)))
