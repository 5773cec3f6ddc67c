"""A clock that moves only when a test says so.

What a join gives depends on event times alone, never on the time of day, so the rows of a test are all that
needs a clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from weir.units import parse_interval


class ManualClock:
    """Event times for the rows of a test; with a time zone, Spark reads them as TIMESTAMP.

    >>> clock = ManualClock("2024-01-02 12:00")
    >>> clock.advance("5 seconds")
    datetime.datetime(2024, 1, 2, 12, 0, 5)
    >>> clock.ago("1 minute")
    datetime.datetime(2024, 1, 2, 11, 59, 5)
    """

    def __init__(self, start: str | datetime = "2024-01-01") -> None:
        self._now = datetime.fromisoformat(start) if isinstance(start, str) else start

    def now(self) -> datetime:
        """The time it shows."""
        return self._now

    def ago(self, interval: str | timedelta) -> datetime:
        """An earlier time, for rows that come late."""
        return self._now - _read(interval)

    def advance(self, interval: str | timedelta) -> datetime:
        """Move on, and return the new time."""
        self._now += _read(interval)
        return self._now


def _read(interval: str | timedelta) -> timedelta:
    return timedelta(microseconds=parse_interval(interval))
