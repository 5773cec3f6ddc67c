"""Decimals are rounded as exact arithmetic does, also where Arrow needs more than 128 bits."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.expr.decimals import compute, fit, result_type, round_places, truncate

WIDE = Context(prec=120, rounding=ROUND_HALF_UP)


@st.composite
def decimals(draw: st.DrawFn, most: int = 38) -> tuple[Decimal, pa.DataType]:
    """A number with many nines or zeros, and its type."""
    precision = draw(st.integers(2, most))
    scale = draw(st.integers(0, min(precision, 38)))
    nines = 10 ** draw(st.integers(1, precision)) - draw(st.integers(1, 9))
    unscaled = draw(st.sampled_from([nines, -nines]) | st.integers(1 - 10**precision, 10**precision - 1))
    make = pa.decimal128 if precision <= 38 else pa.decimal256
    return WIDE.scaleb(Decimal(unscaled), -scale), make(precision, scale)


@given(decimals(most=70), st.integers(0, 20))
def test_a_number_is_rounded_half_up_to_a_scale(drawn: tuple[Decimal, pa.DataType], scale: int) -> None:
    number, type = drawn
    out = pa.decimal128(38, scale)
    exact = WIDE.quantize(number, WIDE.scaleb(Decimal(1), -scale))
    wanted = exact if exact.copy_abs() < Decimal(10) ** (38 - scale) else None
    assert fit(pa.array([number], type), out).to_pylist() == [wanted]


@pytest.mark.parametrize("operator", ["/", "%"])
@given(decimals(), decimals())
def test_quotients_and_remainders_are_exact(
    operator: str, left: tuple[Decimal, pa.DataType], right: tuple[Decimal, pa.DataType]
) -> None:
    (x, x_type), (y, y_type) = left, right
    y = y or WIDE.scaleb(Decimal(1), -y_type.scale)
    out = result_type(operator, x_type, y_type)
    wide = Context(prec=400, rounding=ROUND_HALF_UP)
    exact = wide.divide(x, y) if operator == "/" else wide.remainder(x, y)
    exact = wide.quantize(exact, wide.scaleb(Decimal(1), -out.scale))
    wanted = exact if exact.copy_abs() < Decimal(10) ** (out.precision - out.scale) else None
    assert compute(operator, out, pa.array([x], x_type), pa.array([y], y_type)).to_pylist() == [wanted]


@given(decimals(), st.integers(-5, 0))
def test_places_before_the_point_and_truncation(drawn: tuple[Decimal, pa.DataType], places: int) -> None:
    number, type = drawn
    out, values = pa.decimal128(38, 0), pa.array([number], type)
    unit = Decimal(10) ** -places
    exact = WIDE.multiply(WIDE.quantize(WIDE.divide(number, unit), Decimal(1)), unit)
    assert round_places(values, places, out).to_pylist() == [exact if exact.copy_abs() < 10**38 else None]
    assert truncate(values).to_pylist() == [Decimal(int(number))]
