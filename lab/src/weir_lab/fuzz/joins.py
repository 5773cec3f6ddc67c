"""Compare whole joins, in one process and on Spark, with Spark's batch join of the same rows.

The oracle is `SELECT ... FROM a, b WHERE <the times are within the window> AND <condition>`.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any, Literal

import pyarrow as pa

import weir
from weir.errors import EvaluationError, QueryError
from weir.expr.session import Session
from weir_lab.fuzz.columns import SCHEMA, random_table, random_value
from weir_lab.fuzz.expressions import reason_of
from weir_lab.fuzz.grammar import Grammar
from weir_lab.fuzz.sessions import SESSIONS, open_session
from weir_lab.fuzz.spark_answers import collect, to_items, to_spark

Engine = Literal["local", "spark"]
_ROWS = 24
_WINDOWS = {"10 minutes": 600, "1 hour": 3600, "5 hours": 18_000}
_KEYS = ("int", "int", "str", "date", "dec", "bool", "ts", "dbl")
# The columns by which most joins find partners have few values.
_FEW: Mapping[str, list[Any]] = {
    "k": [0, 1, 2, 3, None], "i": [-1, 0, 1, 2, 7], "s": ["a", "A", "abc", " a ", "ß", "", None],
          "ok": [True, False],
    "d": [dt.date(2024, 3, 9), dt.date(2024, 3, 10), dt.date(2024, 11, 3)],
}  # fmt: skip
_AGREED = ("results", "no results", "fails")


@dataclass(frozen=True, slots=True)
class Case:
    """A join to compare; the rows follow from the seed."""

    streams: str
    on: str
    select: str
    window: str
    session: Session
    engine: Engine
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many joins were compared, how many of them had results or failed; and what differs."""

    ends: Counter[str]
    refused: Counter[str]
    differences: tuple[str, ...]


def fuzz_joins(spark: Any, count: int, seed: int, tell: Callable[[str], None]) -> Outcome:
    """Compare so many joins, over all sessions and both engines; those that weir refuses do not count."""
    rng = random.Random(seed)
    ends, refused, differences = Counter[str](), Counter[str](), list[str]()
    while ends.total() < count:
        number = ends.total()
        case = draw_case(rng, SESSIONS[number % len(SESSIONS)], "local" if number // 6 % 2 == 0 else "spark")
        try:
            end = compare_join(spark, case)
        except QueryError as error:
            refused[reason_of(error)] += 1
            continue
        ends[end if end in _AGREED else "differs"] += 1
        if end not in _AGREED:
            differences.append(f"{case}: {end}")
        tell(f"{ends.total()} of {count} joins, {len(differences)} differ")
    return Outcome(ends, refused, tuple(differences))


def draw_case(rng: random.Random, session: Session, engine: Engine) -> Case:
    """Return a random join of two or three streams."""
    streams = rng.choice(["ab", "ab", "abc"])
    parts = [_draw_equality(rng, left, right) for left, right in pairwise(streams)]
    if rng.random() < 0.4:
        parts.append(Grammar(rng, rng.choice(streams), wrong=10**6).draw("bool", 2))
    if rng.random() < 0.5:
        parts.append(Grammar(rng, streams, wrong=10**6).draw("bool", rng.randint(1, 3)))
    grammar = Grammar(rng, streams, wrong=10**6)
    items = [f"{grammar.draw(depth=rng.randint(0, 3))} AS c{i}" for i in range(rng.randint(1, 4))]
    condition = " AND ".join(f"({part})" for part in parts)
    window = rng.choice(list(_WINDOWS))
    return Case(streams, condition, ", ".join(items), window, session, engine, rng.randrange(10**9))


def _draw_equality(rng: random.Random, left: str, right: str) -> str:
    if rng.random() < 0.5:
        column = rng.choice(["k", "i", "s", "ok", "d", "m"])
        return f"{left}.{column} {rng.choice(['=', '=', '=', '<=>'])} {right}.{column}"
    kind = rng.choice(_KEYS)
    side, other = (
        Grammar(rng, [stream], wrong=10**6).draw(kind, rng.randint(1, 2)) for stream in (left, right)
    )
    # The same expression of both streams is equal far more often.
    return f"({side}) = ({side.replace(f'{left}.', f'{right}.') if rng.random() < 0.7 else other})"


def compare_join(spark: Any, case: Case) -> str:
    """Return 'results', 'no results' or 'fails' if Spark and weir agree on that, else how they differ."""
    tables = draw_tables(case)
    own = open_session(spark, case.session)
    frames = {name: _to_frame(own, table) for name, table in tables.items()}
    ours = _run_weir(case, tables, frames)
    theirs = _run_spark(own, case, frames)
    if isinstance(ours, str) or isinstance(theirs, str):
        both_fail = isinstance(ours, str) and isinstance(theirs, str)
        return "fails" if both_fail else f"Spark {_show(theirs)}, weir {_show(ours)}"
    if ours != theirs:
        return f"Spark has {_show(theirs - ours)}, weir {_show(ours - theirs)}"
    return "results" if ours else "no results"


def draw_tables(case: Case) -> dict[str, pa.Table]:
    """Return the rows of a case: some hours of event times, and keys of few values."""
    rng = random.Random(case.seed)
    return {name: _draw_rows(rng) for name in case.streams}


def _draw_rows(rng: random.Random) -> pa.Table:
    table = random_table(rng, _ROWS)
    start = dt.datetime(2024, 3, 10, 4, tzinfo=dt.UTC)
    times = [start + dt.timedelta(seconds=rng.randrange(18_000)) for _ in range(_ROWS)]
    columns: dict[str, list[Any]] = {
        name: [random_value(name, rng) if rng.random() < 0.1 else rng.choice(few) for _ in range(_ROWS)]
        for name, few in _FEW.items()
    }
    for name, values in {**columns, "ts": times}.items():
        place = SCHEMA.get_field_index(name)
        table = table.set_column(place, SCHEMA.field(place), pa.array(values, SCHEMA.field(place).type))
    return table


def _to_frame(session: Any, table: pa.Table) -> Any:
    frame = session.createDataFrame(pa.table([to_spark(c) for c in table.columns], names=table.column_names))
    return frame.withColumn("u", frame["u"].cast("timestamp_ntz"))


def _run_weir(case: Case, tables: Mapping[str, pa.Table], frames: Mapping[str, Any]) -> Counter[Any] | str:
    options: dict[str, Any] = {"on": case.on, "select": case.select, "within": case.window}
    if case.engine == "spark":
        join: Any = weir.join(**frames, **options)
    else:
        settings = {"timeZone": case.session.time_zone, "ansi": case.session.ansi}
        join = weir.join(**tables, **options, session=settings)
    try:
        return _to_bag(collect(join.toDF()) if case.engine == "spark" else join.to_arrow())
    except EvaluationError as error:
        return str(error)
    except Exception as error:
        if "EvaluationError" in str(error) or case.engine == "spark":
            return _last_sentence(error)
        raise


def _run_spark(session: Any, case: Case, frames: Mapping[str, Any]) -> Counter[Any] | str:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    for name, frame in frames.items():
        frame.createOrReplaceTempView(f"t_{name}")
    seconds = _WINDOWS[case.window]
    near = [
        f"abs(unix_micros({x}.ts) - unix_micros({y}.ts)) < {seconds}000000"
        for x, y in combinations(case.streams, 2)
    ]
    sources = ", ".join(f"t_{name} {name}" for name in case.streams)
    try:
        where = " AND ".join([*near, f"({case.on})"])
        return _to_bag(collect(session.sql(f"SELECT {case.select} FROM {sources} WHERE {where}")))
    except (PySparkException, Py4JJavaError) as error:  # PySpark does not translate all of Java's
        return _last_sentence(error)


def _to_bag(table: pa.Table) -> Counter[Any]:
    """Return the rows with their counts; floats as text, since NaN does not equal itself."""
    columns = [map(repr, to_items(column.combine_chunks())) for column in table.columns]
    return Counter(zip(*columns, strict=True))


def _last_sentence(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "EvaluationError" in line), lines[0] if lines else repr(error))


def _show(answer: Counter[Any] | str) -> str:
    if isinstance(answer, str):
        return f"fails: {answer[:300]}"
    return f"{answer.total()} rows, {list(answer)[:2]}"
