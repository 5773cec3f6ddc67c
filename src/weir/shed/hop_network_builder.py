"""Build the hop network of a plan from a join graph, for any sizes of its states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from weir.errors import QueryError
from weir.plan.space import Space
from weir.plan.stream_sets import Mask
from weir.plan.tree import Join, Leaf
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.hop_network import HopNetwork, Link, Path, Sizes
from weir.stats.hop import Hop

# No probe is free, not even of an empty state.
_MIN_COST = 1e-12


@dataclass(frozen=True, slots=True)
class _UnsizedLink:
    """A link of a state with one row; a probe costs `search`, and `per_row` for each row of the state."""

    of_one_row: Link
    search: float
    per_row: float

    def resize(self, sizes: Sizes) -> Link:
        link, size = self.of_one_row, sizes[self.of_one_row.hop.partner]
        cost = max(_MIN_COST, self.search + self.per_row * size)
        return Link(
            link.hop, link.productivity * size, link.rate, link.sources, link.feeds, link.is_last, cost
        )


class HopNetworkBuilder:
    """The links of a plan before its states have sizes.

    A probe costs 1, as in Mukherji et al. 2011; with `in_seconds`, what the graph's unit costs say of it
    and of its matches.
    """

    def __init__(self, space: Space, tree: Join, in_seconds: bool = False) -> None:
        if in_seconds and not any(asdict(space.graph.costs).values()):
            raise QueryError("a network in seconds needs unit costs above zero; take UnitCosts(probe=...)")
        self._space, self._tree = space, tree
        self._unsized: list[_UnsizedLink] = []
        # Of every join: its name, the number of links up to and including its own, and its last links.
        self._joins: list[tuple[Join, str, int, tuple[int, ...]]] = []
        ends: dict[str, tuple[int, ...]] = {}
        for node in tree.inner():
            # The links of a join go to the end of the list, those of one driver beside each other.
            ends[str(node)] = tuple(_add_links(space, in_seconds, node, node is tree, ends, self._unsized))
            self._joins.append((node, str(node), len(self._unsized), ends[str(node)]))
        self._path_links = _find_path_links(tree)
        self._row_window_states = frozenset(
            str(node) for node in tree.inner() if isinstance(node.window, RowWindow)
        )

    def network(self, sizes: Sizes | None = None) -> HopNetwork:
        """The network for states of given sizes, or of those they have when nothing is skipped."""
        graph, space = self._space.graph, self._space
        if sizes is not None:
            return self._assemble(sizes, [link.resize(sizes) for link in self._unsized])
        rows = {stream: graph.window_rows(stream) for stream in self._tree.streams}
        links: list[Link] = []
        partials: list[float] = []
        for node, name, count, ends in self._joins:
            links += [link.resize(rows) for link in self._unsized[len(links) : count]]
            for link in links[len(partials) :]:
                probes = link.rate + sum(partials[i] for i in link.sources)
                partials.append(probes * link.productivity)
            if node is not self._tree:
                inflow = sum(partials[i] for i in ends)
                rows[name] = _state_rows(node, inflow, space.rows(space.mask(node.streams)))
        return self._assemble(rows, links)

    def resize(self, net: HopNetwork, inserts: Mapping[str, float]) -> HopNetwork:
        """The network with the state sizes that follow from some inserts a second."""
        space, sizes = self._space, dict(net.sizes)
        for node, name, *_ in self._joins[:-1]:
            mask = space.mask(node.streams)
            full = space.rate(mask)
            share = min(1.0, inserts[name] / full) if full else 0.0
            sizes[name] = _state_rows(node, inserts[name], space.rows(mask) * share)
        return self.network(sizes)

    def _assemble(self, sizes: Sizes, links: Sequence[Link]) -> HopNetwork:
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
            for stream, numbers in self._path_links.items()
        )
        return HopNetwork(tuple(links), paths, dict(sizes), self._row_window_states)


def _add_links(
    space: Space,
    in_seconds: bool,
    node: Join,
    is_root: bool,
    ends: Mapping[str, tuple[int, ...]],
    links: list[_UnsizedLink],
) -> Iterator[int]:
    """Append the links of one join; yield the number of each driver's last link."""
    me, names = str(node), [str(child) for child in node.inputs]
    masks = [space.mask(child.streams) for child in node.inputs]
    for driver, order in enumerate(node.orders):
        child, bound = node.inputs[driver], masks[driver]
        rate = space.graph.rates[child.stream] if isinstance(child, Leaf) else 0.0
        sources = () if isinstance(child, Leaf) else ends[names[driver]]
        for step, i in enumerate(order):
            is_end, partner = step == len(order) - 1, masks[i]
            is_stored, selectivity = is_end and not is_root, space.selectivity(bound, partner)
            search, per_row = 1.0, 0.0
            if in_seconds:
                search, per_row = _seconds(space, bound, partner, selectivity, is_stored)
            hop, feeds = Hop(names[driver], me, names[i]), me if is_stored else None
            link = Link(hop, selectivity, rate, sources, feeds, is_end and is_root)
            links.append(_UnsizedLink(link, search, per_row))
            bound |= partner
            rate, sources = 0.0, (len(links) - 1,)
        yield len(links) - 1


def _seconds(
    space: Space, bound: Mask, partner: Mask, selectivity: float, is_stored: bool
) -> tuple[float, float]:
    """Seconds of one probe, and for each row of the probed state; matches and their storage included."""
    costs, joined = space.graph.costs, bound | partner
    rate = space.rate(joined)
    storage = space.maintenance_seconds(joined) / rate if is_stored and rate else 0.0
    matches = (costs.match + space.output_seconds(joined) + storage) * selectivity
    compared = costs.compare * space.compared_share(bound, partner)
    return space.probe_seconds(bound, partner), compared + matches


def _state_rows(node: Join, inflow: float, joint: float) -> float:
    """The rows of a state: what its own window takes or, with a joint window, the `joint` rows alive."""
    if isinstance(node.window, RowWindow):
        return float(node.window.rows)
    if isinstance(node.window, TimeWindow):
        return inflow * node.window.microseconds / 1e6
    return joint


def _find_path_links(tree: Join) -> dict[str, tuple[int, ...]]:
    """For each stream, the links that its side drives at each join from its leaf to the root."""
    links: dict[str, list[int]] = {stream: [] for stream in tree.streams}
    start = 0
    for node in tree.inner():
        for child, order in zip(node.inputs, node.orders, strict=True):
            for stream in child.streams:
                links[stream] += range(start, start + len(order))
            start += len(order)
    return {stream: tuple(numbers) for stream, numbers in links.items()}
