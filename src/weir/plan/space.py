"""The search space of plans: what every hop and every state costs, for sets of streams as bit masks.

The work of a hop is `extension_seconds(bound, partner)`, to extend every alive combination of the streams
bound so far by the next input, times the `renewal_rate` of the input that drives: which input drives does not
matter for an extension.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weir.errors import QueryError
from weir.plan.slice_model import SliceModel, model_all_states, model_state
from weir.plan.stream_sets import Floats, Mask, StreamSets
from weir.stats.join_graph import JoinGraph

# Products of the rows of all windows must stay within the range of a float.
_MAX_DIGITS = 250


@dataclass(frozen=True, slots=True)
class ProbingOrders:
    """One probing order per input of a join, and the CPU seconds per second of all its hops."""

    orders: tuple[tuple[int, ...], ...]
    seconds: float


class Space(StreamSets):
    """Costs of the hops and states of all plans of a join graph; the graph does not change.

    `leads` names the stream by whose time a set's state is cut into slices, where that is not its first one.
    `products` are pairs of streams that plans may join although no condition connects them.
    """

    def __init__(
        self,
        graph: JoinGraph,
        leads: Mapping[Mask, str] | None = None,
        products: Iterable[Collection[str]] = (),
    ) -> None:
        super().__init__(graph, products)
        self.orders_cache: dict[tuple[Mask, ...], ProbingOrders] = {}
        self._leads = leads or {}
        self._models: dict[Mask, SliceModel] = {}
        self._memory: dict[Mask, float] = {}
        self._hop_overheads: dict[Mask, float] = {}

    def slice_model(self, mask: Mask) -> SliceModel:
        """How the state of a set is stored."""
        if mask not in self._models:
            streams = self.streams(mask)
            lead = self._leads.get(mask, streams[0])
            others = (name for name in streams if name != lead)
            self._models[mask] = model_state(self.graph, (lead, *others), self.rows(mask))
        return self._models[mask]

    def memory(self, mask: Mask) -> float:
        """Memory of a set's state: bytes, or rows where the graph knows no sizes."""
        if mask not in self._memory:
            size = self.graph.row_bytes
            row_size = 1.0 if size is None else size(frozenset(self.streams(mask)))
            self._memory[mask] = self.slice_model(mask).stored_rows * row_size
        return self._memory[mask]

    def maintenance_seconds(self, mask: Mask) -> float:
        """Seconds per second to insert, rewrite and delete the rows of a set's state."""
        costs, state = self.graph.costs, self.slice_model(mask)
        rows = self.rate(mask) * (costs.insert + costs.delete) + state.rewritten_rows * costs.merge
        return rows + state.new_slices * costs.cut / self.graph.batch

    def extension_seconds(self, bound: Mask, partner: Mask) -> float:
        """Seconds to extend every alive combination of `bound` by `partner`."""
        costs, rows = self.graph.costs, self.rows(bound)
        compared = rows * self.rows(partner) * self.compared_share(bound, partner) if costs.compare else 0.0
        whole = bound | partner
        probes = self.probe_seconds(bound, partner) * rows
        matches = (costs.match + self.output_seconds(whole)) * self.rows(whole)
        return probes + costs.compare * compared + matches

    def probe_seconds(self, bound: Mask, partner: Mask) -> float:
        """Seconds to search the indices of a partner's slices once."""
        costs = self.graph.costs
        search = costs.probe + costs.seek * bool(self.searches_range(bound, partner))
        return search * self.slice_model(partner).visited_slices

    def output_seconds(self, whole: Mask) -> float:
        """Seconds to emit one row of a set: zero unless it is a result."""
        return self.graph.costs.out * self._columns(whole) if whole == self.everything else 0.0

    def join_overhead(self, inputs: Sequence[Mask]) -> float:
        """Seconds per second that the hops of a join take, however few rows probe.

        Every new slice of an input makes a hop to the slices of every other input.
        """
        states = [self.slice_model(mask) for mask in inputs]
        hops = [self.hop_overhead(mask) for mask in inputs]
        seconds = sum(state.new_slices * (sum(hops) - own) for state, own in zip(states, hops, strict=True))
        return seconds / self.graph.batch

    def hop_overhead(self, partner: Mask) -> float:
        """Seconds for one new slice to probe a state, however few rows it has."""
        if partner not in self._hop_overheads:
            costs = self.graph.costs
            slice_seconds = costs.visit + costs.gather * self._columns(partner)
            seconds = costs.fixed + slice_seconds * self.slice_model(partner).visited_slices
            self._hop_overheads[partner] = seconds
        return self._hop_overheads[partner]

    @cached_property
    def state_tables(self) -> tuple[Floats, ...]:
        """By mask: new slices per second, slices that a probe visits, `hop_overhead`, `maintenance_seconds`.

        Each set is led by its first stream. Overheads are those of connected sets only: columns are costly to
        count.
        """
        costs, batch = self.graph.costs, self.graph.batch
        new_slices, visited, rewritten = model_all_states(self.graph, self.rows_table)
        rate = self.rows_table * self.renewal_table
        maintenance = rate * (costs.insert + costs.delete) + rewritten * costs.merge
        maintenance += new_slices * costs.cut / batch
        columns = np.zeros(len(new_slices))
        for mask in np.flatnonzero(self.connected_table).tolist():
            columns[mask] = self._columns(mask)
        hop_overhead = costs.fixed + (costs.visit + costs.gather * columns) * visited
        return new_slices / batch, visited, hop_overhead, maintenance

    @cached_property
    def extension_table(self) -> Floats:
        """`extension_seconds` from every set to every connected one, by mask; nan if they overlap."""
        costs, rows, compared = self.graph.costs, self.rows_table, self.compared_table
        bound = np.arange(len(rows))[:, None]
        partners = np.flatnonzero(self.connected_table)[None, :]
        whole = bound | partners
        probe = costs.probe + costs.seek * self.searches_range(bound, partners)
        seconds = np.asarray(probe * self.state_tables[1][partners] * rows[bound])
        if costs.compare:
            left = compared[whole] / (compared[bound] * compared[partners])
            seconds += costs.compare * rows[bound] * rows[partners] * left
        out = np.where(whole == self.everything, self.output_seconds(self.everything), 0.0)
        seconds += (costs.match + out) * rows[whole]
        seconds[(bound & partners != 0) | (bound == 0)] = np.nan
        return seconds

    def _columns(self, mask: Mask) -> float:
        columns = self.graph.columns
        return 1.0 if columns is None else columns(frozenset(self.streams(mask)))


def check_plannable(graph: JoinGraph) -> None:
    """Refuse a graph for which no plan can be costed."""
    for name in graph.streams:
        if not graph.rates[name]:
            raise QueryError(f"stream '{name}' has a rate of zero; a plan needs rates above zero")
    for edge, share in (*graph.selectivities.items(), *graph.classes.items()):
        if not share:
            named = " and ".join(f"'{name}'" for name in sorted(edge))
            raise QueryError(f"the selectivity of {named} is zero; a plan needs one above zero, at most 1")
    if sum(math.log10(max(graph.window_rows(name), 1.0)) for name in graph.streams) > _MAX_DIGITS:
        raise QueryError("the windows of this join graph hold too many rows for any plan; shorten them")
    sets = StreamSets(graph)
    first = sets.component(1, sets.everything)
    if first != sets.everything:
        raise QueryError(
            f"the join graph falls apart: no edge connects {', '.join(sets.streams(first))} with "
            f"{', '.join(sets.streams(sets.everything & ~first))}; add a predicate between them"
        )
