"""Say in one sentence that a disk is full, whoever noticed it: Python, Arrow or Java.

Workers import this module.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from weir.errors import QueryError
from weir.spark.errors import DiskFullError

_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAYINGS = ("No space left on device", "Disk quota exceeded", "File too large", "DSQuotaExceededException")


def is_disk_full(error: BaseException) -> bool:
    """True if an error says that a file could not be written for lack of room."""
    if isinstance(error, OSError) and error.errno in _ERRNOS:
        return True
    return any(saying in str(error) for saying in _SAYINGS)


def disk_full(what: str, where: str) -> DiskFullError:
    """Return the error for what cannot be written, and where room has to be made."""
    return DiskFullError(
        f"there is no room to write {what}: free some {where}, or raise the quota, and start again; "
        "the query goes on with the batch that failed, and nothing is lost"
    )


@contextmanager
def name_full_disk(uri: str, where: str = "on its disk") -> Iterator[None]:
    """Name the file that a full disk kept from being written, and where room has to be made."""
    try:
        yield
    except QueryError:
        raise
    except Exception as error:
        if not is_disk_full(error):
            raise
        raise disk_full(uri, where) from error
