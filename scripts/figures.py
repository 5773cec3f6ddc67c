"""`make figures`: measure how large, how entangled and how repetitive the product is.

- Files and lines: the Python files of `src/weir`, with docstrings and comments.
- Files touched by a batch: files of which a function runs during one call of what `foreachBatch` was given,
  on the driver or in a task of `mapInArrow`; what runs while a module is imported does not count. The batch
  is a warm one of a folded query of three streams with equalities, two partitions and a parquet sink; a
  second query has a budget too, so that it adapts.
- Objects built by a batch: instances of weir's classes whose Python `__init__` ran meanwhile, those generated
  for dataclasses included; unpickled copies, named tuples and classes without an `__init__` are left out.
- First task of a worker: modules loaded by importing the tasks' module in a new process, and the CPU seconds
  of that process, beside those of one that imports only NumPy and Arrow.
- Repeated blocks: pairs of runs of more than 12 lines of code, equal but for names, strings and numbers.

Only the constants below know modules of the product.
"""

from __future__ import annotations

import ast
import io
import json
import keyword
import os
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations, count
from pathlib import Path
from statistics import median

from batch_profile import PACKAGE, SRC, Profile, profile_batches

WORKER_MODULE = "weir.spark.task"
# What a worker should not load; of `plan` and `shed` it needs the data types only.
NOT_FOR_WORKERS = {
    "adapt": r"weir\.adapt\b",
    "plan search": r"weir\.plan\.(?!tree$|limits$|default|render$|explain$)",
    "shedding solvers": r"weir\.shed\.(?!allowance$|ages$)",
    "local": r"weir\.local\b",
    "sqlglot": r"sqlglot\b",
    "scipy": r"scipy\b",
}
ROUNDS, MOST_CLASSES = 7, 12
MOST_PARAMETERS, MOST_REPEATED_LINES, FEWEST_SHAPES = 8, 12, 6
VAGUE_NAMES = {"found", "one"}
# Not the end of a number such as 10 000.
PRIVATE_CITATION = re.compile(r"(?<!\d[ ,.])\b00[0-4]\b|\bDESIGN \d")


def measure_import(statement: str) -> tuple[float, list[str]]:
    """CPU seconds of a new process that runs an import, and the modules it has loaded then."""
    code = f"{statement}\nimport json, sys, time\nprint(json.dumps([time.process_time(), list(sys.modules)]))"
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    seconds, modules = json.loads(told.splitlines()[-1])
    return seconds, modules


def measure_imports() -> tuple[float, float, list[str]]:
    """Median CPU seconds of a worker's imports and of NumPy and Arrow, in turns; and the worker's modules."""
    statements = (f"import {WORKER_MODULE}", "import numpy, pyarrow")
    _, modules = measure_import(statements[0])  # also compiles what is new
    turns = [[measure_import(statement)[0] for statement in statements] for _ in range(ROUNDS)]
    worker, baseline = map(median, zip(*turns, strict=True))
    return worker, baseline, modules


def code_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Number, text and shape of each line of code, without imports, docstrings and lone punctuation."""
    shapes: dict[int, list[str]] = defaultdict(list)
    text = path.read_text()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            shapes[token.start[0]].append(token.string if keyword.iskeyword(token.string) else "name")
        elif token.type in (tokenize.STRING, tokenize.NUMBER):
            shapes[token.start[0]].append("value")
        elif token.type == tokenize.OP:
            shapes[token.start[0]].append(token.string)
    lines = text.splitlines()
    for number, words in sorted(shapes.items()):
        if words[0] not in ("import", "from") and words != ["value"] and any(map(str.isalpha, words)):
            yield number, lines[number - 1].strip(), " ".join(words)


def repeated_blocks(paths: list[Path]) -> list[str]:
    """Each pair of runs of too many lines, equal or of one shape, as `file:first-last ~ file:first-last`."""
    size = MOST_REPEATED_LINES + 1
    places: list[str] = []
    lines: list[tuple[str, str]] = []
    for path in paths:
        name = str(path.relative_to(SRC / PACKAGE))
        for number, text, shape in (*code_lines(path), (0, name, name)):  # the last ends every run
            places.append(f"{name}:{number}")
            lines.append((text, shape))
    windows: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for start in range(len(lines) - size + 1):
        texts, shapes = zip(*lines[start : start + size], strict=True)
        # Few shapes are a list of values or fields, which is repeated only if it is equal.
        windows[shapes if len(set(shapes)) >= FEWEST_SHAPES else texts].append(start)
    pairs = {(i, j) for starts in windows.values() for i, j in combinations(starts, 2) if j - i >= size}
    blocks = []
    for first, second in sorted(pairs):
        if (first - 1, second - 1) not in pairs:
            more = next(n for n in count() if (first + n + 1, second + n + 1) not in pairs)
            ends = {start: places[start + more + size - 1].split(":")[1] for start in (first, second)}
            blocks.append(" ~ ".join(f"{places[start]}-{end}" for start, end in ends.items()))
    return blocks


def long_signatures(trees: dict[str, ast.AST]) -> list[str]:
    """Functions with too many parameters, `self` included, and how many they have."""
    functions = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                arguments = node.args
                named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                total = len(named) + sum(a is not None for a in (arguments.vararg, arguments.kwarg))
                if total > MOST_PARAMETERS:
                    functions.append(f"{name}: {getattr(node, 'name', 'lambda')} ({total})")
    return functions


def vague_names(trees: dict[str, ast.AST]) -> int:
    """How often a local or parameter is bound to a name that says nothing."""
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    stored = sum(
        isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n.id in VAGUE_NAMES for n in nodes
    )
    return stored + sum(isinstance(n, ast.arg) and n.arg in VAGUE_NAMES for n in nodes)


def show(label: str, value: object, aim: str = "") -> None:
    """Print a row of the table."""
    print(f"{label:<52}{value:>10}{aim:>14}".rstrip())


def show_list(title: str, items: list[str]) -> None:
    """Print what a row counted."""
    print(f"\n{title}:", *(items or ["none"]), sep="\n  ")


def show_batches(profiles: dict[str, tuple[Profile, Profile]]) -> None:
    """Print the rows about batches."""
    for label, (driver, workers) in profiles.items():
        show(f"files touched by a {label}", len(driver.files | workers.files), "<= 50")
        show("  on the driver, in workers", f"{len(driver.files)}, {len(workers.files)}")
        built = driver.objects + workers.objects
        show(f"objects built by a {label}", built.total())
        show("  on the driver, in workers", f"{driver.objects.total()}, {workers.objects.total()}")
        show("  classes of these objects", len(built))


def show_imports() -> None:
    """Print the rows about a worker's first task."""
    seconds, baseline, modules = measure_imports()
    show("weir modules of a worker's first task", sum(m.split(".")[0] == PACKAGE for m in modules), "<= 85")
    show("  all modules", len(modules))
    show("  CPU seconds", f"{seconds:.2f}")
    show("  CPU seconds of NumPy and Arrow alone", f"{baseline:.2f}")
    for label, rule in NOT_FOR_WORKERS.items():
        show(f"  modules of {label}", sum(re.match(rule, name) is not None for name in modules), "0")


def main() -> None:
    """Print the table, and below it what was counted."""
    sys.path.insert(0, str(SRC))
    paths = sorted((SRC / PACKAGE).rglob("*.py"))
    texts = {str(path.relative_to(SRC / PACKAGE)): path.read_text() for path in paths}
    trees: dict[str, ast.AST] = {name: ast.parse(text) for name, text in texts.items()}
    sizes: dict[str, list[int]] = defaultdict(list)
    for name, text in texts.items():
        sizes[name.split("/")[0] if "/" in name else "(top)"].append(len(text.splitlines()))
    signatures, blocks, profiles = long_signatures(trees), repeated_blocks(paths), profile_batches()

    show("figure", "value", "aim")
    show("files of the product", len(texts))
    show("lines of the product", sum(map(sum, sizes.values())), "<= 22000")
    show_batches(profiles)
    show_imports()
    show(f"functions with more than {MOST_PARAMETERS} parameters", len(signatures), "join, sql")
    show(f"repeated blocks over {MOST_REPEATED_LINES} lines", len(blocks), "0")
    show("locals and parameters named 'found' or 'one'", vague_names(trees), "0")
    citations = sum(len(PRIVATE_CITATION.findall(text)) for text in texts.values())
    show("citations by paper number or section of DESIGN", citations, "0")

    show_list("packages", [f"{p:<10}{len(n):>4} files{sum(n):>7} lines" for p, n in sorted(sizes.items())])
    for label, (driver, workers) in profiles.items():
        runs = dict.fromkeys(driver.files, "driver") | dict.fromkeys(workers.files, "worker")
        runs |= dict.fromkeys(driver.files & workers.files, "both")
        show_list(f"touched by a {label}", [f"{side:<8}{name}" for name, side in sorted(runs.items())])
        most = (driver.objects + workers.objects).most_common(MOST_CLASSES)
        show_list(f"built most by a {label}", [f"{number:>5} {name}" for name, number in most])
    show_list("long signatures", signatures)
    show_list("repeated blocks", blocks)


if __name__ == "__main__":
    main()
