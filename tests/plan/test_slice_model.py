"""Differential: the model of one state and that of all states at once agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from weir.plan.slice_model import model_all_states, model_state
from weir.stats.join_graph import JoinGraph

from .graphs import graphs


@settings(max_examples=30, deadline=None)
@given(graph=graphs())
def test_one_state_is_modelled_as_all_are(graph: JoinGraph) -> None:
    rows = np.linspace(1.0, 50.0, 1 << len(graph.streams))
    new, visited, rewritten = model_all_states(graph, rows)
    for mask in range(1, len(rows)):
        streams = tuple(name for i, name in enumerate(graph.streams) if mask >> i & 1)
        state = model_state(graph, streams, float(rows[mask]))
        assert (state.new_slices, state.visited_slices, state.rewritten_rows) == pytest.approx(
            (new[mask], visited[mask], rewritten[mask])
        )
        assert state.stored_rows >= rows[mask]
