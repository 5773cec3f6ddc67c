"""A query and a plan made ready to run: what every state holds, and every hop of every path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.expr.nodes import Call, Expr, streams_of, walk
from weir.kernel.access_path import Access, KeyAccess, choose
from weir.kernel.index import ByTime, Spec
from weir.kernel.keys import always_exact
from weir.kernel.state_schema import LINE, StateSchema, layouts, line_layout, member, time_name, window_of
from weir.plan.tree import Join, check, is_composed
from weir.query.model import Query
from weir.query.predicate import AttributeClass, Conjunct, Cosine, Equality
from weir.query.windows import TimeWindow
from weir.stats.batch import Hop

# The largest allowed difference (later - earlier) between two stored times.
Reaches = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class TimeReach:
    """The range a partner's time must lie in: above each `time - back`, below each `time + ahead`."""

    name: str
    lows: tuple[tuple[str, int], ...]
    highs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class HalfJoinPlan:
    """One half-way join: where it looks, how it finds candidates, and what they must still fulfil."""

    hop: Hop
    partner: StateSchema
    access: Access
    lead: TimeReach
    others: tuple[TimeReach, ...]
    residual: tuple[Expr, ...]
    costly: tuple[Expr, ...]
    verify: tuple[tuple[int, Expr], ...]
    in_line: bool


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One join: the path of each input through it, and what its output looks like (None: the root)."""

    node: str
    inputs: tuple[str, ...]
    paths: tuple[tuple[HalfJoinPlan, ...], ...]
    output: StateSchema | None


@dataclass(frozen=True)
class PhysicalPlan:
    """All that running a plan needs to know; joins stand inputs first, the root last.

    Joins `beside` the plan are kept up with its own, for another plan to go on with.
    """

    query: Query
    plan: Join
    layouts: Mapping[str, StateSchema]
    nodes: tuple[NodePlan, ...]
    sorts: Mapping[str, Spec]
    beside: frozenset[str] = frozenset()

    def layout_of(self, node: str) -> StateSchema | None:
        """What the slices of a node hold, or of the line of a stream with a row window."""
        leaf, is_line, _ = node.partition(LINE)
        layout = self.layouts.get(leaf)
        return line_layout(layout) if is_line and layout is not None else layout

    @property
    def root(self) -> NodePlan:
        """The join whose output is the result."""
        return self.nodes[-1]

    def node(self, name: str) -> NodePlan:
        """The join of that name."""
        return next(node for node in self.nodes if node.node == name)


def compile_plan(query: Query, plan: Join, beside: Sequence[Join] = ()) -> PhysicalPlan:
    """Make a plan ready to run for a query; joins `beside` it read its states and those before them."""
    tree = check(plan, query)
    held = layouts(query, tree, beside)
    *below, root = tree.inner()
    joins = (*below, *beside, root)
    nodes = tuple(_node(query, node, held, is_composed(tree), node is root) for node in joins)
    return PhysicalPlan(query, tree, held, nodes, _sorts(held, nodes), frozenset(map(str, beside)))


def _sorts(held: Mapping[str, StateSchema], nodes: tuple[NodePlan, ...]) -> dict[str, Spec]:
    """Each state is sorted by the index that most hops want."""
    wanted: dict[str, Counter[Spec]] = {name: Counter() for name in held}
    for node in nodes:
        for hop in (hop for path in node.paths for hop in path):
            wanted[hop.partner.node][hop.access.spec] += 1
    return {name: max(found, key=found.__getitem__, default=ByTime()) for name, found in wanted.items()}


def _node(query: Query, node: Join, held: Mapping[str, StateSchema], composed: bool, root: bool) -> NodePlan:
    reaches = _reaches(query, node, composed)
    in_line = any(held[str(child)].place is not None for child in node.inputs)
    paths = []
    for driver, order in enumerate(node.orders):
        bound = [held[str(node.inputs[driver])]]
        path = []
        for i in order:
            partner = held[str(node.inputs[i])]
            hop = Hop(bound[0].node, str(node), partner.node)
            path.append(_hop(query, hop, tuple(bound), partner, reaches, in_line))
            bound.append(partner)
        paths.append(tuple(path))
    inputs = tuple(str(child) for child in node.inputs)
    return NodePlan(str(node), inputs, tuple(paths), None if root else held[str(node)])


def _reaches(query: Query, node: Join, composed: bool) -> Reaches:
    names, upper = query.names, query.bounds.upper
    if not composed:
        return {
            (time_name(names[i]), time_name(names[j])): bound
            for i in range(len(names))
            for j in range(len(names))
            if i != j and (bound := upper[i][j]) is not None
        }
    reaches: dict[tuple[str, str], int] = {}
    for pairwise in query.predicate.bounds:
        pair = (time_name(pairwise.earlier), time_name(pairwise.later))
        reaches[pair] = min(pairwise.microseconds, reaches.get(pair, pairwise.microseconds))
    for i, child in enumerate(node.inputs):
        window = window_of(query, child)
        for other in (*node.inputs[:i], *node.inputs[i + 1 :]):
            if isinstance(window, TimeWindow):
                pair = (time_name(str(child)), time_name(str(other)))
                reaches[pair] = min(window.microseconds - 1, reaches.get(pair, window.microseconds - 1))
    return reaches


def _hop(
    query: Query,
    hop: Hop,
    bound: tuple[StateSchema, ...],
    partner: StateSchema,
    reaches: Reaches,
    in_line: bool,
) -> HalfJoinPlan:
    before = frozenset[str]().union(*(layout.streams for layout in bound))
    fresh = tuple(
        c
        for c in query.predicate.conjuncts
        if c.streams <= before | partner.streams and c.streams & before and c.streams & partner.streams
    )
    access, decided = choose(query.predicate.classes, fresh, before, partner)
    open_conjuncts = [c for c in fresh if c not in decided and not _is_keyed(c, access)]
    exprs = [c.expr for c in sorted(open_conjuncts, key=lambda c: isinstance(c, Cosine))]
    times = tuple(name for layout in bound for name in layout.times)
    ranges = {name: _reach(name, times, reaches) for name in partner.times}
    lead = ranges.pop(partner.lead)
    return HalfJoinPlan(
        hop=hop,
        partner=partner,
        access=access,
        lead=lead,
        others=tuple(reach for reach in ranges.values() if reach.lows or reach.highs),
        residual=tuple(e for e in exprs if not _is_costly(e)),
        costly=tuple(e for e in exprs if _is_costly(e)),
        verify=_verify(access, before, partner) if isinstance(access, KeyAccess) else (),
        in_line=in_line,
    )


def _reach(name: str, times: tuple[str, ...], reaches: Reaches) -> TimeReach:
    """`T - back <= partner <= T + ahead` for every bound time T that constrains it."""
    lows = tuple((t, back) for t in times if (back := reaches.get((name, t))) is not None)
    highs = tuple((t, ahead) for t in times if (ahead := reaches.get((t, name))) is not None)
    return TimeReach(name, lows, highs)


def _is_keyed(conjunct: Conjunct, access: Access) -> bool:
    """True if matching codes fulfil an equality; one whose side straddles the hop is left to the residual."""
    if not isinstance(conjunct, Equality) or not isinstance(access, KeyAccess):
        return False
    sides = {conjunct.left, conjunct.right}
    single = all(len(streams_of(side)) == 1 for side in sides)
    return single and any(sides <= set(c.members) for c in access.classes)


def _is_costly(expr: Expr) -> bool:
    """User functions and vectors run last, on what the other conditions leave."""
    return any(isinstance(e, Call) and e.function in ("cosine", "udf") for e in walk(expr))


def _verify(access: KeyAccess, bound: frozenset[str], partner: StateSchema) -> tuple[tuple[int, Expr], ...]:
    """The classes whose codes may lie, each with the equality that tells."""
    checks = []
    for i, (c, probe) in enumerate(zip(access.classes, access.probes, strict=True)):
        if not always_exact(c.domain, c.null_safe):
            checks.append((i, _equality(c, probe, member(c, partner.streams))))
    return tuple(checks)


def _equality(c: AttributeClass, left: Expr, right: Expr | None) -> Expr:
    assert right is not None
    return Call("<=>" if c.null_safe else "=", (left, right), pa.bool_())
