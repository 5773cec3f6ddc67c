"""JOIN ... USING (k): an equality with the tables on its left, and one column k in the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from weir.errors import QueryError, match_name


@dataclass(frozen=True, slots=True)
class Using:
    """The columns that one JOIN shares with what stands on its left; `right` is the stream that it joins."""

    left: tuple[str, ...]
    right: str
    columns: tuple[str, ...]


def read_using(join: exp.Join, left: Sequence[str], right: str) -> Using | None:
    """Return the USING of a join; None if it has none."""
    columns = tuple(column.name for column in join.args.get("using") or ())
    return Using(tuple(left), right, columns) if columns else None


@dataclass(frozen=True, slots=True)
class SharedColumns:
    """All columns of USING in a statement: of each the stream that stands for all, and the others."""

    first: Mapping[str, tuple[str, str]]  # by lower-case name: stream and column
    others: frozenset[tuple[str, str]]  # stream and column
    equalities: tuple[exp.Expression, ...]

    def qualify(self, node: exp.Expression) -> exp.Expression:
        """Give the columns of USING their stream, where a statement leaves it out."""

        def add_stream(part: exp.Expression) -> exp.Expression:
            known = (
                self.first.get(part.name.lower()) if isinstance(part, exp.Column) and not part.table else None
            )
            return part if known is None or isinstance(part.this, exp.Star) else _column(*known)

        # An output keeps the name that it was written with.
        if isinstance(node, exp.Column) and add_stream(node) is not node:
            return _named(add_stream(node), node.name)
        return node.transform(add_stream)

    def expand_star(self, schemas: Mapping[str, pa.Schema]) -> list[exp.Expression]:
        """The columns of `*`: each of USING once, then all others as `<stream>_<column>`."""
        shared = [_named(_column(*known), known[1]) for known in self.first.values()]
        hidden = {*self.first.values(), *self.others}
        return shared + [
            _named(_column(name, column), f"{name}_{column}")
            for name, schema in schemas.items()
            for column in schema.names
            if (name, column) not in hidden
        ]


def share_columns(using: Sequence[Using], schemas: Mapping[str, pa.Schema]) -> SharedColumns:
    """Find the stream of each column, and the equalities that USING means."""
    first: dict[str, tuple[str, str]] = {}
    others: set[tuple[str, str]] = set()
    equalities = list[exp.Expression]()
    for each in using:
        for given in each.columns:
            where = f" in USING ({given})"
            right = (
                each.right,
                match_name("column", given, schemas[each.right].names, f" of '{each.right}'{where}"),
            )
            left = first.get(given.lower()) or _find_left(given, each.left, schemas)
            first[given.lower()] = left
            others.add(right)
            equalities.append(exp.EQ(this=_column(*left), expression=_column(*right)))
    return SharedColumns(first, frozenset(others), tuple(equalities))


def _find_left(given: str, left: Sequence[str], schemas: Mapping[str, pa.Schema]) -> tuple[str, str]:
    found = [
        (name, column) for name in left for column in schemas[name].names if column.lower() == given.lower()
    ]
    if not found:
        known = [column for name in left for column in schemas[name].names]
        match_name("column", given, known, f" left of JOIN ... USING ({given})")
    if len(found) > 1:
        streams = " and ".join(f"'{name}'" for name, _ in found)
        raise QueryError(
            f"USING ({given}) is ambiguous: {streams} have it; write ON with the stream that you mean"
        )
    return found[0]


def _column(stream: str, column: str) -> exp.Column:
    return exp.column(exp.to_identifier(column, quoted=True), table=exp.to_identifier(stream, quoted=True))


def _named(node: exp.Expression, name: str) -> exp.Expression:
    return exp.Alias(this=node, alias=exp.to_identifier(name, quoted=True))
