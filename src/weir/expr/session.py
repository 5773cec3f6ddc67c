"""What of a Spark session changes the meaning of expressions: its time zone and ANSI mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weir.errors import QueryError, unknown_name
from weir.expr.nodes import Mode, OnError
from weir.expr.zones import find_zone, is_utc

_KEYS = ("timeZone", "ansi")


@dataclass(frozen=True, slots=True)
class Session:
    """The time zone of local times, and whether a data error is an error (ANSI mode) or NULL.

    >>> Session("Europe/Paris")
    Session(time_zone='Europe/Paris', ansi=True)
    """

    time_zone: str = "UTC"
    ansi: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.time_zone, str):
            raise QueryError(f"a time zone is text, like 'Europe/Paris'; got {self.time_zone!r}")
        if not isinstance(self.ansi, bool):
            raise QueryError(f"ansi is True or False; got {self.ansi!r}")
        find_zone(self.time_zone)

    def mode(self, on_error: OnError = "fail") -> Mode:
        """Return how calls are evaluated in this session."""
        return Mode(None if is_utc(self.time_zone) else self.time_zone, self.ansi, on_error)


def read_session(given: Session | Mapping[str, Any] | None) -> Session:
    """Read the argument `session=`, like `{"timeZone": "Europe/Paris", "ansi": False}`.

    >>> read_session({"timeZone": "GMT+8"})
    Session(time_zone='GMT+8', ansi=True)
    """
    if given is None or isinstance(given, Session):
        return given or Session()
    if not isinstance(given, Mapping):
        raise QueryError(f"session= is written {{'timeZone': 'Europe/Paris', 'ansi': True}}; got {given!r}")
    for key in given:
        if key not in _KEYS:
            raise unknown_name("key", str(key), _KEYS, where=" in session=")
    return Session(given.get("timeZone", "UTC"), given.get("ansi", True))
