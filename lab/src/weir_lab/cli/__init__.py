"""`weir-lab`: the papers' experiments and the benchmarks, one command each."""

from weir_lab.cli.app import app, main

__all__ = ["app", "main"]
