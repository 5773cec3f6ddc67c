"""Tell which streams are idle and no longer hold back the watermark, which `advance_watermark` advances."""

from __future__ import annotations

from collections.abc import Iterable

from weir.runtime.manifest import Manifest


def find_idle_streams(names: Iterable[str], before: Manifest, idle: int | None) -> tuple[str, ...]:
    """Return the streams whose newest row is more than `idle` µs behind that of all; None: no stream is."""
    if idle is None or before.clock is None:
        return ()
    oldest = before.clock - idle
    return tuple(name for name in names if before.newest.get(name, oldest - 1) < oldest)
