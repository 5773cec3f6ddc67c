"""The record of a job in its checkpoint: what was asked for, what the state holds, and where rows lie.

`weir.spark.job_changes` compares it with the job of a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weir.expr.nodes import columns_of, is_flag
from weir.expr.to_sql import to_sql
from weir.expr.types import spark_name
from weir.kernel.state_adaptation import StoredForm, columns_needed, describe_form
from weir.kernel.state_schema import StateSchema, derive_schemas
from weir.options import JoinOptions
from weir.partition.placement import SHARED_SPREADS
from weir.plan.default_plan import mjoin
from weir.plan.tree import Join, is_composed
from weir.query.build import by_stream, match_column
from weir.query.describe import describe_conditions, describe_outputs
from weir.query.model import Clock, Query
from weir.query.predicate import Conjunct, Equality, is_check
from weir.query.windows import RowWindow, TimeWindow, Window
from weir.spark.errors import ChangedQueryError
from weir.spark.result_names import is_id
from weir.spark.routing import Routing, RoutingKey, Segments

VERSION = 8


@dataclass(frozen=True)
class Definition:
    """What a query was asked with, so that it can be built again; lateness and `basic` are in microseconds.

    A `statement` has the lengths of `windows` and `fresh` too. Of user functions only the names are known.
    `time_expressions` are those by which Spark computes time columns.
    """

    statement: str | None
    on: str | None
    select: str | None
    windows: Mapping[str, Window | None]
    fresh: Mapping[str, Window | None]
    time: Mapping[str, str]
    time_expressions: Mapping[str, str]
    late: Mapping[str, int]
    cross: bool
    basic: int | None
    functions: tuple[str, ...]
    clock: Clock


@dataclass(frozen=True)
class FileTarget:
    """The sink of a job that writes files, to which a batch that had begun there is repeated.

    `secrets` are the hashes of options that are not for everyone to read.
    """

    format: str
    path: str | None
    table: str | None
    options: Mapping[str, str]
    secrets: Mapping[str, str]
    partition_by: tuple[str, ...]


@dataclass(frozen=True)
class JobDescription:
    """The query, plan and spread of a checkpoint from batch `since` on.

    - `id`: of the query, made at its first start and part of its result files' names;
    - `columns`: the types of each stream's columns, with the streams in the order of their union;
    - `conditions`, `outputs` and `computed` (by Spark) describe the query as `explain` does;
    - `states`: what the slices of each stream hold, and `reads` the columns from which they are made;
    - `joins`: what the slices of joins depend on; if it changes, they are given up (`drops_joins`);
    - `filled`: columns that a source did not have at first, so that slices may lack them;
    - `partitions` is None where rows find partners in any partition, so that their number may change;
    - `key` or `segments` say where rows lie, if by key or by segments;
    - `earlier`: the job before this one, which counts until a batch of this one has begun.
    """

    id: str
    definition: Definition
    columns: Mapping[str, Mapping[str, str]]
    conditions: tuple[str, ...]
    outputs: Mapping[str, str]
    computed: tuple[str, ...]
    session: Mapping[str, str]
    states: Mapping[str, StoredForm]
    reads: tuple[str, ...]
    joins: tuple[str, ...]
    plan: Join
    spread: str
    partitions: int | None
    key: RoutingKey | None
    segments: Segments | None
    target: FileTarget | None
    has_steps: bool
    filled: tuple[str, ...] = ()
    since: int = 0
    drops_joins: bool = False
    earlier: JobDescription | None = None
    version: int = VERSION

    def __post_init__(self) -> None:
        if not is_id(self.id):
            raise ValueError(f"'{self.id}' is not the id of a query")

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams in the order of their union."""
        return tuple(self.columns)

    @property
    def is_shared(self) -> bool:
        """True if rows find partners in any partition."""
        return self.spread in SHARED_SPREADS

    @property
    def join_windows(self) -> str:
        """The windows between joins of a composed plan, where they change the results."""
        joins = self.plan.inner() if is_composed(self.plan) else ()
        return ", ".join(str(join.window) for join in joins)

    @property
    def asks_same_as(self) -> tuple[object, ...]:
        """What two jobs have in common if a batch of one may be repeated by the other."""
        states = [(name, replace(form, columns=_without_flags(form))) for name, form in self.states.items()]
        return self.definition, self.conditions, self.outputs, self.computed, self.joins, states

    @property
    def _has_dropped_joins(self) -> bool:
        """True if this job, or one that it keeps in mind, has given up the joins of the one before it."""
        return self.drops_joins or (self.earlier is not None and self.earlier.drops_joins)

    def list_grown(self, earlier: JobDescription) -> list[str]:
        """List the columns that sources did not have when an earlier job stored slices."""
        columns = ((stream, name) for stream, names in self.columns.items() for name in names)
        grown = (f"{stream}.{name}" for stream, name in columns if name not in earlier.columns[stream])
        return list(dict.fromkeys((*earlier.filled, *grown)))

    def follow(self, earlier: JobDescription, since: int) -> JobDescription:
        """Return this job as the one that goes on from an earlier job's state with batch `since`."""
        # What was not stored for a while may have had values then, so it is not NULL any more.
        filled = tuple(name for name in self.list_grown(earlier) if name in self.reads)
        job = replace(self, filled=filled)
        # A repair may have gone back behind the earlier job, to the state of one before it.
        drops_joins = self.joins != earlier.joins or (earlier.drops_joins and since <= earlier.since)
        if earlier.asks_same_as == self.asks_same_as:
            since, drops_joins, before = earlier.since, earlier.drops_joins, earlier.earlier
        else:
            before = replace(earlier, earlier=None, drops_joins=earlier._has_dropped_joins)
        return replace(job, since=since, drops_joins=drops_joins, earlier=before)


def describe_job(
    id: str,
    query: Query,
    options: JoinOptions,
    columns: Mapping[str, Mapping[str, str]],
    plan: Join,
    routing: Routing,
    computed: Sequence[str] = (),
    deferred: Mapping[str, str] | None = None,
    target: FileTarget | None = None,
    has_steps: bool = False,
) -> JobDescription:
    """Describe the job of a query over streams of these columns that starts with a plan and a routing.

    Spark computes what `computed` says and, from the results, the output columns `deferred`.
    """
    leaves, session = leaf_schemas(query, plan), query.session
    return JobDescription(
        id=id,
        definition=_define(query, options),
        columns=columns,
        conditions=describe_conditions(query),
        outputs=describe_outputs(query, deferred or {}),
        computed=tuple(computed),
        session={
            "spark.sql.session.timeZone": session.time_zone,
            "spark.sql.ansi.enabled": str(session.ansi).lower(),
        },
        states={name: describe_form(schema) for name, schema in leaves.items()},
        reads=tuple(sorted(str(column) for schema in leaves.values() for column in columns_needed(schema))),
        joins=tuple(_describe_joins(query)),
        plan=plan,
        spread=routing.name,
        partitions=None if routing.is_shared else routing.partitions,
        key=None if routing.key is None else RoutingKey.of(routing.key),
        segments=routing.segments,
        target=target,
        has_steps=has_steps,
    )


def _without_flags(form: StoredForm) -> dict[str, str]:
    """The stored columns but for flags, which a job has or has not by its `on_error`."""
    return {name: kind for name, kind in form.columns.items() if not is_flag(name.partition(".")[2])}


def leaf_schemas(query: Query, plan: Join) -> dict[str, StateSchema]:
    """Return the schemas of the streams' own states, which are the same under every plan of joint windows."""
    schemas = derive_schemas(query, plan if is_composed(plan) else mjoin(query))
    return {name: schema for name, schema in schemas.items() if name in query.names}


def check_version(stored: Mapping[str, Any], uri: str) -> None:
    """Refuse a checkpoint of another format."""
    if stored.get("version") != VERSION:
        raise ChangedQueryError(
            f"the checkpoint {uri} has format {stored.get('version')} and this version of weir reads format "
            f"{VERSION}; run the version that wrote it, or start with a new checkpointLocation"
        )


def _define(query: Query, options: JoinOptions) -> Definition:
    windows = dict(zip(query.names, query.windows, strict=True))

    def read_fresh(name: str, length: int | None) -> Window | None:
        kind = RowWindow if isinstance(windows[name], RowWindow) else TimeWindow
        return None if length is None else kind(length)

    return Definition(
        statement=options.statement,
        on=options.on,
        select=options.select,
        windows=windows,
        fresh={name: read_fresh(name, f) for name, f in zip(query.names, query.fresh, strict=True)},
        time={s.name: s.time for s in query.streams},
        time_expressions=_find_time_expressions(query, options),
        late={s.name: s.late for s in query.streams},
        cross=options.cross,
        basic=query.basic,
        functions=tuple(sorted(options.functions or ())),
        clock=query.clock,
    )


def _find_time_expressions(query: Query, options: JoinOptions) -> dict[str, str]:
    """Return what was asked of each stream's time that is not simply a column."""
    given = by_stream(options.time, query.names, "time")
    times = {s.name: s.time for s in query.streams}
    asked = {name: " ".join(text.split()) for name, text in given.items()}
    return {name: text for name, text in asked.items() if match_column(text, [times[name]]) != times[name]}


def _describe_joins(query: Query) -> Iterator[str]:
    """Yield what the stored joins of some streams depend on, beside the rows of these streams."""
    selected = {c for output in query.select for c in columns_of(output.expr) if not is_flag(c.name)}
    yield from sorted(f"{column} {spark_name(column.type)}" for column in selected)
    yield from sorted(_normalise(each) for each in query.predicate.conjuncts if not is_check(each))
    for i, name in enumerate(query.names):
        for j, other in enumerate(query.names):
            if i != j:
                yield f"{other} - {name} <= {query.bounds.upper[i][j]}"
    for name, window, fresh in zip(query.names, query.windows, query.fresh, strict=True):
        yield f"{name}: {window}, {'any' if fresh is None else 'fresh'}"


def _normalise(conjunct: Conjunct) -> str:
    if not isinstance(conjunct, Equality):
        return to_sql(conjunct.expr)
    left, right = sorted((to_sql(conjunct.left), to_sql(conjunct.right)))
    return f"{left} {'<=>' if conjunct.null_safe else '='} {right}"
