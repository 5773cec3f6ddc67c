"""Errors that users cause: one sentence that says what is wrong, where, and what exists instead."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

T = TypeVar("T")


class QueryError(ValueError):
    """A query, option or script is invalid; the message says what is wrong, where, and what to do."""


class EvaluationError(QueryError):
    """An expression fails on the values of a row; the message names both."""


def unknown_name(kind: str, name: str, known: Iterable[str], where: str = "") -> QueryError:
    """Return the error for a name that does not exist, with the nearest one that does.

    >>> str(unknown_name("stream", "ordrs", ["orders", "clicks"]))
    "unknown stream 'ordrs'; did you mean 'orders'? Known: 'orders', 'clicks'"
    >>> str(unknown_name("stream", "x", ["orders", "clicks"]))
    "unknown stream 'x'; known: 'orders', 'clicks'"
    """
    names = list(known)
    near = find_nearest(name, names)
    hint = "known" if near is None else f"did you mean '{near}'? Known"
    listed = ", ".join(f"'{each}'" for each in names) or "none"
    return QueryError(f"unknown {kind} '{name}'{where}; {hint}: {listed}")


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return the end of an error that names the nearest known name, empty if none is near.

    >>> suggest_name("mjion", ["auto", "mjoin"])
    "; did you mean 'mjoin'?"
    """
    near = find_nearest(name, known) if isinstance(name, str) else None
    return "" if near is None else f"; did you mean '{near}'?"


def match_name(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the known spelling of a name in any case, or raise.

    >>> match_name("stream", "ORDERS", ["orders", "clicks"])
    'orders'
    """
    names = list(known)
    if not isinstance(name, str):
        raise unknown_name(kind, str(name), names, where)
    spellings = [name] if name in names else [other for other in names if other.lower() == name.lower()]
    if not spellings:
        raise unknown_name(kind, name, names, where)
    return spellings[0]


def refuse_unknown_keys(settings: type[T]) -> type[T]:
    """Make the constructor of a settings class raise a QueryError for unknown keys and surplus values.

    >>> @refuse_unknown_keys
    ... class Pace:
    ...     def __init__(self, seconds=1): ...
    >>> Pace(bpm=90)
    Traceback (most recent call last):
    weir.errors.QueryError: unknown key 'bpm' in weir.Pace; known: 'seconds'
    """
    # A wrapper rather than **others in the constructor, so that type checkers still know the keys.
    init: Any = settings.__init__
    known = list(inspect.signature(init).parameters)[1:]

    @wraps(init)
    def checked_init(self: T, *given: Any, **named: Any) -> None:
        for name in named:
            if name not in known:
                raise unknown_name("key", name, known, where=f" in weir.{settings.__name__}")
        if len(given) > len(known):
            values = f"{len(known)} values, {', '.join(known)}"
            raise QueryError(f"weir.{settings.__name__} takes {values}; got {len(given)}")
        init(self, *given, **named)

    settings.__init__ = checked_init  # type: ignore[assignment] # it accepts what the original accepts
    return settings


@contextmanager
def locate_errors(where: str) -> Iterator[None]:
    """Begin the message of every error inside with where it happened.

    >>> with locate_errors("line 3: "):
    ...     raise QueryError("there is no INTO")
    Traceback (most recent call last):
    weir.errors.QueryError: line 3: there is no INTO
    """
    try:
        yield
    except QueryError as error:
        raise QueryError(f"{where}{error}") from error.__cause__


def find_nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar known name, ignoring case; None if none is as similar as `cutoff`.

    >>> find_nearest("WITHN", ["on", "within"])
    'within'
    """
    spelled = {candidate.lower(): candidate for candidate in reversed(list(known))}
    matches = get_close_matches(name.lower(), list(spelled), 1, cutoff)
    return spelled[matches[0]] if matches else None
