"""Time zones: convert between instants and local times as java.time does, with any zone that Spark accepts.

Offsets come from a table of all transitions of a zone, read from the machine's time zone database: Arrow's
own conversion knows no daylight saving time after 2037.

    local time   ──┤ 01:59 ├──┤ 03:00 ──      a gap: 02:30 does not exist and is shifted forward to 03:30
                 ──┤ 01:00 ┤├ 01:00 ──        an overlap: 01:30 exists twice, and the earlier one is meant
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weir.errors import QueryError

Int64s = npt.NDArray[np.int64]
SECOND = 1_000_000
# An hour of one digit ends there or at a colon: -129 is no offset.
_FIXED = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{2}|\d(?=:|$))(?::?(\d{2})(?::?(\d{2}))?)?")
_MOST_HOURS = 18
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400 * SECOND
# The header of a block of a TZif file, and its record of a kind of local time.
_HEADER, _KIND = 44, np.dtype([("offset", ">i4"), ("is_dst", "u1"), ("name", "u1")])
# Rules of daylight saving time repeat with the calendar.
_CYCLE = 146_097 * 86_400 * SECOND
# The names that java.time.ZoneId.SHORT_IDS adds to the regions.
_SHORT_IDS = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Zone:
    """A zone's transitions in UTC, and its offsets: one before each transition and one after the last.

    The rules of a `region`, if there are any, count after the last transition.
    """

    transitions: Int64s
    offsets: Int64s
    region: tzinfo | None = None

    @property
    def is_fixed(self) -> bool:
        """True if the offset from UTC never changes."""
        return not len(self.transitions)

    @property
    def offset_range(self) -> int:
        """The difference of the largest and the smallest offset, in microseconds."""
        return int(self.offsets.max() - self.offsets.min())

    @property
    def largest_offset(self) -> int:
        """The largest distance from UTC, in microseconds."""
        return int(np.abs(self.offsets).max())

    def to_local(self, micros: Any) -> Any:
        """Convert instants to local times."""
        return micros + self._find_offsets(micros, local=False)

    def split_local(self, micros: Any) -> tuple[Any, Any]:
        """Return the local dates of instants, in days, and the local times of day; none overflows."""
        days, clock = np.divmod(micros, _DAY)
        if not self.is_fixed or self.offsets[0]:
            more, clock = np.divmod(clock + self._find_offsets(micros, local=False), _DAY)
            days = days + more
        return days, clock

    def from_local(self, micros: Any) -> Any:
        """Convert local times to instants."""
        return micros - self._find_offsets(micros, local=True)

    def keep_offset(self, instants: Any, local: Any) -> Any:
        """Convert local times near some instants; of two possible offsets keep that of the instant."""
        kept = local - self._find_offsets(instants, local=False)
        return np.where(self.to_local(kept) == local, kept, self.from_local(local))

    def _find_offsets(self, micros: Any, local: bool) -> Any:
        if self.is_fixed or not np.size(micros):
            return self.offsets[0]
        zone, times = self, micros
        if self.region is not None and np.max(micros) >= self._last_listed:
            zone, cycle_from = self._with_rules, self._last_listed + _CYCLE
            repeated = self._last_listed + (micros - self._last_listed) % _CYCLE
            times = np.where(micros < cycle_from, micros, repeated)
        transitions = zone._local_transitions if local else zone.transitions
        # The times of a batch mostly lie between two transitions.
        first, last = np.searchsorted(transitions, [np.min(times), np.max(times)], "right")
        if first == last:
            return zone.offsets[first]
        return zone.offsets[np.searchsorted(transitions, times, "right")]

    @cached_property
    def _local_transitions(self) -> Int64s:
        """The local time from which the offset after a transition counts: past the gap or the overlap."""
        return np.maximum.accumulate(self.transitions + np.maximum(self.offsets[:-1], self.offsets[1:]))

    @property
    def _last_listed(self) -> int:
        return int(self.transitions[-1]) - _DAY

    @cached_property
    def _with_rules(self) -> Zone:
        """The zone with the transitions of one cycle of its rules."""
        assert self.region is not None
        more, after = _follow_rules(self.region, int(self.transitions[-1]))
        return Zone(np.append(self.transitions, more), np.append(self.offsets, after))


def is_utc(name: str) -> bool:
    """True if a zone's local time is UTC."""
    zone = find_zone(name)
    return zone.is_fixed and not zone.offsets[0]


@cache
def find_zone(name: str) -> Zone:
    """Return the zone of a name that Spark accepts: a region, an offset, or a short name like 'PST'.

    >>> find_zone("GMT+8").offsets.tolist(), find_zone("Europe/Paris").is_fixed
    ([28800000000], False)
    """
    name = _SHORT_IDS.get(name, name)
    if name in ("Z", "UTC", "GMT", "UT"):
        return _fixed(0)
    offset = _FIXED.fullmatch(name)
    if offset is not None:
        sign, hours, minutes, seconds = offset[1], *(int(part or 0) for part in offset.groups()[1:])
        size = (hours * 60 + minutes) * 60 + seconds
        if minutes < 60 and seconds < 60 and size <= _MOST_HOURS * 3600:
            return _fixed(size if sign == "+" else -size)
    return _read_region(name)


def _fixed(seconds: int) -> Zone:
    return Zone(np.empty(0, np.int64), np.array([seconds * SECOND]))


def _read_region(name: str) -> Zone:
    from zoneinfo import ZoneInfo  # few queries have a zone with rules

    try:
        region, data = ZoneInfo(name), _read_file(name)
    except (KeyError, ValueError, OSError):
        raise QueryError(
            f"unknown time zone '{name}'; give a region like 'Europe/Paris' or an offset like '+02:00'"
        ) from None
    transitions, offsets, rules = _parse_file(data)
    return Zone(transitions, offsets, region if "," in rules else None)


def _read_file(name: str) -> bytes:
    from importlib.resources import files
    from zoneinfo import TZPATH

    for folder in TZPATH:
        path = Path(folder, name)
        if path.is_file():
            return path.read_bytes()
    return files("tzdata.zoneinfo").joinpath(name).read_bytes()


def _parse_file(data: bytes) -> tuple[Int64s, Int64s, str]:
    """Return the transitions, the offsets and the rules after the last one of a TZif file (RFC 9636)."""
    start = _block_end(data, 0, width=4)  # the second block has times of eight bytes
    *_, times, kinds, _ = _read_counts(data, start)
    position = start + _HEADER
    transitions = np.frombuffer(data, ">i8", times, position).astype(np.int64)
    kind = np.frombuffer(data, np.uint8, times, position + 8 * times)
    records = np.frombuffer(data, _KIND, kinds, position + 9 * times)
    offsets = records["offset"][[0, *kind]].astype(np.int64) * SECOND
    # Some files begin with a transition at the beginning of time.
    unknown = int((transitions < -(2**40)).sum())
    rules = data[_block_end(data, start, width=8) :].strip().decode()
    return transitions[unknown:] * SECOND, offsets[unknown:], rules


def _read_counts(data: bytes, start: int) -> list[int]:
    return [int(count) for count in np.frombuffer(data, ">u4", 6, start + 20)]


def _block_end(data: bytes, start: int, width: int) -> int:
    indicators, standards, leaps, times, kinds, characters = _read_counts(data, start)
    listed = times * (width + 1) + kinds * _KIND.itemsize + characters + leaps * (width + 4)
    return start + _HEADER + listed + standards + indicators


def _follow_rules(region: tzinfo, last: int) -> tuple[Int64s, Int64s]:
    """Return the transitions of one cycle after the last that is listed, found month by month."""
    month, first = 28 * 86_400, last // SECOND + 1
    transitions, offsets = [], []
    before = _offset_at(region, first)
    for time in range(first + month, first + _CYCLE // SECOND + month, month):
        after = _offset_at(region, time)
        if after != before:
            low, high = time - month, time
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset_at(region, middle) == before else (low, middle)
            transitions.append(high * SECOND)
            offsets.append(after * SECOND)
            before = after
    return np.array(transitions, np.int64), np.array(offsets, np.int64)


def _offset_at(region: tzinfo, seconds: int) -> int:
    offset = (_EPOCH + timedelta(seconds=seconds)).astimezone(region).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())
