"""Compare random expressions with Spark's own answers, in every session: values, types and errors."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from weir.errors import QueryError
from weir.expr.check import check_expression
from weir.expr.scope import Scope
from weir.expr.session import Session
from weir.query.sql import bind_value, parse_condition
from weir_lab.fuzz.columns import SCHEMA, random_table
from weir_lab.fuzz.grammar import Grammar
from weir_lab.fuzz.sessions import SESSIONS
from weir_lab.fuzz.spark_answers import FAILS, ask_spark, find_differences

ROWS = 60
# The share of single rules, whose operands are NULL or fail more often.
_SIMPLE = 0.15
# Expressions that are compared over the same rows.
_SLICE = 240


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many expressions were compared, which differ, why others were refused, how many fail for a row."""

    compared: int
    differences: tuple[str, ...]
    refused: Counter[str]
    failing: int


def fuzz_expressions(spark: Any, count: int, seed: int, tell: Callable[[str], None]) -> Outcome:
    """Compare so many expressions, divided over the sessions; those that weir refuses do not count."""
    rng = random.Random(seed)
    refused: Counter[str] = Counter()
    differences, compared, failing = list[str](), 0, 0
    share = -(-count // len(SESSIONS))
    for session in SESSIONS:
        drawn = _draw_accepted(rng, session, refused, share)
        while texts := list(islice(drawn, _SLICE)):
            found, fails = compare(spark, texts, session, rng.randrange(10**9))
            differences += found
            compared, failing = compared + len(texts), failing + fails
            tell(f"{compared} of {count} expressions, {len(differences)} differ, {session}")
    return Outcome(compared, tuple(differences), refused, failing)


def compare(spark: Any, texts: Sequence[str], session: Session, seed: int) -> tuple[list[str], int]:
    """Return what differs between Spark and weir over random rows, and how many fail for a row."""
    rng = random.Random(seed)
    tables = {name: random_table(rng, ROWS) for name in "ab"}
    answers = ask_spark(spark, texts, tables, session)
    found = [f"{session}: {difference}" for difference in find_differences(answers, tables, session)]
    return found, sum(FAILS in answer.items for answer in answers.values())


def _draw_accepted(rng: random.Random, session: Session, refused: Counter[str], count: int) -> Iterator[str]:
    """Yield different expressions that weir accepts; count the reasons for which it refuses others."""
    grammar, scope = Grammar(rng), Scope({"a": SCHEMA, "b": SCHEMA}, session=session)
    seen = set[str]()
    while len(seen) < count:
        text = grammar.draw_rule() if rng.random() < _SIMPLE else grammar.draw(depth=rng.randint(1, 4))
        if text in seen:
            continue
        try:
            check_expression(bind_value(parse_condition(text), scope))
        except QueryError as error:
            refused[reason_of(error)] += 1
            continue
        except Exception:
            pass  # a difference, since Spark has an answer
        seen.add(text)
        yield text


def reason_of(error: QueryError) -> str:
    """Return the kind of an error: its sentence without the names and values in it.

    >>> reason_of(QueryError("'abs' takes a number, not (date), in abs(a.d)"))
    "'...' takes a number"
    """
    sentence = re.split(r", not|, in |; | in ", str(error))[0]
    return re.sub(r"'[^']*'|\([^)]*\)", "'...'", sentence)[:60]
