"""Describe a checkpoint in some ten lines, for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from weir.plan.explain import format_bytes
from weir.runtime.clock_warnings import format_time
from weir.runtime.manifest import Manifest
from weir.spark.epoch import describe_newest
from weir.spark.errors import DamagedStateError
from weir.spark.job_description import JobDescription
from weir.spark.state_repair import StoredState

_MAX_CHARACTERS = 100


def describe_state(state: StoredState, is_running: bool | None) -> Iterator[tuple[str, str]]:
    """Yield what a checkpoint holds, as headings and texts; `is_running` is None where nothing tells."""
    checkpoint, job = state.checkpoint, state.checkpoint.read_job()
    yield "checkpoint", state.location.uri
    if job is not None:
        yield from _describe_job(job)
    driver = {True: "running", False: "not running", None: "perhaps running"}[is_running]
    yield "driver", f"{driver}; the last one: {describe_newest(checkpoint.folder)}"
    yield "batches", _describe_batches(state)
    with suppress(DamagedStateError):  # the condition tells
        yield from _describe_manifest(checkpoint.read_manifest())
    yield "condition", "not checked while a driver is running" if is_running else _describe_condition(state)


def _describe_condition(state: StoredState) -> str:
    try:
        repair = state.plan_repair()
    except DamagedStateError as error:
        return f"damaged: {error}"
    if repair is None:
        return "whole: the next start goes on"
    advice = f"go back to a whole batch by: weir state repair {state.location.uri}"
    return f"damaged: {repair.damage}; {advice}"


def _describe_job(job: JobDescription) -> Iterator[tuple[str, str]]:
    definition, target = job.definition, job.target
    asked = " ".join((definition.statement or f"ON {definition.on or 'every combination'}").split())
    is_long = len(asked) > _MAX_CHARACTERS
    yield "query", f"{job.id}, {asked[:_MAX_CHARACTERS]}{'...' if is_long else ''}"
    windows = (
        f"{name} ({'from time bounds' if window is None else window})"
        for name, window in definition.windows.items()
    )
    yield "streams", ", ".join(windows)
    partitions = "" if job.partitions is None else f" over {job.partitions} partitions"
    yield "plan", f"{job.plan}, {job.spread}{partitions}"
    if target is not None:
        yield "sink", f"{target.format} {target.table or target.path}"


def _describe_batches(state: StoredState) -> str:
    committed = max(state.logs.numbers("commits"), default=None)
    decided = max(state.checkpoint.batches("decision"), default=None)
    done = "none committed" if committed is None else f"up to {committed} committed"
    has_begun = decided is not None and (committed is None or decided > committed)
    return f"{done}, {decided} begun" if has_begun else done


def _describe_manifest(manifest: Manifest) -> Iterator[tuple[str, str]]:
    sizes = manifest.sizes
    rows = ", ".join(f"{node} {size.rows:,}" for node, size in sizes.items()) or "none"
    taken = format_bytes(sum(size.bytes for size in sizes.values()))
    yield "state", f"rows: {rows}; {taken} in {len(manifest.files)} files"
    if manifest.watermark is not None:
        yield "watermark", f"{format_time(manifest.watermark)} UTC"
