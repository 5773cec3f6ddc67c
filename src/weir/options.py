"""Every argument of `weir.join` and `weir.sql`: its default, its description and its check, once.

    weir.join(...), weir.sql(text, ...)
        │  read_arguments: what names an argument is an option, the rest are tables
        ▼
    JoinOptions ─▶ weir.local.join.build_join, or weir.spark.join.build_join

The base class says what is joined, which is all that `weir.query` reads; this one adds how it runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields
from datetime import timedelta
from typing import Any, Literal, TypeAlias, get_args

from weir.adapt.planner import PlanRequest
from weir.adapt.settings import Adapt
from weir.errors import QueryError, find_nearest, suggest_name, unknown_name
from weir.order.policies import DriverOrder, DriverPolicy, check_policy
from weir.plan.explain import format_bytes
from weir.plan.tree import Join, JTree, Leaf
from weir.plan.tree_text import parse_tree
from weir.query.model import Budget, Query
from weir.query.options import PerStream, QueryOptions, argument, check_lengths, show_given
from weir.query.windows import RowWindow, TimeWindow
from weir.shed.allowance import Allowance
from weir.shed.strategies import ShedName, find_strategy
from weir.units import format_size, parse_interval

PlanName: TypeAlias = Literal["auto", "mjoin", "bjtree"]
Selectivities: TypeAlias = Mapping[tuple[str, str], float]
Order: TypeAlias = list[str] | tuple[str, ...] | DriverPolicy
Spread: TypeAlias = Literal["auto", "hash", "share", "psp", "atr"]
OnNullTime: TypeAlias = Literal["drop", "fail"]
Durability: TypeAlias = Literal["power", "process"]

_SPARK_ONLY = ("partitions", "spread", "idle", "ahead", "durability")
# How each function is called.
_CALLS = {
    "join": "everything by name, like weir.join(orders=table, payments=other, on='orders.id = payments.id')",
    "sql": "tables by the names that FROM gives them, like weir.sql('SELECT ... FROM orders, payments ...', "
    "orders=table, payments=other)",
}
# What Spark users try first, and what they mean here.
_FOREIGN = {
    "how": "joins are inner joins, so leave it out",
    "watermark": "say late='5 seconds', or withWatermark of the DataFrame",
}
# A value of these types is meant for an argument, so its name may be a misspelt one.
_OPTION_TYPES = (
    str, bytes, int, float, timedelta, Adapt, Allowance, Budget, RowWindow, TimeWindow,
    Mapping, list, tuple, type(None),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class JoinOptions(QueryOptions):
    """All that can be said of a join but its tables, checked as far as that needs no schemas.

    >>> JoinOptions(on="a.k = b.k", partitions=0)
    Traceback (most recent call last):
    weir.errors.QueryError: partitions must be a whole number of at least 1; got 0
    """

    plan: JTree | PlanName | str = argument(
        "The join tree: 'auto', 'mjoin', 'bjtree', or a tree, like '((a b) c)' or made with weir.plan.join.",
        default="auto",
    )
    rates: PerStream[float] | None = argument(
        "Rows per second of each stream, to choose a plan by its cost; tables are measured."
    )
    selectivities: Selectivities | None = argument(
        "The share of the pairs of two streams that match, like {('a', 'b'): 0.01}."
    )
    driver_order: Order = argument(
        "Which stream of a batch is processed first: a list of all streams, or the policy that orders each "
        "batch; 'auto' gives results early.",
        default="auto",
    )
    adapt: Adapt | bool | None = argument(
        "Whether the plan and what is skipped change as the streams change; weir.Adapt(...) says how easily. "
        "None: with a budget and without an allowance.",
    )
    allowance: Allowance | None = argument(
        "The share of the rows that reach a hop of the plan (weir.plan.hops) that may probe there, and the "
        "ages of partners they see. None: everything, or what the budget's CPU allows.",
    )
    shed: ShedName = argument(
        "How to skip work where CPU is short: 'thin' skips the same share of every path's probes, 'jaqpot', "
        "'jaqpot-printed' and 'grepp' those of the least productive paths, 'harvest' ages of partners, "
        "'random-drop' drops rows; 'auto': whatever promises the most results.",
        default="auto",
    )
    on_null_time: OnNullTime = argument(
        "What to do with rows without an event time: 'drop' and count them, or 'fail' the batch.",
        default="drop",
    )
    partitions: int | None = argument(
        "On Spark, how many tasks share the join; None: as many as there are cores."
    )
    spread: Spread = argument(
        "On Spark, how rows and work are divided over partitions: 'hash' by a key of all streams, 'share' or "
        "'psp' for any condition, 'atr' by segments of time; 'auto': by key if there is one.",
        default="auto",
    )
    idle: str | timedelta | None = argument(
        "On Spark, for how long no row of a stream must arrive until it no longer holds the watermark back, "
        "like '10 minutes'; None: it always holds it."
    )
    ahead: str | timedelta | None = argument(
        "On Spark, how far beyond both the time of day and all other streams an event time may be; rows "
        "further ahead are dropped and counted. None: any time is accepted.",
        default="1 hour",
    )
    durability: Durability = argument(
        "On Spark, what a batch that is done survives: 'power', a power cut, as it syncs its files to "
        "the disk, or 'process', the end of the driver.",
        default="power",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        read_plan(self.plan)
        if isinstance(self.driver_order, str):
            check_policy(self.driver_order)
        _check_adapt(self.adapt)
        check_allowance(self.allowance)
        find_strategy(self.shed)
        _check_word("on_null_time", self.on_null_time, OnNullTime)
        _check_word("spread", self.spread, Spread)
        _check_word("durability", self.durability, Durability)
        if self.partitions is not None:
            check_partitions(self.partitions)
        for name in ("idle", "ahead"):
            length = getattr(self, name)
            check_lengths(name, length)
            if length is not None and parse_interval(length) <= 0:
                raise QueryError(f"{name}= must be longer than zero; got '{length}'")

    @property
    def plan_request(self) -> PlanRequest:
        """What is said of the plan."""
        return PlanRequest(read_plan(self.plan), self.rates, self.selectivities, self.shed)

    @property
    def adaptation(self) -> Adapt | None:
        """When the running join adapts; None if it never does."""
        if isinstance(self.adapt, Adapt):
            return self.adapt
        is_default = self.adapt is None and self.budget is not None and self.allowance is None
        return Adapt() if self.adapt or is_default else None

    def order_streams(self, query: Query) -> DriverOrder:
        """The driver order of a query; a list has to name each of its streams once."""
        if isinstance(self.driver_order, str):
            return self.driver_order
        order = tuple(self.driver_order) if isinstance(self.driver_order, list | tuple) else ()
        if Counter(order) != Counter(query.names):
            streams = ", ".join(f"'{name}'" for name in query.names)
            raise QueryError(
                f"driver_order is a list that names each stream once: {streams}, or a policy like 'auto'; "
                f"got {self.driver_order!r}"
            )
        return order

    def refuse_spark_arguments(self) -> None:
        """Refuse arguments that mean nothing in one process."""
        for field in fields(self):
            if field.name in _SPARK_ONLY and getattr(self, field.name) != field.default:
                raise QueryError(f"{field.name}= applies to Spark DataFrames only; remove it")


def arguments_of(function: str) -> list[Field[Any]]:
    """The arguments of `join`, or of `sql`, which has clauses in place of some."""
    described = [field for field in fields(JoinOptions) if field.metadata]
    return [field for field in described if function != "sql" or not field.metadata["clause"]]


def read_arguments(
    function: str, given: Mapping[str, Any], statement: str | None = None
) -> tuple[JoinOptions, dict[str, Any]]:
    """The options and the tables of a call of `join` or `sql`."""
    names = [field.name for field in arguments_of(function)]
    options = {name: value for name, value in given.items() if name in names}
    tables = {name: value for name, value in given.items() if name not in (*names, "streams")}
    _check_misspelt(function, tables)
    return JoinOptions(statement=statement, **options), _merge_tables(given.get("streams"), tables)


def refuse_unnamed(function: str, unnamed: Sequence[Any]) -> None:
    """Refuse values without a name, such as the tables of `weir.join(a, b, on=...)`."""
    if unnamed:
        *others, last = map(show_given, unnamed)
        got = f"{', '.join(others)} and {last}" if others else last
        hint = "; pass it as streams=" if len(unnamed) == 1 and isinstance(unnamed[0], Mapping) else ""
        raise QueryError(f"weir.{function} takes {_CALLS[function]}; got {got} without a name{hint}")


def check_budget(budget: Budget | None) -> None:
    """Refuse more memory than this machine has."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if budget is not None and budget.bytes is not None and budget.bytes > memory:
        raise QueryError(
            f"a budget's memory of {format_size(budget.bytes)} is more than this machine has, "
            f"{format_bytes(memory)}; give it less"
        )


def check_allowance(given: Any) -> None:
    """Refuse what is not an allowance."""
    if not isinstance(given, Allowance | None):
        raise QueryError(
            "an allowance is written weir.Allowance({weir.plan.hops(plan)[0]: 0.5}); "
            f"got {show_given(given)}"
        )


def read_plan(given: Any) -> JTree | str:
    """Return the tree of a text like '((a b) c)', other plans as they are; refuse what is none."""
    if isinstance(given, str) and given.lstrip().startswith("("):
        return parse_tree(given)
    plan: JTree | str = given
    if isinstance(plan, Join | Leaf) or plan in get_args(PlanName):
        return plan
    raise QueryError(
        "plan is 'auto', 'mjoin', 'bjtree' or a join tree, like '((a b) c)' or made with weir.plan.join; "
        f"got {show_given(given)}{suggest_name(given, get_args(PlanName))}"
    )


def check_partitions(given: Any) -> None:
    """Refuse what is no number of partitions."""
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise QueryError(f"partitions must be a whole number of at least 1; got {given!r}")


def _check_word(name: str, given: Any, words: Any) -> None:
    if given not in get_args(words):
        *others, last = map(repr, get_args(words))
        hint = suggest_name(given, get_args(words))
        raise QueryError(f"{name} is {', '.join(others)} or {last}; got {show_given(given)}{hint}")


def _check_adapt(given: Any) -> None:
    known = [field.name for field in fields(Adapt)]
    for key in given if isinstance(given, Mapping) else ():
        if key not in known:
            raise unknown_name("key", str(key), known, where=" in adapt=")
    if not isinstance(given, Adapt | bool | None):
        raise QueryError(f"adapt= is True, False or weir.Adapt(change=0.05, gain=0.05); got {given!r}")


def _check_misspelt(function: str, tables: Mapping[str, Any]) -> None:
    """Refuse an option that came in as a table: its name is misspelt, or a clause of the statement."""
    clauses = {field.name: field.metadata["clause"] for field in arguments_of("join")}
    for name, given in tables.items():
        if name in _FOREIGN and _is_option(given):
            raise QueryError(f"weir.{function} has no argument '{name}'; {_FOREIGN[name]}")
        near = find_nearest(name, [*clauses, "streams"]) if _is_option(given) else None
        if near is not None:
            clause = clauses.get(near) if function == "sql" else None
            hint = f"did you mean '{near}'?" if clause is None else f"write {clause} in the statement"
            raise QueryError(f"weir.{function} has no argument '{name}'; {hint}")


def _is_option(given: Any) -> bool:
    """True for a value that an argument might have; a list of anything but names has rows or tables."""
    if isinstance(given, list | tuple) and given:
        return isinstance(given[0], str)
    return isinstance(given, _OPTION_TYPES)


def _merge_tables(streams: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(streams, Mapping | None):
        got = show_given(streams)
        raise QueryError(f"streams= maps names to tables, like {{'orders': table}}; got {got}")
    for name in streams or ():
        if not isinstance(name, str):
            raise QueryError(f"streams= maps names to tables; {name!r} is not a name")
        if name in tables:
            raise QueryError(f"stream '{name}' is given twice, once in streams= and once by name")
    return {**(streams or {}), **tables}
