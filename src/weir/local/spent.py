"""What a batch takes, part by part."""

from __future__ import annotations

from collections import defaultdict
from time import thread_time


class Spent:
    """The CPU seconds of this thread since the last lap go to the part that is named.

    Others who use the machine, or wait for results before they ask for more, are left out.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._since = thread_time()

    def lap(self, part: str) -> None:
        """End a part."""
        now = thread_time()
        # Whoever takes the results may go on in another thread, with a clock of its own.
        self.seconds[part] += max(0.0, now - self._since)
        self._since = now
