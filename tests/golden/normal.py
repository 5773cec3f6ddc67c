"""The normal form of a run: our own words for what the code writes down, so that it may rename everything.

Golden files hold these words only; `names` says what the code calls each of them. Left out are ids, names of
files, checksums, and all that is measured in seconds of a machine; what is none or empty is not said.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from . import names

START = 1_700_000_000_000_000  # event times are shown as seconds since then


def renamed(found: Mapping[str, Any], words: Mapping[str, str], **makes: Any) -> dict[str, Any]:
    """A record in our words, without what is none or empty; `makes` says how some values become ours."""
    made = {ours: makes.get(ours, plain)(found[theirs]) for ours, theirs in words.items()}
    return {ours: value for ours, value in made.items() if value is not None and value not in ({}, [])}


def plain(value: Any) -> Any:
    """A value as JSON has it, fractions rounded."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def at(time: int | None) -> float | None:
    """An event time in seconds since the start."""
    return None if time is None else round((time - START) / 1_000_000, 6)


def without_zeros(found: Mapping[str, Any]) -> dict[str, Any]:
    """Counts that are there."""
    return {what: count for what, count in found.items() if count}


def optional(make: Any) -> Any:
    """The same, but None stays None."""
    return lambda found: None if found is None else make(found)


def hop(found: Any) -> str:
    """A half-way join."""
    driver, partner, node = names.hop_of(found)
    return f"{driver} probes {partner} in {node}"


def tree(found: Any) -> Any:
    """A plan of the checkpoint: a stream, or a join with its inputs and what each of them probes in turn."""
    stream = names.stream_of(found)
    if stream is not None:
        return stream
    inputs, window = found[names.TREE["inputs"]], found[names.TREE["window"]]
    inner = [tree_name(one) for one in inputs]
    orders = {
        name: [inner[i] for i in order]
        for name, order in zip(inner, found[names.TREE["probing_orders"]], strict=True)
    }
    shown = None
    if window is not None:
        shown = next([window[theirs], ours] for ours, theirs in names.WINDOW.items() if theirs in window)
    below = [tree(one) for one in inputs if names.stream_of(one) is None]
    return {
        "join": tree_name(found),
        "probes": orders,
        **({"inputs": below} if below else {}),
        **({"window": shown} if shown else {}),
    }


def tree_name(found: Any) -> str:
    stream = names.stream_of(found)
    return stream or f"({' '.join(map(tree_name, found[names.TREE['inputs']]))})"


def plan(found: Any) -> Any:
    """A plan object."""
    return tree(names.tree_of(found))


def by_hop(found: Mapping[Any, Any], make: Any = plain) -> dict[str, Any]:
    return {hop(one): make(value) for one, value in sorted(found.items(), key=lambda item: hop(item[0]))}


def _pairs(found: Iterable[list[Any]]) -> dict[str, Any]:
    """What the checkpoint says of hops, in pairs of a hop and what is said of it."""
    return {hop(one): plain(value) for one, value in found}


def _ages(found: Iterable[list[Any]]) -> dict[str, Any]:
    return _pairs([one, list(renamed(ages, names.AGES).values())] for one, ages in found)


def stored_allowance(found: Mapping[str, Any]) -> dict[str, Any]:
    return renamed(found, names.STORED_ALLOWANCE, probes=_pairs, ages=_ages)


def allowance(found: Any) -> dict[str, Any]:
    """An allowance object."""
    values = {theirs: getattr(found, theirs) for theirs in names.ALLOWANCE.values()}
    ages = lambda given: by_hop(given, lambda one: [one.every, sorted(one.kept)])  # noqa: E731
    return renamed(values, names.ALLOWANCE, probes=by_hop, ages=ages)


def placement(found: Mapping[str, Any]) -> dict[str, Any]:
    return renamed(found, names.PLACEMENT, partition_of_cell=_run_lengths)


def _run_lengths(cells: list[int]) -> str:
    """Long rings of cells in short: "0x16 1x16"."""
    runs: list[list[int]] = []
    for cell in cells:
        if runs and runs[-1][0] == cell:
            runs[-1][1] += 1
        else:
            runs.append([cell, 1])
    text = " ".join(f"{cell}x{count}" for cell, count in runs)
    return text if len(text) < 200 else f"{len(runs)} runs, {_digest(text)}: {text[:60]}..."


def stored(path: Path) -> dict[str, Any]:
    """What a sealed file of the checkpoint holds."""
    found: dict[str, Any] = json.loads(json.loads(path.read_text())[names.BODY])[names.CONTENT]
    return found


def decision(found: Mapping[str, Any]) -> dict[str, Any]:
    """A decision of the checkpoint."""
    return renamed(
        names.decision_of(found),
        names.DECISION,
        plan=tree,
        freshness_clock=at,
        selectivities=_pairs,
        placement=optional(placement),
        reason=reason,
        allowance=optional(stored_allowance),
        allowance_while_migrating=optional(stored_allowance),
    )


def manifest(found: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of the checkpoint."""
    return renamed(
        found[names.MANIFEST_IN_FILE],
        names.MANIFEST,
        watermark=at,
        newest=lambda newest: {name: at(time) for name, time in newest.items()},
        plan=optional(tree_name),
        placement=optional(lambda one: dict(list(renamed(one, names.PLACEMENT).items())[:2])),
        recall=lambda one: renamed(
            one, names.RECALL, last_skipped=at, last_unknown=at, states_lack_rows_since=at
        ),
        skew=lambda one: renamed(one, names.SKEW),
        partitions=lambda parts: {str(number): partition(part) for number, part in parts},
    )


def partition(found: Mapping[str, Any]) -> dict[str, Any]:
    """A partition's state in a manifest."""
    return renamed(found, names.PARTITION, migration=optional(migration), slices=slices)


def migration(found: Mapping[str, Any]) -> dict[str, Any]:
    """How far a partition is on its way to another plan."""
    building = optional(lambda one: renamed(one, names.BUILDING, filled_back_to=at))
    return renamed(found, names.MIGRATION, plan_that_answers=tree_name, state_being_built=building)


def slices(found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Slices in a line each, in the order in which they stand."""
    return [_slice(renamed(one, names.SLICE, sorted_by=str, ranges=dict)) for one in found]


def _slice(one: Mapping[str, Any]) -> str:
    sort = next(ours for theirs, ours in names.SORTED_BY.items() if one["sorted_by"].startswith(theirs))
    ranges = " ".join(f"{column(name)} {_range(name, *span)}" for name, span in one["ranges"].items())
    counts = f"batch {one['batch']} rank {one['rank']}, {one['rows']} rows {one['bytes']} bytes"
    return f"{column(one['state'])}: {counts}, {ranges}, until {at(one.get('deadline'))}, by {sort}"


def _range(name: str, first: int, last: int) -> str:
    is_time = name.endswith(names.TIMES)
    return f"{at(first)}..{at(last)}" if is_time else f"#{first}..#{last}"


def column(name: str) -> str:
    """A stored column, or a state."""
    stream, _, kind = name.partition("@")
    return f"{stream} {names.COLUMN_KINDS[kind]}" if kind else stream


def learned(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the local engine has learned."""
    return found and {**plain(found), "selectivities": by_hop(found["selectivities"])}


def progress(found: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, Any]:
    """A batch in the progress of either engine; `more` are the words that only one of them has."""
    return {
        "batch": found[names.BATCH],
        "input_rows": found[names.INPUT_ROWS],
        **renamed(
            found[names.SECTION],
            {**names.PROGRESS, **more},
            watermark=at,
            decision=shown_decision,
            streams=lambda streams: _each(streams, names.STREAM),
            states=lambda states: _each(states, names.STATE),
            hops=optional(lambda hops: by_hop(hops, lambda one: without_zeros(renamed(one, names.HOP)))),
            lag_histograms=optional(lag_histograms),
            newest=lambda newest: {name: at(time) for name, time in newest.items()},
            placement=optional(lambda one: renamed(one, names.SHOWN_PLACEMENT)),
            statistics=optional(lambda one: renamed(one, names.STATISTICS, selectivities=by_hop)),
            partitions=lambda parts: _each(parts, names.PARTITION_LOAD),
            migration_work=optional(lambda one: renamed(one, names.MIGRATION_WORK)),
        ),
    }


def _each(found: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {column(name): without_zeros(renamed(found[name], words)) for name in sorted(found)}


def shown_decision(found: Mapping[str, Any]) -> dict[str, Any]:
    """A decision in progress."""

    def orders(given: Mapping[str, Any]) -> dict[str, Any]:
        texts = {where: names.ORDERS_TEXT.fullmatch(where) for where in given}
        return {f"{t['driver']} in {t['node']}": given[where] for where, t in texts.items() if t}

    return renamed(
        found,
        names.SHOWN_DECISION,
        probing_orders=orders,
        reason=reason,
        allowance=optional(
            lambda one: renamed(
                one,
                names.SHOWN_ALLOWANCE,
                probes=by_hop,
                ages=lambda ages: by_hop(ages, lambda age: list(renamed(age, names.SHOWN_AGES).values())),
            )
        ),
    )


def lag_histograms(found: Mapping[str, Any]) -> dict[str, Any]:
    """How far apart in time the rows of sampled results lie; buckets that have some only."""

    def histogram(given: Mapping[str, Any]) -> dict[str, Any]:
        counts = lambda found: " ".join(f"{i}:{count:g}" for i, count in enumerate(found) if count)  # noqa: E731
        return renamed(given, names.LAG_HISTOGRAM, counts=counts)

    each = lambda lags: {name: histogram(one) for name, one in sorted(lags.items())}  # noqa: E731
    return renamed(found, names.LAGS, histograms=each)


def recommendation(found: Any) -> dict[str, Any]:
    """What the controller recommends."""
    values = {theirs: getattr(found, theirs) for theirs in names.RECOMMENDATION.values()}
    return renamed(
        values,
        names.RECOMMENDATION,
        plan=plan,
        allowance=optional(allowance),
        reason=reason,
    )


def reason(text: str) -> list[Any]:
    """A reason, sentence by sentence."""
    found: list[Any] = []
    place = 0
    while place < len(text):
        place += len(text[place:]) - len(text[place:].lstrip(names.BETWEEN_SENTENCES))
        ends = [(word, re.compile(pattern).match(text, place)) for word, pattern in names.REASONS.items()]
        known = [(word, match) for word, match in ends if match is not None and match.end() > place]
        assert known, f"the reason {text!r} is not known from {text[place:]!r} on: add it to REASONS"
        word, match = max(known, key=lambda one: one[1].end())
        found.append(_said(word, match))
        place = match.end()
    return found


def explanation(text: str) -> dict[str, list[Any]]:
    """What `explain` says, section by section and line by line."""
    found: dict[str, list[Any]] = {}
    section = ""
    for line in filter(str.strip, text.splitlines()):
        if line in names.SECTIONS:
            section = names.SECTIONS[line]
            found[section] = []
        else:
            # Columns, basic windows and budgets are as the user put them.
            as_put = section in ("columns", "basic_windows", "budget") and line.startswith(" ")
            found.setdefault(section, []).append(line.strip() if as_put else _sentence(line, names.EXPLAINED))
    return found


def _sentence(line: str, known: Mapping[str, str]) -> Any:
    said = line.lstrip(names.TREE_LINES)
    for word, pattern in known.items():
        match = re.fullmatch(pattern, said)
        if match is not None:
            found, depth = _said(word, match), (len(line) - len(said)) // 3
            return {**found, "depth": depth} if word == "input" else found
    raise AssertionError(f"{line!r} is not known: add it to the sentences of names")


def _said(word: str, match: re.Match[str]) -> Any:
    """The figures of a sentence; without any, its word alone."""
    figures = {name: value.strip() for name, value in match.groupdict().items() if value is not None}
    figures = {name: hop(v) if name == "hop" else names.VALUES.get(v, v) for name, v in figures.items()}
    return {word: figures} if figures else word


def physical(query: Any, plan: Any) -> dict[str, Any]:
    """How each hop finds its partners, and what is left to check."""
    return by_hop(names.physical_of(query, plan), without_zeros)


def changes(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of batches; what is long and as in the batch before is not said again."""
    return found[:1] + [_changes(*pair) for pair in pairwise(found)]


def _changes(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    def shown(what: str) -> Any:
        old, new = before.get(what), now[what]
        if isinstance(old, dict) and isinstance(new, dict) and old != new:
            return _changes(old, new)
        return _SAME if old == new and len(json.dumps(new)) > _LONG else new

    return {what: shown(what) for what in now}


_SAME, _LONG = "as before", 30


def digested(slices: list[str]) -> dict[str, Any]:
    """Slices in short."""
    return {"count": len(slices), "digest": _digest(*slices)}


def results(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A multiset of results: how many, the first ones, and a digest of all."""
    found = sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
    first = [json.loads(row) for row in found[:3]]
    return {"rows": len(found), "distinct": len(Counter(found)), "digest": _digest(*found), "first": first}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
