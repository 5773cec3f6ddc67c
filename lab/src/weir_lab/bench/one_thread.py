"""Measure in a process of its own, where each library is held to one thread."""

from __future__ import annotations

import os
import subprocess
import sys

from weir_lab.bench.figure import Figure, from_json

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")


def run_module(module: str, *arguments: str) -> list[Figure]:
    """Run a module that prints its figures as JSON; what it prints on stderr goes to the terminal."""
    environment = os.environ | dict.fromkeys(_ONE_THREAD, "1")
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return from_json(done.stdout)
