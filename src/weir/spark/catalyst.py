"""Analyse expressions over one DataFrame with Catalyst: their types, and what may not be computed there.

Errors of Spark's analysis become one sentence, without the plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.types import DataType

from weir.errors import QueryError, find_nearest

_MESSAGE = re.compile(r"\s*\[(?P<condition>[\w.]+)\]\s*(?P<message>.*?)\s*(SQLSTATE.*)?", re.DOTALL)
_LONGEST_MESSAGE = 400
# Expressions of Catalyst that never fail if their children do not, in ANSI mode either.
_TOTAL = frozenset((
    "Alias", "And", "ArrayContains", "ArrayDistinct", "ArrayExists", "ArrayFilter", "ArrayForAll",
    "ArrayTransform", "Ascii", "Atan", "Atan2", "AttributeReference", "Base64", "Between", "BitLength",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cardinality", "CaseWhen", "Coalesce",
    "CommonExpressionDef", "CommonExpressionRef", "Concat", "ConcatWs", "Contains", "Cos", "Crc32",
    "CreateArray", "CreateNamedStruct", "CreateStruct", "DateDiff", "DayOfMonth",
    "DayOfWeek", "DayOfYear", "EndsWith", "EqualNullSafe", "EqualTo", "Exp", "GetArrayStructFields",
    "GetMapValue", "GetStructField", "GreaterThan", "GreaterThanOrEqual", "Greatest", "Hex", "Hour", "If",
    "In", "InSet", "InitCap", "IsNaN", "IsNotNull", "IsNull", "KnownFloatingPointNormalized",
    "KnownNotNull", "LambdaFunction", "LastDay", "Least", "Left", "Length", "LessThan", "LessThanOrEqual",
    "Levenshtein", "Literal", "Log", "Log10", "Log2", "Lower", "MapKeys", "MapValues", "Md5",
    "Minute", "Month", "Murmur3Hash", "NaNvl", "NamedLambdaVariable", "NormalizeNaNAndZero", "Not",
    "NullIf", "Nvl", "Nvl2", "OctetLength", "Or", "PythonUDF", "Quarter", "Reverse",
    "Right", "Second", "Sha1", "Sha2", "ShiftLeft", "ShiftRight", "Signum", "Sin", "Size",
    "SortArray", "SoundEx", "Sqrt", "StartsWith", "StringInstr", "StringReplace", "StringReverse",
    "StringTranslate", "StringTrim", "StringTrimLeft", "StringTrimRight", "Substring", "Tan", "TruncDate",
    "TruncTimestamp", "TryEval", "UnixMicros", "UnixMillis", "UnixSeconds", "Upper", "WeekDay",
    "WeekOfYear", "With", "XxHash64", "Year",
))  # fmt: skip
# These do not fail either if their pattern, and all but the first value, is the same for every row.
_WITH_PATTERN = ("DateFormatClass", "Like", "RLike", "RegExpReplace")
# Nor do these if they compute floating-point numbers.
_ARITHMETIC = ("Add", "Subtract", "Multiply", "UnaryMinus", "Abs")
# These fail without ANSI mode too: of decimals, where Java rounds to fewer digits; of times and intervals.
_LONG_DECIMALS = ("UnaryMinus", "Abs", "Remainder", "Pmod")
_TIMES_IN_RANGE = ("TimestampAddInterval", "TimeAdd", "SubtractTimestamps", "MultiplyDTInterval")
# Spark replaces the first ones by a time that its offset log keeps, so that a repeated batch sees it again.
_CURRENT = ("CurrentTimestamp", "CurrentDate", "LocalTimestamp")
_CHANGING = ("Now", "CurrentTime")


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression over one stream: its text for Spark, and how errors show it."""

    text: str
    shown: str


@dataclass(frozen=True, slots=True)
class Analysed:
    """The type of an expression, and Catalyst's own tree of it."""

    type: DataType
    tree: Any

    @property
    def always_can_fail(self) -> bool:
        """True if the expression may fail for some rows without ANSI mode too."""
        return any(_fails_always(node) for node in _walk(self.tree))

    def can_fail(self, session: SparkSession) -> bool:
        """True if the expression may fail for some rows in ANSI mode."""
        casts: Any = session._jvm.org.apache.spark.sql.catalyst.expressions.Cast  # type: ignore[union-attr]
        return any(not _is_total(node, casts) for node in _walk(self.tree))

    @property
    def columns(self) -> list[str]:
        """The columns that the expression reads."""
        read = (node for node in _walk(self.tree) if _name(node) == "AttributeReference")
        return list(dict.fromkeys(str(node.name()) for node in read))


def analyse(frame: DataFrame, expressions: Sequence[Expression], has_clock: bool = True) -> list[Analysed]:
    """Analyse expressions over a frame with an alias; raise for one that it cannot compute row by row.

    `has_clock`: the frame is a stream, whose current time a repeated batch sees again.
    """
    try:
        return _analyse_together(frame, expressions, has_clock)
    except PySparkException:
        # One by one, to say which of them is wrong.
        return [_analyse_one(frame, expression, has_clock) for expression in expressions]


def _analyse_one(frame: DataFrame, expression: Expression, has_clock: bool) -> Analysed:
    with one_sentence(frame, expression.shown):
        return _analyse_together(frame, [expression], has_clock)[0]


def _analyse_together(frame: DataFrame, expressions: Sequence[Expression], has_clock: bool) -> list[Analysed]:
    with _quiet_logger():
        columns = [F.expr(each.text).alias(f"weir{number}") for number, each in enumerate(expressions)]
        projected = frame.select(*columns)
    plan: Any = projected._jdf.queryExecution().analyzed()
    if _name(plan) != "Project" or _name(plan.child()) != "SubqueryAlias":
        if len(expressions) > 1:
            return [_analyse_one(frame, expression, has_clock) for expression in expressions]
        raise QueryError(
            f"'{expressions[0].shown}' is not one value for each row of a stream; "
            "compute it before the join, or from its result"
        )
    trees = [plan.projectList().apply(number) for number in range(len(expressions))]
    for expression, tree in zip(expressions, trees, strict=True):
        _refuse_changing(expression.shown, tree, _CHANGING if has_clock else (*_CHANGING, *_CURRENT))
    return [Analysed(field.dataType, tree) for field, tree in zip(projected.schema, trees, strict=True)]


def _refuse_changing(shown: str, tree: Any, changing: Collection[str]) -> None:
    """Refuse what another attempt at the same batch would compute differently."""
    names = re.findall(r'"class":"[\w.]*\.(\w+)"', tree.toJSON())
    if not tree.deterministic() or any(name in changing for name in names):
        raise QueryError(
            f"'{shown}' is not deterministic, but a batch that is repeated must see the same rows; "
            "compute it before the join and store it, or from the results"
        )


def _name(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _walk(tree: Any) -> Iterator[Any]:
    yield tree
    children = tree.children()
    for number in range(children.size()):
        yield from _walk(children.apply(number))


def _is_total(node: Any, casts: Any) -> bool:
    name = _name(node)
    if name == "Cast":
        is_try = str(node.evalMode()) == "TRY"
        return is_try or bool(casts.canUpCast(node.child().dataType(), node.dataType()))
    if name in _ARITHMETIC:
        return _name(node.dataType()) in ("DoubleType$", "FloatType$")
    if name in _WITH_PATTERN:
        children = node.children()
        return all(children.apply(number).foldable() for number in range(1, children.size()))
    return name in _TOTAL or name in _CURRENT


def _fails_always(node: Any) -> bool:
    name, type = _name(node), _name(node.dataType())
    return name in _TIMES_IN_RANGE or (name in _LONG_DECIMALS and type == "DecimalType")


@contextmanager
def one_sentence(frame: DataFrame, shown: str) -> Iterator[None]:
    """Turn errors of Spark's parser and analysis inside into a sentence about an expression."""
    try:
        with _quiet_logger():
            yield
    except (AnalysisException, ParseException) as error:
        raise _describe_error(frame, shown, error) from None


def _describe_error(frame: DataFrame, shown: str, error: PySparkException) -> QueryError:
    condition = error.getCondition() or type(error).__name__
    if condition == "UNRESOLVED_ROUTINE":
        name = str((error.getMessageParameters() or {}).get("routineName", shown)).strip("`")
        return _unknown_function(frame, name, shown)
    found = _MESSAGE.match(str(error))
    message = found["message"] if found else str(error)
    message = " ".join(re.split(r"SQLSTATE|;\n|== SQL ==", message or str(error))[0].split()).rstrip(". ")
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + "..."
    return QueryError(f"Spark cannot compute '{shown}': {message} [{condition}]")


def _unknown_function(frame: DataFrame, name: str, shown: str) -> QueryError:
    registry: Any = frame.sparkSession._jsparkSession.sessionState().functionRegistry()
    listed = registry.listFunction()
    known = [listed.apply(number).funcName() for number in range(listed.size())]
    near = find_nearest(name.rpartition(".")[2].strip("`"), known)
    hint = "; a" if near is None else f"; did you mean '{near}'? A"
    return QueryError(
        f"unknown function '{name}' in '{shown}'{hint} function of your own can be passed as "
        "functions={'name': weir.udf(...)}, or as a Spark UDF"
    )


@contextmanager
def _quiet_logger() -> Iterator[None]:
    """Keep PySpark from logging the whole stack of an error that becomes a sentence."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled
