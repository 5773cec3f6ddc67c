"""Parse the clauses that choose how a join runs: PLAN, SHED, DRIVER ORDER and SPREAD.

PLAN mjoin    PLAN ((a b) c)    SHED harvest    DRIVER ORDER round-robin    DRIVER ORDER (b, a)    SPREAD psp
"""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from sqlglot import TokenType

from weir.errors import locate_errors, match_name
from weir.options import PlanName, Spread
from weir.order.policies import POLICIES
from weir.plan.tree import Join
from weir.plan.tree_text import parse_tree
from weir.script.token_reader import TokenReader
from weir.shed.strategies import STRATEGIES


def parse_plan(reader: TokenReader) -> Join | str:
    """PLAN, a name or a tree."""
    reader.expect("PLAN")
    if not reader.next_is_type(TokenType.L_PAREN):
        return _read_choice(reader, "plan", get_args(PlanName), "PLAN")
    line, first = reader.line, reader.position
    reader.read_list("", "expected a stream or a join in parentheses")
    with locate_errors(f"line {line}: "):
        return parse_tree(reader.source(first, reader.position - 1))


def parse_shed(reader: TokenReader) -> str:
    """SHED, a strategy."""
    reader.expect("SHED")
    return _read_choice(reader, "strategy", ("auto", *STRATEGIES), "SHED")


def parse_driver_order(reader: TokenReader) -> list[str] | str:
    """DRIVER ORDER, a policy, or the streams in parentheses."""
    reader.expect("DRIVER", "ORDER")
    if not reader.next_is_type(TokenType.L_PAREN):
        return _read_choice(reader, "policy", POLICIES, "DRIVER ORDER")
    items, streams = reader.read_list("", "expected a stream"), []
    end = reader.position
    for first, last in items:
        reader.position = first
        streams.append(reader.read_name("a stream"))
        if reader.position != last + 1:
            raise reader.error("expected , or )")
    reader.position = end
    return streams


def parse_spread(reader: TokenReader) -> str:
    """SPREAD, by name."""
    reader.expect("SPREAD")
    return _read_choice(reader, "spread", get_args(Spread), "SPREAD")


def _read_choice(reader: TokenReader, kind: str, known: Collection[str], clause: str) -> str:
    line = reader.line
    given = reader.read_choice(f"one of {', '.join(known)} after {clause}")
    with locate_errors(f"line {line}: "):
        return match_name(kind, given, known, where=f" in {clause}")
