"""The grammar of a job script; keywords in any case, comments as in SQL, [...] may be left out.

CREATE STREAM name [(columns as in Spark's DDL)] USING format [OPTIONS (key 'value', ...)]
    TIMESTAMP BY column [RATE rows a second] [LATENESS 5 SECONDS];
SELECT ... FROM ... [WHERE ...] [WINDOW ...] [FRESHNESS ...]
    INTO format ['path'] [OPTIONS (key 'value', ...)] [BUDGET (cpu 0.8, memory '2g')]
    [ADAPT (change 0.05, gain 0.05, calibrate 3) | ADAPT OFF] [TRIGGER 1 SECOND];
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from sqlglot import Token, TokenType

from weir.adapt.settings import Adapt
from weir.errors import QueryError, unknown
from weir.query.model import Budget
from weir.query.sql import parse_sql
from weir.script.model import Into, Script, StreamSource
from weir.script.reader import Reader, is_word, statements
from weir.units import interval

_OPEN, _CLOSE = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_BUDGET = ("cpu", "memory")
_ADAPT = {"change": "0.05", "gain": "0.05", "calibrate": "3"}


def parse_script(text: str) -> Script:
    """The job of a script, or a QueryError that names the line.

    >>> job = parse_script('''
    ...     CREATE STREAM orders (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/orders')
    ...         TIMESTAMP BY ts LATENESS 5 SECONDS;
    ...     CREATE STREAM paid (ts TIMESTAMP, id INT) USING json OPTIONS (path 'in/paid') TIMESTAMP BY ts;
    ...     SELECT o.id FROM orders o, paid p WHERE o.id = p.id WINDOW 10 MINUTES INTO parquet 'out';
    ... ''')
    >>> [(source.name, source.late) for source in job.sources], job.into.options
    ([('orders', 5000000), ('paid', 0)], {'path': 'out'})
    """
    sources: list[StreamSource] = []
    queries: list[Reader] = []
    for reader in statements(text):
        if reader.at("CREATE"):
            sources.append(_stream(reader, sources))
        elif reader.at("SELECT"):
            queries.append(reader)
        else:
            reader.fail("expected CREATE STREAM or SELECT")
    if len(queries) != 1:
        where = f"line {queries[1].line}: " if queries else ""
        raise QueryError(f"{where}a script has one SELECT ... INTO statement; this one has {len(queries)}")
    return _query(queries[0], tuple(sources))


def _stream(reader: Reader, known: Sequence[StreamSource]) -> StreamSource:
    line = reader.line
    reader.expect("CREATE", "STREAM")
    name = reader.name("the name of a stream")
    if name.lower() in (source.name.lower() for source in known):
        raise QueryError(f"line {line}: stream '{name}' is created twice")
    columns, names = (None, None) if reader.at("USING") else _columns(reader)
    reader.expect("USING")
    source_format = reader.dotted("a format, like parquet")
    options = _options(reader)
    reader.expect("TIMESTAMP", "BY")
    place = reader.line
    time = reader.name("the column of the event time")
    if names is not None and time.lower() not in map(str.lower, names):
        raise QueryError(f"line {place}: {unknown('column', time, names, where=f' in stream {name!r}')}")
    rate = _rate(reader) if reader.took("RATE") else None
    late = _length(reader) if reader.took("LATENESS") else 0
    if not reader.is_done:
        reader.fail("expected LATENESS or ;" if rate is not None else "expected RATE, LATENESS or ;")
    return StreamSource(name, columns, source_format, options, time, late, line, rate)


def _columns(reader: Reader) -> tuple[str, list[str]]:
    line, parts = reader.line, reader.group("expected (", "expected a column's name and its type")
    names = [reader.tokens[first].text for first, _ in parts]
    for first, last in parts:
        if first == last:
            reader.skip_to(first)
            reader.fail("expected a column's name and its type")
    twice = next((name for i, name in enumerate(names) if name.lower() in map(str.lower, names[:i])), None)
    if twice is not None:
        raise QueryError(f"line {line}: column '{twice}' stands twice")
    return reader.source(parts[0][0], parts[-1][1]), names


def _rate(reader: Reader) -> float:
    line, text = reader.line, reader.value()
    rate = _number(text, line, "a RATE", "2000")
    if not 0 < rate < math.inf:
        raise QueryError(f"line {line}: a RATE is above zero rows a second; got {text}")
    return rate


def _number(text: str, line: int, what: str, example: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError(f"line {line}: {what} is a number, like {example}; got '{text}'") from None


def _budget(reader: Reader) -> Budget | None:
    line, given = reader.line, _options(reader, "BUDGET")
    if not given:
        return None
    named = _named(given, _BUDGET, line, "limit", "BUDGET")
    cpu = _number(named["cpu"], line, "a budget's cpu", "0.8") if "cpu" in named else None
    try:
        return Budget(cpu, named.get("memory"))
    except QueryError as error:
        raise QueryError(f"line {line}: {error}") from None


def _adapt(reader: Reader) -> Adapt | bool | None:
    if reader.took("ADAPT", "OFF"):
        return False
    line, given = reader.line, _options(reader, "ADAPT", "expected OFF or (")
    if not given:
        return None
    named = _named(given, list(_ADAPT), line, "setting", "ADAPT")
    numbers = {key: _number(text, line, f"{key} of ADAPT", _ADAPT[key]) for key, text in named.items()}
    whole = {key: int(number) if number.is_integer() else number for key, number in numbers.items()}
    try:
        return Adapt(**whole)  # type: ignore[arg-type] # it checks that batches are whole
    except QueryError as error:
        raise QueryError(f"line {line}: {error}") from None


def _named(
    given: Mapping[str, str], known: Sequence[str], line: int, what: str, where: str
) -> dict[str, str]:
    """Settings by their names in lower case, or a QueryError for one that is not known."""
    named: dict[str, str] = {}
    for key, value in given.items():
        if key.lower() not in known:
            raise QueryError(f"line {line}: {unknown(what, key, known, where=f' in {where}')}")
        if key.lower() in named:
            raise QueryError(f"line {line}: {what} '{key}' stands twice in {where}")
        named[key.lower()] = value
    return named


def _options(reader: Reader, word: str = "OPTIONS", opening: str = "expected (") -> dict[str, str]:
    options: dict[str, str] = {}
    if not reader.took(word):
        return options
    line = reader.line
    parts = reader.group(opening, "expected a key and its value")
    end = parts[-1][1] + 2
    for first, last in parts:
        reader.skip_to(first)
        # Only options of sources and sinks have dots in their keys: in (cpu .5) it is the number's.
        plain = reader.dotted if word == "OPTIONS" else reader.name
        key = reader.string("expected a key") if reader.is_string() else plain("a key")
        if key in options:
            raise QueryError(f"line {line}: option '{key}' stands twice")
        reader.took("=")
        options[key] = reader.value()
        if reader.place != last + 1:
            reader.fail("expected , or )")
    reader.skip_to(end)
    return options


def _length(reader: Reader) -> int:
    line = reader.line
    text = reader.rest()
    try:
        length = interval(text)
    except QueryError as error:
        raise QueryError(f"line {line}: {error}") from None
    if length < 0:
        raise QueryError(f"line {line}: '{text}' is less than nothing; expected a length like 5 SECONDS")
    return length


def _query(reader: Reader, sources: tuple[StreamSource, ...]) -> Script:
    line, into = reader.line, _into_place(reader.tokens)
    if into is None:
        raise QueryError(
            f"line {line}: the SELECT has no INTO; say where the results go, like INTO parquet 'some/folder'"
        )
    # Empty lines before it make the parser count the lines as the script does.
    select = "\n" * (line - 1) + reader.source(0, into - 1)
    reader.skip_to(into + 1)
    target = _target(reader)
    try:
        tables = parse_sql(select).tables
        return Script(
            sources, select, line, tuple((_known(table, sources), alias) for table, alias in tables), target
        )
    except QueryError as error:
        raise in_select(line, error) from None


def in_select(line: int, error: QueryError) -> QueryError:
    """An error of the SELECT, with the place of the SELECT in the script."""
    return QueryError(f"line {line}, in the SELECT: {error}")


def _into_place(tokens: Sequence[Token]) -> int | None:
    depth, found = 0, None
    for place, token in enumerate(tokens):
        depth += (token.token_type in _OPEN) - (token.token_type in _CLOSE)
        is_name = token.token_type == TokenType.IDENTIFIER or tokens[place - 1].token_type == TokenType.DOT
        if depth == 0 and place and not is_name and is_word(token, "INTO"):
            found = place
    return found


def _target(reader: Reader) -> Into:
    sink = reader.dotted("a format, like parquet")
    path = {"path": reader.string("")} if reader.is_string() else {}
    line, options = reader.line, _options(reader)
    if path and "path" in options:
        raise QueryError(f"line {line}: the path stands twice, after INTO and in OPTIONS")
    budget = _budget(reader)
    adapt = _adapt(reader)
    trigger = _length(reader) if reader.took("TRIGGER") else None
    if not reader.is_done:
        reader.fail("expected OPTIONS, BUDGET, ADAPT, TRIGGER or ;, in this order")
    return Into(sink, path | options, trigger, budget, adapt)


def _known(table: str, sources: Sequence[StreamSource]) -> StreamSource:
    for source in sources:
        if source.name.lower() == table.lower():
            return source
    raise unknown("stream", table, [source.name for source in sources], where=" in FROM")
