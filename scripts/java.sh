#!/bin/sh
# Checks for Java 17 or later, which Spark needs; installs Debian's headless JRE where it may.
set -eu

needed=17

java_version() {  # the major version of the Java that Spark would start, or 0
    java=${JAVA_HOME:+$JAVA_HOME/bin/}java
    text=$("$java" -version 2>&1) || text=
    major=$(printf '%s\n' "$text" | sed -n 's/.*version "\([0-9][0-9]*\).*/\1/p' | head -n 1)
    echo "${major:-0}"
}

new_enough() { [ "$(java_version)" -ge "$needed" ]; }

install() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 install --yes --no-install-recommends "$1" >&2
}

new_enough && exit 0

if [ -z "${JAVA_HOME:-}" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Spark needs Java $needed or later: installing Debian's headless JRE." >&2
    apt-get -qq -o Acquire::Retries=3 update >&2 || true
    for package in default-jre-headless "openjdk-$needed-jre-headless"; do
        install "$package" && new_enough && exit 0
    done
fi

where=${JAVA_HOME:+ and let JAVA_HOME point at it}
echo "Spark needs Java $needed or later: install one (Debian: apt-get install default-jre-headless)$where." >&2
exit 1
