"""Refuse SQL that a join of streams does not support, with a sentence for each clause."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from weir.errors import QueryError

_CLAUSES = {
    "with_": "WITH is not supported; pass the inner query's rows as a stream of their own",
    "distinct": "DISTINCT is not supported, since it would keep every result forever; "
    "drop duplicates from the join's result",
    "group": "GROUP BY is not part of a join; join first, then group the result",
    "having": "HAVING is not part of a join; join first, then group and filter the result",
    "order": "ORDER BY is not supported, since a stream has no last row to sort; sort the stored result",
    "sort": "SORT BY is not supported, since a stream has no last row to sort; sort the stored result",
    "limit": "LIMIT is not supported, since a stream has no end; take the rows from the stored result",
    "offset": "OFFSET is not supported, since a stream has no end; take the rows from the stored result",
    "qualify": "QUALIFY is not part of a join; filter the join's result",
    "windows": "WINDOW says here how long rows stay joinable, like 'WINDOW 10 MINUTES'; it defines no frame",
    "laterals": "LATERAL VIEW is not supported; explode the column before the join",
    "pivots": "PIVOT is not part of a join; pivot the join's result",
}
_AGGREGATES = (
    "any", "any_value", "approx_count_distinct", "approx_percentile", "array_agg", "avg", "bit_and",
    "bit_or", "bit_xor", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count",
    "count_if", "count_min_sketch", "covar_pop", "covar_samp", "every", "first", "first_value",
    "grouping", "grouping_id", "kurtosis", "last", "last_value", "listagg", "max", "max_by", "mean",
    "median", "min", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont",
    "percentile_disc", "regr_slope", "skewness", "some", "std", "stddev", "stddev_pop", "stddev_samp",
    "string_agg", "sum", "try_avg", "try_sum", "var_pop", "var_samp", "variance",
)  # fmt: skip


def refuse_clauses(select: exp.Select) -> None:
    """Refuse every clause but SELECT, FROM, JOIN and WHERE."""
    for clause, sentence in _CLAUSES.items():
        if select.args.get(clause) or select.args.get(clause.rstrip("_")):
            raise QueryError(sentence)
    allowed = {"kind", "hint", "expressions", "from", "from_", "joins", "where"}
    for name, value in select.args.items():
        if value and name not in allowed:
            clause = name.rstrip("_").upper()
            raise QueryError(f"{clause} is not supported; expected SELECT, FROM, JOIN and WHERE")


def refuse_after_window(word: str, clause: str) -> None:
    """Refuse a keyword that stands after WINDOW or FRESHNESS, the last clauses of a statement."""
    if word in ("FROM", "JOIN", "ON", "WHERE", "AND", "OR"):
        raise QueryError(f"{word} stands after {clause}; write {clause} at the end, after the conditions")
    sentence = _CLAUSES.get(word.lower())
    if sentence is not None:
        raise QueryError(sentence)


def refuse_subqueries(outer: exp.Expression) -> None:
    """Refuse a query inside a query or a condition."""
    inner = next((node for node in outer.find_all(exp.Query) if id(node) != id(outer)), None)
    if inner is not None:
        raise QueryError(
            f"subqueries are not supported: '{inner.sql('spark')}'; "
            "pass what it reads as a stream, and join it with the others"
        )


def refuse_aggregates(node: exp.Expression, own: Collection[str]) -> None:
    """Refuse aggregates and window functions; `own` are the names of user-defined functions."""
    for function in node.find_all(exp.AggFunc, exp.Anonymous, exp.Window):
        named = function.name.lower() in _AGGREGATES and function.name.lower() not in map(str.lower, own)
        if named or not isinstance(function, exp.Anonymous):
            raise QueryError(
                f"aggregates and window functions are not part of a join: '{function.sql('spark')}'; "
                "join first, then aggregate the result"
            )


def refuse_outer(join: exp.Join) -> None:
    """Refuse every join but inner joins."""
    parts = [join.args.get(part) for part in ("method", "side", "kind")]
    words = " ".join(str(part).upper() for part in parts if part)
    if words not in ("", "INNER", "CROSS"):
        raise QueryError(
            f"{words} JOIN is not supported; only inner joins are, written JOIN ... ON, JOIN ... USING, "
            "or with commas"
        )
