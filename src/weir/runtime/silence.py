"""Warn of a stream that holds the watermark, and with it all state, because nothing arrives."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from weir.runtime.watermark import Holder

_LOG = logging.getLogger("weir")
# How long nothing may arrive before it is worth a word (µs).
_SILENT = 600_000_000


class SilenceMonitor:
    """Warns once for each stream and start of a query."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def check(self, holder: Holder | None, now: int | None) -> None:
        """Warn if the stream that holds the watermark has been silent for ten minutes."""
        if holder is None or holder.since is None or now is None or holder.stream in self._warned:
            return
        if now - holder.since < _SILENT:
            return
        self._warned.add(holder.stream)
        since = datetime.fromtimestamp(holder.since // 1_000_000, UTC)
        _LOG.warning(
            "stream '%s' has brought no row with a usable time since %s UTC, so it holds the watermark, and "
            "the state of all streams is kept; pass idle= to let the others go on without a silent stream",
            holder.stream,
            since.strftime("%Y-%m-%d %H:%M:%S"),
        )
