"""Random join graphs, and every join tree there is, for tests of the planner."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from hypothesis import strategies as st

from weir.plan.probing_orders import path_seconds
from weir.plan.space import Space
from weir.plan.stream_sets import StreamSets
from weir.plan.tree import Join, JTree, Leaf
from weir.stats.join_graph import JoinGraph
from weir.stats.unit_costs import UnitCosts

# Table 3 of Zhu et al. 2010, in seconds.
PAPER = UnitCosts.per_match(2.2e-6, 2.0e-7, 2.0e-7)

shares = st.floats(0.01, 1.0)
unit_costs = st.one_of(
    st.just(PAPER),
    st.builds(UnitCosts.per_match, st.just(1e-6), st.floats(0, 3e-6), st.floats(0, 3e-6)),
    st.just(UnitCosts(fixed=1e-4, probe=3e-7, compare=1e-7, match=4e-7, out=1e-7, insert=2e-7, delete=1e-7)),
)


@st.composite
def graphs(draw: st.DrawFn, least: int = 3, most: int = 5) -> JoinGraph:
    """A connected graph: a random tree and some more edges, which sometimes are not independent.

    States are sometimes cut into cells, by the time of their first stream.
    """
    names = tuple("abcdefghij"[: draw(st.integers(least, most))])
    edges = {
        frozenset({names[draw(st.integers(0, i - 1))], names[i]}): draw(shares) for i in range(1, len(names))
    }
    for i, name in enumerate(names):
        for other in names[:i]:
            if draw(st.booleans()):
                edges.setdefault(frozenset({name, other}), draw(shares))
    if draw(st.booleans()):
        edges[frozenset(names[:3])] = draw(shares)
    classes = {frozenset(names[-3:]): draw(shares)} if draw(st.booleans()) else {}
    return JoinGraph(
        streams=names,
        rates={name: draw(st.floats(1, 100)) for name in names},
        windows={name: draw(st.floats(0.5, 3)) for name in names},
        selectivities=edges,
        classes=classes,
        narrowing={edge: share for edge, share in edges.items() if len(edge) == 2 and draw(st.booleans())},
        costs=draw(unit_costs),
        basic={name: draw(st.floats(0.1, 1)) for name in names} if draw(st.booleans()) else {},
    )


def trees(names: tuple[str, ...]) -> Iterator[JTree]:
    """Every join tree of some streams, probing left to right; of each join the lowest stream leads."""
    if len(names) == 1:
        yield Leaf(names[0])
        return
    for parts in partitions(names):
        for inputs in product(*map(list, map(trees, sorted(parts)))):
            everyone = range(len(inputs))
            yield Join(inputs, tuple(tuple(i for i in everyone if i != driver) for driver in everyone))


def plans_of(graph: JoinGraph, cross: bool = False) -> list[Join]:
    """Every plan of a graph with its best probing orders; only `cross` ones join streams without an edge."""
    sets = StreamSets(graph)
    return [
        with_best_orders(graph, tree)
        for tree in trees(graph.streams)
        if isinstance(tree, Join)
        and (cross or all(sets.connected_table[sets.mask(node.streams)] for node in tree.inner()))
    ]


def partitions(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    """Every way to cut some names into two groups or more."""
    for groups in _groups(names):
        if len(groups) > 1:
            yield groups


def _groups(names: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    if not names:
        yield []
        return
    first, rest = names[0], names[1:]
    for groups in _groups(rest):
        yield [(first,), *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], (first, *group), *groups[i + 1 :]]


def with_best_orders(graph: JoinGraph, tree: Join) -> Join:
    """The same tree, each order found by trying all of them."""
    space = Space(graph)
    inputs = tuple(
        with_best_orders(graph, child) if isinstance(child, Join) else child for child in tree.inputs
    )
    masks = [space.mask(child.streams) for child in inputs]
    everyone = range(len(inputs))
    return Join(
        inputs,
        tuple(
            min(
                permutations([i for i in everyone if i != driver]),
                key=lambda order, driver=driver: path_seconds(space, masks, driver, order),
            )
            for driver in everyone
        ),
    )
