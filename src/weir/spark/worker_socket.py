"""The socket between Spark and a Python worker.

Spark writes a small batch in several short pieces over TCP. Linux holds the second piece back until the
worker has acknowledged the first (Nagle's algorithm), and delays that acknowledgement by 40 ms: more than all
else that a worker does in a small batch.
"""

from __future__ import annotations

import os
import socket
import stat

_OPEN_FILES = "/proc/self/fd"


def acknowledge_at_once() -> None:
    """Let this worker acknowledge what it is about to read without delay, where the system can do that."""
    option: int | None = getattr(socket, "TCP_QUICKACK", None)
    # With a default timeout, to open a copy of a socket would change how Spark's own one blocks.
    if option is None or socket.getdefaulttimeout() is not None or not os.path.isdir(_OPEN_FILES):
        return
    for number in map(int, os.listdir(_OPEN_FILES)):
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as copy:
                if copy.family in (socket.AF_INET, socket.AF_INET6):
                    copy.setsockopt(socket.IPPROTO_TCP, option, 1)
        except OSError:  # not open, or not a socket of TCP
            continue
