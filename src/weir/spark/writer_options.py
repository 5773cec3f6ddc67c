"""Options of a writer: like Spark's, their names are case-insensitive."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from weir.errors import QueryError, find_nearest

# What a writer itself reads; all other options go to the sink.
OF_QUERY = ("path", "checkpointLocation", "queryName")
# Settings of a writer that are no options: given as one, Spark would ignore them.
_SETTERS = ("outputMode", "partitionBy", "processingTime", "availableNow")

# What else people call them.
_MEANT = dict.fromkeys(
    ("checkpoint", "checkpointdir", "checkpointfolder", "checkpointpath"), "checkpointLocation"
)


class WriterOptions(MutableMapping[str, str]):
    """Options by name in any case; the spelling given last is kept, since some sinks read it.

    >>> options = WriterOptions()
    >>> options["checkpointlocation"] = "/tmp/c"
    >>> options["checkpointLocation"], dict(options)
    ('/tmp/c', {'checkpointlocation': '/tmp/c'})
    """

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        return self._given[name.lower()][1]

    def __setitem__(self, name: str, value: str) -> None:
        self._given[name.lower()] = name, value

    def __delitem__(self, name: str) -> None:
        del self._given[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._given.values())

    def __len__(self) -> int:
        return len(self._given)

    def of_sink(self) -> WriterOptions:
        """The options that a sink reads."""
        options = WriterOptions()
        options.update({name: value for name, value in self.items() if name.lower() not in _LOWER_OF_QUERY})
        return options


_LOWER_OF_QUERY = tuple(map(str.lower, OF_QUERY))


def show_option(key: Any, value: Any) -> tuple[str, str | None]:
    """An option as Spark passes it on; None takes it back."""
    if not isinstance(key, str):
        raise QueryError(f"the name of an option is text, like 'checkpointLocation'; got {key!r}")
    if value is None:
        return key, None
    return key, str(value).lower() if isinstance(value, bool) else str(value)


def check_spelling(options: WriterOptions) -> None:
    """Refuse an option that looks like one of a writer's own settings, misspelt."""
    for name in options:
        plain = name.replace("_", "").replace("-", "").lower()
        near = _MEANT.get(plain) or find_nearest(plain, (*OF_QUERY, *_SETTERS), cutoff=0.86)
        if near in OF_QUERY and name.lower() != near.lower():
            raise QueryError(f"unknown option '{name}'; did you mean '{near}'?")
        if near in _SETTERS:
            raise QueryError(f"'{name}' is not an option; did you mean .{_write_setter(near)}?")


def _write_setter(name: str) -> str:
    return f"trigger({name}=...)" if name in ("processingTime", "availableNow") else f"{name}(...)"
