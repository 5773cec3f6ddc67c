"""Bounds between two streams' times give the relational join, and never lose a row that may still join."""

from __future__ import annotations

from .run import explore
from .test_relational import check
from .time_bounds import time_bounds


def test_bounds_between_pairs() -> None:
    explore(time_bounds(), check, examples=160)
