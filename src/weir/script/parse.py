"""Parse a job script; keywords ignore case, comments are as in SQL, [...] is optional.

CREATE STREAM name [(columns as in Spark's DDL)] USING format [OPTIONS (key 'value', ...)]
    TIMESTAMP BY column [RATE rows a second] [LATENESS 5 SECONDS];
SELECT ... FROM ... [WHERE ...] [WINDOW ...] [FRESHNESS ... [CLOCK WALL]]
    INTO format ['path'] [OPTIONS (key 'value', ...)] [BUDGET (cpu 0.8, memory '2g')]
    [PLAN mjoin | PLAN ((a b) c)] [SHED harvest] [BASIC WINDOW 2 SECONDS]
    [DRIVER ORDER least-work | DRIVER ORDER (b, a)] [SPREAD psp]
    [ADAPT (change 0.05, gain 0.05, calibrate 3) | ADAPT OFF]
    [IDLE 10 MINUTES] [AHEAD 1 HOUR | AHEAD OFF] [TRIGGER 1 SECOND];

The clauses after INTO come in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from sqlglot import Token, TokenType

from weir.adapt.settings import Adapt
from weir.errors import QueryError, locate_errors, match_name, suggest_name
from weir.query.model import Budget
from weir.query.sql import parse_sql
from weir.query.window_clauses import outer_tokens
from weir.query.windows import check_length
from weir.script.choices import parse_driver_order, parse_plan, parse_shed, parse_spread
from weir.script.token_reader import TokenReader, is_word, split_statements
from weir.units import parse_interval

_Options: TypeAlias = dict[str, str]
_BUDGET = ("cpu", "memory")
_ADAPT = {"change": "0.05", "gain": "0.05", "calibrate": "3"}


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A stream declared by `CREATE STREAM`; if `columns` is None, the source provides the schema.

    `rate` is the expected number of rows per second, for the planner; `late` is in microseconds.
    """

    name: str
    columns: str | None
    format: str
    options: Mapping[str, str]
    time: str
    late: int
    line: int
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class IntoClause:
    """The INTO clause: where results go, and how the query runs.

    `trigger` is the time between batches in microseconds, None for none. `adapt` is as in `weir.join`; None
    adapts if there is a budget. `arguments` has what the other clauses say, also as in `weir.join`. `line` is
    where it begins.
    """

    format: str
    options: Mapping[str, str] = field(default_factory=dict)
    trigger: int | None = None
    budget: Budget | None = None
    adapt: Adapt | bool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    line: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class Script:
    """A job; `tables` pairs each declared stream of the FROM list with its alias."""

    sources: tuple[StreamSource, ...]
    select: str
    line: int
    tables: tuple[tuple[StreamSource, str], ...]
    sink: IntoClause


def parse_script(text: str) -> Script:
    """Parse a script, or raise a QueryError that names the line.

    >>> job = parse_script('''
    ...     CREATE STREAM orders (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/orders')
    ...         TIMESTAMP BY ts LATENESS 5 SECONDS;
    ...     CREATE STREAM paid (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/paid') TIMESTAMP BY ts;
    ...     SELECT o.id FROM orders o, paid p WHERE o.id = p.id WINDOW 10 MINUTES INTO parquet 'out';
    ... ''')
    >>> [(source.name, source.late) for source in job.sources], job.sink.options
    ([('orders', 5000000), ('paid', 0)], {'path': 'out'})
    """
    sources: list[StreamSource] = []
    queries: list[TokenReader] = []
    for reader in split_statements(text):
        if reader.next_is("CREATE"):
            sources.append(_parse_stream(reader, sources))
        elif reader.next_is("SELECT"):
            queries.append(reader)
        else:
            raise reader.error("expected CREATE STREAM or SELECT")
    if len(queries) != 1:
        line = queries[1].line if queries else 1 + text.rstrip().count("\n")
        raise QueryError(
            f"line {line}: a script has one SELECT ... INTO statement; this one has {len(queries)}"
        )
    return _parse_query(queries[0], tuple(sources))


def _parse_stream(reader: TokenReader, known: Sequence[StreamSource]) -> StreamSource:
    line = reader.line
    reader.expect("CREATE", "STREAM")
    name = reader.read_name("the name of a stream")
    if name.lower() in (source.name.lower() for source in known):
        raise QueryError(f"line {line}: stream '{name}' is created twice")
    columns, names = (None, None) if reader.next_is("USING") else _parse_columns(reader)
    reader.expect("USING")
    source_format = reader.read_dotted_name("a format, like parquet")
    options = _parse_options(reader)
    reader.expect("TIMESTAMP", "BY")
    time_line = reader.line
    time = reader.read_name("the column of the event time")
    if names is not None:
        with locate_errors(f"line {time_line}: "):
            match_name("column", time, names, where=f" in stream {name!r}")
    rate = _parse_rate(reader) if reader.accept("RATE") else None
    late = _parse_length(reader) if reader.accept("LATENESS") else 0
    if not reader.is_done:
        raise reader.error("expected LATENESS or ;" if rate is not None else "expected RATE, LATENESS or ;")
    return StreamSource(name, columns, source_format, options, time, late, line, rate)


def _parse_columns(reader: TokenReader) -> tuple[str, list[str]]:
    """Return the text of the column list, which Spark parses, and the columns' names."""
    line, parts = reader.line, reader.read_list("expected (", "expected a column's name and its type")
    names = [reader.tokens[first].text for first, _ in parts]
    for first, last in parts:
        if first == last:
            reader.position = first
            raise reader.error("expected a column's name and its type")
    twice = next((name for i, name in enumerate(names) if name.lower() in map(str.lower, names[:i])), None)
    if twice is not None:
        raise QueryError(f"line {line}: column '{twice}' is given twice")
    return reader.source(parts[0][0], parts[-1][1]), names


def _parse_rate(reader: TokenReader) -> float:
    line, text = reader.line, reader.read_value()
    rate = _parse_number(text, line, "a RATE", "2000")
    if not 0 < rate < math.inf:
        raise QueryError(f"line {line}: a RATE is above zero rows a second; got {text}")
    return rate


def _parse_number(text: str, line: int, what: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError(f"line {line}: {what} is a number, like {example}; got '{text}'") from None


def _parse_budget(reader: TokenReader) -> Budget | None:
    line, given = reader.line, _parse_options(reader, "BUDGET")
    if not given:
        return None
    limits = _check_keys(given, _BUDGET, line, "limit", "BUDGET")
    cpu = _parse_number(limits["cpu"], line, "a budget's cpu", "0.8") if "cpu" in limits else None
    with locate_errors(f"line {line}: "):
        return Budget(cpu, limits.get("memory"))


def _parse_adapt(reader: TokenReader) -> Adapt | bool | None:
    if reader.accept("ADAPT", "OFF"):
        return False
    line, given = reader.line, _parse_options(reader, "ADAPT", "expected OFF or (")
    if not given:
        return None
    settings = _check_keys(given, _ADAPT, line, "setting", "ADAPT")
    numbers: dict[str, Any] = {}
    for key, text in settings.items():
        number = _parse_number(text, line, f"{key} of ADAPT", _ADAPT[key])
        numbers[key] = int(number) if number.is_integer() else number
    with locate_errors(f"line {line}: "):
        return Adapt(**numbers)  # it checks that batches are whole


def _check_keys(given: _Options, known: Collection[str], line: int, what: str, where: str) -> _Options:
    """Return the values by key in lower case, or raise for an unknown or repeated key."""
    values: _Options = {}
    for key, value in given.items():
        with locate_errors(f"line {line}: "):
            match_name(what, key, known, where=f" in {where}")
        if key.lower() in values:
            raise QueryError(f"line {line}: {what} '{key}' is given twice in {where}")
        values[key.lower()] = value
    return values


def _parse_options(reader: TokenReader, word: str = "OPTIONS", opening: str = "expected (") -> _Options:
    options: _Options = {}
    if not reader.accept(word):
        return options
    line = reader.line
    parts = reader.read_list(opening, "expected a key and its value")
    # Only keys of sources and sinks contain dots: in (cpu .5) the dot belongs to the number.
    read_word = reader.read_dotted_name if word == "OPTIONS" else reader.read_name
    for first, last in parts:
        reader.position = first
        is_quoted = reader.next_is_type(TokenType.STRING)
        key = reader.read_type(TokenType.STRING, "expected a key") if is_quoted else read_word("a key")
        if key in options:
            raise QueryError(f"line {line}: option '{key}' is given twice")
        reader.accept("=")
        options[key] = _read_option(reader, key) if word == "OPTIONS" else reader.read_value()
        if reader.position != last + 1:
            raise QueryError(f"line {reader.line}: expected , or ) after the value of '{key}'")
    reader.position = parts[-1][1] + 2
    return options


def _read_option(reader: TokenReader, key: str) -> str:
    """Read the value of an option; the error does not show what is there, since it may be a secret."""
    line = reader.line
    try:
        return reader.read_value()
    except QueryError:
        raise QueryError(
            f"line {line}: the value of option '{key}' is in quotes, a number, true or false"
        ) from None


def _parse_interval(reader: TokenReader, words: Sequence[str]) -> timedelta:
    reader.expect(*words)
    return timedelta(microseconds=_parse_length(reader))


def _parse_ahead(reader: TokenReader) -> timedelta | None:
    return None if reader.accept("AHEAD", "OFF") else _parse_interval(reader, ("AHEAD",))


def _parse_trigger(reader: TokenReader) -> int:
    reader.expect("TRIGGER")
    return _parse_length(reader)


def _parse_length(reader: TokenReader) -> int:
    line = reader.line
    text = reader.read_until(*(words.split()[0] for words in _CLAUSES))
    with locate_errors(f"line {line}: "):
        length = parse_interval(text)
        check_length(length, f"'{text}'")
    if length < 0:
        raise QueryError(f"line {line}: '{text}' is negative; expected a length like 5 SECONDS")
    return length


def _parse_query(reader: TokenReader, sources: tuple[StreamSource, ...]) -> Script:
    line, into = reader.line, _find_into(reader.tokens)
    if into is None:
        raise QueryError(
            f"line {line}: the SELECT has no INTO; say where the results go, like INTO parquet 'some/folder'"
        )
    # Empty lines before the SELECT make sqlglot report the script's line numbers.
    select = "\n" * (line - 1) + reader.source(0, into - 1)
    reader.position = into + 1
    sink = _parse_sink(reader)
    by_name = {source.name: source for source in sources}
    with locate_errors(f"line {line}, in the SELECT: "):
        named = parse_sql(select).tables
        matched = [(match_name("stream", table, by_name, " in FROM"), alias) for table, alias in named]
    return Script(sources, select, line, tuple((by_name[name], alias) for name, alias in matched), sink)


def _find_into(tokens: Sequence[Token]) -> int | None:
    """Find the last INTO that is a keyword, outside of parentheses and not the name of a column."""
    words = [position for position, token in outer_tokens(tokens) if position and is_word(token, "INTO")]
    return max((i for i in words if tokens[i - 1].token_type != TokenType.DOT), default=None)


def _parse_sink(reader: TokenReader) -> IntoClause:
    into, sink_format = reader.line, reader.read_dotted_name("a format, like parquet")
    path = {"path": reader.read_type(TokenType.STRING, "")} if reader.next_is_type(TokenType.STRING) else {}
    line, given = reader.line, _parse_clauses(reader)
    options = given.pop("options", {})
    if path and "path" in options:
        raise QueryError(f"line {line}: the path is given twice, after INTO and in OPTIONS")
    trigger, budget, adapt = (given.pop(name, None) for name in ("trigger", "budget", "adapt"))
    return IntoClause(sink_format, path | options, trigger, budget, adapt, given, into)


# The clauses after INTO: the argument that each stands for, and what reads it.
_CLAUSES: Mapping[str, tuple[str, Callable[[TokenReader], Any]]] = {
    "OPTIONS": ("options", _parse_options),
    "BUDGET": ("budget", _parse_budget),
    "PLAN": ("plan", parse_plan),
    "SHED": ("shed", parse_shed),
    "BASIC WINDOW": ("basic", partial(_parse_interval, words=("BASIC", "WINDOW"))),
    "DRIVER ORDER": ("driver_order", parse_driver_order),
    "SPREAD": ("spread", parse_spread),
    "ADAPT": ("adapt", _parse_adapt),
    "IDLE": ("idle", partial(_parse_interval, words=("IDLE",))),
    "AHEAD": ("ahead", _parse_ahead),
    "TRIGGER": ("trigger", _parse_trigger),
}


def _parse_clauses(reader: TokenReader) -> dict[str, Any]:
    """Return the arguments that the clauses after INTO give."""
    given: dict[str, Any] = {}
    while not reader.is_done:
        clause = next((words for words in _CLAUSES if reader.next_are(*words.split())), None)
        if clause is None:
            *others, last = _CLAUSES
            expected = reader.error(f"expected {', '.join(others)}, {last} or ;")
            raise QueryError(f"{expected}{suggest_name(reader.tokens[reader.position].text, _CLAUSES)}")
        name, parse = _CLAUSES[clause]
        if name in given:
            raise QueryError(f"line {reader.line}: {clause} is given twice")
        given[name] = parse(reader)
    return given
