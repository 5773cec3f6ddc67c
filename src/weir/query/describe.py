"""A query in words, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

from weir.expr.text import show
from weir.expr.types import spark_name
from weir.query.model import Query
from weir.query.predicate import AttributeClass, TimeBound
from weir.query.windows import RowWindow
from weir.units import show_interval


def describe(query: Query) -> str:
    """The streams, what each conjunct was taken for, the time bounds and the output, a line for each."""
    sections = {
        "streams": _streams(query),
        "conditions": _conditions(query),
        "classes": map(_class, query.predicate.classes),
        "time bounds": _bounds(query),
        "select": (f"{output.name}: {show(output.expr)}" for output in query.select),
        "basic windows": [show_interval(query.basic)] if query.basic else [],
        "budget": [str(query.budget)] if query.budget else [],
    }
    lines = []
    for title, content in sections.items():
        indented = [f"  {line}" for line in content]
        lines += [title, *indented] if indented else []
    return "\n".join(lines)


def _streams(query: Query) -> Iterator[str]:
    for i, stream in enumerate(query.streams):
        window = query.windows[i]
        parts = [f"time {stream.time}", f"window {window}" if window else "window from time bounds"]
        parts += [f"kept {_kept(query.bounds.retention(i))}"] if not isinstance(window, RowWindow) else []
        parts += [f"late {show_interval(stream.late)}"] if stream.late else []
        fresh = query.fresh[i]
        if fresh is not None:
            parts.append(
                f"fresh {RowWindow(fresh) if isinstance(window, RowWindow) else show_interval(fresh)}"
            )
        yield f"{stream.name}: {', '.join(parts)}"


def _kept(retention: int | None) -> str:
    if retention is None:
        return "for ever"
    return show_interval(retention) if retention > 0 else "not at all"


def _conditions(query: Query) -> Iterator[str]:
    for part in (*query.predicate.filters, *query.predicate.conjuncts):
        yield f"{type(part).__name__.lower()}: {show(part.expr)}"
    for bound in query.predicate.bounds:
        yield f"time bound: {bound}"


def _class(known: AttributeClass) -> str:
    members = f" {'<=>' if known.null_safe else '='} ".join(map(show, known.members))
    return f"{known.name}: {members} as {spark_name(known.domain)}"


def _bounds(query: Query) -> Iterator[str]:
    names = query.names
    for i, row in enumerate(query.bounds.upper):
        for j, bound in enumerate(row):
            if i != j and bound is not None:
                yield str(TimeBound(names[i], names[j], bound))
