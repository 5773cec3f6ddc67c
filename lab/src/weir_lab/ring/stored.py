"""The rows of one stream that a node holds, oldest first.

    gone │ passed on, still marked │ live
         base                      live  ........ end      (places count from the first row ever stored)

A row that is too old for the node is passed on at once, but stays here as long as a tuple under way has
marked it (delayed purge: Wang and Rundensteiner 2009, section 4.4). Places never change, so a mark is a pair
of them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a stream; `number` is its place in the order of arrival over all streams."""

    number: int
    stream: int
    time: float
    value: object = None


class Stored:
    """Rows in the order of their arrival."""

    __slots__ = ("base", "live", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.base = self.live = 0

    @property
    def end(self) -> int:
        """The place of the next row."""
        return self.base + len(self.rows)

    def insert(self, row: Row) -> None:
        """Keep a row, which is newer than all that are here."""
        self.rows.append(row)

    def expire(self, now: float, age: float, limit: int | None = None) -> list[Row]:
        """Pass on the live rows that are `age` old or older, and the oldest of more than `limit`."""
        rows, first = self.rows, self.live - self.base
        place = first if limit is None else max(first, len(rows) - limit)
        while place < len(rows) and now - rows[place].time >= age:
            place += 1
        self.live = self.base + place
        return rows[first:place]

    def between(self, low: int, high: int) -> list[Row]:
        """The rows at [low, high)."""
        return self.rows[low - self.base : high - self.base]

    def since(self, now: float, window: float) -> int:
        """The place of the first row that is younger than the window."""
        return self.base + bisect_right(self.rows, -window, key=lambda row: row.time - now)

    def forget(self, before: int) -> None:
        """Let go what was passed on and lies before a place."""
        before = min(before, self.live)
        if before > self.base:
            del self.rows[: before - self.base]
            self.base = before

    def take(self) -> list[Row]:
        """Give away all live rows."""
        rows = self.rows[self.live - self.base :]
        self.base = self.live = self.end
        self.rows = []
        return rows
