"""Cardinalities of sets of streams: how many combinations of rows match, for sets as bit masks.

In steady state, with joint windows, `rows(V)` combinations of the streams V are alive, and `rows(V) / W_v` of
them are completed each second by a row of `v` (Zhu et al. 2010, section 2: |S_AB| = λ_A λ_B σ_AB W²).

The plan search asks about most sets, many times. So answers are cached, and for graphs of few streams they
are also tabulated: arrays over all sets, indexed by mask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from math import prod
from operator import or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.errors import unknown_name
from weir.stats.join_graph import JoinGraph

Mask = int
Masks = NDArray[np.int64]
Floats = NDArray[np.float64]
# A table over the sets of more streams would take longer to make than it saves.
_MAX_TABULATED_STREAMS = 14


class StreamSets:
    """The sets of streams of a join graph: connections, sizes and selectivities.

    Pairs of streams in `products` count as connected, although no condition relates them.
    """

    def __init__(self, graph: JoinGraph, products: Iterable[Collection[str]] = ()) -> None:
        self.graph = graph
        self.names = graph.streams
        self.everything: Mask = (1 << len(self.names)) - 1
        self._bit = {name: 1 << i for i, name in enumerate(self.names)}
        self._classes = [(self.mask(members), share) for members, share in graph.classes.items()]
        connections = [*graph.edges, *graph.classes, *products]
        # The streams that an edge, a class or a product connects with each stream.
        self._near = [
            self.mask({other for streams in connections if name in streams for other in streams} - {name})
            for name in self.names
        ]
        self._rows: dict[Mask, float] = {1 << i: graph.window_rows(s) for i, s in enumerate(self.names)}
        self._edges = {self.mask(edge): graph.selectivities[edge] for edge in graph.edges}
        self._indexed = {self.mask(edge): share for edge, share in graph.narrowing.items()}
        self._conditions = [*self._edges.items(), *self._classes]
        self._indices = [*self._indexed.items(), *self._classes]
        self._corrections = [(self.mask(s), factor) for s, factor in graph.corrections().items()]
        self._renewal = [1.0 / graph.window_seconds(name) for name in self.names]
        self._renewal_rates: dict[Mask, float] = {}

    def mask(self, streams: Iterable[str]) -> Mask:
        """The set of these streams."""
        try:
            return sum(self._bit[name] for name in streams)
        except KeyError as error:
            raise unknown_name("stream", error.args[0], self.names, where=" in the join graph") from None

    def streams(self, mask: Mask) -> tuple[str, ...]:
        """The streams of a set, in the graph's order."""
        return tuple(self.names[i] for i in bits(mask))

    def neighbours(self, mask: Mask) -> Mask:
        """The streams outside a set that are connected with it."""
        return reduce(or_, (self._near[i] for i in bits(mask)), 0) & ~mask

    def component(self, start: Mask, within: Mask) -> Mask:
        """The part of the set `within` that is connected with `start`."""
        while grown := self.neighbours(start) & within:
            start |= grown
        return start

    def rows(self, mask: Mask) -> float:
        """How many combinations of these streams are alive: the size of their state."""
        rows = self._rows.get(mask)
        if rows is None:
            low = mask & -mask
            rest = mask ^ low
            rows = self._rows[mask] = self.rows(low) * self.rows(rest) * self.selectivity(low, rest)
        return rows

    def renewal_rate(self, mask: Mask) -> float:
        """The share of a set's state that is new each second: the sum of 1 / W over its streams."""
        if mask not in self._renewal_rates:
            self._renewal_rates[mask] = sum(self._renewal[i] for i in bits(mask))
        return self._renewal_rates[mask]

    def rate(self, mask: Mask) -> float:
        """Combinations of these streams that are completed each second."""
        return self.rows(mask) * self.renewal_rate(mask)

    def selectivity(self, bound: Mask, partner: Mask) -> float:
        """The share of combinations that match between two sets, each of which matches within."""
        selectivity = _multiply(self._conditions, bound, partner)
        for streams, factor in self._corrections:
            if streams & (bound | partner) == streams and streams & ~bound and streams & ~partner:
                selectivity *= factor
        return selectivity

    def compared_share(self, bound: Mask, partner: Mask) -> float:
        """The share of a partner's rows that indices leave to compare."""
        return _multiply(self._indices, bound, partner)

    def searches_range(self, bound: Any, partner: Any) -> Any:
        """True where a probe searches a range of values: no key is shared, but some edge has an index.

        For one pair of sets, or for arrays of them.
        """
        keyed, indexed = bound != bound, bound != bound
        for streams, _ in self._classes:
            keyed = keyed | ((bound & streams != 0) & (partner & streams != 0))
        for edge in self._indexed:
            indexed = indexed | ((bound & edge != 0) & (partner & edge != 0))
        return indexed & np.logical_not(keyed)

    def edge_matrices(self, inputs: Sequence[Mask]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """For every two of some disjoint sets, by edges alone: selectivity, share compared, is connected."""
        member = np.array([[mask >> i & 1 for mask in inputs] for i in range(len(self.names))], float)
        selectivity, compared, linked = (member.T @ pairs @ member for pairs in self._edge_logarithms)
        return np.exp(selectivity), np.exp(compared), linked > 0

    def class_matrix(self, bound: Masks, partners: Masks) -> Floats:
        """The selectivity, from each set to each partner, of the classes that both have a stream of."""
        selectivity = np.ones((len(bound), len(partners)))
        for streams, share in self._classes:
            selectivity[(bound & streams != 0)[:, None] & (partners & streams != 0)] *= share
        return selectivity

    def correction_matrix(self, bound: Masks, partners: Masks) -> Floats:
        """The corrections, for edges that are not independent, from each set to each partner."""
        factors = np.ones((len(bound), len(partners)))
        for streams, factor in self._corrections:
            complete = (bound[:, None] | partners) & streams == streams
            before = (bound & streams == streams)[:, None] | (partners & streams == streams)
            factors[complete & ~before] *= factor
        return factors

    @cached_property
    def connected_table(self) -> NDArray[np.bool_]:
        """Whether each set is connected."""
        masks = np.arange(self.everything + 1)
        component = masks & -masks
        while True:
            grown = component.copy()
            for i, near in enumerate(self._near):
                grown |= np.where(component >> i & 1, near & masks, 0)
            if (grown == component).all():
                break
            component = grown
        return np.asarray((component == masks) & (masks > 0))

    @cached_property
    def connected_count(self) -> int:
        """How many sets are connected: the work of a search grows with them."""
        return int(self.connected_table.sum())

    @cached_property
    def rows_table(self) -> Floats:
        """`rows` of every set."""
        streams = [(1 << i, self.rows(1 << i)) for i in range(len(self.names))]
        return self._products([*streams, *self._edges.items(), *self._corrections])

    @cached_property
    def compared_table(self) -> Floats:
        """The product, for every set, of the shares that the indices of its edges leave to compare."""
        return self._products(self._indexed.items())

    @cached_property
    def renewal_table(self) -> Floats:
        """`renewal_rate` of every set."""
        members = np.arange(self.everything + 1)[:, None] >> np.arange(len(self.names)) & 1
        return np.asarray(members @ np.array(self._renewal))

    def _products(self, factors: Iterable[tuple[Mask, float]]) -> Floats:
        """For every set, the product of the factors of all that is within it, and of its classes.

        Each stream of a class after the first counts.
        """
        if len(self.names) > _MAX_TABULATED_STREAMS:
            raise ValueError(f"no table for {len(self.names)} streams")
        masks = np.arange(self.everything + 1)
        products = np.ones(len(masks))
        for streams, factor in factors:
            products[masks & streams == streams] *= factor
        for streams, share in self._classes:
            products *= share ** np.maximum(np.bitwise_count(masks & streams) - 1.0, 0.0)
        return products

    @cached_property
    def _edge_logarithms(self) -> tuple[Floats, ...]:
        """By pairs of streams: logarithms of selectivity and share compared, and 1 where there is an edge."""
        count = len(self.names)
        pairs = tuple(np.zeros((count, count)) for _ in range(3))
        for matrix, shares in zip(pairs, (self._edges, self._indexed), strict=False):
            for edge, share in shares.items():
                i, j = bits(edge)
                matrix[i, j] = matrix[j, i] = np.log(share)
        for i, near in enumerate(self._near):
            for j in bits(near):
                pairs[2][i, j] = 1.0
        return pairs


def _multiply(shares: Iterable[tuple[Mask, float]], bound: Mask, partner: Mask) -> float:
    """The product of the shares of the sets that have a stream on both sides."""
    return prod((share for streams, share in shares if streams & bound and streams & partner), start=1.0)


def bits(mask: Mask) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    return (i for i in range(mask.bit_length()) if mask >> i & 1)
