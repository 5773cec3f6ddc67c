"""Sets of streams as bit masks, with the sizes and steps that every plan's cost is made of.

In steady state, with windows that hold jointly, `rows(V)` combinations of the streams V are alive, and
`rows(V) / W_v` of them begin each second with a row of `v` (Zhu et al. 2010, section 2: |S_AB| = λ_A λ_B σ_AB
W²). So the work of a hop is that of one step from the streams bound so far to the next input, times the
`turnover` of the input that drives: it does not matter for a step who drives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weir.errors import QueryError, unknown
from weir.plan.slice_model import SliceModel, slicing, slicings
from weir.stats.join_graph import JoinGraph

Mask = int
# Beyond, one array over all sets of streams would be larger than what it saves.
_MOST_TABULATED = 14
# Combinations of all windows' rows must still be a number.
_MOST_DIGITS = 250


@dataclass(frozen=True, slots=True)
class Orders:
    """One probing order per input of a join, and the seconds each second that its hops take."""

    orders: tuple[tuple[int, ...], ...]
    seconds: float


class Space:
    """One join graph, read-only; every answer is computed once, `ordered` remembers those about orders.

    `leads` names the stream by which the state of a set is cut, where that is not its first one.
    """

    def __init__(self, graph: JoinGraph, leads: Mapping[Mask, str] | None = None) -> None:
        self.graph = graph
        self.names = graph.streams
        self.everything: Mask = (1 << len(self.names)) - 1
        self.ordered: dict[tuple[Mask, ...], Orders] = {}
        self._bit = {name: 1 << i for i, name in enumerate(self.names)}
        self._classes = [(self.mask(members), share) for members, share in graph.classes.items()]
        self._near = [self._neighbours(name) for name in self.names]
        self._rows: dict[Mask, float] = {1 << i: graph.window_rows(s) for i, s in enumerate(self.names)}
        self._shares = {self.mask(edge): graph.selectivities[edge] for edge in graph.edges}
        self._narrowing = {self.mask(edge): share for edge, share in graph.narrowing.items()}
        self._corrections = [(self.mask(s), c) for s, c in graph.corrections().items()]
        self._turnover = [1.0 / graph.window_seconds(name) for name in self.names]
        self._leads = leads or {}
        self._slicings: dict[Mask, SliceModel] = {}

    def mask(self, streams: Iterable[str]) -> Mask:
        """The set of these streams."""
        try:
            return sum(self._bit[name] for name in streams)
        except KeyError as error:
            raise unknown("stream", error.args[0], self.names, where=" in the join graph") from None

    def streams(self, mask: Mask) -> tuple[str, ...]:
        """The streams of a set, in the graph's order."""
        return tuple(self.names[i] for i in bits(mask))

    def neighbours(self, mask: Mask) -> Mask:
        """The streams outside a set that an edge connects with it."""
        near = 0
        for i in bits(mask):
            near |= self._near[i]
        return near & ~mask

    def is_connected(self, mask: Mask) -> bool:
        """True if edges within the set connect all of it."""
        return self.reached(mask & -mask, mask) == mask

    @cached_property
    def connected_sets(self) -> int:
        """How many sets of streams are connected, by which searches grow; for graphs of few streams."""
        return int(self.connected.sum())

    @cached_property
    def connected(self) -> NDArray[np.bool_]:
        """Which sets of streams are connected, by mask; for graphs of few streams."""
        masks = np.arange(self.everything + 1)
        found = masks & -masks
        while True:
            grown = found.copy()
            for i, near in enumerate(self._near):
                grown |= np.where(found >> i & 1, near & masks, 0)
            if (grown == found).all():
                break
            found = grown
        return np.asarray((found == masks) & (masks > 0))

    def reached(self, start: Mask, within: Mask) -> Mask:
        """What edges within a set connect with its part `start`, that part included."""
        while grown := self.neighbours(start) & within:
            start |= grown
        return start

    def rows(self, mask: Mask) -> float:
        """How many combinations of these streams are alive: the size of their state."""
        found = self._rows.get(mask)
        if found is None:
            low = mask & -mask
            rest = mask ^ low
            found = self.rows(low) * self.rows(rest)
            for i in bits(rest & self._near[low.bit_length() - 1]):
                found *= self._shares.get(low | (1 << i), 1.0)
            for streams, share in self._classes:
                if streams & low and streams & rest:
                    found *= share
            for streams, correction in self._corrections:
                if streams & mask == streams and streams & low:
                    found *= correction
            self._rows[mask] = found
        return found

    def turnover(self, mask: Mask) -> float:
        """The share of a set's state that is new each second."""
        return sum(self._turnover[i] for i in bits(mask))

    def rate(self, mask: Mask) -> float:
        """The combinations of these streams that come into being each second."""
        return self.rows(mask) * self.turnover(mask)

    def slicing(self, mask: Mask) -> SliceModel:
        """How the state of a set is kept."""
        if mask not in self._slicings:
            streams = self.streams(mask)
            lead = self._leads.get(mask, streams[0])
            others = (name for name in streams if name != lead)
            self._slicings[mask] = slicing(self.graph, (lead, *others), self.rows(mask))
        return self._slicings[mask]

    def memory(self, mask: Mask) -> float:
        """What the state of a set takes: bytes, or rows where the graph knows no sizes."""
        return self.slicing(mask).kept * self._row_size(mask)

    def upkeep(self, mask: Mask) -> float:
        """Seconds each second to insert, rewrite and delete the rows of a set's state."""
        costs, state = self.graph.costs, self.slicing(mask)
        rows = self.rate(mask) * (costs.insert + costs.delete) + state.rewritten * costs.merge
        return rows + state.fresh * costs.cut / self.graph.batch

    def step(self, bound: Mask, partner: Mask) -> float:
        """Seconds to extend every alive combination of `bound` by `partner`; times turnover, per second."""
        costs = self.graph.costs
        rows = self.rows(bound)
        compared = rows * self.rows(partner) * self.narrowed(bound, partner) if costs.compare else 0.0
        whole = bound | partner
        probe = costs.probe + costs.seek * bool(self.by_value(bound, partner))
        probes = probe * self.slicing(partner).visited * rows
        return probes + costs.compare * compared + (costs.match + self.out(whole)) * self.rows(whole)

    def out(self, whole: Mask) -> float:
        """Seconds to put out one row of a set: only results are."""
        return self.graph.costs.out * self._columns(whole) if whole == self.everything else 0.0

    def fixed(self, inputs: Sequence[Mask]) -> float:
        """Seconds each second for the hops of one join, however few rows come.

        Every new slice of an input goes its way alone, and looks into slices of every other input.
        """
        states = [self.slicing(mask) for mask in inputs]
        hops = [self.hop(mask) for mask in inputs]
        seconds = sum(state.fresh * (sum(hops) - own) for state, own in zip(states, hops, strict=True))
        return seconds / self.graph.batch

    def hop(self, partner: Mask) -> float:
        """Seconds for one new slice to probe a state, however few rows it has."""
        costs = self.graph.costs
        slice_seconds = costs.visit + costs.gather * self._columns(partner)
        return costs.fixed + slice_seconds * self.slicing(partner).visited

    def between(
        self, inputs: Sequence[Mask]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Selectivity, narrowing and connection by edges, of every two of some sets that do not overlap."""
        member = np.array([[mask >> i & 1 for mask in inputs] for i in range(len(self.names))], float)
        selectivity, narrowing, linked = (member.T @ pairs @ member for pairs in self._pairs)
        return np.exp(selectivity), np.exp(narrowing), linked > 0

    def shared(self, bound: NDArray[np.int64], partners: NDArray[np.int64]) -> NDArray[np.float64]:
        """The selectivity of every step from a set to a partner by the classes both have a stream of."""
        found = np.ones((len(bound), len(partners)))
        for streams, share in self._classes:
            found[(bound & streams != 0)[:, None] & (partners & streams != 0)] *= share
        return found

    def by_value(self, bound: Any, partner: Any) -> Any:
        """True where a step searches a range of values: no key is shared, but some edge has an index.

        For one step, or for arrays of them.
        """
        keyed, indexed = bound != bound, bound != bound
        for streams, _ in self._classes:
            keyed = keyed | ((bound & streams != 0) & (partner & streams != 0))
        for edge in self._narrowing:
            indexed = indexed | ((bound & edge != 0) & (partner & edge != 0))
        return indexed & np.logical_not(keyed)

    def corrected(self, bound: NDArray[np.int64], partners: NDArray[np.int64]) -> NDArray[np.float64]:
        """How far edges that are not independent change each step from a set to a partner."""
        changed = np.ones((len(bound), len(partners)))
        for streams, correction in self._corrections:
            now = (bound[:, None] | partners) & streams == streams
            before = (bound & streams == streams)[:, None] | (partners & streams == streams)
            changed[now & ~before] *= correction
        return changed

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """`rows` of every set, by mask; for graphs of few streams."""
        rows = self._products([self.rows(1 << i) for i in range(len(self.names))], self._shares)
        rows *= self._class_table
        masks = np.arange(len(rows))
        for mask, correction in self._corrections:
            rows[masks & mask == mask] *= correction
        return rows

    @cached_property
    def state_tables(self) -> tuple[NDArray[np.float64], ...]:
        """By mask: new slices each second, slices a probe visits, `hop` and `upkeep`.

        Each set is led by its first stream, and what `hop` asks of columns is asked of connected sets only.
        """
        costs, batch = self.graph.costs, self.graph.batch
        fresh, visited, rewritten = slicings(self.graph, self.table)
        rate = self.table * self.turnover_table
        upkeep = rate * (costs.insert + costs.delete) + rewritten * costs.merge + fresh * costs.cut / batch
        columns = np.zeros(len(fresh))
        for mask in np.flatnonzero(self.connected).tolist():
            columns[mask] = self._columns(mask)
        hop = costs.fixed + (costs.visit + costs.gather * columns) * visited
        return fresh / batch, visited, hop, upkeep

    @cached_property
    def step_table(self) -> NDArray[np.float64]:
        """`step` from every set to every connected one, these in the order of their masks; to itself: nan."""
        costs, rows, narrowing = self.graph.costs, self.table, self.narrowing_table
        bound = np.arange(len(rows))[:, None]
        partners = np.flatnonzero(self.connected)[None, :]
        whole = bound | partners
        probe = costs.probe + costs.seek * self.by_value(bound, partners)
        found = np.asarray(probe * self.state_tables[1][partners] * rows[bound])
        if costs.compare:
            left = narrowing[whole] / (narrowing[bound] * narrowing[partners])
            found += costs.compare * rows[bound] * rows[partners] * left
        out = np.where(whole == self.everything, self.out(self.everything), 0.0)
        found += (costs.match + out) * rows[whole]
        found[(bound & partners != 0) | (bound == 0)] = np.nan
        return found

    @cached_property
    def narrowing_table(self) -> NDArray[np.float64]:
        """The narrowing of all edges within every set, by mask."""
        return self._products([1.0] * len(self.names), self._narrowing) * self._class_table

    @cached_property
    def _class_table(self) -> NDArray[np.float64]:
        """What classes bring to every set: each stream of a class after the first matches by its share."""
        masks = np.arange(1 << len(self.names))
        found = np.ones(len(masks))
        for streams, share in self._classes:
            found *= share ** np.maximum(np.bitwise_count(masks & streams) - 1.0, 0.0)
        return found

    @cached_property
    def turnover_table(self) -> NDArray[np.float64]:
        """`turnover` of every set, by mask."""
        sums = np.zeros(1)
        for turnover in self._turnover:
            sums = np.concatenate([sums, sums + turnover])
        return sums

    def _products(self, singles: Sequence[float], pairs: Mapping[Mask, float]) -> NDArray[np.float64]:
        """For every set, the product of what its streams and its edges bring."""
        if len(self.names) > _MOST_TABULATED:
            raise ValueError(f"no table for {len(self.names)} streams")
        products = np.ones(1)
        for i, single in enumerate(singles):
            edges = np.ones(1)
            for j in range(i):
                edges = np.concatenate([edges, edges * pairs.get((1 << i) | (1 << j), 1.0)])
            products = np.concatenate([products, products * edges * single])
        return products

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.float64], ...]:
        """Logarithms of selectivity and narrowing, and whether there is an edge, stream by stream."""
        count = len(self.names)
        pairs = tuple(np.zeros((count, count)) for _ in range(3))
        for matrix, shares in zip(pairs, (self._shares, self._narrowing), strict=False):
            for edge, share in shares.items():
                i, j = bits(edge)
                matrix[i, j] = matrix[j, i] = np.log(share)
        for i, near in enumerate(self._near):
            for j in bits(near):
                pairs[2][i, j] = 1.0
        return pairs

    def selectivity(self, bound: Mask, partner: Mask) -> float:
        """The share of combinations that match between two sets that match within."""
        found = 1.0
        for edge, share in self._shares.items():
            if edge & bound and edge & partner:
                found *= share
        for streams, share in self._classes:
            if streams & bound and streams & partner:
                found *= share
        for streams, correction in self._corrections:
            if streams & (bound | partner) == streams and streams & ~bound and streams & ~partner:
                found *= correction
        return found

    def narrowed(self, bound: Mask, partner: Mask) -> float:
        """The share of a partner's rows that indices leave to compare."""
        left = 1.0
        for edge, share in self._narrowing.items():
            if edge & bound and edge & partner:
                left *= share
        for streams, share in self._classes:
            if streams & bound and streams & partner:
                left *= share
        return left

    def _row_size(self, mask: Mask) -> float:
        size = self.graph.row_bytes
        return 1.0 if size is None else size(frozenset(self.streams(mask)))

    def _columns(self, mask: Mask) -> float:
        columns = self.graph.columns
        return 1.0 if columns is None else columns(frozenset(self.streams(mask)))

    def _neighbours(self, name: str) -> Mask:
        sets = [*self.graph.edges, *self.graph.classes]
        return self.mask({other for near in sets if name in near for other in near if other != name})


def bits(mask: Mask) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def check_plannable(graph: JoinGraph) -> None:
    """Refuse a graph that no plan can be costed for."""
    for name in graph.streams:
        if not graph.rates[name]:
            raise QueryError(f"stream '{name}' has a rate of zero; a plan needs rates above zero")
    for edge, share in (*graph.selectivities.items(), *graph.classes.items()):
        if not share:
            named = " and ".join(f"'{name}'" for name in sorted(edge))
            raise QueryError(f"the selectivity of {named} is zero; a plan needs one above zero, at most 1")
    if sum(math.log10(max(graph.window_rows(name), 1.0)) for name in graph.streams) > _MOST_DIGITS:
        raise QueryError("the windows of this join graph hold too many rows for any plan; shorten them")
    space = Space(graph)
    if not space.is_connected(space.everything):
        first = space.reached(1, space.everything)
        raise QueryError(
            f"the join graph falls apart: no edge connects {', '.join(space.streams(first))} with "
            f"{', '.join(space.streams(space.everything & ~first))}; add a predicate between them"
        )
