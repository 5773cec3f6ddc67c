"""Run one micro-batch on any engine."""
