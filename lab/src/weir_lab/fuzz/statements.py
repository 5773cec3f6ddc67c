"""Random statements and scripts: by the grammar, and torn apart afterwards."""

from __future__ import annotations

import random
import re
from itertools import pairwise

from weir_lab.fuzz.grammar import COLUMNS, Grammar

_LENGTHS = ["10 MINUTES", "1 HOUR", "5 rows", "30 seconds", "1 DAY", "100 rows", "2 weeks 3 hours"]
_ODD_LENGTHS = ["1 month", "0 seconds", "-5 minutes", "10", "", "ten minutes", "1e300 days",
                "99999999999999 DAYS", "0.1 µs",
                "1 fortnight", "9" * 40 + " s", "rows", "0 rows", "½ hours", "1 second 1 row", "NULL",
                "'1 hour'",
                "INTERVAL 1 HOUR", "0x10 s", "1_000 s", "٣ seconds", "1.5 rows", "inf s",
                "nan minutes"]  # fmt: skip
_TOKENS = ["SELECT", "FROM", "WHERE", "WINDOW", "FRESHNESS", "AND", "OR", "NOT", "(", ")", ",", ".", "*",
           "=", "<", "a",
           "b", "NULL", "CASE", "WHEN", "END", "CAST", "AS", "INTERVAL", "::", "[", "]", "{", "}", ";",
           "--", "/*", "*/",
           "'", '"', "`", "\\", "\u0000", "🦆", "0", "1e999", "9" * 50, "0.", ".e1", "OVER", "UNION",
           "LATERAL", "?",
           ":x", "$1", "@", "#", "|", "||", "->", "=>", "<=>", "IN", "EXISTS", "LIKE", "ESCAPE", "USING",
           "JOIN", "ON",
           "LEFT", "GROUP BY", "ORDER BY", "LIMIT 1", "DISTINCT", "X'", "b.*", "weir:1", "\u202e",
           "e\u0301", "\ud7ff",
           "date", "timestamp'2020'", "interval '1' year", "TRUE", "current_date", "rand()", "sum(a.i)",
           "explode(a.v)",
           "a.i.b.c", "a..i", "a.`i`", "`a`.i", "udf", "struct(a.i)", "map('x', 1)", "array(1)", "x -> x",
           "lambda", "repeat(a.s, 2000000000)", "lpad(a.s, 2147483647, 'x')"]  # fmt: skip
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def draw_statement(rng: random.Random) -> str:
    """Return a SELECT over the tables t, u and v; most of them can be run."""
    streams = rng.choice(["ab", "ab", "ab", "abc"])
    grammar = Grammar(rng, streams, wrong=rng.choice([8, 40, 400]))
    tables = ", ".join(f"{table} {alias}" for table, alias in zip("tuv", streams, strict=False))
    where = draw_condition(rng, grammar, streams)
    text = f"SELECT {draw_select(rng, grammar)} FROM {tables} WHERE {where} WINDOW {_length(rng)}"
    if rng.random() < 0.15:
        text = re.sub(
            r", u b",
            f" JOIN u b {rng.choice(['USING (k)', 'ON a.k = b.k', 'USING (l)', 'USING (i, s)'])}",
            text,
        )
    return f"{text} FRESHNESS {_length(rng)}" if rng.random() < 0.15 else text


def draw_condition(rng: random.Random, grammar: Grammar, streams: str) -> str:
    """Return a condition that connects all streams, and more."""
    parts = []
    for left, right in pairwise(streams):
        kind = rng.choice(["int", "int", "str", "date", "dec", "bool"])
        column = rng.choice(COLUMNS[kind])
        sides = Grammar(rng, [left]).draw(kind, 1), Grammar(rng, [right]).draw(kind, 1)
        equality = (
            f"({sides[0]}) = ({sides[1]})" if rng.random() < 0.4 else f"{left}.{column} = {right}.{column}"
        )
        parts.append(equality)
    parts += [grammar.draw("bool", rng.randint(1, 4)) for _ in range(rng.randint(0, 2))]
    if rng.random() < 0.02:
        parts.append(_nest(rng))
    return " AND ".join(f"({part})" for part in parts)


def draw_select(rng: random.Random, grammar: Grammar) -> str:
    """Return a SELECT list."""
    items = [
        grammar.draw(depth=rng.randint(0, 3)) + rng.choice(["", f" AS c{i}", f" `c {i}`"])
        for i in range(rng.randint(1, 3))
    ]
    return (
        ", ".join(items) if rng.random() < 0.9 else rng.choice(["*", "a.*", "a.k AS x, b.k AS x", "a.*, b.k"])
    )


def draw_script(rng: random.Random) -> str:
    """Return a job for `weir run`."""
    streams = [
        f"CREATE STREAM {name} ({_columns(rng)}) USING {rng.choice(['json', 'rate', 'a.b.C', '1'])}"
        f" OPTIONS (path 'in/{name}') TIMESTAMP BY {rng.choice(['ts', 'ts', 'TS', 'nope', '`ts`'])}"
        f"{rng.choice(['', ' RATE 2000', ' RATE -1', ' RATE x'])}"
        f"{rng.choice(['', f' LATENESS {_length(rng)}'])};"
        for name in "tuv"
    ]
    sink = (
        f" INTO {rng.choice(['parquet', 'json', 'x.y'])} {rng.choice(['', chr(39) + 'out' + chr(39)])}"
        f"{rng.choice(['', ' BUDGET (cpu 0.8)', ' BUDGET (memory 2g, cpu 1e999)', ' BUDGET (x 1)'])}"
        f"{rng.choice(['', ' ADAPT OFF', ' ADAPT (change 0.05)', ' ADAPT (gain nan)', ' ADAPT (x 1)'])}"
        f"{rng.choice(['', f' TRIGGER {_length(rng)}'])};"
    )
    return "\n".join([*streams, draw_statement(rng) + sink])


def tear(rng: random.Random, text: str) -> str:
    """Return the text with a few words deleted, doubled, swapped or replaced by odd ones."""
    words = _WORD.findall(text) or [""]
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(6):
            case 0:
                words[at] = ""
            case 1:
                words.insert(at, words[other])
            case 2:
                words[at], words[other] = words[other], words[at]
            case 3:
                words[at] = rng.choice(_TOKENS)
            case 4:
                words.insert(at, f" {rng.choice(_TOKENS)} ")
            case _:
                words[at] = words[at][: rng.randrange(len(words[at]) + 1)] + chr(
                    rng.choice([0, 9, 39, 0xFFFF, 0x1F600, 65])
                )
    return "".join(words)


def _length(rng: random.Random) -> str:
    return rng.choice(_LENGTHS if rng.random() < 0.97 else _ODD_LENGTHS)


def _columns(rng: random.Random) -> str:
    return rng.choice(
        [
            "ts TIMESTAMP, k SMALLINT",
            "ts TIMESTAMP",
            "ts",
            "",
            "ts TIMESTAMP, ts INT",
            "`t s` MAP<STRING, INT>, ts DATE",
        ]
    )


def _nest(rng: random.Random) -> str:
    depth = rng.choice([10, 60, 300, 2000])
    return rng.choice([
        "(" * depth + "a.ok" + ")" * depth,
        "NOT " * depth + "a.ok",
        " + ".join(["a.i"] * depth) + " > b.i",
        " OR ".join(["a.i = b.l"] * min(depth, 300)),
        "abs(" * depth + "a.i" + ")" * depth + " = b.i",
        "-" * depth + "1 = b.i",
        "CASE WHEN a.ok THEN " * min(depth, 300) + "a.ok" + " END" * min(depth, 300),
        "a" + ".x" * depth + " = 1",
        "a.v" + "[0]" * depth + " = 1",
    ])  # fmt: skip
