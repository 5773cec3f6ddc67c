"""The hops of a plan as a network: rows flow in at the leaves, partials along the hops, results out on top.

A hop makes some probes a second and each gives `productivity` partials (Mukherji et al. 2011, equation 3),
which the next hop may probe with, or not. Input paths (Mukherji et al. 2011, section 4.1) are the ways
through this network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from operator import mul

from weir.errors import QueryError
from weir.plan.space import Mask, Space
from weir.plan.tree import Join, Leaf
from weir.query.windows import RowWindow, TimeWindow
from weir.stats.batch import Hop
from weir.stats.join_graph import JoinGraph

# No probe is free, not even of an empty state.
_LEAST = 1e-12
# How many rows each state holds, by the name of its node.
Sizes = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Link:
    """One hop: what a probe finds, where its probes come from, and where its partials go.

    Probes come from a stream (`rate` rows a second) or from the links `sources`; partials go to the next
    link of the same join, else into the state `feeds`, and on from there; at the root they are results.
    """

    hop: Hop
    productivity: float
    selectivity: float
    rate: float
    sources: tuple[int, ...]
    feeds: str | None
    is_last: bool
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Path:
    """A stream's links to the root (Mukherji et al. 2011, definition 3); each probe costs 1 or `costs`."""

    stream: str
    rate: float
    links: tuple[int, ...]
    productivities: tuple[float, ...]
    feeds: tuple[str | None, ...]
    costs: tuple[float, ...] = ()

    @property
    def cardinalities(self) -> tuple[float, ...]:
        """φ_j: partials after hop j for each row of the stream (Mukherji et al. 2011, equation 5)."""
        return tuple(accumulate(self.productivities, mul))

    @property
    def cost(self) -> float:
        """Cost of the probes all along the path per row of the stream (Mukherji et al. 2011, equation 6)."""
        probes = (1.0, *self.cardinalities[:-1])
        return sum(c * p for c, p in zip(self.costs, probes, strict=True)) if self.costs else sum(probes)

    @property
    def productivity(self) -> float:
        """Results for what one probe anywhere along the path costs (Mukherji et al. 2011, equation 8)."""
        return self.cardinalities[-1] / self.cost

    def divided(self, resources: float) -> tuple[float, ...]:
        """The probes of each hop when the path gets `resources` (Mukherji et al. 2011, equation 7)."""
        first = resources / self.cost
        return (first, *(first * partials for partials in self.cardinalities[:-1]))

    def inserted(self, resources: float) -> dict[str, float]:
        """The rows that enter each state along the path, when it gets so much of the budget."""
        first = resources / self.cost
        fed = zip(self.feeds, self.cardinalities, strict=True)
        return {state: first * partials for state, partials in fed if state is not None}


@dataclass(frozen=True, slots=True)
class HopNetwork:
    """All links, sources before what they feed, and the path of every stream.

    `counted` are the intermediate states whose windows count rows: only these hold old rows when they starve.
    """

    links: tuple[Link, ...]
    paths: tuple[Path, ...]
    sizes: Sizes
    counted: frozenset[str] = frozenset()

    def without(self, resources: Mapping[str, float]) -> HopNetwork:
        """What is left of the streams when their paths have got so much already."""
        paths = tuple(
            replace(path, rate=max(0.0, path.rate - resources.get(path.stream, 0.0) / path.cost))
            for path in self.paths
        )
        return replace(self, paths=paths)

    @property
    def selectivities(self) -> dict[str, list[float]]:
        """Of every join, the selectivities along its first input's hops."""
        found: dict[str, list[float]] = {}
        drivers: dict[str, str] = {}
        for link in self.links:
            if drivers.setdefault(link.hop.node, link.hop.driver) == link.hop.driver:
                found.setdefault(link.hop.node, []).append(link.selectivity)
        return found

    @property
    def states(self) -> tuple[str, ...]:
        """Staleness susceptible states: only other joins fill them (Mukherji et al. 2011, section 4.2)."""
        return tuple(dict.fromkeys(link.feeds for link in self.links if link.feeds is not None))


def network(graph: JoinGraph, tree: Join, sizes: Sizes | None = None, in_seconds: bool = False) -> HopNetwork:
    """The network of a plan, for states of given sizes or of those they have when nothing is skipped.

    A probe costs 1, as in Mukherji et al. 2011, or with `in_seconds` what the graph's unit costs say of it
    and of what it finds.
    """
    return Wiring(Space(graph), tree, in_seconds).network(sizes)


@dataclass(frozen=True, slots=True)
class _Wire:
    """What of a link does not hang on the size of the state `partner` that it probes.

    A probe costs `search` and, for each row there, `each`.
    """

    hop: Hop
    selectivity: float
    rate: float
    sources: tuple[int, ...]
    feeds: str | None
    is_last: bool
    search: float
    each: float

    def link(self, size: float) -> Link:
        return Link(
            self.hop,
            self.selectivity * size,
            self.selectivity,
            self.rate,
            self.sources,
            self.feeds,
            self.is_last,
            max(_LEAST, self.search + self.each * size),
        )


class Wiring:
    """The links of a plan before its states have sizes, from which networks for any sizes are made."""

    def __init__(self, space: Space, tree: Join, in_seconds: bool = False) -> None:
        if in_seconds and not any(asdict(space.graph.costs).values()):
            raise QueryError(
                "a network in seconds needs unit costs above zero; take weir.stats.Costs(probe=...)"
            )
        self._space, self._tree = space, tree
        self._wires: list[_Wire] = []
        # Of every join: its name, how many links end with its last one, and those its partials leave by.
        self._joins: list[tuple[Join, str, int, tuple[int, ...]]] = []
        ends: dict[str, tuple[int, ...]] = {}
        for node in tree.inner():
            # The links of a join go to the end of the list, those of one driver beside each other.
            ends[str(node)] = tuple(_add(space, in_seconds, node, node is tree, ends, self._wires))
            self._joins.append((node, str(node), len(self._wires), ends[str(node)]))
        self._ways = _ways(tree)
        self._counted = frozenset(str(node) for node in tree.inner() if isinstance(node.window, RowWindow))

    def network(self, sizes: Sizes | None = None) -> HopNetwork:
        """The network for states of given sizes, or of those they have when nothing is skipped."""
        graph, space = self._space.graph, self._space
        if sizes is not None:
            return self._made(sizes, [wire.link(sizes[wire.hop.partner]) for wire in self._wires])
        held = {stream: graph.window_rows(stream) for stream in self._tree.streams}
        links: list[Link] = []
        whole: list[float] = []
        for node, name, count, ends in self._joins:
            links += [wire.link(held[wire.hop.partner]) for wire in self._wires[len(links) : count]]
            for link in links[len(whole) :]:
                probes = link.rate + sum(whole[i] for i in link.sources)
                whole.append(probes * link.productivity)
            if node is not self._tree:
                inflow = sum(whole[i] for i in ends)
                held[name] = _held(node, inflow, space.rows(space.mask(node.streams)))
        return self._made(held, links)

    def resized(self, net: HopNetwork, inserts: Mapping[str, float]) -> HopNetwork:
        """The network with the state sizes that belong to some inserts a second."""
        space, sizes = self._space, dict(net.sizes)
        for node, name, *_ in self._joins[:-1]:
            mask = space.mask(node.streams)
            full = space.rate(mask)
            share = min(1.0, inserts[name] / full) if full else 0.0
            sizes[name] = _held(node, inserts[name], space.rows(mask) * share)
        return self.network(sizes)

    def _made(self, sizes: Sizes, links: Sequence[Link]) -> HopNetwork:
        rates = self._space.graph.rates
        paths = tuple(
            Path(
                stream=stream,
                rate=rates[stream],
                links=numbers,
                productivities=tuple([links[i].productivity for i in numbers]),
                feeds=tuple([links[i].feeds for i in numbers]),
                costs=tuple([links[i].cost for i in numbers]),
            )
            for stream, numbers in self._ways.items()
        )
        return HopNetwork(tuple(links), paths, dict(sizes), self._counted)


def _add(
    space: Space,
    in_seconds: bool,
    node: Join,
    root: bool,
    ends: Mapping[str, tuple[int, ...]],
    wires: list[_Wire],
) -> Iterator[int]:
    """Add the links of one join; the numbers of those that its partials leave by."""
    me, names = str(node), [str(child) for child in node.inputs]
    streams = [space.mask(child.streams) for child in node.inputs]
    for driver, order in enumerate(node.orders):
        child, bound = node.inputs[driver], streams[driver]
        rate = space.graph.rates[child.stream] if isinstance(child, Leaf) else 0.0
        sources = () if isinstance(child, Leaf) else ends[names[driver]]
        for place, i in enumerate(order):
            last, others = place == len(order) - 1, streams[i]
            stored, selectivity = last and not root, space.selectivity(bound, others)
            search, each = _seconds(space, bound, others, selectivity, stored) if in_seconds else (1.0, 0.0)
            wires.append(
                _Wire(
                    hop=Hop(names[driver], me, names[i]),
                    selectivity=selectivity,
                    rate=rate,
                    sources=sources,
                    feeds=me if stored else None,
                    is_last=last and root,
                    search=search,
                    each=each,
                )
            )
            bound |= others
            rate, sources = 0.0, (len(wires) - 1,)
        yield len(wires) - 1


def _seconds(
    space: Space, bound: Mask, partner: Mask, selectivity: float, stored: bool
) -> tuple[float, float]:
    """Seconds for one probe of a state, and for each of its rows, all that it finds and stores counted."""
    costs, whole = space.graph.costs, bound | partner
    index = costs.probe + costs.seek * bool(space.by_value(bound, partner))
    kept = space.upkeep(whole) / space.rate(whole) if stored and space.rate(whole) else 0.0
    found = (costs.match + space.out(whole) + kept) * selectivity
    return index * space.slicing(partner).visited, costs.compare * space.narrowed(bound, partner) + found


def _held(node: Join, inflow: float, joint: float) -> float:
    """What a state holds: all that a joint window keeps alive, or what its own window takes."""
    if isinstance(node.window, RowWindow):
        return float(node.window.rows)
    if isinstance(node.window, TimeWindow):
        return inflow * node.window.microseconds / 1e6
    return joint


def _ways(tree: Join) -> dict[str, tuple[int, ...]]:
    """Up from every leaf: at each join above it, the links that its side drives."""
    found: dict[str, list[int]] = {stream: [] for stream in tree.streams}
    place = 0
    for node in tree.inner():
        for child, order in zip(node.inputs, node.orders, strict=True):
            for stream in child.streams:
                found[stream] += range(place, place + len(order))
            place += len(order)
    return {stream: tuple(numbers) for stream, numbers in found.items()}
