"""The hops of a plan as a network: what the policies divide a budget over.

    stream a ──> [a probes b] ──┐
                                ├──> state (a b) ──> [(a b) probes c] ──> results
    stream b ──> [b probes a] ──┘         │
                                          v
    stream c ───────────────────> [c probes (a b)] ─────────────────────> results

A link in brackets makes some probes a second; each gives `productivity` partials (Mukherji et al. 2011,
equation 3), which the next link may probe with. An input path (section 4.1) leads from one stream to the
root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import accumulate
from operator import mul

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.stream_sets import Mask
from weir.plan.tree import Join, Leaf
from weir.query.windows import RowWindow, TimeWindow
from weir.stats.hop import Hop

# The probes a second that each link may make.
Grants = tuple[float, ...]
# How many rows each state holds, by the name of its node.
Sizes = Mapping[str, float]
# No probe is free, not even of an empty state.
_MIN_COST = 1e-12


@dataclass(frozen=True, slots=True)
class Link:
    """One hop: how many partials a probe gives, where its probes come from, and where its partials go.

    Probes come from a stream (`rate` rows a second) or from the links `sources`. Partials go to the next
    link of the same join, or into the state `feeds` and on from there; those of the last link are results.
    """

    hop: Hop
    productivity: float
    rate: float
    sources: tuple[int, ...]
    feeds: str | None
    is_last: bool
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class InputPath:
    """A stream's links to the root by their numbers (Mukherji et al. 2011, definition 3)."""

    stream: str
    rate: float
    links: Mapping[int, Link]

    @property
    def cardinalities(self) -> tuple[float, ...]:
        """φ_j: partials after hop j for each row of the stream (Mukherji et al. 2011, equation 5)."""
        return tuple(accumulate((link.productivity for link in self.links.values()), mul))

    @property
    def probes(self) -> tuple[float, ...]:
        """The probes of each hop for each row of the stream."""
        return (1.0, *self.cardinalities[:-1])

    @property
    def cost(self) -> float:
        """Cost of the probes all along the path per row of the stream (Mukherji et al. 2011, equation 6)."""
        return sum(link.cost * count for link, count in zip(self.links.values(), self.probes, strict=True))

    @property
    def productivity(self) -> float:
        """Results for what one probe anywhere along the path costs (Mukherji et al. 2011, equation 8)."""
        return self.cardinalities[-1] / self.cost

    def count_inserts(self, resources: float) -> dict[str, float]:
        """The rows that enter each state along the path when the path gets `resources`."""
        first = resources / self.cost
        fed = zip(self.links.values(), self.cardinalities, strict=True)
        return {link.feeds: first * partials for link, partials in fed if link.feeds is not None}


@dataclass(frozen=True, slots=True)
class HopNetwork:
    """All links, sources before the links they feed, and the path of every stream.

    `residences` are the seconds for which rows stay in states without row windows, whatever feeds these: the
    state's own window of time, or none under the joint window, where rows stay as long as in their own.
    """

    links: tuple[Link, ...]
    paths: tuple[InputPath, ...]
    sizes: Sizes
    residences: Mapping[str, float] = field(default_factory=dict)

    def divide(self, resources: Mapping[str, float]) -> Grants:
        """The probes of each link when streams' paths get `resources` (Mukherji et al. 2011, equation 7)."""
        grants = [0.0] * len(self.links)
        for path in self.paths:
            first = resources.get(path.stream, 0.0) / path.cost
            for i, probes in zip(path.links, path.probes, strict=True):
                grants[i] += first * probes
        return tuple(grants)

    def subtract(self, resources: Mapping[str, float]) -> HopNetwork:
        """The network with the rates that are left once each stream's path has used `resources`."""
        paths = tuple(
            replace(path, rate=max(0.0, path.rate - resources.get(path.stream, 0.0) / path.cost))
            for path in self.paths
        )
        return replace(self, paths=paths)

    @property
    def states(self) -> tuple[str, ...]:
        """Staleness susceptible states: only other joins fill them (Mukherji et al. 2011, section 4.2)."""
        return tuple(dict.fromkeys(link.feeds for link in self.links if link.feeds is not None))


class HopNetworkBuilder:
    """Builds the hop network of a plan from a join graph, for any sizes of its states.

    A probe costs 1, as in Mukherji et al. 2011; with `in_seconds`, what the graph's unit costs say of it
    and of its matches.
    """

    def __init__(self, space: Space, tree: Join, in_seconds: bool = False) -> None:
        if in_seconds and not any(asdict(space.graph.costs).values()):
            raise QueryError("a network in seconds needs unit costs above zero; take UnitCosts(probe=...)")
        self._space, self._tree, self._in_seconds = space, tree, in_seconds
        # Links to states of one row, without the cost of that row; and this cost.
        self._unsized: list[tuple[Link, float]] = []
        # For each stream, the links that its side drives at each join from its leaf to the root.
        self._path_links: dict[str, list[int]] = {stream: [] for stream in tree.streams}
        # Of every join by name: the number of links up to and including its own, and its last links.
        self._joins: dict[str, tuple[Join, int, tuple[int, ...]]] = {}
        for node in tree.inner():
            ends = tuple(self._add_links(node))
            self._joins[str(node)] = node, len(self._unsized), ends

    def network(self, sizes: Sizes | None = None) -> HopNetwork:
        """The network for states of given sizes, or of those they have when nothing is skipped."""
        graph, space, tree = self._space.graph, self._space, self._tree
        rows = dict(sizes or {stream: graph.window_rows(stream) for stream in tree.streams})
        links: list[Link] = []
        partials: list[float] = []
        for name, (node, count, ends) in self._joins.items():
            for link, row_cost in self._unsized[len(links) : count]:
                size = rows[link.hop.partner]
                cost = max(_MIN_COST, link.cost + row_cost * size)
                links.append(replace(link, productivity=link.productivity * size, cost=cost))
                probes = link.rate + sum(partials[i] for i in link.sources)
                partials.append(probes * links[-1].productivity)
            if node is not tree and name not in rows:
                inflow = sum(partials[i] for i in ends)
                rows[name] = _state_rows(node, inflow, space.rows(space.mask(node.streams)))
        numbered = ((stream, {i: links[i] for i in numbers}) for stream, numbers in self._path_links.items())
        paths = tuple(InputPath(stream, graph.rates[stream], own) for stream, own in numbered)
        windows = {name: node.window for name, (node, *_) in self._joins.items()}
        residences = {
            name: 0.0 if window is None else window.microseconds / 1e6
            for name, window in windows.items()
            if not isinstance(window, RowWindow)
        }
        return HopNetwork(tuple(links), paths, rows, residences)

    def resize(self, net: HopNetwork, inserts: Mapping[str, float]) -> HopNetwork:
        """The network with the state sizes that follow from some inserts a second."""
        space, sizes = self._space, dict(net.sizes)
        for name in net.states:
            node, *_ = self._joins[name]
            mask = space.mask(node.streams)
            full = space.rate(mask)
            share = min(1.0, inserts[name] / full) if full else 0.0
            sizes[name] = _state_rows(node, inserts[name], space.rows(mask) * share)
        return self.network(sizes)

    def _add_links(self, node: Join) -> Iterator[int]:
        """Append the links of one join, driver by driver; yield the number of each driver's last link."""
        space, links, is_root = self._space, self._unsized, node is self._tree
        me, names = str(node), [str(child) for child in node.inputs]
        masks = [space.mask(child.streams) for child in node.inputs]
        for child, name, bound, order in zip(node.inputs, names, masks, node.orders, strict=True):
            start, is_leaf = len(links), isinstance(child, Leaf)
            rate, sources = (space.graph.rates[name], ()) if is_leaf else (0.0, self._joins[name][2])
            for i in order:
                is_end, selectivity = i == order[-1], space.selectivity(bound, masks[i])
                feeds = me if is_end and not is_root else None
                link = Link(Hop(name, me, names[i]), selectivity, rate, sources, feeds, is_end and is_root)
                row_cost = 0.0
                if self._in_seconds:
                    link = replace(link, cost=space.probe_seconds(bound, masks[i]))
                    row_cost = _row_seconds(space, bound, masks[i], selectivity, feeds is not None)
                links.append((link, row_cost))
                bound |= masks[i]
                rate, sources = 0.0, (len(links) - 1,)
            for stream in child.streams:
                self._path_links[stream] += range(start, len(links))
            yield len(links) - 1


def _row_seconds(space: Space, bound: Mask, partner: Mask, selectivity: float, is_stored: bool) -> float:
    """Seconds of one probe for each row of the probed state; matches and their storage included."""
    costs, joined = space.graph.costs, bound | partner
    rate = space.rate(joined)
    storage = space.maintenance_seconds(joined) / rate if is_stored and rate else 0.0
    matches = (costs.match + space.output_seconds(joined) + storage) * selectivity
    return costs.compare * space.compared_share(bound, partner) + matches


def _state_rows(node: Join, inflow: float, joint: float) -> float:
    """The rows of a state: what its own window takes or, with a joint window, the `joint` rows alive."""
    if isinstance(node.window, RowWindow):
        return float(node.window.rows)
    if isinstance(node.window, TimeWindow):
        return inflow * node.window.microseconds / 1e6
    return joint
