"""Build the directions of an mjoin from a join graph, for basic windows of some length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join
from weir.query.model import MAX_BASIC_WINDOWS
from weir.query.windows import RowWindow
from weir.shed.harvest_model import Direction, HopHarvest
from weir.stats.hop import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

# `score_ages` for one driver and one partner.
Scorer = Callable[[str, str], tuple[tuple[float, ...], float]]
# Gedik et al. 2007 advise at most 20 basic windows in a window; the default is half as many.
_BASIC_WINDOWS = 10


def build_directions(space: Space, plan: Join, score: Scorer) -> tuple[Direction, ...]:
    """The direction of every stream of an mjoin."""
    rates = space.graph.rates
    return tuple(
        Direction(stream, rates[stream], tuple(_build_hops(space, plan, i, score)))
        for i, stream in enumerate(plan.streams)
    )


def _build_hops(space: Space, plan: Join, driver: int, score: Scorer) -> Iterator[HopHarvest]:
    costs, names, node = space.graph.costs, plan.streams, str(plan)
    bound = space.mask([names[driver]])
    for i in plan.orders[driver]:
        partner = space.mask([names[i]])
        joined = bound | partner
        scores, lift = score(names[driver], names[i])
        selectivity = space.selectivity(bound, partner)
        # Without an index, all rows are compared, whatever their age. An index leaves the rows that match,
        # which have the ages of the matches, and some by chance, which have any age.
        narrowed, compared, per_match = space.compared_share(bound, partner), 1.0, 0.0
        if narrowed < 1:
            compared, per_match = max(0.0, narrowed - selectivity), 1.0
        yield HopHarvest(
            hop=Hop(names[driver], node, names[i]),
            rows=space.rows(partner),
            selectivity=lift * selectivity,
            scores=scores,
            search=space.probe_seconds(bound, partner),
            compare=costs.compare * space.rows(partner) * compared,
            match=costs.match + costs.compare * per_match + space.output_seconds(joined),
        )
        bound = joined


def score_ages(
    graph: JoinGraph, basic_window: float, lags: LagHistograms | None, driver: str, partner: str
) -> tuple[tuple[float, ...], float]:
    """p^k of each basic window (Gedik et al. 2007, section IV-B.1), and the lift of the driver coming last.

    Without lags, all ages are equally likely. With them, a stream whose rows mostly come before their
    partners has fewer matches in the windows than one whose rows come after, while a selectivity is that of
    both directions together: the lift is what one direction has of it.
    """
    mine, theirs = graph.window_seconds(driver), graph.window_seconds(partner)
    count = math.ceil(theirs / basic_window - 1e-9)
    if lags is None:
        return (1 / count,) * count, 1.0
    scores = lags.age_shares(driver, partner, basic_window * np.arange(count + 1, dtype=np.float64))
    before, after = lags.age_shares(driver, partner, np.array([-mine, 0.0, theirs])).tolist()
    chance = theirs / (mine + theirs)
    return tuple(scores.tolist()), after / (before + after) / chance if before + after else 1.0


def is_harvestable(plan: Join, windows: Mapping[str, object]) -> bool:
    """True for an mjoin over time windows, the only plan whose ages can be shed."""
    return plan.is_mjoin and not any(isinstance(windows[stream], RowWindow) for stream in plan.streams)


def check_harvestable(plan: Join, windows: Mapping[str, object]) -> None:
    """Refuse a plan that is not harvestable."""
    if not plan.is_mjoin:
        raise QueryError(
            f"ages and rows are shed in an mjoin, not in the tree {plan}; use plan='mjoin' or shed='jaqpot'"
        )
    if not is_harvestable(plan, windows):
        stream = next(stream for stream in plan.streams if isinstance(windows[stream], RowWindow))
        raise QueryError(
            f"stream '{stream}' has a window of rows, but ages are shed in windows of time; use shed='jaqpot'"
        )


def default_basic_window(windows: Iterable[float]) -> float:
    """The default length of basic windows: a tenth of the shortest window, longer if the longest needs it.

    A window shorter than that is one basic window.
    """
    lengths = list(windows)
    return max(min(lengths) / _BASIC_WINDOWS, max(lengths) / MAX_BASIC_WINDOWS)


def choose_basic_window(graph: JoinGraph, plan: Join, seconds: float | None = None) -> float:
    """The length of basic windows, as given or the default; refused if it cannot divide the windows."""
    check_harvestable(plan, graph.windows)
    windows = {stream: graph.window_seconds(stream) for stream in plan.streams}
    longest = max(windows, key=lambda stream: windows[stream])
    length = default_basic_window(windows.values()) if seconds is None else seconds
    if not 0 < length <= windows[longest]:
        raise QueryError(
            "a basic window must be above zero and no longer than the longest window, "
            f"{windows[longest]:g} seconds of stream '{longest}'; got {length:g}"
        )
    # With a tolerance: a thousandth of a window is rounded.
    if windows[longest] / length > MAX_BASIC_WINDOWS * (1 + 1e-9):
        raise QueryError(
            f"basic windows of {length:g} seconds would divide a window of {windows[longest]:g} seconds "
            f"into more than {MAX_BASIC_WINDOWS}; take longer ones"
        )
    return length
