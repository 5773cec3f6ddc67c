"""Say which filter or column of which stream Spark was computing when data made it fail.

[DIVIDE_BY_ZERO] Division by zero. ... SQLSTATE: 22012
== SQL (line 1, position 1) ==
10 / a.x > 2
^^^^^^^^
→   the filter 10 / a.x > 2 of stream 'a' fails: Division by zero [DIVIDE_BY_ZERO]; ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from weir.errors import EvaluationError
from weir.query.pushdown import Pushdown

_ERROR = re.compile(
    r"\[(?P<condition>[A-Z][A-Z0-9_.]+)\] (?P<message>.*?)\.? SQLSTATE.*?"
    r"^== SQL[^\n]*==\n(?P<text>[^\n]*)\n(?P<marks> *\^+)",
    re.DOTALL | re.MULTILINE,
)


def name_stream(error: Exception, pushed: Pushdown) -> Exception:
    """Return an error that names the stream whose filter or column failed in Spark; any other as it is."""
    report = _ERROR.search(str(error))
    if report is None:
        return error
    start = report["marks"].index("^")
    failed = report["text"][start : len(report["marks"])]
    parts = sorted(_parts(pushed), key=lambda part: report["text"] not in part[-1].splitlines())
    for stream, what, text in parts:  # first those whose whole line is the one that Spark shows
        if failed in text:
            reason = f"{report['message'].partition('. ')[0]} [{report['condition']}]"
            named = EvaluationError(
                f"the {what} {' '.join(text.split())} of stream '{stream}' fails: {reason}; use a try_ "
                "function, drop such rows before the join, or pass on_error='null'"
            )
            named.__cause__ = error
            return named
    return error


def _parts(pushed: Pushdown) -> Iterator[tuple[str, str, str]]:
    yield from ((part.stream, "filter", part.text) for part in pushed.filters)
    yield from ((part.stream, "expression", part.text) for part in pushed.computed)
