"""The join graph, input of every cost model: rates, windows, selectivities and unit costs.

>>> graph = JoinGraph.of(rates={"a": 20, "b": 20}, window=5, selectivities={("a", "b"): 0.05})
>>> graph.window_rows("a"), graph.selectivity({"a", "b"})
(100.0, 0.05)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from weir.errors import QueryError, unknown_name
from weir.query.windows import RowWindow
from weir.stats.unit_costs import UnitCosts

Streams = frozenset[str]
# The plan search represents sets of streams as bits of a machine word; queries have far fewer streams.
_MAX_STREAMS = 63


@dataclass(frozen=True)
class JoinGraph:
    """Streams are vertices, predicates between two of them are edges.

    - `rates`: rows per second; `windows`: seconds, or a number of rows.
    - `selectivities`: of each edge and, where edges are not independent, of a whole set of three or
      more streams; supersets inherit the difference.
    - `classes`: attributes that several streams share; of any of these streams, each after the first matches
      with that selectivity.
    - `narrowing`: the share of a partner's rows that the index of an edge leaves to compare; 1 without an
      index; that of a class is its selectivity.
    - `row_bytes`: size of a stored row, of one stream or of a set; without it, memory is counted in rows.
    - `slices`: how many slices a probe visits; `batch`: seconds between two batches.

    Only weir's own kernel needs the rest:

    - `basic`: seconds of the cells of each stream's time grid, by which its state is cut into slices; then
      `slices` is not read.
    - `slice_rows`: rows of a full slice; where a cell holds fewer, a slice covers several.
    - `lag`: how far the watermark stays behind, in seconds.
    - `columns`: how many columns of a state, or of a result for the set of all streams, have to be gathered;
      one without it.
    """

    streams: tuple[str, ...]
    rates: Mapping[str, float]
    windows: Mapping[str, float | RowWindow]
    selectivities: Mapping[Streams, float]
    classes: Mapping[Streams, float] = field(default_factory=dict)
    narrowing: Mapping[Streams, float] = field(default_factory=dict)
    row_bytes: Callable[[Streams], float] | None = None
    costs: UnitCosts = field(default_factory=UnitCosts)
    slices: float = 1.0
    batch: float = 1.0
    basic: Mapping[str, float] = field(default_factory=dict)
    slice_rows: float = 1.0
    lag: float = 0.0
    columns: Callable[[Streams], float] | None = None

    def __post_init__(self) -> None:
        if not 2 <= len(self.streams) <= _MAX_STREAMS:
            raise QueryError(f"a join graph has 2 to {_MAX_STREAMS} streams; got {len(self.streams)}")
        for name in self.streams:
            if name not in self.rates or name not in self.windows:
                raise QueryError(f"stream '{name}' of the join graph needs a rate and a window")
            _check_amount(self.rates[name], f"the rate of stream '{name}'", "rows a second")
            window = self.windows[name]
            if not isinstance(window, RowWindow):
                _check_amount(window, f"the window of stream '{name}'", "seconds", above_zero=True)
        shares = [("selectivity", *item) for item in (*self.selectivities.items(), *self.classes.items())]
        for what, streams, share in (*shares, *(("narrowing", *item) for item in self.narrowing.items())):
            if unknown := sorted(streams - set(self.streams)):
                raise unknown_name("stream", unknown[0], self.streams, where=f" in a {what}")
            if len(streams) < 2:
                raise QueryError(f"a {what} is between two streams or more; got {_join_names(streams)} alone")
            if not 0 <= share <= 1:
                raise QueryError(f"the {what} of {_join_names(streams)} must be from 0 to 1; got {share}")
        _check_amount(self.slices, "the number of slices a probe visits", "slices", above_zero=True)
        _check_amount(self.batch, "the time between batches", "seconds", above_zero=True)
        _check_amount(self.lag, "the lag of the watermark", "seconds")
        for name in self.streams if self.basic else ():
            if name not in self.basic:
                raise QueryError(f"stream '{name}' of the join graph needs the length of a cell too")
            _check_amount(self.basic[name], f"the length of a cell of '{name}'", "seconds", above_zero=True)

    @staticmethod
    def of(
        rates: Mapping[str, float],
        window: float | RowWindow | Mapping[str, float | RowWindow],
        selectivities: Mapping[tuple[str, str], float] | Mapping[tuple[str, ...], float],
        costs: UnitCosts | None = None,
    ) -> JoinGraph:
        """Make a graph from plain numbers: one window for all or one for each, edges as pairs of names."""
        windows = window if isinstance(window, Mapping) else dict.fromkeys(rates, window)
        edges = {frozenset(streams): share for streams, share in selectivities.items()}
        return JoinGraph(tuple(rates), dict(rates), windows, edges, costs=costs or UnitCosts())

    @property
    def edges(self) -> tuple[Streams, ...]:
        """The pairs of streams with a predicate of their own."""
        return tuple(streams for streams in self.selectivities if len(streams) == 2)

    def window_rows(self, stream: str) -> float:
        """How many rows of a stream are joinable at any time."""
        window = self.windows[stream]
        return float(window.rows if isinstance(window, RowWindow) else self.rates[stream] * window)

    def window_seconds(self, stream: str) -> float:
        """How long a row stays joinable; for ever where a row window gets no rows."""
        window = self.windows[stream]
        if not isinstance(window, RowWindow):
            return float(window)
        return window.rows / self.rates[stream] if self.rates[stream] else math.inf

    def selectivity(self, streams: Iterable[str], others: Iterable[str] = ()) -> float:
        """The share of combinations that match: within a set, or between two sets that match within."""
        left, right = frozenset(streams), frozenset(others)
        if not right:
            return self._within(left)
        separate = self._within(left) * self._within(right)
        return self._within(left | right) / separate if separate else 0.0

    def corrections(self) -> dict[Streams, float]:
        """By what factor the given sets of three and more streams differ from what their subsets predict."""
        factors: dict[Streams, float] = {}
        for streams in sorted((s for s in self.selectivities if len(s) > 2), key=len):
            predicted = self._edges_within(streams) * math.prod(c for s, c in factors.items() if s < streams)
            factors[streams] = self.selectivities[streams] / predicted if predicted else 0.0
        return factors

    def _within(self, streams: Streams) -> float:
        correction = math.prod(c for s, c in self.corrections().items() if s <= streams)
        return self._edges_within(streams) * correction

    def _edges_within(self, streams: Streams) -> float:
        edges = math.prod(self.selectivities[edge] for edge in self.edges if edge <= streams)
        shared = ((share, len(members & streams)) for members, share in self.classes.items())
        return edges * math.prod(share ** (count - 1) for share, count in shared if count > 1)


def _check_amount(value: float, what: str, unit: str, above_zero: bool = False) -> None:
    if not math.isfinite(value) or value < 0 or (above_zero and not value):
        least = "above zero" if above_zero else "zero or more"
        raise QueryError(f"{what} must be {least} {unit}; got {value}")


def _join_names(streams: Streams) -> str:
    return " and ".join(f"'{name}'" for name in sorted(streams))
