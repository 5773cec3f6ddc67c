"""Generate joins of 2 to 5 streams with every kind of predicate, and compute their results with DuckDB."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from oracle.case import Case, Input
from oracle.conditions import Condition
from oracle.reference import Admitted, admit, duckdb_text, project

from .streams import SECOND, generate

WINDOW, LATE = 8, 2  # seconds, so that rows join across batches, some die, and some come too late
PER_BATCH = {2: 40, 3: 30, 4: 24, 5: 20}
KINDS = {
    "equality": "{0}.k = {1}.k",
    "band": "abs({0}.n - {1}.n) <= 3",
    "cosine": "cosine({0}.x, {1}.x) >= 0.6",
    "python": "near({0}.n, {1}.n)",  # see driver.py
}
# The same functions in DuckDB's words.
_MACROS = """
    CREATE MACRO cosine(x, y) AS list_cosine_similarity(x, y);
    CREATE MACRO near(x, y) AS (x + y) % 5 = 2;
"""


def case(kinds: tuple[str, ...], streams: int, batches: int, seed: int) -> Case:
    """Streams in a chain, each tied to the next by all these kinds of predicate."""
    rng = np.random.default_rng(seed)
    inputs = []
    for name, tables in generate(streams, batches, PER_BATCH[streams], 4, seed).items():
        table = pa.concat_tables(tables)
        numbers = pa.array(rng.integers(0, 24, len(table)), mask=rng.random(len(table)) < 0.05)
        vectors = pa.array(list(rng.normal(size=(len(table), 3))), pa.list_(pa.float64()))
        table = table.append_column("n", numbers).append_column("x", vectors)
        cuts = tuple(np.cumsum([len(found) for found in tables]).tolist())
        inputs.append(Input(name, "ts", table, cuts, WINDOW * SECOND, LATE * SECOND))
    return Case(tuple(inputs), chain([one.name for one in inputs], kinds))


def chain(names: list[str], kinds: tuple[str, ...]) -> tuple[Condition, ...]:
    return tuple(Condition(KINDS[kind].format(*pair)) for pair in pairwise(names) for kind in kinds)


def batches_of(found: Case) -> dict[str, list[pa.Table]]:
    """The rows of each stream, batch by batch."""
    return {one.name: [one.batch(batch) for batch in range(found.batches)] for one in found.inputs}


def asked(found: Case) -> dict[str, Any]:
    """The join as a user would ask for it, but for the function."""
    return {
        "on": found.on,
        "within": f"{WINDOW} seconds",
        "late": f"{LATE} seconds",
        "select": ", ".join(f"{name}.id AS {name}_id" for name in found.names),
    }


def by_duckdb(found: Case) -> tuple[Counter[tuple[Any, ...]], Admitted]:
    """The relational join of the rows that are not late, and which those are."""
    admitted = admit(found)
    with duckdb.connect() as connection:
        connection.execute(_MACROS)
        for one in found.inputs:
            picks = pa.array([row for _, row in admitted.rows[one.name]], pa.int64())
            connection.register(one.name, one.table.take(picks).append_column("row", picks))
        return project(found, connection.execute(duckdb_text(found)).fetchall()), admitted
