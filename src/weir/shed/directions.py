"""Window harvesting (Gedik et al. 2007, section IV): which age ranges a direction of an mjoin probes.

Every window is divided into logical basic windows, each a range of ages. A direction is the path of one
stream through the mjoin; at each of its hops it looks into so many ranges of the partner's window, the
likeliest first. A setting says how many; what it gives and costs is a sum over the directions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.tree import Join, Leaf
from weir.query.model import MOST_BASIC_WINDOWS
from weir.query.windows import RowWindow
from weir.shed.harvest_moves import Moves
from weir.stats.batch import Hop
from weir.stats.join_graph import JoinGraph
from weir.stats.lag_histogram import LagHistograms

Floats = NDArray[np.float64]
# How many ranges each hop looks into, direction by direction.
Setting = tuple[tuple[int, ...], ...]
# Of a driver and a partner: the `scores` of ages.
Scored = Callable[[str, str], tuple[tuple[float, ...], float]]
# Gedik et al. 2007 advise at most 20 ranges in a window; the default is half as many.
RANGES = 10


@dataclass(frozen=True)
class HopMenu:
    """One hop of a direction: the partner's window, range by range.

    `scores[k]` is how likely a result's partner has an age in range k. Of the whole window, `search` is what
    a probe pays to find its candidates and `compare` to compare them; `match` is paid for each match.
    """

    hop: Hop
    rows: float
    selectivity: float
    scores: tuple[float, ...]
    search: float = 0.0
    compare: float = 0.0
    match: float = 0.0

    @cached_property
    def ranking(self) -> tuple[int, ...]:
        """The ranges, the likeliest first; of equal ones the youngest."""
        return tuple(np.argsort(-np.asarray(self.scores), kind="stable").tolist())

    @cached_property
    def yields(self) -> Floats:
        """P for 0, 1, .. ranges: their share of the window's matches (Gedik et al. 2007, section IV-C)."""
        scores = np.asarray(self.scores)[list(self.ranking)]
        whole = scores.sum()
        shares = scores / whole if whole else np.full(len(scores), 1 / len(scores))
        return np.concatenate(([0.0], np.cumsum(shares)))

    @property
    def gives(self) -> Floats:
        """Partials for each probe into 0, 1, .. ranges: P σ S."""
        return self.yields * self.selectivity * self.rows

    @property
    def takes(self) -> Floats:
        """What each probe into 0, 1, .. ranges costs; Gedik et al. 2007 count comparisons alone, z S."""
        looked = np.linspace(0.0, 1.0, len(self.scores) + 1)
        return (self.search + self.compare) * looked + self.match * self.gives


@dataclass(frozen=True)
class Direction:
    """The hops that the rows of one stream go through, `rate` of them a second."""

    stream: str
    rate: float
    looks: tuple[HopMenu, ...]

    @cached_property
    def menus(self) -> tuple[tuple[list[float], list[float]], ...]:
        """Of each hop, what a probe gives and takes for 0, 1, .. ranges."""
        return tuple((look.gives.tolist(), look.takes.tolist()) for look in self.looks)

    @cached_property
    def most(self) -> tuple[int, ...]:
        """All ranges of every hop."""
        return tuple(len(look.scores) for look in self.looks)

    @cached_property
    def moves(self) -> Moves:
        """The steps that searches for a setting take."""
        return Moves(self.rate, self.menus)

    def worth(self, taken: Sequence[int]) -> tuple[float, float]:
        """Results and cost each second: λ_i N_(i,m) and λ_i C_i (Gedik et al. 2007, section IV-C)."""
        return self.moves.worth(tuple(taken))


def output(found: Sequence[Direction], setting: Setting) -> float:
    """O: the results each second of a setting."""
    return sum(one.worth(taken)[0] for one, taken in zip(found, setting, strict=True))


def cost(found: Sequence[Direction], setting: Setting) -> float:
    """C: what a setting costs each second."""
    return sum(one.worth(taken)[1] for one, taken in zip(found, setting, strict=True))


def everything(found: Sequence[Direction]) -> Setting:
    """The setting that skips nothing."""
    return tuple(one.most for one in found)


def directions(
    graph: JoinGraph,
    plan: Join,
    basic: float | None = None,
    correlations: LagHistograms | None = None,
    measured: Mapping[Hop, float] | None = None,
) -> tuple[Direction, ...]:
    """The directions of an mjoin, for basic windows of so many seconds; else `usual_basic`.

    Without correlations, all ages are equally likely. With them, a stream whose rows mostly come before their
    partners has fewer matches in the windows than one whose rows come after: a selectivity is that of both
    directions together. What was `measured` of a hop itself, over all ages, goes before that.
    """
    every = basic_window(graph, plan, basic)
    return directions_in(Space(graph), plan, partial(scores, graph, every, correlations), measured)


def directions_in(
    space: Space, plan: Join, scored: Scored, measured: Mapping[Hop, float] | None = None
) -> tuple[Direction, ...]:
    """The same for what is known of every two streams: the `scores` of ages."""
    rates = space.graph.rates
    return tuple(
        Direction(stream, rates[stream], tuple(_looks(space, plan, i, scored, measured or {})))
        for i, stream in enumerate(plan.streams)
    )


def check_harvestable(plan: Join, windows: Mapping[str, object]) -> None:
    """Refuse all but an mjoin over windows of time, whose ages can be looked at one by one."""
    if any(not isinstance(child, Leaf) for child in plan.inputs):
        raise QueryError(
            f"ages and rows are shed in an mjoin, not in the tree {plan}; use plan='mjoin' or shed='jaqpot'"
        )
    for stream in plan.streams:
        if isinstance(windows[stream], RowWindow):
            raise QueryError(
                f"stream '{stream}' has a window of rows, but ages are shed in windows of time; "
                "use shed='jaqpot'"
            )


def is_harvestable(graph: JoinGraph, plan: Join) -> bool:
    """True for an mjoin over windows of time."""
    rows = any(isinstance(graph.windows[stream], RowWindow) for stream in plan.streams)
    return not rows and all(isinstance(child, Leaf) for child in plan.inputs)


def usual_basic(windows: Iterable[float]) -> float:
    """The length of basic windows if nobody says: a tenth of the shortest window, if the others allow it.

    A window that is shorter is one range.
    """
    lengths = list(windows)
    return max(min(lengths) / RANGES, max(lengths) / MOST_BASIC_WINDOWS)


def basic_window(graph: JoinGraph, plan: Join, basic: float | None = None) -> float:
    """The length of basic windows in seconds; refused where windows cannot be divided by it."""
    check_harvestable(plan, graph.windows)
    windows = {stream: graph.window_seconds(stream) for stream in plan.streams}
    longest = max(windows, key=lambda stream: windows[stream])
    every = usual_basic(windows.values()) if basic is None else basic
    if not 0 < every <= windows[longest]:
        raise QueryError(
            "a basic window must be above zero and no longer than the longest window, "
            f"{windows[longest]:g} seconds of stream '{longest}'; got {every:g}"
        )
    # A hair, since a thousandth is not a number.
    if windows[longest] / every > MOST_BASIC_WINDOWS * (1 + 1e-9):
        raise QueryError(
            f"basic windows of {every:g} seconds would divide a window of {windows[longest]:g} seconds "
            f"into more than {MOST_BASIC_WINDOWS}; take longer ones"
        )
    return every


def _looks(
    space: Space,
    plan: Join,
    driver: int,
    scored: Scored,
    measured: Mapping[Hop, float],
) -> Iterator[HopMenu]:
    graph, names, node = space.graph, plan.streams, str(plan)
    bound = space.mask([names[driver]])
    for i in plan.orders[driver]:
        partner = space.mask([names[i]])
        whole = bound | partner
        likely, weight = scored(names[driver], names[i])
        hop = Hop(names[driver], node, names[i])
        matching = space.selectivity(bound, partner)
        index = graph.costs.probe + graph.costs.seek * bool(space.by_value(bound, partner))
        by_chance, by_match = _compared(space.narrowed(bound, partner), matching)
        yield HopMenu(
            hop=hop,
            rows=space.rows(partner),
            selectivity=measured.get(hop, weight * matching),
            scores=likely,
            search=index * space.slicing(partner).visited,
            compare=graph.costs.compare * space.rows(partner) * by_chance,
            match=graph.costs.match + graph.costs.compare * by_match + space.out(whole),
        )
        bound = whole


def _compared(narrowed: float, matching: float) -> tuple[float, float]:
    """The share of a window's rows that are compared whatever their age, and the comparisons for each match.

    Without an index, all rows are candidates. An index leaves those that match, whose ages are those of the
    matches, and some by chance, whose ages are any.
    """
    if narrowed >= 1:
        return 1.0, 0.0
    return max(0.0, narrowed - matching), 1.0


def scores(
    graph: JoinGraph, every: float, correlations: LagHistograms | None, driver: str, partner: str
) -> tuple[tuple[float, ...], float]:
    """p^k of each range (Gedik et al. 2007, section IV-B.1), and the lift of the driver coming last."""
    mine, theirs = graph.window_seconds(driver), graph.window_seconds(partner)
    count = math.ceil(theirs / every - 1e-9)
    if correlations is None:
        return (1 / count,) * count, 1.0
    likely = correlations.ages(driver, partner, every * np.arange(count + 1, dtype=np.float64))
    before, after = correlations.ages(driver, partner, np.array([-mine, 0.0, theirs])).tolist()
    chance = theirs / (mine + theirs)
    return tuple(likely.tolist()), after / (before + after) / chance if before + after else 1.0
