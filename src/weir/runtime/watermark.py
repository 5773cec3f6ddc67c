"""Decide by the wall clock which streams are idle and which event times are accepted.

wall clock     ──┬────────────────────────┬──────────▶ now
                 │ last row of b arrives  │ idle after it: b no longer holds the watermark
event time     ──┴──────────────────────────┬──────────────────────┬───▶
                                            │ latest of now and    │ rows after it are ahead:
                                            │ the other streams    │ dropped, and not the newest

A stream is idle because none of its rows arrives, never because its rows are old: the slower stream of a
backfill is not idle. `advance_watermark` in the kernel computes the watermark itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from weir.query.model import Stream

_LAST_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Holder:
    """The stream that holds the watermark, and the wall clock (µs) since when no row of it has arrived.

    `since` is None where no clock is read.
    """

    stream: str
    since: int | None


def find_idle_streams(
    names: Iterable[str], last_arrivals: Mapping[str, int], now: int | None, idle: int | None
) -> tuple[str, ...]:
    """Return the streams of which no row has arrived for `idle` µs; None: no stream is idle.

    >>> find_idle_streams("ab", {"a": 95, "b": 60}, now=100, idle=40)
    ('b',)
    """
    if idle is None or now is None:
        return ()
    return tuple(name for name in names if now - last_arrivals.get(name, now) >= idle)


def limit_times(
    names: Iterable[str], newest: Mapping[str, int], now: int | None, ahead: int | None
) -> dict[str, int]:
    """Return the latest event time that is accepted of each stream; empty: every time is.

    It is `ahead` µs after the wall clock, or after the newest row of the other streams if that is later: a
    simulation may run in the future, but not one of its streams alone. A time that was accepted when another
    limit held, and is ahead by this one, does not count.

    >>> limit_times("ab", {"a": 108}, now=100, ahead=10), limit_times("ab", {"a": 999}, now=100, ahead=10)
    ({'a': 110, 'b': 118}, {'a': 110, 'b': 110})
    """
    if ahead is None or now is None:
        return {}
    latest_first = sorted(newest.items(), key=lambda item: -item[1])
    while latest_first and latest_first[0][1] > max([now, *(time for _, time in latest_first[1:2])]) + ahead:
        del latest_first[0]
    limits = {}
    for name in names:
        others = [time for other, time in latest_first if other != name]
        limits[name] = min(max([now, *others]) + ahead, _LAST_TIME)
    return limits


def update_last_arrivals(
    names: Iterable[str], before: Mapping[str, int], now: int | None, arrived: Collection[str]
) -> dict[str, int]:
    """Return when the last row of each stream arrived; a stream without any counts from the first batch.

    A wall clock that was set back does not keep a stream from ever being idle.

    >>> update_last_arrivals("abc", {"a": 5, "b": 5}, now=9, arrived={"a"})
    {'a': 9, 'b': 5, 'c': 9}
    """
    if now is None:
        return {}
    return {name: now if name in arrived else min(before.get(name, now), now) for name in names}


def find_holder(
    streams: Sequence[Stream],
    newest: Mapping[str, int],
    idle: Collection[str],
    last_arrivals: Mapping[str, int],
) -> Holder | None:
    """Return the stream for which the watermark waits, first one without a row; None: all are idle."""
    waiting = [stream for stream in streams if stream.name not in idle]
    if not waiting:
        return None
    silent = [stream for stream in waiting if stream.name not in newest]
    holder = silent[0] if silent else min(waiting, key=lambda stream: newest[stream.name] - stream.late)
    return Holder(holder.name, last_arrivals.get(holder.name))
