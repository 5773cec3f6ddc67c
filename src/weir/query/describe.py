"""Describe a query in words, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weir.expr.nodes import is_internal
from weir.expr.to_sql import to_sql
from weir.expr.types import spark_name
from weir.query.model import Query
from weir.query.predicate import AttributeClass, is_check
from weir.query.windows import RowWindow, TimeBound
from weir.units import format_interval


def describe(query: Query, deferred: Mapping[str, str] | None = None) -> str:
    """List the streams, the kind of each conjunct, the time bounds and the output columns.

    `deferred` holds the texts of the output columns that the engine computes from the results.
    """
    sections = {
        "streams": _describe_streams(query),
        "conditions": describe_conditions(query),
        "classes": map(_describe_class, query.predicate.classes),
        "time bounds": _describe_bounds(query),
        "select": (f"{name}: {text}" for name, text in describe_outputs(query, deferred or {}).items()),
        "basic windows": [format_interval(query.basic)] if query.basic else [],
        "budget": [str(query.budget)] if query.budget else [],
    }
    lines = []
    for title, content in sections.items():
        indented = [f"  {line}" for line in content]
        lines += [title, *indented] if indented else []
    return "\n".join(lines)


def describe_conditions(query: Query) -> tuple[str, ...]:
    """Return a line for each condition, with its kind."""
    parts = (*query.predicate.filters, *query.predicate.conjuncts)
    conditions = [part for part in parts if not is_check(part)]
    lines = [f"{type(part).__name__.lower()}: {to_sql(part.expr)}" for part in conditions]
    return (*lines, *(f"time bound: {bound}" for bound in query.predicate.bounds))


def describe_outputs(query: Query, deferred: Mapping[str, str]) -> dict[str, str]:
    """Return the text of each output column that users see."""
    shown = (output for output in query.select if not is_internal(output.name))
    return {output.name: deferred.get(output.name) or to_sql(output.expr) for output in shown}


def _describe_streams(query: Query) -> Iterator[str]:
    for i, stream in enumerate(query.streams):
        window, fresh = query.windows[i], query.fresh[i]
        counts_rows = isinstance(window, RowWindow)
        parts = [f"time {stream.time}", f"window {window}" if window else "window from time bounds"]
        kept = query.bounds.retention(i)
        length = "for ever" if kept is None else format_interval(kept) if kept > 0 else "not at all"
        parts += [] if counts_rows else [f"kept {length}"]
        parts += [f"late {format_interval(stream.late)}"] if stream.late else []
        if fresh is not None:
            by = " by the wall clock" if query.clock == "wall" and not counts_rows else ""
            parts.append(f"fresh {RowWindow(fresh) if counts_rows else format_interval(fresh)}{by}")
        yield f"{stream.name}: {', '.join(parts)}"


def _describe_class(attribute_class: AttributeClass) -> str:
    operator = " <=> " if attribute_class.null_safe else " = "
    members = operator.join(map(to_sql, attribute_class.members))
    return f"{attribute_class.name}: {members} as {spark_name(attribute_class.domain)}"


def _describe_bounds(query: Query) -> Iterator[str]:
    for name, row in zip(query.names, query.bounds.upper, strict=True):
        for other, bound in zip(query.names, row, strict=True):
            if other != name and bound is not None:
                yield str(TimeBound(name, other, bound))
