"""A second driver, in a process of its own, which runs attacked queries when it is told to.

It reads a JSON object a line, `{"folder": ..., "kind": ..., "format": ..., "seconds": ..., "pause": ...,
"locked": ...}`, and answers "paused" when it waits before that moment until there is a file `go`, and how the
run ended: "done", or the error.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weir_lab.attack.moments import watch
from weir_lab.attack.target import MASTER, Target, is_clear, run_safely
from weir_lab.bench.processes import end_session
from weir_lab.bench.session import session

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
# Spark's default: with it weir takes no lock, so that only epochs keep two drivers apart.
UNLOCKED = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
PAUSED, DONE = "paused", "done"
_READY = "ready"


class Rival:
    """The process, as the attacker sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, target: Target, pause: int, locked: bool) -> None:
        """Let it run a query, which pauses before a moment."""
        assert self._process.stdin is not None
        asked = {
            "folder": str(target.folder),
            "kind": target.kind,
            "format": target.format,
            "seconds": target.seconds,
            "pause": pause,
            "locked": locked,
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Wait for its next word."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def rival(log: Path) -> Iterator[Rival]:
    """A second driver that is ready; nothing is left of it afterwards."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "weir_lab.attack.rival"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        ready = Rival(process)
        if ready.answer() != _READY:
            raise RuntimeError(f"there is no second driver:\n{log.read_text()[-2000:]}")
        yield ready
    finally:
        end_session(process)


def main() -> None:
    """Run what each line of the input asks for."""
    spark = session(
        "weir-lab bench attack, second driver", **{"spark.driver.memory": "1g", "spark.master": MASTER}
    )
    print(_READY, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        target = Target(Path(asked["folder"]), asked["kind"], asked["format"])
        target.seconds = asked["seconds"]
        print(_run(spark, target, asked["pause"], asked["locked"]), flush=True)


def _run(spark: Any, target: Target, pause: int, locked: bool) -> str:
    left = [pause]

    def wait(moment: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            print(f"{PAUSED} {moment}", flush=True)
            while not (target.folder / "go").exists():
                time.sleep(0.01)

    if not locked:
        spark.conf.set(MANAGER, UNLOCKED)
    try:
        with watch(wait):
            error = run_safely(lambda: target.run(spark))
    finally:
        spark.conf.unset(MANAGER)
    if error is None:
        return DONE
    return f"{'clear' if is_clear(error) else 'unclear'} {type(error).__name__}: {error}".replace("\n", " / ")


if __name__ == "__main__":
    main()
