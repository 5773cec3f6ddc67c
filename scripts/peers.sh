#!/bin/sh
# Fills .venv/peers with what `weir-lab bench peers` runs beside weir: Flink from PyPI, pinned, and from Maven the jars
# with which it reads parquet. It is an environment of its own, since Flink needs older versions of shared packages.
set -eu
cd "$(dirname "$0")/.."

peers=.venv/peers
flink=$(sed -n 's/^apache-flink==//p' peers-constraints.txt)
hadoop=3.4.1

supported='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))'
if ! "$peers/bin/python" -c "$supported" >/dev/null 2>&1; then
    for python in ${PYTHON:-} .venv/bin/python python3.11 python3.12 ""; do
        "$python" -c "$supported" >/dev/null 2>&1 && break
    done
    if [ -z "$python" ]; then
        echo "Flink needs Python 3.11 or 3.12; install one, or name it with PYTHON=/path/to/python." >&2
        exit 1
    fi
    "$python" -m venv --clear "$peers"
fi
if ! command -v mvn >/dev/null 2>&1; then
    echo "Flink reads parquet with jars that Maven fetches: install Maven (Debian: apt-get install maven)." >&2
    exit 1
fi

"$peers/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
    --constraint peers-constraints.txt apache-flink
for artifact in \
    "org.apache.flink:flink-sql-parquet:$flink" \
    "org.apache.hadoop:hadoop-client-api:$hadoop" \
    "org.apache.hadoop:hadoop-client-runtime:$hadoop"
do
    mvn --quiet --batch-mode "-Dmaven.repo.local=$PWD/$peers/maven" \
        org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
        "-Dartifact=$artifact" "-DoutputDirectory=$PWD/$peers/jars"
done
rm -rf "$peers/maven"
