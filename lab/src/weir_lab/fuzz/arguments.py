"""Random values of every argument of `weir.join` and `weir.sql`, and odd tables, as Python source texts.

Texts, not values, so that a failure can be read, kept and repeated.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from weir.options import arguments_of
from weir_lab.fuzz.grammar import Grammar
from weir_lab.fuzz.statements import draw_condition, draw_select

# Values that fit no argument, or only a few.
_ODD = ["None", "True", "False", "0", "-1", "1.5", "float('nan')", "float('inf')", "10**400", "''", "' '",
        "'x'", "'ts'",
        "'1 hour'", "b'1 hour'", "object()", "[]", "['a']", "['a', 'b']", "['b', 'a', 'a']", "()", "{}",
        "{'a': 'ts'}",
        "{'a': 1}", "{'z': '1 hour'}", "{1: 2}", "{'a': None, 'b': None}", "{'a'}", "lambda x: x", "len",
        "int",
        "timedelta(hours=1)", "timedelta.max", "timedelta(-1)", "pa.scalar(1)", "weir.rows(3)", "weir.rows",
        "weir.Budget(cpu=0.5)", "weir.Budget(memory='1g')", "weir.Adapt()", "weir.Allowance({})",
        "{'a': {'b': 1}}",
        "'auto'", "'mjoin'", "'bjtree'", "'hash'", "'harvest'", "'null'", "'drop'", "pa.array([1])",
        "Decimal('1')",
        "'a.k = b.k'", "'\\x00'", "'🦆'", "weir.plan.join('a', 'b')", "weir.plan.join('a', 'b', 'c')",
        "('a', 'b')",
        "{('a', 'b'): 0.5}", "{('a', 'b'): -1}", "{('a', 'b'): 'x'}", "{('a',): 0.5}",
        "{'a': 10, 'b': 1e300}",
        "{'a': float('nan'), 'b': 1}"]  # fmt: skip
# Values that fit the argument of that name, or nearly.
_LIKELY: Mapping[str, list[str]] = {
    "within": ["'1 hour'", "{'a': '1 hour', 'b': '5 rows'}", "timedelta(hours=1)", "weir.rows(3)",
               "'0 rows'"],
    "fresh": ["'1 hour'", "{'a': '1 hour'}", "'3 rows'"],
    "late": ["'5 seconds'", "{'a': '1 hour'}", "'-1 second'"],
    "time": ["'ts'", "'u'", "'d'", "'TS'", "{'a': 'u', 'b': 'ts'}", "'s'", "{'a': 'ts'}"],
    "session": ["{'timeZone': 'Asia/Kolkata', 'ansi': False}", "{'timeZone': 'nowhere'}", "{'ansi': 1}",
                "{'zone': ''}",
                "{'timeZone': '+25:00'}", "{'timeZone': '../etc'}", "{'timeZone': ''}",
                "{'timeZone': 'GMT+8'}"],
    "on_error": ["'null'", "'fail'", "'quarantine'"],
    "functions": ["{'f': len}", "{'f': 1}", "{'': len}", "{'abs': lambda x: x}",
                  "{'f': weir.udf(lambda x: x)}"],
    "budget": ["weir.Budget(cpu=0.5)", "weir.Budget(memory='64m')", "weir.Budget(cpu=1e-9, memory='1k')"],
    "basic": ["'2 seconds'", "'1 day'", "'-1 s'"],
    "plan": ["'mjoin'", "'bjtree'", "'(b a)'", "'((a b)'", "weir.plan.join('a', 'b')",
             "weir.plan.join('b', 'z')"],
    "rates": ["{'a': 1, 'b': 2}", "3", "{'a': 0}"],
    "selectivities": ["{('a', 'b'): 0.01}", "{('a', 'z'): 1}"],
    "driver_order": ["['a', 'b']", "'round-robin'", "'timestamp'", "'auto'", "'least-work'"],
    "adapt": ["True", "weir.Adapt(change=0.1)", "{'change': 1}"],
    "shed": ["'thin'", "'jaqpot'", "'jaqpot-printed'", "'grepp'", "'harvest'", "'random-drop'"],
    "streams": ["{'c': t}", "{'a': t}", "{1: t}", "[t]", "{'c': 1}", "{'': t}", "{'a.b': t}", "{'a`': t}"],
}  # fmt: skip
# Tables of unusual columns, types and kinds.
ODD_TABLES = [
    "t.to_pylist()", "[]", "[{}]", "[{'ts': 1}]", "[{'ts': 'x', 'k': []}]", "t.schema", "t[:0]", "iter([])",
                                                                      "iter([t])",
    "pa.table({})", "pa.table({'ts': pa.nulls(2)})",
    "pa.table({'ts': pa.array([1, None], pa.timestamp('s'))})",
    "pa.table({'ts': pa.array([2**62], pa.timestamp('s')), 'k': [1]})",
    "pa.table({'ts': pa.array([2**62], pa.timestamp('ms')), 'k': [1]})",
    "pa.table({'ts': pa.array([1], pa.timestamp('ns', '+25:00')), 'k': [1]})",
    "pa.table({'ts': pa.array([1], pa.timestamp('us', 'Nowhere')), 'k': [1]})",
    "pa.table([pa.array([1], pa.timestamp('us'))] * 2, names=['ts', 'ts'])",
    "pa.table([pa.array([1], pa.timestamp('us')), pa.array([1])], names=['ts', 'TS'])",
    "pa.table({'ts': pa.array([1], pa.timestamp('us')), '': [1], 'weir:x': [2], 'a`b': [3], 'k': [4]})",
    *(f"pa.table({{'ts': pa.array([1], pa.timestamp('us')), 'k': pa.nulls(1, {type})}})" for type in (
        "pa.null()", "pa.uint64()", "pa.float16()", "pa.date64()", "pa.time32('s')", "pa.time64('ns')",
        "pa.duration('ns')",
        "pa.month_day_nano_interval()", "pa.decimal256(70, 3)", "pa.decimal128(5, -2)", "pa.large_string()",
        "pa.string_view()",
        "pa.binary(3)", "pa.map_(pa.string(), pa.int8())", "pa.struct({})", "pa.struct({'x': pa.int8()})",
        "pa.dictionary(pa.int8(), pa.string())", "pa.list_(pa.list_(pa.int8()))", "pa.list_(pa.float32(), 2)",
        "pa.large_list(pa.int8())", "pa.run_end_encoded(pa.int16(), pa.int8())",
        "pa.list_view(pa.int8())", "pa.bool8()", "pa.json_()", "pa.uuid()",
    )),
    "pa.table({'ts': pa.array([5], pa.timestamp('us')), 'k': pa.array([1], pa.int16()),"
    " 's': pa.array([b'\\xff'], pa.binary()).view(pa.string())})",
    "1", "'t'", "None", "object()", "t['k']", "pa.record_batch({'ts': [1]})", "{'ts': [1]}", "iter([1])",
                                                                       "[1, 2]", "[t, 1]",
    "iter([{'ts': datetime(2020, 1, 1)}, {'ts': 1}])", "[{'ts': datetime(2020, 1, 1), 'k': 10**30}]",
    "[{1: 2}]",
    "[{'ts': datetime(2020, 1, 1), 'k': 1}, {'ts': datetime(2020, 1, 1), 'k': 'x'}]",
    "[{'ts': datetime(2020, 1, 1), 'k': {1}}]",
    "[{'ts': datetime(2020, 1, 1), 'k': float('nan')}, None]",
    "[{'ts': datetime(2020, 1, 1), 'k': '\\ud800'}]",
]  # fmt: skip


def draw_arguments(rng: random.Random, function: str) -> dict[str, str]:
    """Return arguments of `join`, or of `sql`, of which one or a few are wrong."""
    arguments: dict[str, str] = {}
    if function == "join":
        grammar = Grammar(rng, "ab", wrong=30)
        arguments = {"on": repr(draw_condition(rng, grammar, "ab")), "within": "'1 hour'"}
        if rng.random() < 0.5:
            arguments["select"] = repr(draw_select(rng, grammar))
    names = [*(field.name for field in arguments_of(function)), "streams"]
    for name in rng.sample(names, rng.choice([0, 1, 1, 2, 3])):
        likely = _LIKELY.get(name, [])
        arguments[name] = rng.choice(likely if likely and rng.random() < 0.6 else _ODD)
    return arguments


def draw_table(rng: random.Random) -> str:
    """Return a table: most often `t` or `u`, the ordinary ones."""
    return rng.choice(ODD_TABLES) if rng.random() < 0.2 else rng.choice("tu")


def read_source(text: str, names: Mapping[str, Any]) -> Any:
    """Return the value of a source text of this module."""
    from datetime import datetime, timedelta
    from decimal import Decimal

    import pyarrow as pa

    import weir

    known = {"pa": pa, "weir": weir, "datetime": datetime, "timedelta": timedelta, "Decimal": Decimal}
    return eval(text, {**known, **names})
