"""The phases of a micro-batch, for listeners: tests that crash at one, tracing."""

from __future__ import annotations

import logging
from collections.abc import Callable

PHASES = ("decide", "build", "built", "emit", "emitted", "committed")

Listener = Callable[[str, int], None]
_LISTENERS: list[Listener] = []
_LOG = logging.getLogger("weir")


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener(phase, batch)` in the driver at every phase; return a function that stops this."""
    _LISTENERS.append(listener)
    return lambda: _LISTENERS.remove(listener)


def notify(phase: str, batch: int) -> None:
    """Tell every listener that a batch has reached a phase."""
    _LOG.debug("batch %d: %s", batch, phase)
    for listener in tuple(_LISTENERS):
        listener(phase, batch)
