"""Tables of a statement that were not passed: temporary views and tables of the Spark session."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weir.errors import QueryError, unknown_name
from weir.query.sql import parse_sql
from weir.spark.java_errors import JAVA_ERRORS


def add_session_tables(given: Mapping[str, Any], statement: str | None) -> dict[str, Any]:
    """Return the tables given, and those of the session that the FROM list names besides."""
    if statement is None:
        return dict(given)
    known, tables = {name.lower() for name in given}, dict(given)
    for table, _ in parse_sql(statement).tables:
        if table.lower() not in known:
            tables[table] = _read_table(_find_session(given, table), table, given)
            known.add(table.lower())
    return tables


def _find_session(given: Mapping[str, Any], table: str) -> SparkSession:
    sessions = [frame.sparkSession for frame in given.values() if hasattr(frame, "sparkSession")]
    session = sessions[0] if sessions else SparkSession.getActiveSession()
    if session is None:
        raise QueryError(
            f"table '{table}' in FROM was not passed, and there is no active Spark session to find it in; "
            f"pass it, like weir.sql(text, {table.rpartition('.')[2]}=table)"
        )
    return session


def _read_table(session: SparkSession, name: str, given: Mapping[str, Any]) -> DataFrame:
    quoted = ".".join(f"`{part}`" for part in name.split("."))
    try:
        return session.table(quoted)
    except JAVA_ERRORS:
        listed = list[str]()
        with suppress(*JAVA_ERRORS):
            listed = [table.name for table in session.catalog.listTables()]
        raise unknown_name("table", name, [*given, *listed], where=" in FROM") from None
