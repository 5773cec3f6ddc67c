from __future__ import annotations

import os
import subprocess
import sys

from weir_lab.bench.processes import kill, list_descendants, list_session


def test_only_what_is_in_the_session_is_found_and_killed() -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(sleeper, start_new_session=True) as alone:
        assert [process.pid for process in list_session(alone.pid)] == [alone.pid]
        assert alone.pid in [process.pid for process in list_descendants(os.getpid())]
        (process,) = list_session(alone.pid)
        assert kill(process)
        assert alone.wait() == -9
    assert not kill(process)
