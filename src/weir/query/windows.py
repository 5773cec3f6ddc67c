"""Windows, how long a stream's rows stay joinable, and bounds on the difference of two event times."""

from __future__ import annotations

from dataclasses import dataclass

from weir.errors import QueryError
from weir.units import format_interval

# Times and lengths are int64; below this, a time and a few lengths can be added without overflow.
MAX_LENGTH = 2**61
_DAY = 86_400_000_000


def check_length(microseconds: int, what: str) -> None:
    """Raise for a length of time that could overflow when it is added to a time."""
    if abs(microseconds) >= MAX_LENGTH:
        raise QueryError(f"{what} is too long; it must be shorter than {MAX_LENGTH // _DAY} days")


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """How long a row stays joinable after its event time.

    >>> str(TimeWindow(600_000_000))
    '10 minutes'
    """

    microseconds: int

    def __post_init__(self) -> None:
        if self.microseconds <= 0:
            raise QueryError(f"a window must be longer than zero, or no row could ever join; got {self}")
        check_length(self.microseconds, f"a length of {self}")

    def __str__(self) -> str:
        return format_interval(self.microseconds)


@dataclass(frozen=True, slots=True)
class RowWindow:
    """How many of its own stream's latest rows stay joinable."""

    rows: int

    def __post_init__(self) -> None:
        if isinstance(self.rows, bool) or not isinstance(self.rows, int):
            raise QueryError(f"a row window is a whole number of rows; got {self.rows!r}")
        if self.rows <= 0:
            raise QueryError(f"a window must hold at least one row, or no row could ever join; got {self}")
        if self.rows >= MAX_LENGTH:
            raise QueryError(f"a window must hold fewer than {MAX_LENGTH} rows; got {self}")

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows != 1)}"


Window = TimeWindow | RowWindow


def rows(count: int) -> RowWindow:
    """Return a window of the last `count` rows.

    >>> str(rows(1000))
    '1000 rows'
    """
    return RowWindow(count)


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`T_later - T_earlier <= microseconds`; the bound may be negative.

    >>> str(TimeBound("a", "b", 5_000_000)), str(TimeBound("a", "b", 4_999_999))
    ('b - a <= 5 seconds', 'b - a < 5 seconds')
    """

    earlier: str
    later: str
    microseconds: int

    def __post_init__(self) -> None:
        if self.earlier == self.later:
            raise ValueError(f"a time bound needs two different streams; got '{self.later}' twice")
        check_length(self.microseconds, f"the time bound {self}")

    @property
    def streams(self) -> frozenset[str]:
        """The two streams that it connects."""
        return frozenset([self.earlier, self.later])

    def __str__(self) -> str:
        limit, below = format_interval(self.microseconds), format_interval(self.microseconds + 1)
        bound = f"<= {limit}" if len(limit) <= len(below) else f"< {below}"
        return f"{self.later} - {self.earlier} {bound}"
