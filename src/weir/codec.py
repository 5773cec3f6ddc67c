"""JSON for the dataclasses that a checkpoint keeps and that tasks send, driven by their type hints.

    dataclass                    an object with its fields; of a union, with its class name under "type" too
    Mapping[str, ...]            an object
    Mapping of other keys        a list of [key, value]
    tuple, frozenset             a list
    int, float, str, bool, None  as they are

A value that is read back equals the one that was written, and a field that is missing or unknown is an error:
files of other versions are refused, never guessed at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

_PLAIN = (int, float, str, bool, NoneType)


class _Codec(NamedTuple):
    """How values of one type are written and read."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def to_json(value: Any) -> Any:
    """What `json.dumps` takes for a dataclass.

    >>> from weir.stats.lag_histogram import LagHistogram
    >>> to_json(LagHistogram(0.0, 2.0, (3.0, 1.0)))
    {'low': 0.0, 'high': 2.0, 'counts': [3.0, 1.0]}
    """
    kind: Any = type(value)
    return _codec(kind).write(value)


def from_json(kind: type[T], data: Any) -> T:
    """The value of a dataclass for which `to_json` gave the data."""
    value: T = _codec(kind).read(data)  # type: ignore[arg-type] # classes are hashable
    return value


@cache
def _codec(kind: Any) -> _Codec:
    """How a type is written and read; made once for each type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in _PLAIN or origin is Literal:
        return _Codec(lambda value: value, lambda data: data)
    if origin in (Union, UnionType):
        return _union(*(option for option in arguments if option is not NoneType))
    if is_dataclass(kind):
        return _dataclass(kind)
    if origin is tuple:
        return _tuple(*arguments)
    if origin is frozenset:
        write, read = _codec(arguments[0])
        return _Codec(lambda items: sorted(map(write, items)), lambda items: frozenset(map(read, items)))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*arguments)
    raise TypeError(f"no JSON for values of {kind}")


def _dataclass(kind: Any) -> _Codec:
    @cache  # not before it is used, as a dataclass may hold others of its own kind
    def codecs() -> dict[str, _Codec]:
        hints = get_type_hints(kind)
        return {field.name: _codec(hints[field.name]) for field in fields(kind)}

    def write(value: Any) -> dict[str, Any]:
        return {name: codec.write(getattr(value, name)) for name, codec in codecs().items()}

    def read(data: Mapping[str, Any]) -> Any:
        if missing := ", ".join(name for name in codecs() if name not in data):
            raise ValueError(f"{kind.__name__} lacks {missing}")
        if len(data) > len(codecs()):
            unknown = ", ".join(name for name in data if name not in codecs())
            raise ValueError(f"{kind.__name__} has no {unknown}")
        return kind(**{name: codec.read(data[name]) for name, codec in codecs().items()})

    return _Codec(write, read)


def _union(*options: Any) -> _Codec:
    """One of several dataclasses, told apart by name; plain values and tuples, as they are in JSON."""
    if len(options) == 1:
        only = _codec(options[0])
        return _Codec(
            lambda value: None if value is None else only.write(value),
            lambda data: None if data is None else only.read(data),
        )
    classes = {option.__name__: _codec(option) for option in options if isinstance(option, type)}
    tuples = next((_codec(option) for option in options if get_origin(option) is tuple), None)

    def write(value: Any) -> Any:
        name = type(value).__name__
        if name in classes:
            return {"type": name, **classes[name].write(value)}
        return tuples.write(value) if tuples and isinstance(value, tuple) else value

    def read(data: Any) -> Any:
        if isinstance(data, Mapping):
            fields = {name: value for name, value in data.items() if name != "type"}
            return classes[data["type"]].read(fields)
        return tuples.read(data) if tuples and isinstance(data, list) else data

    return _Codec(write, read)


def _tuple(*arguments: Any) -> _Codec:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        write, read = _codec(arguments[0])
        return _Codec(lambda items: list(map(write, items)), lambda items: tuple(map(read, items)))
    codecs = [_codec(argument) for argument in arguments]
    return _Codec(
        lambda items: [codec.write(item) for codec, item in zip(codecs, items, strict=True)],
        lambda items: tuple(codec.read(item) for codec, item in zip(codecs, items, strict=True)),
    )


def _mapping(key: Any, value: Any) -> _Codec:
    item = _codec(value)
    if key is str:
        return _Codec(
            lambda items: {name: item.write(value) for name, value in items.items()},
            lambda items: {name: item.read(value) for name, value in items.items()},
        )
    name = _codec(key)
    return _Codec(
        lambda items: [[name.write(key), item.write(value)] for key, value in items.items()],
        lambda items: {name.read(key): item.read(value) for key, value in items},
    )
