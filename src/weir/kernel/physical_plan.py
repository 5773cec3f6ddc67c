"""Physical plan: compile a query and a join tree into state schemas, access paths and hops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.expr.nodes import Call, Expr, walk
from weir.kernel.access_path import Access, KeyAccess, choose_access
from weir.kernel.index import ByTime, Spec
from weir.kernel.keys import is_always_exact
from weir.kernel.state_schema import (
    ROW_ORDER,
    StateSchema,
    derive_schemas,
    get_member,
    is_decided_by_key,
    row_order_schema,
    time_name,
    window_of,
)
from weir.plan.tree import Join, check_plan, is_composed
from weir.query.model import Query
from weir.query.predicate import Cosine
from weir.query.windows import TimeWindow
from weir.stats.hop import Hop

# The largest allowed difference later - earlier between two stored times (earlier, later).
MaxLags = Mapping[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """Bounds on a partner's time: from `time - back` for each low to `time + ahead` for each high."""

    name: str
    lows: tuple[tuple[str, int], ...]
    highs: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class HalfJoinPlan:
    """One half-way join: which state it probes, how it finds candidates, and what is checked on each pair.

    `lead` and `others` bound the partner's times. `verify` lists the key classes with hashed codes, by their
    number in the access path, each with the equality to check. Then comes the `residual`, then the
    `expensive` predicates.
    """

    hop: Hop
    partner: StateSchema
    access: Access
    lead: TimeBounds
    others: tuple[TimeBounds, ...]
    residual: tuple[Expr, ...]
    expensive: tuple[Expr, ...]
    verify: tuple[tuple[int, Call], ...]


@dataclass(frozen=True, slots=True)
class NodePlan:
    """One join: the path of each input through it, and the schema of its output (None: the root)."""

    node: str
    inputs: tuple[str, ...]
    paths: tuple[tuple[HalfJoinPlan, ...], ...]
    output: StateSchema | None


@dataclass(frozen=True)
class PhysicalPlan:
    """A compiled plan; its joins are listed inputs first, the root last.

    The joins in `migration_joins` belong to a plan that the query migrates to; they run as well.
    """

    query: Query
    plan: Join
    schemas: Mapping[str, StateSchema]
    nodes: tuple[NodePlan, ...]
    sorts: Mapping[str, Spec]
    migration_joins: frozenset[str] = frozenset()

    def schema_of(self, node: str) -> StateSchema | None:
        """Return the schema of a node's slices, or of the row order of a stream with a row window."""
        leaf, is_row_order, _ = node.partition(ROW_ORDER)
        schema = self.schemas.get(leaf)
        return row_order_schema(schema) if is_row_order and schema is not None else schema

    @property
    def root(self) -> NodePlan:
        """The join whose output is the result."""
        return self.nodes[-1]

    def node(self, name: str) -> NodePlan:
        """Return the join of that name."""
        return next(node for node in self.nodes if node.node == name)


def compile_plan(query: Query, plan: Join, migration_joins: Sequence[Join] = ()) -> PhysicalPlan:
    """Compile a plan; joins in `migration_joins` read its states and those of joins before them."""
    tree = check_plan(plan, query)
    states = derive_schemas(query, tree, migration_joins)
    *below, root = tree.inner()
    joins = (*below, *migration_joins, root)
    nodes = tuple(_compile_node(query, node, states, is_composed(tree), node is root) for node in joins)
    return PhysicalPlan(
        query, tree, states, nodes, _choose_sorts(states, nodes), frozenset(map(str, migration_joins))
    )


def _choose_sorts(states: Mapping[str, StateSchema], nodes: tuple[NodePlan, ...]) -> dict[str, Spec]:
    """Sort each state by the index that most hops use."""
    uses: dict[str, Counter[Spec]] = {name: Counter() for name in states}
    for node in nodes:
        for hop in (hop for path in node.paths for hop in path):
            uses[hop.partner.node][hop.access.spec] += 1
    return {name: max(count, key=count.__getitem__, default=ByTime()) for name, count in uses.items()}


def _compile_node(
    query: Query, node: Join, states: Mapping[str, StateSchema], composed: bool, is_root: bool
) -> NodePlan:
    max_lags = _max_lags(query, node, composed)
    inputs = [states[str(child)] for child in node.inputs]
    paths = []
    for driver, order in enumerate(node.orders):
        bound = [inputs[driver]]
        path = []
        for i in order:
            hop = Hop(inputs[driver].node, str(node), inputs[i].node)
            path.append(_compile_hop(query, hop, tuple(bound), inputs[i], max_lags))
            bound.append(inputs[i])
        paths.append(tuple(path))
    names = tuple(state.node for state in inputs)
    return NodePlan(str(node), names, tuple(paths), None if is_root else states[str(node)])


def _max_lags(query: Query, node: Join, composed: bool) -> MaxLags:
    names, upper = query.names, query.bounds.upper
    if not composed:
        return {
            (time_name(names[i]), time_name(names[j])): bound
            for i in range(len(names))
            for j in range(len(names))
            if i != j and (bound := upper[i][j]) is not None
        }
    lags = [((time_name(b.earlier), time_name(b.later)), b.microseconds) for b in query.predicate.bounds]
    for i, child in enumerate(node.inputs):
        window = window_of(query, child)
        if isinstance(window, TimeWindow):
            for other in (*node.inputs[:i], *node.inputs[i + 1 :]):
                lags.append(((time_name(str(child)), time_name(str(other))), window.microseconds - 1))
    # The largest first: of several bounds on a pair the smallest remains.
    return dict(sorted(lags, key=lambda lag: -lag[1]))


def _compile_hop(
    query: Query, hop: Hop, bound: tuple[StateSchema, ...], partner: StateSchema, max_lags: MaxLags
) -> HalfJoinPlan:
    """Compile the hop from the states `bound` so far to a partner."""
    before = frozenset[str]().union(*(schema.streams for schema in bound))
    conjuncts = tuple(
        c
        for c in query.predicate.conjuncts
        if c.streams <= before | partner.streams and c.streams & before and c.streams & partner.streams
    )
    access, decided = choose_access(query.predicate.classes, conjuncts, before, partner)
    key_classes = access.classes if isinstance(access, KeyAccess) else ()
    undecided = [c for c in conjuncts if c not in decided and not is_decided_by_key(c, key_classes)]
    exprs = [c.expr for c in sorted(undecided, key=lambda c: isinstance(c, Cosine))]
    times = tuple(name for schema in bound for name in schema.times)
    bounds = {name: _time_bounds(name, times, max_lags) for name in partner.times}
    lead = bounds.pop(partner.lead)
    return HalfJoinPlan(
        hop=hop,
        partner=partner,
        access=access,
        lead=lead,
        others=tuple(other for other in bounds.values() if other.lows or other.highs),
        residual=tuple(e for e in exprs if not _is_expensive(e)),
        expensive=tuple(e for e in exprs if _is_expensive(e)),
        verify=_verify(access, partner) if isinstance(access, KeyAccess) else (),
    )


def _time_bounds(name: str, times: tuple[str, ...], max_lags: MaxLags) -> TimeBounds:
    """Return `t - back <= partner's time <= t + ahead` for every bound time t that constrains it."""
    lows = tuple((t, back) for t in times if (back := max_lags.get((name, t))) is not None)
    highs = tuple((t, ahead) for t in times if (ahead := max_lags.get((t, name))) is not None)
    return TimeBounds(name, lows, highs)


def _is_expensive(expr: Expr) -> bool:
    """True for user functions and vectors: they run last, on what the other conditions leave."""
    return any(isinstance(e, Call) and e.function in ("cosine", "udf") for e in walk(expr))


def _verify(access: KeyAccess, partner: StateSchema) -> tuple[tuple[int, Call], ...]:
    """Return the classes whose codes may collide, each with the equality to check."""
    return tuple(
        (i, Call("<=>" if c.null_safe else "=", (probe, get_member(c, partner.streams)), pa.bool_()))
        for i, (c, probe) in enumerate(zip(access.classes, access.probes, strict=True))
        if not is_always_exact(c.domain, c.null_safe)
    )
