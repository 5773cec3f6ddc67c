"""Intervals and sizes as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.errors import QueryError
from weir.units import format_interval, format_size, parse_interval, parse_size

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("10 minutes", 600 * SECOND),
        ("10 mins", 600 * SECOND),
        ("10 MINS", 600 * SECOND),
        ("10min", 600 * SECOND),
        ("5 s", 5 * SECOND),
        ("5s", 5 * SECOND),
        ("1 sec", SECOND),
        ("1 hour 30 minutes", 5400 * SECOND),
        ("1 hour -30 minutes", 1800 * SECOND),
        ("INTERVAL 5 SECONDS", 5 * SECOND),
        ("interval '5' seconds", 5 * SECOND),
        ("INTERVAL '5 seconds'", 5 * SECOND),
        ("250 ms", 250_000),
        ("250 milliseconds", 250_000),
        ("7 us", 7),
        ("7 µs", 7),
        ("1.5 seconds", 1_500_000),
        ("2 days", 172_800 * SECOND),
        ("1 week", 604_800 * SECOND),
        ("-3 seconds", -3 * SECOND),
        ("0 seconds", 0),
        (timedelta(minutes=1, microseconds=3), 60 * SECOND + 3),
        (42, 42),
    ],
)
def test_interval(text: str | timedelta | int, microseconds: int) -> None:
    assert parse_interval(text) == microseconds


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("1 month", ["'1 month'", "no fixed length", "days"]),
        ("2 years", ["years", "no fixed length"]),
        ("3 quarters", ["quarters", "no fixed length"]),
        ("10 minuts", ["unit 'minuts'", "did you mean 'minutes'?", "'10 minuts'"]),
        ("10", ["'10' is not an interval", "10 minutes"]),
        ("", ["'' is not an interval"]),
        ("minutes", ["'minutes' is not an interval"]),
        ("1.5 us", ["'1.5 us'", "whole microseconds"]),
        (True, ["got True"]),
        (1.5, ["got 1.5", "'10 minutes'"]),
    ],
)
def test_bad_interval(text: str, fragments: list[str]) -> None:
    with pytest.raises(QueryError) as error:
        parse_interval(text)
    assert all(fragment in str(error.value) for fragment in fragments), str(error.value)


@given(st.integers(-(10**15), 10**15))
def test_shown_intervals_read_back(microseconds: int) -> None:
    assert parse_interval(format_interval(microseconds)) == microseconds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2g", 2**31),
        ("2GB", 2**31),
        ("2 gib", 2**31),
        ("512m", 2**29),
        ("64k", 2**16),
        ("1t", 2**40),
        ("100", 100),
        ("100b", 100),
        (7, 7),
    ],
)
def test_size(text: str | int, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["", "g", "1.5g", "2x", "-1g", "2 g g", None, True])
def test_bad_size(text: str) -> None:
    with pytest.raises(QueryError, match=r"is not a size; expected .* like '512m' or '2g'"):
        parse_size(text)


@given(st.integers(0, 2**52))
def test_shown_sizes_read_back(count: int) -> None:
    assert parse_size(format_size(count)) == count
