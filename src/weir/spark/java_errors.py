"""Say in a line what Java said in a page."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

JAVA_ERRORS: tuple[type[Exception], ...] = (Py4JError, PySparkException)

_DETAILS = re.compile(r"\s*(SQLSTATE: \w+|; For more details see:|Please pick a different).*$")
_CLASS = re.compile(r"^(?:[\w$]+\.)+(\w*(?:Exception|Error))(?:: )?")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's message, without its class, its condition and its SQLSTATE.

    >>> reason_of(ValueError("[NOT_FOUND] There is no t. SQLSTATE: 42P01\\nat a.b.c"))
    'There is no t'
    """
    if isinstance(error, Py4JJavaError):
        java = error.java_exception
        message = java.getMessage() or java.getClass().getSimpleName()
    else:
        message = str(error)
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    first = _CONDITION.sub("", _CLASS.sub("", lines[0])) if lines else type(error).__name__
    return _DETAILS.sub("", first).rstrip(".;: ") or type(error).__name__
