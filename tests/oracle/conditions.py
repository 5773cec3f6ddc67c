"""Conditions of every kind, each in weir's SQL, in DuckDB's, and, where it is short, in Python."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

import weir

Row = Mapping[str, Any]
Check = Callable[[Mapping[str, Row]], bool]


@dataclass(frozen=True)
class Condition:
    """One condition; `check` says in Python what `text` says in SQL.

    `plain` marks equalities that are not null-safe, which imply that none of their columns is null.
    """

    text: str
    check: Check | None = None
    in_sql: bool = True
    plain: bool = False

    @property
    def duckdb(self) -> str:
        return re.sub(r"(\S+) <=> (\S+)", r"\1 IS NOT DISTINCT FROM \2", self.text)

    @property
    def streams(self) -> frozenset[str]:
        return frozenset(stream for stream, _ in self.columns)

    @property
    def columns(self) -> frozenset[tuple[str, str]]:
        bare = re.sub(r"'[^']*'", "", self.text)
        return frozenset(re.findall(r"\b([a-e])\.([a-z]+)\b", bare))


def same(x: Any, y: Any) -> bool:
    """SQL's equality: null equals nothing, NaN equals NaN."""
    if x is None or y is None:
        return False
    return bool(x == y) or (x != x and y != y)


def less(x: Any, y: Any) -> bool:
    """SQL's order: null is not less, NaN is the greatest."""
    if x is None or y is None or x != x:
        return False
    return True if y != y else bool(x < y)


def cosine(x: list[float] | None, y: list[float] | None) -> float:
    """The cosine of the angle; what has none is like nothing."""
    if x is None or y is None or not any(x) or not any(y):
        return -2.0
    return sum(p * q for p, q in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))


def near(x: pa.Array, y: pa.Array) -> np.ndarray:
    """A user's function: the parities agree; a null is taken for zero."""
    parities = [np.asarray(side.fill_null(0)).astype(np.int64) % 2 for side in (x, y)]
    return parities[0] == parities[1]


FUNCTIONS = {"near": weir.udf(near)}
KEYS = ("i", "l", "h", "d", "f", "p", "s", "z", "day", "moment", "flag", "raw")
ORDERED = ("i", "l", "h", "d", "f", "p", "s", "z", "day", "moment")


def equal(a: str, b: str, rng: Random, columns: tuple[str, ...] = KEYS) -> Condition:
    k = rng.choice(columns)
    return Condition(f"{a}.{k} = {b}.{k}", lambda r: same(r[a][k], r[b][k]), plain=True)


def null_safe(a: str, b: str, rng: Random) -> Condition:
    k = rng.choice(KEYS)
    return Condition(
        f"{a}.{k} <=> {b}.{k}", lambda r: same(r[a][k], r[b][k]) or (r[a][k] is None and r[b][k] is None)
    )


def equal_across_types(a: str, b: str, rng: Random) -> Condition:
    k, j = rng.choice([("i", "l"), ("i", "d"), ("f", "d"), ("i", "f"), ("d", "i"), ("p", "i"), ("i", "p")])
    return Condition(f"{a}.{k} = {b}.{j}", lambda r: same(r[a][k], r[b][j]), plain=True)


def equal_twice(a: str, b: str, rng: Random) -> Condition:
    k, j = rng.sample(["i", "s", "z", "flag", "day"], 2)
    return Condition(
        f"{a}.{k} = {b}.{k} AND {a}.{j} = {b}.{j}",
        lambda r: same(r[a][k], r[b][k]) and same(r[a][j], r[b][j]),
        plain=True,
    )


def equal_to_two(a: str, b: str, _: Random) -> Condition:
    """Two members of one class in one stream: a filter follows from it."""
    return Condition(
        f"{a}.i = {b}.i AND {a}.l = {b}.i",
        lambda r: same(r[a]["i"], r[b]["i"]) and same(r[a]["l"], r[b]["i"]),
    )


def equal_expressions(a: str, b: str, rng: Random) -> Condition:
    return rng.choice(
        [
            Condition(f"lower({a}.s) = {b}.s"),
            Condition(f"lower({a}.z) = lower({b}.z)"),
            Condition(f"{a}.i + 1 = {b}.i"),
            Condition(f"{a}.i * 2 = {b}.i + {b}.i"),
            Condition(f"coalesce({a}.i, 1) = coalesce({b}.i, 2)"),
            Condition(f"{a}.s || {a}.z = {b}.s || {b}.z"),
        ]
    )


def band(a: str, b: str, rng: Random) -> Condition:
    k, width = rng.choice(
        [
            ("i", "1"),
            ("i", "2"),
            ("l", "1"),
            ("h", "1"),
            ("h", "10"),
            ("d", "0.5"),
            ("f", "1"),
            ("p", "0.5"),
            ("p", "1"),
        ]
    )
    op = rng.choice(["<=", "<"])
    return Condition(f"abs({a}.{k} - {b}.{k}) {op} {width}")


def band_of_whole_numbers(a: str, b: str, _: Random) -> Condition:
    def check(r: Mapping[str, Row]) -> bool:
        x, y = r[a]["i"], r[b]["i"]
        return x is not None and y is not None and abs(x - y) <= 1

    return Condition(f"abs({a}.i - {b}.i) <= 1", check)


def compare(a: str, b: str, rng: Random) -> Condition:
    k, op = rng.choice(ORDERED), rng.choice(["<", "<=", ">", ">="])
    check: dict[str, Check] = {
        "<": lambda r: less(r[a][k], r[b][k]),
        "<=": lambda r: less(r[a][k], r[b][k]) or same(r[a][k], r[b][k]),
        ">": lambda r: less(r[b][k], r[a][k]),
        ">=": lambda r: less(r[b][k], r[a][k]) or same(r[a][k], r[b][k]),
    }
    return Condition(f"{a}.{k} {op} {b}.{k}", check[op])


def between(a: str, b: str, rng: Random) -> Condition:
    return rng.choice(
        [
            Condition(f"{a}.i BETWEEN {b}.i AND {b}.i + 2"),
            Condition(f"{a}.d BETWEEN {b}.d - 1 AND {b}.d + 1.5"),
            Condition(f"{a}.l > {b}.i AND {a}.l <= {b}.l"),
            Condition(f"{a}.p BETWEEN {b}.p - 1 AND {b}.p"),
            Condition(f"{a}.day BETWEEN {b}.day AND {b}.day"),
        ]
    )


def residual(a: str, b: str, rng: Random) -> Condition:
    return rng.choice(
        [
            Condition(f"({a}.i = {b}.i OR {a}.s = {b}.s)"),
            Condition(
                f"{a}.i <> {b}.i", lambda r: None not in (r[a]["i"], r[b]["i"]) and r[a]["i"] != r[b]["i"]
            ),
            Condition(f"NOT ({a}.s = {b}.s)"),
            Condition(f"NOT ({a}.i = {b}.i OR {a}.d > {b}.d)"),
            Condition(f"{a}.i + {b}.i = 3"),
            Condition(f"({a}.i * {b}.i) % 3 = 1"),
            Condition(f"{a}.i IN ({b}.i, 2)"),
            Condition(f"CASE WHEN {a}.flag THEN {a}.i ELSE {b}.i END > 1"),
            Condition(f"({a}.flag OR {b}.flag)"),
            Condition(f"({a}.d IS NULL OR {a}.d <> {b}.d)"),
        ]
    )


def of_three(a: str, b: str, c: str, rng: Random) -> Condition:
    return rng.choice(
        [
            Condition(f"{a}.i + {b}.i = {c}.i"),
            Condition(f"{c}.i = {a}.i * {b}.i"),
            Condition(f"{a}.i < {b}.i + {c}.i"),
            Condition(f"({a}.i = {b}.i OR {b}.s = {c}.s)"),
            Condition(f"abs({a}.d - {b}.d) <= {c}.i"),
            Condition(f"{a}.i BETWEEN {b}.i AND {c}.i + 1"),
            Condition(f"greatest({a}.i, {b}.i) >= {c}.i"),
        ]
    )


def filtered(a: str, rng: Random) -> Condition:
    return rng.choice(
        [
            Condition(f"{a}.i > 0", lambda r: less(0, r[a]["i"])),
            Condition(f"{a}.s <> 'b'", lambda r: r[a]["s"] is not None and r[a]["s"] != "b"),
            Condition(f"{a}.flag", lambda r: r[a]["flag"] is True),
            Condition(f"{a}.d IS NOT NULL", lambda r: r[a]["d"] is not None),
            Condition(f"{a}.i IN (0, 1, 2)", lambda r: r[a]["i"] in (0, 1, 2)),
            Condition(f"{a}.z LIKE 'prefix%'", lambda r: (r[a]["z"] or "").startswith("prefix")),
        ]
    )


def alike(a: str, b: str, rng: Random) -> Condition:
    threshold, op = rng.choice([0.9, 0.35, 0.0, -0.5]), rng.choice([">=", ">"])

    def check(r: Mapping[str, Row]) -> bool:
        found = cosine(r[a]["v"], r[b]["v"])
        return found > threshold or (op == ">=" and found == threshold)

    return Condition(f"cosine({a}.v, {b}.v) {op} {threshold}", check, in_sql=False)


def by_user(a: str, b: str, _: Random) -> Condition:
    return Condition(
        f"near({a}.i, {b}.i)", lambda r: (r[a]["i"] or 0) % 2 == (r[b]["i"] or 0) % 2, in_sql=False
    )


IN_SQL = (
    equal, equal, equal, null_safe, equal_across_types, equal_twice, equal_to_two,
    equal_expressions, band, compare, between, residual,
)  # fmt: skip
BEYOND_SQL = (alike, by_user)
IN_PYTHON = (equal, equal, null_safe, equal_across_types, equal_twice, band_of_whole_numbers, compare)
