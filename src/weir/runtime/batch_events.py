"""The steps of a micro-batch, for listeners: tests that crash at one, tracing.

They are the steps of the protocol in `docs/architecture.md`. In one process there is no checkpoint, so that
"vacuum" and those that sync do nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

PHASES = ("vacuum", "decide", "build", "sync_batch", "publish", "sync_results", "commit", "spark_commit")

Listener = Callable[[str, int], None]
_LISTENERS: list[Listener] = []
_LOG = logging.getLogger("weir")


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener(phase, batch)` in the driver before every step; return a function that stops this."""
    _LISTENERS.append(listener)
    return lambda: _LISTENERS.remove(listener)


def notify(phase: str, batch: int) -> None:
    """Tell every listener that a batch begins a step."""
    _LOG.debug("batch %d: %s", batch, phase)
    for listener in tuple(_LISTENERS):
        listener(phase, batch)
