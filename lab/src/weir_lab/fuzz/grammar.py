"""A grammar of expressions by the kind of their value, from the functions and operators that weir knows.

Each line of `RULES` gives texts for one kind; `{num}` stands for an expression of that kind, `{num!}` for a
constant. Functions whose last digit may differ from Java's stand only in comparisons.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

COLUMNS: Mapping[str, Sequence[str]] = {
    "int": ["t", "k", "i", "l"], "dec": ["m", "w", "q"], "dbl": ["f", "x"], "str": ["s", "n"], "bool": ["ok"],
    "date": ["d"], "ts": ["ts"], "ntz": ["u"], "bin": ["z"], "arr": ["v"],
}  # fmt: skip
# Kinds that stand for others.
GROUPS = {"num": ["int", "int", "dec", "dbl"], "time": ["date", "ts", "ntz"], "whole": ["int"],
          "any": ["int", "dec", "dbl", "str", "bool", "date", "ts", "ntz"]}  # fmt: skip
CONSTANTS: Mapping[str, Sequence[str]] = {
    "int": ["0", "1", "-1", "2", "3", "7", "10", "127", "-128", "32768", "2147483647", "-2147483648",
            "2147483648",
            "9223372036854775807", "5S", "3Y", "4L"],
    "dec": ["0.5", "1.25", "-0.01", "0.0", "10.00", "99999999.99", "1.5BD", "12345678901234567890.123",
            "0.1"],
    "dbl": ["0.0D", "1.5D", "-2.5D", "1e10", "1e-3", "double('NaN')", "double('Infinity')", "3.0F", "-0.0D"],
    "str": ["''", "'a'", "'abc'", "'ï'", "'12'", "'-3.5'", "'2020-02-29'", "'2024-03-10 02:30:00'", "'%'",
            "'a_c'",
            "'NaN'", "'it''s'", "' 7 '", "'true'"],
    "bool": ["true", "false"],
    "date": ["DATE '2020-02-29'", "DATE '1969-12-31'", "DATE'2024-03-10'", "DATE '0001-01-01'"],
    "ts": ["TIMESTAMP '2024-03-10 02:30:00'", "TIMESTAMP '2024-11-03 01:30:00'",
           "TIMESTAMP '2020-01-01 00:00:00Z'",
           "TIMESTAMP '1883-11-18 12:00:00'"],
    "ntz": ["TIMESTAMP_NTZ '2024-03-10 02:30:00'", "TIMESTAMP_NTZ '2021-01-01 12:00:00.5'"],
    "bin": ["X'01FF'", "X''", "X'0'"],
    "iv": ["INTERVAL 1 DAY", "INTERVAL '5' SECOND", "INTERVAL 90 MINUTES", "INTERVAL '2 days 3 hours'",
           "INTERVAL -3 HOURS"],
    "arr": [],
}  # fmt: skip
# Expressions that fail for some rows in ANSI mode, as many texts are no numbers.
FAILING: Mapping[str, str] = {
    "int": "cast({s}.n AS INT)", "dec": "cast({s}.n AS DECIMAL(10,2))", "dbl": "cast({s}.n AS DOUBLE)",
    "str": "string(cast({s}.n AS INT))", "bool": "cast({s}.n AS BOOLEAN)", "date": "cast({s}.n AS DATE)",
    "ts": "cast({s}.n AS TIMESTAMP)", "ntz": "cast({s}.n AS TIMESTAMP_NTZ)",
    "bin": "cast(string(cast({s}.n AS INT)) AS BINARY)", "arr": "if(cast({s}.n AS BOOLEAN), a.v, b.v)",
    "iv": "INTERVAL 1 DAY * cast({s}.n AS INT)",
}  # fmt: skip
# Small numbers, for lengths and positions.
_SMALL = ["0", "1", "2", "3", "5", "-1", "-2", "17"]
RULES = """
bool: {num} {cmp} {num} | {str} {cmp} {str} | {time} {cmp} {time} | {bool} {cmp} {bool} | {bin} {cmp} {bin}
bool: {bool} AND {bool} | {bool} OR {bool} | NOT ({bool}) | {any} IS NULL | {any} IS NOT NULL
bool: {bool} IS TRUE | {bool} IS NOT FALSE | {num} BETWEEN {num} AND {num}
bool: {num} NOT BETWEEN {num} AND {num} | {time} BETWEEN {time} AND {time}
bool: {num} IN ({num}, {num!}, {num!}) | {str} NOT IN ({str}, {str!}) | {str} IN ({str!}, NULL)
bool: {time} IN ({time}, {time!}) | {any} IS DISTINCT FROM {any} | {num} IS NOT DISTINCT FROM {num}
bool: isnan({num}) | isnull({any}) | isnotnull({any}) | {str} LIKE {pattern} | {str} NOT LIKE {pattern}
bool: {str} ILIKE {pattern} | {str} RLIKE {regex} | {str} LIKE {str} | like({str}, {pattern})
bool: startswith({str}, {str}) | endswith({str}, {str!}) | contains({str}, {str})
bool: array_contains({arr}, {dbl}) | array_contains({arr}, {num!}) | {time} {cmp} {str!}
bool: {str!} {cmp} {time} | cast({num} AS BOOLEAN) | cast({str} AS BOOLEAN) | try_cast({str} AS BOOLEAN)
bool: {trig}({num}) {cmp} {num!} | pow({num}, {num}) > {num} | atan2({num}, {num}) < {num!}
bool: hypot({num}, {num}) >= {num!} | log({num}, {num}) > {num!} | {ts} - {ts} {cmp} {iv!}
bool: {time} - {time} {cmp} {iv!} | ({num}, {str}) = ({num}, {str}) | NULL {cmp} {any}
int: {int} + {int} | {int} - {int} | {int} * {int}
int: {int} % {int} | {int} div {int} | {dec} div {int} | pmod({int}, {int})
int: -{int} | +{int} | abs({int}) | {int} & {int} | {int} ^ {int} | ~{int} | shiftleft({int}, {small})
int: shiftright({int}, {int}) | bit_count({int}) | ceil({dbl}) | floor({dbl}) | mod({int}, {int})
int: try_add({int}, {int}) | try_subtract({int}, {int}) | try_multiply({int}, {int}) | try_mod({int}, {int})
int: factorial({int}) | round({int}, {small}) | length({str}) | length({bin}) | char_length({str})
int: instr({str}, {str}) | locate({str!}, {str}) | levenshtein({str}, {str}) | position({str!} IN {str})
int: year({time}) | quarter({time}) | month({time}) | day({time}) | dayofweek({time}) | weekday({time})
int: dayofyear({time}) | weekofyear({time}) | hour({time}) | minute({time}) | second({time})
int: extract({part} FROM {time}) | datediff({time}, {time}) | unix_date({date}) | date_diff({date}, {time})
int: unix_timestamp({ts}) | unix_seconds({ts}) | unix_millis({ts}) | unix_micros({ts})
int: unix_timestamp({time}) | size({arr}) | array_size({arr}) | cast({num} AS {inttype})
int: cast({str} AS {inttype}) | cast({bool} AS INT) | cast({ts} AS BIGINT) | try_cast({num} AS {inttype})
int: try_cast({str} AS {inttype}) | int({num}) | {num}::bigint
dec: {dec} + {dec} | {dec} - {dec} | {dec} * {dec} | {dec} / {dec} | {dec} % {dec} | {dec} + {int}
dec: {int} * {dec} | {dec} - {int!} | -{dec} | abs({dec}) | cast({num} AS {dectype})
dec: cast({str} AS {dectype}) | try_cast({num} AS {dectype}) | try_cast({str} AS {dectype})
dec: cast({bool} AS {dectype}) | cast({ts} AS DECIMAL(20,6)) | round({dec}, {small}) | ceil({dec})
dec: floor({dec}) | try_divide({dec}, {dec}) | try_add({dec}, {dec}) | pmod({dec}, {dec}) | {dec} / {int}
dec: {int} / {dec!} | round({dec})
dbl: {dbl} + {dbl} | {dbl} - {num} | {dbl} * {dbl} | {num} / {num} | {dbl} % {dbl} | -{dbl} | abs({dbl})
dbl: {int} / {int} | sqrt({num}) | sign({num}) | cast({num} AS DOUBLE) | cast({num} AS FLOAT)
dbl: cast({str} AS DOUBLE) | cast({str} AS FLOAT) | try_cast({str} AS DOUBLE) | cast({ts} AS DOUBLE)
dbl: rint({dbl}) | signum({num}) | round({dbl}, {small}) | round({dbl}) | nanvl({dbl}, {dbl})
dbl: pmod({dbl}, {num}) | try_divide({num}, {num}) | {arr}[{small}] | element_at({arr}, {small})
dbl: get({arr}, {int}) | try_element_at({arr}, {small}) | {arr}[{int}]
str: upper({str}) | lower({str}) | reverse({str}) | trim({str}) | ltrim({str}) | rtrim({str})
str: btrim({str}, {str!}) | trim(BOTH {str!} FROM {str}) | ltrim({str!}, {str})
str: substring({str}, {small}, {small}) | substring({str}, {int}) | substr({str}, {int}, {int})
str: left({str}, {int}) | right({str}, {small}) | repeat({str}, {small}) | concat({str}, {str})
str: {str} || {str} | concat({str}, {any}) | concat_ws({str!}, {str}, {str})
str: concat_ws({str}, {str}, {str}, {str!}) | replace({str}, {str}, {str}) | replace({str}, {str!})
str: lpad({str}, {small}, {str!}) | rpad({str}, {small}, {str}) | cast({any} AS STRING) | string({any})
str: cast({bin} AS STRING) | try_cast({any} AS STRING)
date: date_add({date}, {small}) | date_sub({date}, {int}) | {date} + {small} | {date} - {small}
date: add_months({date}, {int}) | last_day({time}) | to_date({time}) | to_date({str}) | date({time})
date: cast({time} AS DATE) | cast({str} AS DATE) | try_cast({str} AS DATE) | trunc({time}, {truncunit})
date: make_date({int}, {int}, {int}) | date_from_unix_date({int}) | add_months({time}, {small})
ts: {ts} + {iv!} | {ts} - {iv!} | {iv!} + {time} | date_trunc({unit}, {ts}) | cast({time} AS TIMESTAMP)
ts: cast({str} AS TIMESTAMP) | cast({num} AS TIMESTAMP) | to_timestamp({str}) | to_timestamp({time})
ts: timestamp_seconds({int}) | timestamp_millis({int}) | timestamp_micros({int})
ts: try_cast({str} AS TIMESTAMP) | {ts} + {int} * {iv!} | date_trunc({unit}, {time})
ts: try_to_timestamp({str}) | {date} + {iv!}
ntz: {ntz} + {iv!} | {ntz} - {iv!} | cast({time} AS TIMESTAMP_NTZ) | cast({str} AS TIMESTAMP_NTZ)
ntz: date_trunc({unit}, {ntz}) | try_cast({str} AS TIMESTAMP_NTZ)
iv: {ts} - {ts} | {ntz} - {ntz} | {ts} - {time} | {iv!} * {int} | {iv} + {iv!} | -({iv!})
bin: cast({str} AS BINARY) | concat({bin}, {bin}) | {bin} || {bin}
arr: if({bool}, {arr}, {arr}) | coalesce({arr}, {arr})
"""
# What has the kind that its branches have.
CHOICES = """
if({bool}, {K}, {K}) | CASE WHEN {bool} THEN {K} WHEN {bool} THEN {K} ELSE {K} END
CASE {any} WHEN {any} THEN {K} END | coalesce({K}, {K}) | nvl({K}, {K!}) | nullif({K}, {K})
nvl2({any}, {K}, {K}) | greatest({K}, {K}) | least({K}, {K}, {K!}) | ifnull({K}, {K}) | ({K})
coalesce(NULL, {K})
"""
WORDS = {
    "cmp": ["=", "<", "<=", ">", ">=", "<>", "<=>", "!=", "=="],
    "small": _SMALL,
    "part": ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DOW", "DOY", "WEEK", "QUARTER"],
    "trig": ["sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "ln", "log10",
             "log2", "log1p",
             "expm1", "cbrt", "degrees", "radians", "cot", "log"],
    "inttype": ["TINYINT", "SMALLINT", "INT", "BIGINT"],
    "dectype": ["DECIMAL(10,2)", "DECIMAL(38,18)", "DECIMAL(5,0)", "DECIMAL(3,3)", "DECIMAL(38,0)",
                "DECIMAL(1)"],
    "unit": ["'YEAR'", "'quarter'", "'MM'", "'week'", "'DAY'", "'HOUR'", "'minute'", "'SECOND'",
             "'millisecond'"],
    "truncunit": ["'MM'", "'WEEK'", "'year'", "'QUARTER'"],
    "pattern": ["'a%'", "'%c'", "'%b%'", "'a_c'", "'%\\\\_%'", "''", "'%'", "'_'", "'%ï%'", "'A%b'"],
    "regex": ["'^[a-c]+$'", "'[0-9]+'", "'a.'", "'b|ï'", "''", "r'\\d+'", "'(?i)ABC'"],
}  # fmt: skip
KINDS = ("bool", "bool", "int", "dec", "dbl", "str", "date", "ts", "ntz", "iv", "bin")
_HOLE = re.compile(r"\{(\w+)(!?)\}")


def _read_rules(text: str) -> dict[str, list[str]]:
    rules: dict[str, list[str]] = {}
    for line in text.strip().splitlines():
        kind, _, texts = line.partition(": ")
        rules.setdefault(kind, []).extend(texts.split(" | "))
    return rules


_RULES = _read_rules(RULES)
_CHOICES = [text for line in CHOICES.strip().splitlines() for text in line.split(" | ")]
_ALL_RULES = [(kind, text) for kind, texts in _RULES.items() for text in texts]
_ALL_RULES += [(kind, text) for kind in ("int", "dec", "str", "bool", "ts", "date") for text in _CHOICES]


class Grammar:
    """Draws expressions over the columns of some streams; one in `wrong` operands has another kind."""

    def __init__(self, rng: random.Random, streams: Sequence[str] = ("a", "b"), wrong: int = 60) -> None:
        self._rng, self._streams, self._wrong = rng, streams, wrong

    def draw(self, kind: str | None = None, depth: int = 3) -> str:
        """Return an expression of a kind, by default of a random one, that is at most so deeply nested."""
        rng = self._rng
        kind = kind or rng.choice(KINDS)
        kind = rng.choice(GROUPS.get(kind, [kind]))
        if depth <= 0 or (kind == "iv" and depth < 2):
            return self._leaf(kind)
        text = rng.choice(_CHOICES).replace("K", kind) if rng.random() < 0.15 else rng.choice(_RULES[kind])
        return _HOLE.sub(lambda hole: self._operand(hole[1], bool(hole[2]), depth), text)

    def draw_rule(self) -> str:
        """Return a single rule, each of whose operands is a column, fails for some rows, or is NULL."""
        kind, text = self._rng.choice(_ALL_RULES)
        return _HOLE.sub(
            lambda hole: self._simple_operand(hole[1], bool(hole[2])), text.replace("{K", "{" + kind)
        )

    def _simple_operand(self, kind: str, is_constant: bool) -> str:
        rng = self._rng
        if kind in WORDS:
            return rng.choice(WORDS[kind])
        kind = rng.choice(GROUPS.get(kind, [kind]))
        if is_constant:
            return self._constant(kind)
        failing = f"({FAILING[kind].format(s=rng.choice(self._streams))})"
        return rng.choice(["NULL", failing, self._leaf(kind)])

    def _operand(self, kind: str, is_constant: bool, depth: int) -> str:
        rng = self._rng
        if kind in WORDS:
            return rng.choice(WORDS[kind])
        if rng.randrange(self._wrong) == 0:
            kind = rng.choice([*KINDS, "arr"])
        kind = rng.choice(GROUPS.get(kind, [kind]))
        if is_constant or rng.random() < 0.08:
            return self._constant(kind)
        nested = rng.random() < 0.4 and depth > 1
        text = self.draw(kind, rng.randrange(1, depth)) if nested else self._leaf(kind)
        return f"({text})" if " " in text else text

    def _leaf(self, kind: str) -> str:
        if kind not in COLUMNS:
            return self._constant(kind)
        return f"{self._rng.choice(self._streams)}.{self._rng.choice(COLUMNS[kind])}"

    def _constant(self, kind: str) -> str:
        if self._rng.random() < 0.05 or not CONSTANTS[kind]:
            return "NULL"
        return self._rng.choice(CONSTANTS[kind])
