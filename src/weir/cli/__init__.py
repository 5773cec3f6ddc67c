"""The `weir` command."""

from weir.cli.app import app, main

__all__ = ["app", "main"]
