#!/bin/sh
# Fills .venv with the pinned dependencies and both packages; a .venv whose Python no longer runs is made again.
set -eu
cd "$(dirname "$0")/.."

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$(sh scripts/python.sh)
    "$python" -m venv --clear .venv || {
        echo "$python cannot make a virtual environment; install its venv module (Debian: python3-venv)." >&2
        exit 1
    }
fi
mkdir -p "${TMPDIR:-.venv/tmp}"

# The build tool comes first and pinned, so that building the package fetches nothing of its own choice.
pip=".venv/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check --constraint constraints.txt"
$pip setuptools
$pip --no-build-isolation --editable '.[dev]' --editable ./lab
