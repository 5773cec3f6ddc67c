"""Mathematical functions; outside of a function's domain the answer is NaN or NULL, whichever Spark gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as is_a

from weir.expr.casts import cast
from weir.expr.decimals import fit
from weir.expr.nodes import Expr, Literal
from weir.expr.rules import (
    BIGINT,
    DOUBLE,
    INT,
    Function,
    Signature,
    counted,
    doubles,
    numbers,
    plain,
    refuse,
    takes,
    types_of,
)
from weir.expr.types import is_float, is_integer
from weir.expr.values import Value, constant, elementwise, null_where


def _numpy(fn: Callable[..., Any], count: int = 1) -> Function:
    return Function(doubles(count), lambda out, *values: elementwise(out, fn, *values))


def _logarithm(kernel: Any, least: float = 0.0) -> Function:
    def run(value: Value) -> Value:
        return kernel(null_where(pc.less_equal(value, least), value))

    return plain(doubles(1), run)


def log_rule(args: Sequence[Expr]) -> Signature:
    """A number, or a base and a number."""
    counted(args, 1, 2)
    return doubles(len(args))(args)


def log(first: Value, second: Value | None = None) -> Value:
    """`log(x)` is natural, `log(base, x)` is not; NULL outside of the domain."""
    if second is None:
        return pc.ln(null_where(pc.less_equal(first, 0.0), first))
    bottom, top = (pc.ln(null_where(pc.less_equal(value, 0.0), value)) for value in (first, second))
    return pc.divide(top, bottom)


def power(value: Value, exponent: Value) -> Value:
    """`pow(value, exponent)`; a square is one multiplication."""
    return pc.multiply(value, value) if constant(exponent) == 2 else pc.power(value, exponent)


def whole_rule(args: Sequence[Expr]) -> Signature:
    """One number; the whole number beside it is a bigint, or a decimal for a decimal."""
    counted(args, 1)
    numbers(args)
    type = args[0].type
    if is_a.is_decimal(type):
        return [type], pa.decimal128(min(38, type.precision - type.scale + 1), 0)
    return ([BIGINT] if is_integer(type) else [DOUBLE]), BIGINT


def _whole(kernel: Any) -> Function:
    def run(out: pa.DataType, value: Value) -> Value:
        if value.type == out:
            return value
        if not is_a.is_decimal(out):
            return cast(out, kernel(value))
        # One digit of room, because rounding may carry.
        wide = pc.cast(value, pa.decimal256(value.type.precision + 1, value.type.scale))
        return fit(kernel(wide), out)

    return Function(whole_rule, run)


def round_rule(args: Sequence[Expr]) -> Signature:
    """A number and, if wanted, a constant number of digits."""
    counted(args, 1, 2)
    numbers(args[:1])
    digits = (
        args[1].value if len(args) == 2 and isinstance(args[1], Literal) else 0 if len(args) == 1 else None
    )
    if not isinstance(digits, int):
        raise refuse(args, "a number and a constant number of digits")
    return types_of(args), _rounded(args[0].type, digits)


def _rounded(type: pa.DataType, digits: int) -> pa.DataType:
    if not is_a.is_decimal(type):
        return type
    whole = type.precision - type.scale + 1
    if digits < 0:
        return pa.decimal128(min(38, max(whole, 1 - digits)), 0)
    scale = min(digits, type.scale)
    return pa.decimal128(min(38, whole + scale), scale)


def round_half_up(out: pa.DataType, value: Value, digits: Value | None = None) -> Value:
    """The number to that many digits, ties away from zero."""
    places = constant(digits) if digits is not None else 0
    if is_float(out):
        return elementwise(out, lambda numbers: _round_float(numbers, places), value)
    if is_integer(out):
        return (
            value if places >= 0 else elementwise(out, lambda numbers: _round_integer(numbers, places), value)
        )
    wide = pc.cast(value, pa.decimal256(value.type.precision + 1, value.type.scale))
    return fit(pc.round(wide, ndigits=places, round_mode="half_towards_infinity"), out)


def _round_float(numbers: Any, places: int) -> Any:
    # Spark rounds the decimal text of a double, so 2.675 is a tie, though it lies below one.
    size, scale = np.abs(numbers.astype(np.float64)), 10.0 ** abs(places)
    steps = np.floor(size * scale if places >= 0 else size / scale)
    tie = (steps * 10 + 5) / (scale * 10) if places >= 0 else (steps + 0.5) * scale
    steps += size >= tie
    rounded = np.copysign(steps / scale if places >= 0 else steps * scale, numbers)
    whole = ~(size * scale < 2.0**52) if places >= 0 else ~np.isfinite(size)
    return np.where(whole, numbers, rounded + 0.0)


def _round_integer(numbers: Any, places: int) -> Any:
    if -places > 18:
        return np.zeros_like(numbers)
    step = 10**-places
    wide = numbers.astype(np.int64)
    rest = np.fmod(wide, step)
    away = np.where(2 * np.abs(rest) >= step, np.sign(rest) * step, 0)
    return (wide - rest + away).astype(numbers.dtype)


def _cot(x: Any) -> Any:
    return 1.0 / np.tan(x)


def factorial(out: pa.DataType, value: Value) -> Value:
    """The factorial of 0 to 20, NULL outside."""
    known = np.array([math.factorial(i) for i in range(21)])
    return elementwise(out, lambda n: (known[np.clip(n, 0, 20)], (n >= 0) & (n <= 20)), value)


FUNCTIONS: dict[str, Function] = {
    "sqrt": plain(doubles(1), pc.sqrt),
    "cbrt": _numpy(np.cbrt),
    "pow": plain(doubles(2), power),
    "exp": plain(doubles(1), pc.exp),
    "expm1": _numpy(np.expm1),
    "ln": _logarithm(pc.ln),
    "log": plain(log_rule, log),
    "log10": _logarithm(pc.log10),
    "log2": _logarithm(pc.log2),
    "log1p": _logarithm(pc.log1p, -1.0),
    "sign": plain(doubles(1), pc.sign),
    "sin": plain(doubles(1), pc.sin),
    "cos": plain(doubles(1), pc.cos),
    "tan": plain(doubles(1), pc.tan),
    "cot": _numpy(_cot),
    "asin": plain(doubles(1), pc.asin),
    "acos": plain(doubles(1), pc.acos),
    "atan": plain(doubles(1), pc.atan),
    # Spark knows no negative zero here.
    "atan2": plain(doubles(2), lambda y, x: pc.atan2(pc.add(y, 0.0), pc.add(x, 0.0))),
    "sinh": _numpy(np.sinh),
    "cosh": _numpy(np.cosh),
    "tanh": _numpy(np.tanh),
    "hypot": _numpy(np.hypot, 2),
    "degrees": _numpy(np.degrees),
    "radians": _numpy(np.radians),
    "rint": _numpy(np.rint),
    "pi": plain(takes(DOUBLE), lambda: pa.scalar(math.pi)),
    "e": plain(takes(DOUBLE), lambda: pa.scalar(math.e)),
    "ceil": _whole(pc.ceil),
    "floor": _whole(pc.floor),
    "round": Function(round_rule, round_half_up),
    "factorial": Function(takes(BIGINT, INT), factorial),
    "bit_count": Function(takes(INT, BIGINT), lambda out, value: elementwise(out, _ones, value)),
}
ALIASES = {"power": "pow", "ceiling": "ceil", "signum": "sign"}


def _ones(numbers: Any) -> Any:
    return np.bitwise_count(numbers.view(np.uint64)).astype(np.int32)
