"""Joins by time: bounds between the times of two streams, as users write them, with windows or without."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import strategies as st

from . import conditions
from .case import Case
from .conditions import Condition
from .generate import MOST_ROWS, NAMES, RANGE, UNITS, extras, inputs, plan, sizes


def interval(units: int, unit: int) -> str:
    return f"INTERVAL {units} {'MICROSECONDS' if unit == 1 else 'SECONDS'}"


def shifted(time: str, units: int, unit: int) -> str:
    """A time column moved by some units, in the sign that reads well."""
    if units == 0:
        return time
    return f"{time} {'+' if units > 0 else '-'} {interval(abs(units), unit)}"


def two_sided(earlier: str, later: str, low: int, high: int, unit: int, rng: Random) -> str:
    """`low <= later - earlier <= high`, in one of the ways to write it."""
    least, most = shifted(earlier, low, unit), shifted(earlier, high, unit)
    ways = [
        f"{later} BETWEEN {least} AND {most}",
        f"{later} >= {least} AND {most} >= {later}",
        f"{shifted(later, -low, unit)} >= {earlier} AND NOT ({later} > {most})",
    ]
    if unit == 1:  # where a unit is the smallest step, `< x + 1` is `<= x`
        ways.append(f"{later} > {shifted(earlier, low - 1, 1)} AND {later} < {shifted(earlier, high + 1, 1)}")
    if high >= 0:
        ways.append(f"{later} - {earlier} <= {interval(high, unit)} AND {later} >= {least}")
    if low == high:
        ways.append(f"{later} = {least}")
    return rng.choice(ways)


def one_sided(earlier: str, later: str, low: int, unit: int, rng: Random) -> str:
    least = shifted(earlier, low, unit)
    return rng.choice(
        [f"{later} >= {least}", f"{later} > {shifted(earlier, low - 1, unit)}", f"{least} <= {later}"]
    )


def tied_by_time(
    times: Sequence[str], offsets: Sequence[int], one_sided_too: bool, unit: int, rng: Random
) -> list[Condition]:
    """A tree of bounds around the streams' offsets, so that they never contradict each other."""
    found = []
    for j in range(1, len(times)):
        i = rng.randrange(j)
        earlier, later = rng.sample((i, j), 2)
        gap = offsets[later] - offsets[earlier]
        low, high = gap - rng.randint(0, RANGE // 4), gap + rng.randint(0, RANGE // 4)
        if one_sided_too and rng.random() < 0.4:
            text = one_sided(times[earlier], times[later], low, unit, rng)
        else:
            text = two_sided(times[earlier], times[later], low, high, unit, rng)
        found.append(Condition(text))
    return found


@st.composite
def time_bounds(draw: st.DrawFn) -> Case:
    """Bounds between pairs, shifted, one-sided, exclusive; half of the cases need no window at all."""
    names = NAMES[: draw(st.sampled_from((2, 2, 3, 3, 3, 4, 4, 5)))]
    rng = Random(draw(st.integers(0, 2**32)))
    unit, windowed = rng.choice(UNITS), rng.random() < 0.5
    columns = [rng.choice(("ts", "at")) for _ in names]
    offsets = [rng.choice((0, 0, RANGE // 6, -RANGE // 4, RANGE // 3)) for _ in names]
    times = [f"{name}.{column}" for name, column in zip(names, columns, strict=True)]
    found = tied_by_time(times, offsets, windowed, unit, rng)
    for name, earlier in zip(names[1:], names, strict=False):
        if rng.random() < 0.4:
            found.append(
                rng.choice((conditions.equal, conditions.compare, conditions.residual))(earlier, name, rng)
            )
    found += extras(names, conditions.IN_SQL, rng)
    windows = [
        (max(offsets) - offset + rng.randint(1, RANGE // 2)) * unit if windowed else None
        for offset in offsets
    ]
    rows = sizes(draw, len(names), MOST_ROWS[len(names)])
    streams = inputs(draw, names, found, rows, windows, unit, rng, times=columns)
    return Case(
        streams,
        tuple(found),
        plan(names, rng),
        tuple(rng.sample(names, len(names))),
        False,
        rng.random() < 0.3,
    )
