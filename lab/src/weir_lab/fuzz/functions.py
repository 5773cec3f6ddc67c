"""Count which of Spark's functions work in a join, on one stream and across streams: `docs/expressions.md`.

A function works on one stream if weir builds a join on Spark that selects an example of Spark's own
documentation for it; across streams, if the kernel knows it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import weir
from weir.errors import QueryError
from weir.expr.bind import SPECIAL
from weir.expr.build import callable_names
from weir.expr.evaluate import FUNCTIONS
from weir.expr.types import ALIASES as TYPE_ALIASES
from weir.expr.types import SPARK_NAMES

# How Spark names what is written with operators and keywords, and the kernel knows under another name.
_SYNTAX = frozenset((
    "!", "!=", "==", "<>", "||", "between", "cast", "extract", "ilike", "like", "position", "regexp",
    "regexp_like", "rlike", "when", "case", "bool", "try_cast",
))  # fmt: skip
# What is no value of one row, by the group in which Spark documents it.
_GROUPS: Mapping[str, str] = {
    "agg_funcs": "aggregates: aggregate the results",
    "window_funcs": "window functions: apply them to the results",
    "generator_funcs": "generators: apply them before the join",
    "table_funcs": "tables: pass them as streams",
}  # fmt: skip
_INTRODUCTION = """\
What concerns one stream alone is computed by Spark before the join, with every function that gives one value
for a row, and the same one each time. What reads several streams is computed by weir's kernel, in conditions
and in the SELECT list; in the SELECT list, Spark computes after the join what the kernel does not know. A
condition across streams over another function takes `weir.udf`.

A text with a time of day alone, like '10:11', is a timestamp of today in Spark. Another attempt at the same
batch may run on another day, so the kernel takes it for no timestamp: the cast fails in ANSI mode and is NULL
without it. What Spark computes on one stream has the date of the run. Write the date before the time."""
_READS_ROWS = re.compile(r"\bFROM\s+(VALUES|\(|range)", re.IGNORECASE)
# For functions whose documentation has no example of one value.
_SAMPLES = {
    "!=": "1 != 2", "<>": "1 <> 2", "||": "'a' || 'b'", "case": "CASE WHEN true THEN 1 END",
    "boolean": "boolean(1)", "string": "string(1)", "binary": "binary('a')", "date": "date('2024-01-01')",
    "timestamp": "timestamp('2024-01-01')", "time": "time('10:00:00')",
    **{name: f"{name}('1')" for name in ("tinyint", "smallint", "int", "bigint", "float", "double")},
    "decimal": "decimal(1)",
}  # fmt: skip
_NOT_TRIED = "not tried, since Spark documents no example of one row"
# The examples of a function that are tried until one works.
_TRIES = 3
_EXAMPLE = re.compile(r"^\s*>\s*SELECT\s+(.*?);\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Coverage:
    """The functions of Spark that work on one stream; and why the others do not, by name."""

    one_stream: tuple[str, ...]
    refused: Mapping[str, tuple[str, ...]]


def known_to_kernel(name: str) -> bool:
    """True for a function of Spark that the kernel evaluates over several streams."""
    types = {*SPARK_NAMES, *TYPE_ALIASES, "decimal"}
    return name in {*callable_names(), *FUNCTIONS, *SPECIAL, *_SYNTAX, *types}


def survey(spark: Any) -> Coverage:
    """Try every function of Spark on one stream: what Catalyst can analyse, then in joins of many at once."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    frame = spark.sql("SELECT timestamp'2024-01-01' AS ts, 1 AS k").alias("a")
    examples, refused = dict[str, str](), dict[str, str]()
    for name in sorted(row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()):
        group, texts = _describe(spark, name)
        reasons = {text: _analyse(frame, text) for text in texts[:_TRIES]} if group not in _GROUPS else {}
        working = [text for text, reason in reasons.items() if reason is None]
        if working:
            examples[name] = working[0]
        else:
            reason = _GROUPS.get(group) or next(iter(reasons.values()), None)
            refused[name] = reason or _NOT_TRIED
    refused |= _join_all(frame, examples)
    kinds = sorted(set(refused.values()))
    by_reason = {kind: tuple(sorted(name for name in refused if refused[name] == kind)) for kind in kinds}
    return Coverage(tuple(name for name in examples if name not in refused), by_reason)


def _analyse(frame: Any, example: str) -> str | None:
    """Return why an example cannot be computed for each row of a stream; None if it can."""
    from weir.spark.catalyst import Expression, analyse
    from weir.spark.frames import is_carried

    text = f"CASE WHEN a.k > 0 THEN {example} END"
    try:
        (found,) = analyse(frame, [Expression(text, text)])
    except QueryError as error:
        return _kind_of(str(error))
    except Exception as error:  # what Spark's client does not convert
        return _kind_of(str(error))
    return None if is_carried(found.type) else _kind_of("Arrow cannot carry")


def _join_all(frame: Any, examples: Mapping[str, str]) -> dict[str, str]:
    """Build joins over the examples; return the reasons for which weir refuses some of them."""
    items = {name: f"CASE WHEN a.k > 0 THEN {text} END AS value" for name, text in examples.items()}
    select = ", ".join(f"{item}_{number}" for number, item in enumerate(items.values()))
    try:
        weir.join(a=frame, b=frame, on="a.k = b.k", within="1 hour", select=select)
    except QueryError as error:
        if len(examples) == 1:
            return dict.fromkeys(examples, _kind_of(str(error)))
        names = list(examples)
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        parts = [_join_all(frame, {name: examples[name] for name in half}) for half in halves]
        return parts[0] | parts[1]
    return {}


def _kind_of(sentence: str) -> str:
    kinds = {
        "not deterministic": "not deterministic: a repeated batch must see the same rows",
        "aggregates and window": "aggregates: aggregate the results",
        "Arrow cannot carry": "a type that Arrow cannot carry: cast the value",
        "not one value for each row": "generators: apply them before the join",
        "cannot read": "syntax that weir does not parse",
        "subqueries": "syntax that weir does not parse",
        "FEATURE_NOT_ENABLED": "not enabled in Spark by default",
    }
    return next((kind for words, kind in kinds.items() if words in sentence), "other reasons")


def _describe(spark: Any, name: str) -> tuple[str, list[str]]:
    """Return the group of a function, and the expressions of its examples."""
    jvm = spark._jvm
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name)
    try:
        info = spark._jsparkSession.sessionState().catalog().lookupFunctionInfo(identifier)
    except Exception:
        return "table_funcs", []
    examples = [" ".join(text.split()) for text in _EXAMPLE.findall(info.getExamples() or "")]
    alone = [text for text in examples if not _READS_ROWS.search(text)]
    sample = _SAMPLES.get(name)
    return str(info.getGroup()), alone if sample is None else [sample]


def to_markdown(coverage: Coverage) -> str:
    """Return the text of `docs/expressions.md`."""
    return "\n".join(_lines(coverage)).rstrip() + "\n"


def _lines(coverage: Coverage) -> Iterator[str]:
    both = [name for name in coverage.one_stream if known_to_kernel(name)]
    one = [name for name in coverage.one_stream if not known_to_kernel(name)]
    untried = len(coverage.refused.get(_NOT_TRIED, ()))
    refused = sum(map(len, coverage.refused.values())) - untried
    yield "# Expressions: which of Spark's functions work where"
    yield ""
    yield "Generated by `weir-lab functions`, which tries an example of each function; do not edit."
    yield ""
    yield _INTRODUCTION
    yield ""
    yield "| where | functions of Spark |"
    yield "|---|---|"
    yield f"| on one stream and across streams | {len(both)} |"
    yield f"| on one stream | {len(one)} |"
    yield f"| refused | {refused} |"
    yield f"| not tried | {untried} |"
    yield ""
    yield from _section("On one stream and across streams", both)
    yield from _section("On one stream", one)
    for reason, names in coverage.refused.items():
        yield from _section(
            reason.capitalize() if reason == _NOT_TRIED else f"Refused: {reason}", list(names)
        )


def _section(title: str, names: list[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    line = ""
    for name in names:
        if len(line) + len(name) > 100:
            yield line.rstrip()
            line = ""
        line += f"`{name}` "
    yield line.rstrip()
    yield ""
