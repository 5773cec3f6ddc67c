"""What a join should give, computed by other means: DuckDB, or a product of all rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa

from weir.query.windows import RowWindow

from .case import Case, comparable

Picks = tuple[int, ...]  # one row number per stream
Results = Counter[tuple[Any, ...]]

_DUCKDB = duckdb.connect(config={"threads": 1})


@dataclass(frozen=True)
class Admitted:
    """The rows that are not late, as (batch, row), and per batch and stream what was dropped."""

    rows: Mapping[str, list[tuple[int, int]]]
    late: list[dict[str, int]]
    null_time: list[dict[str, int]]


def admit(case: Case) -> Admitted:
    """The watermark, row by row: a batch uses the one that the batch before it left."""
    rows: dict[str, list[tuple[int, int]]] = {name: [] for name in case.names}
    late, null_time, newest, watermark = [], [], {}, None
    for batch in range(case.batches):
        late.append(dict.fromkeys(case.names, 0))
        null_time.append(dict.fromkeys(case.names, 0))
        for one in case.inputs:
            for row in range(*one.span(batch)):
                time = one.times[row]
                if time is None:
                    null_time[-1][one.name] += 1
                elif watermark is not None and time < watermark:
                    late[-1][one.name] += 1
                else:
                    rows[one.name].append((batch, row))
                    newest[one.name] = max(time, newest.get(one.name, time))
        if len(newest) == len(case.inputs):
            reached = min(newest[one.name] - one.late for one in case.inputs)
            watermark = reached if watermark is None else max(watermark, reached)
    return Admitted(rows, late, null_time)


def timed(case: Case) -> dict[str, list[int]]:
    """Every row that has a time."""
    return {one.name: [row for row, time in enumerate(one.times) if time is not None] for one in case.inputs}


def by_duckdb(case: Case, rows: Mapping[str, Iterable[int]]) -> Results:
    """The relational join of some rows, with windows as conditions on their times."""
    for one in case.inputs:
        picks = pa.array(list(rows[one.name]), pa.int64())
        _DUCKDB.register(one.name, _signed(one.table.take(picks)).append_column("row", picks))
    return project(case, _DUCKDB.execute(duckdb_text(case)).fetchall())


def _signed(table: pa.Table) -> pa.Table:
    """Spark has no unsigned numbers; DuckDB would fail where their difference is negative."""
    fields = [field.with_type(pa.int16()) if field.type == pa.uint8() else field for field in table.schema]
    return table.cast(pa.schema(fields))


def duckdb_text(case: Case) -> str:
    """The query as DuckDB would be asked it."""
    times = {one.name: f"epoch_us({one.name}.{one.time})" for one in case.inputs}
    latest = f"greatest({', '.join(times.values())})"
    windows = [
        f"{latest} - {times[one.name]} < {one.window}" for one in case.inputs if isinstance(one.window, int)
    ]
    where = " AND ".join([*windows, *(f"({c.duckdb})" for c in case.conditions), "true"])
    return f"SELECT {', '.join(f'{n}.row' for n in case.names)} FROM {', '.join(case.names)} WHERE {where}"


def by_product(
    case: Case, rows: Mapping[str, Iterable[int]], fits: Callable[[Picks], bool] | None = None
) -> Results:
    """The same by looking at every combination; `fits` adds what SQL cannot say."""
    data = {one.name: one.table.to_pylist() for one in case.inputs}
    checks = [condition.check for condition in case.conditions]
    found = []
    for picks in product(*(rows[name] for name in case.names)):
        result = {name: data[name][row] for name, row in zip(case.names, picks, strict=True)}
        if (
            in_windows(case, picks)
            and (fits is None or fits(picks))
            and all(check(result) for check in checks)
        ):
            found.append(picks)
    return project(case, found)


def in_windows(case: Case, picks: Picks) -> bool:
    """T - T_i < W_i for every time window, T being the latest time."""
    times = [one.times[row] for one, row in zip(case.inputs, picks, strict=True)]
    windows = [one.window for one in case.inputs]
    return all(max(times) - time < w for time, w in zip(times, windows, strict=True) if isinstance(w, int))


def in_lines(case: Case, admitted: Admitted) -> Callable[[Picks], bool]:
    """Row windows: every row stands before the n-th successor of every other."""
    places = place_all(case, admitted)
    leaves = {
        one.name: leave(places[one.name], one.window.rows)
        for one in case.inputs
        if isinstance(one.window, RowWindow)
    }

    def fits(picks: Picks) -> bool:
        latest = max(places[name][row] for name, row in zip(case.names, picks, strict=True))
        return all(latest < leaves[n][row] for n, row in zip(case.names, picks, strict=True) if n in leaves)

    return fits


def place_all(case: Case, admitted: Admitted) -> dict[str, dict[int, int]]:
    """Each row's place among all rows: by batch, event time, stream."""
    order = [
        (batch, one.times[row], number, row)
        for number, one in enumerate(case.inputs)
        for batch, row in admitted.rows[one.name]
    ]
    places: dict[str, dict[int, int]] = {name: {} for name in case.names}
    for place, (_, _, number, row) in enumerate(sorted(order)):
        places[case.names[number]][row] = place
    return places


def leave(places: Mapping[Any, int], rows: int) -> dict[Any, float]:
    """The place of each row's n-th successor, infinite while it has not come."""
    line = sorted(places, key=places.__getitem__)
    return {
        row: places[line[i + rows]] if i + rows < len(line) else float("inf") for i, row in enumerate(line)
    }


def project(case: Case, picks: Iterable[Picks]) -> Results:
    """The results' columns, as `weir.run` reads them from the engine."""
    keep = [one.table if case.select_all else one.table.select(["id"]) for one in case.inputs]
    values = [[tuple(map(comparable, row.values())) for row in table.to_pylist()] for table in keep]
    return Counter(
        tuple(v for rows, row in zip(values, found, strict=True) for v in rows[row]) for found in picks
    )
