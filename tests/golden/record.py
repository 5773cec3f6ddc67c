"""Golden files: a run in its normal form, recorded once and compared ever after.

`make golden` compares, `make golden RECORD=1` records anew; a commit that records anew says why.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORDS = bool(os.environ.get("GOLDEN_RECORD"))
_WIDTH = 140
_MOST_SHOWN = 25


def check(name: str, run: Any) -> None:
    """Compare a run with its golden file, or record it."""
    path = FOLDER / f"{name}.json"
    text = dumps(run) + "\n"
    if RECORDS:
        path.write_text(text)
        return
    assert path.exists(), f"{path.name} is not recorded: make golden RECORD=1"
    found = list(differences(json.loads(path.read_text()), json.loads(text)))
    shown = "\n".join(found[:_MOST_SHOWN])
    assert not found, f"{path.name}: {len(found)} differences from what was recorded\n{shown}"


def differences(golden: Any, now: Any, where: str = "") -> Iterator[str]:
    """Every place where two runs differ; fractions may differ in their last digits on another machine."""
    if isinstance(golden, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*golden, *now]):
            if key in golden and key in now:
                yield from differences(golden[key], now[key], f"{where}/{key}")
            else:
                yield f"{where}/{key}: only {'recorded' if key in golden else 'now'}"
    elif isinstance(golden, list) and isinstance(now, list):
        if len(golden) != len(now):
            yield f"{where}: {len(golden)} recorded, {len(now)} now"
        for number, pair in enumerate(zip(golden, now, strict=False)):
            yield from differences(*pair, f"{where}/{number}")
    elif isinstance(golden, float) and isinstance(now, float):
        if not math.isclose(golden, now, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{where}: {golden} recorded, {now} now"
    elif golden != now or isinstance(golden, bool) != isinstance(now, bool):
        yield f"{where}: {golden!r} recorded, {now!r} now"


def dumps(value: Any, indent: str = "") -> str:
    """JSON for people: what fits into a line stands in one."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent) + len(flat) <= _WIDTH:
        return flat
    inner = indent + " "
    if isinstance(value, list):
        lines = [f"{inner}{dumps(item, inner)}" for item in value]
        return "[\n" + ",\n".join(lines) + f"\n{indent}]"
    lines = [f"{inner}{json.dumps(key)}: {dumps(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
