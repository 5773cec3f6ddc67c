#!/bin/sh
# Prints a Python of version 3.11 or later, or says what to install. PYTHON=... names one to prefer.
set -eu

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c "$new_enough" >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
done

found=$(python3 -c 'import platform; print(platform.python_version())' 2>/dev/null || echo none)
echo "weir needs Python 3.11 or later (found: $found); install one, or name it with PYTHON=/path/to/python." >&2
exit 1
