"""Statistics of a running query: windowed averages of everything that adaptation decides by (monitor).

A selectivity is matches over pairs: probes times the stored rows that a probe of the batch could reach.

    stored rows  ───────────────────┤├── batch, L seconds ──┤
                      ├──────── window W ───────┤
                                     ├──── u ───┤ row

A row u seconds into the batch reaches stored rows of the last W - u seconds, and those rows of its own batch
that are ranked before it. Averaged over u, it reaches the share 1 - L/2W of stored rows if L <= W, else W/2L.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from weir.adapt.average import Average, update_lags
from weir.adapt.batch_report import BatchReport
from weir.adapt.challenges import Challenges
from weir.adapt.load import Load
from weir.plan.tree import Join, nodes
from weir.query.model import Query
from weir.query.windows import RowWindow
from weir.stats.batch_counts import count_steps
from weir.stats.hop import Hop
from weir.stats.lag_histogram import LagHistograms

Names = tuple[str, ...]
# A hop without its plan: the sorted streams of the partial that probes, and those of the state it probes.
Step = tuple[Names, Names]
# A batch is a gap if it spans this many times the event time of the last one with this many times fewer rows
# per second than usual: the sources paused, and the rates did not change.
_GAP_FACTOR = 4.0
# A batch is a sliver if it spans less than this share of the last one, as when a file of one stream arrives
# alone: its seconds of work per event second would mean nothing.
_SLIVER_SHARE = 0.04
# A batch that takes this many times the CPU of the last one confirms that rates have jumped.
_MORE_WORK_FACTOR = 1.5
# Gaps and slivers are left out only if there was none in this many batches, so that lasting changes count.
_REGULAR_BATCHES = 10
# Lags of so many rows tell which ages pay; fewer promise much that is not there.
_FEWEST_LAGGED_ROWS = 20


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is known of a query after some batches; every manifest holds it.

    Averages:
    - `rows` and `results` per event second, `row_bytes` per stored row of a state;
    - `matches` per pair of a probing partial and a row it could reach: the selectivity of a step;
    - `fixed`: seconds of a batch outside its join;
    - `event_time_speed`: event seconds per second between triggers;
    - `step_seconds`: CPU seconds of probing and putting out results, per step.

    `lags` are histograms. Of a controller, `load` is what batches did and what CPU that took, `challenges`
    what it has in force and on trial.

    Of the last batch: `span` (event seconds), `seconds`, `work`, `recall`, `bytes` of all states, seconds of
    the `watermark_delay`, `oldest` age in a result (seconds), and `window_fill`: the rows in the windows over
    those expected at current rates.

    `irregular_batch` is the number of the last batch that was left out as a gap or sliver.
    """

    batches: int = 0
    rows: Mapping[str, Average] = field(default_factory=dict)
    matches: Mapping[Step, Average] = field(default_factory=dict)
    results: Average = field(default_factory=Average)
    lags: LagHistograms | None = None
    row_bytes: Mapping[Names, Average] = field(default_factory=dict)
    load: Load = field(default_factory=Load)
    challenges: Challenges | None = None
    fixed: Average = field(default_factory=Average)
    event_time_speed: Average = field(default_factory=Average)
    step_seconds: Average = field(default_factory=Average)
    span: float = 0.0
    seconds: float = 0.0
    work: float = 0.0
    recall: float | None = None
    bytes: int = 0
    watermark_delay: float | None = None
    oldest: float | None = None
    irregular_batch: int = 0
    window_fill: float = 1.0

    def after(self, query: Query, seen: BatchReport) -> Statistics:
        """Add a batch."""
        is_irregular = self._is_irregular(seen)
        # Without a span, averages per event second stay as they are. The first batch has none either: nothing
        # tells over what time its rows came.
        span = 0.0 if is_irregular else seen.span
        new_rows = {name: _count_new_rows(seen, name) for name in query.names}
        known_rows = {name: self.rows.get(name, Average()) for name in query.names}
        # More rows and more work at once confirm each other.
        does_more_work = self.work > 0 and seen.work > _MORE_WORK_FACTOR * self.work
        is_confirmed = does_more_work and any(
            known_rows[name].detect_jump(new_rows[name], span) > 0 for name in query.names
        )
        rows = {n: known_rows[n].after(new_rows[n], span, is_confirmed=is_confirmed) for n in query.names}
        fill = _measure_window_fill(query, seen, rows)
        newest, watermark = max(seen.reached.values(), default=None), seen.watermark
        delay = None if watermark is None or newest is None else max(0, newest - watermark) / 1e6
        # The rows of a batch have piled up since the batch before it began.
        period = 0.0 if seen.interval is None or is_irregular else max(seen.interval, self.seconds)
        return Statistics(
            batches=self.batches + 1,
            rows=rows,
            matches=self.matches if is_irregular else _update_matches(self.matches, query, seen),
            results=self.results.after(seen.results, span),
            lags=update_lags(self.lags, seen.counts.lags, self.results_each),
            row_bytes=_update_row_bytes(self.row_bytes, seen),
            load=self.load,
            challenges=self.challenges,
            fixed=self.fixed.after(max(0.0, seen.seconds - seen.work), 1.0, is_count=False),
            event_time_speed=self.event_time_speed.after(span, period, is_count=False),
            step_seconds=self.step_seconds.after(
                seen.probe_cpu, count_steps(seen.per_hop.values()), is_count=False
            ),
            span=span or self.span,
            seconds=seen.seconds,
            work=seen.work,
            recall=seen.recall,
            bytes=sum(size.bytes for size in seen.state.values()),
            watermark_delay=delay,
            oldest=None if seen.counts.oldest is None else seen.counts.oldest / 1e6,
            irregular_batch=self.batches if is_irregular else self.irregular_batch,
            window_fill=fill,
        )

    @property
    def rates(self) -> dict[str, float]:
        """Rows per event second of each stream whose rate is known."""
        return {name: rows.value for name, rows in self.rows.items() if rows.value is not None}

    @property
    def results_per_row(self) -> dict[str, float]:
        """Results per row of each stream (Valsomatzis and Gounaris 2013, table 1: σ_S)."""
        results = self.results.value or 0.0
        return {name: results / rate for name, rate in self.rates.items() if rate > 0}

    @property
    def reliable_lags(self) -> LagHistograms | None:
        """The lags, once so many rows have shown them that the best ages are not those of chance."""
        if self.lags is None:
            return None
        results = max((sum(histogram.counts) for histogram in self.lags.lags.values()), default=0.0)
        return self.lags if results >= _FEWEST_LAGGED_ROWS * self.results_each else None

    @property
    def exact_share(self) -> float:
        """Results a second of the exact join, estimated, over the product of the streams' rates."""
        combinations = math.prod(self.rates.values())
        results = (self.results.value or 0.0) / (self.recall or 1.0)
        return results / combinations if combinations else 0.0

    @property
    def results_each(self) -> float:
        """Exact results per sampled row, at least 1; they are not independent of each other."""
        return max(1.0, max(self.results_per_row.values(), default=1.0) / (self.recall or 1.0))

    @property
    def is_regular(self) -> bool:
        """True if the last batch was neither a gap nor a sliver."""
        return self.irregular_batch < self.batches - 1 or self.batches < 2

    def selectivities(self, plan: Join) -> dict[Hop, float]:
        """Return the selectivity of each hop that has had a match."""
        known = {hop: self.matches[step].value for hop, step in iterate_steps(plan) if step in self.matches}
        return {hop: selectivity for hop, selectivity in known.items() if selectivity}

    def _is_irregular(self, batch: BatchReport) -> bool:
        """True if a batch is a gap or a sliver, the first for a while."""
        if self.batches < self.irregular_batch + _REGULAR_BATCHES:
            return False
        if batch.span <= _GAP_FACTOR * self.span:
            return batch.span < _SLIVER_SHARE * self.span
        new_rows = sum(_count_new_rows(batch, name) for name in self.rates)
        return _GAP_FACTOR * new_rows < batch.span * sum(self.rates.values())


def iterate_steps(plan: Join) -> Iterator[tuple[Hop, Step]]:
    """Yield every hop of a plan with its step."""
    for node in plan.inner():
        for driver, order in zip(node.inputs, node.orders, strict=True):
            bound = driver.streams
            for i in order:
                partner = node.inputs[i]
                hop = Hop(str(driver), str(node), str(partner))
                yield hop, (tuple(sorted(bound)), tuple(sorted(partner.streams)))
                bound += partner.streams


def _count_new_rows(batch: BatchReport, name: str) -> float:
    """Count the rows that arrived, including those that shedding dropped."""
    drop = 0.0 if batch.allowance is None else batch.allowance.drop.get(name, 0.0)
    return batch.rows.get(name, 0) / (1 - drop) if drop < 1 else 0.0


def _update_matches(known: Mapping[Step, Average], query: Query, batch: BatchReport) -> dict[Step, Average]:
    sums: dict[Step, tuple[float, float]] = {}
    for hop, step in iterate_steps(batch.plan):
        if (work := batch.per_hop.get(hop)) is None:
            continue
        # Only probes that saw partners of all ages count.
        probes, matches = work.probes, work.matches
        if work.narrowed:
            probes, matches = (work.sampled, work.sampled_matches) if batch.allowance is not None else (0, 0)
        pairs = probes * _count_reachable(query, batch, hop.partner, _visible_share(hop, batch.order))
        matches_before, pairs_before = sums.get(step, (0.0, 0.0))
        sums[step] = matches_before + matches, pairs_before + pairs
    # Steps of earlier plans stay known, with less weight batch by batch.
    faded = {step: average if step in sums else average.fade() for step, average in known.items()}
    return {**faded, **{step: known.get(step, Average()).after(*pair) for step, pair in sums.items()}}


def _update_row_bytes(known: Mapping[Names, Average], batch: BatchReport) -> dict[Names, Average]:
    streams = {str(node): tuple(sorted(node.streams)) for node in nodes(batch.plan)}
    updated = {
        streams[node]: known.get(streams[node], Average()).after(size.bytes, size.rows, is_count=False)
        for node, size in batch.state.items()
        if node in streams
    }
    return {**known, **updated}


def _measure_window_fill(query: Query, batch: BatchReport, rates: Mapping[str, Average]) -> float:
    """Return the reachable rows as a multiple of what the windows will hold at the current rates.

    It is above 1 after rates have fallen, as long as windows are full of earlier rows, and below 1 while
    windows fill up.
    """
    reachable = expected = 0.0
    for name in query.names:
        window, rate = _window_seconds(query, name), rates[name].value
        if window is not None and rate is not None:
            reachable += _count_reachable(query, batch, name, 0.5)
            expected += rate * window
    return reachable / expected if expected > 0 else 1.0


def _count_reachable(query: Query, batch: BatchReport, node: str, visible_share: float) -> float:
    """Count the reachable rows of a state, given the share of the batch's own rows that are visible."""
    stored, new = batch.held.get(node, 0), batch.rows.get(node, 0)
    window, length = _window_seconds(query, node), batch.span
    if window is None or not length:
        return stored + visible_share * new
    stored_share = 1 - length / (2 * window) if length <= window else window / (2 * length)
    new_share = 1.0 if length <= window else (2 * window * length - window * window) / (length * length)
    return stored * stored_share + visible_share * new * new_share


def _window_seconds(query: Query, node: str) -> float | None:
    """Return how long rows of a stream can be reached; None for intermediate states and row windows."""
    if node not in query.names:
        return None
    i = query.names.index(node)
    retention = query.bounds.retention(i)
    if isinstance(query.windows[i], RowWindow) or not retention or retention < 0:
        return None
    return retention / 1e6


def _visible_share(hop: Hop, order: tuple[str, ...] | None) -> float:
    """Return the share of the partner's new rows that a driver row sees; half if the order is not fixed."""
    if order is None or hop.driver not in order or hop.partner not in order:
        return 0.5
    return float(order.index(hop.partner) < order.index(hop.driver))
