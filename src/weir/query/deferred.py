"""Defer output columns that the kernel cannot compute to the engine, which computes them from the results.

SELECT a.k, format_string('%s-%s', a.x, b.y) AS s
the kernel:     SELECT a.k, a.x AS s, b.y AS `weir:b.y`
the engine:     SELECT k, format_string('%s-%s', a.x, b.y) AS s
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from weir.errors import QueryError
from weir.expr.dialect import Node, source_text
from weir.expr.nodes import Column, name_computed
from weir.expr.scope import Scope
from weir.query.pushdown import columns_read, name_output
from weir.query.sql import SelectStatement, bind_expression


@dataclass(frozen=True, slots=True)
class DeferredOutput:
    """An output column that the engine computes, and the columns that its text reads.

    `columns` maps the outputs of the kernel to the columns that they hold. In the kernel's results the first
    of them stands in the place of the deferred one, under its name.
    """

    name: str
    text: str
    columns: tuple[tuple[str, Column], ...]


def defer_outputs(
    pushed: SelectStatement, original: SelectStatement, scope: Scope, computed: Scope
) -> tuple[SelectStatement, tuple[DeferredOutput, ...]]:
    """Replace the output columns that the kernel does not know in the clauses `pushed` by what they read.

    `scope` holds the columns of the `original` clauses, `computed` also those that were pushed down.
    """
    items, hidden = list[Node](), dict[str, Node]()
    deferred = []
    for item, written in zip(pushed.select or (), original.select or (), strict=True):
        if item.is_star or _binds(item, computed):
            items.append(item)
            continue
        output = _defer(written, scope)
        deferred.append(output)
        (name, first), *others = output.columns
        items.append(_alias(first, name))
        hidden.update({name: _alias(column, name) for name, column in others})
    if not deferred:
        return pushed, ()
    return replace(pushed, select=(*items, *hidden.values())), tuple(deferred)


def _binds(item: Node, scope: Scope) -> bool:
    try:
        bind_expression(item.unalias(), scope)
    except QueryError:
        return False
    return True


def _defer(item: Node, scope: Scope) -> DeferredOutput:
    node = item.unalias()
    columns = dict.fromkeys(column for column, _ in columns_read(node, scope))
    if not columns:
        raise QueryError(
            f"'{source_text(node)}' reads no column of a stream and is not a constant; "
            "add it after the join, like .withColumn('name', ...)"
        )
    first, *others = columns
    name = item.alias or name_output(node, scope)
    hidden = [(name_computed(str(column)), column) for column in others]
    return DeferredOutput(name, source_text(node), ((name, first), *hidden))


def _alias(column: Column, name: str) -> Node:
    return exp.alias_(exp.column(column.name, table=column.stream, quoted=True), name, quoted=True)
