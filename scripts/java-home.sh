#!/usr/bin/env bash
# Prints the home of a Java that Spark 4.3 runs on, 17 or 21: JAVA_HOME, else of `java` on PATH, else the one set-up put into .venv.
set -euo pipefail

# Spark always asks for jdk.incubator.vector; asking for it here finds runtimes that were cut down too far.
home_if_usable() { # home_if_usable JAVA
    local settings
    settings=$("$1" --add-modules=jdk.incubator.vector -XshowSettings:properties -version 2>&1) || return 1
    grep -Eq '^ *java\.specification\.version = (17|21)$' <<<"$settings" || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

fallback="$(cd "$(dirname "$0")/.." && pwd)/.venv/java"

if [[ -n ${JAVA_HOME:-} ]] && home_if_usable "$JAVA_HOME/bin/java" >/dev/null; then
    echo "$JAVA_HOME"
elif home_if_usable java; then
    :
elif home_if_usable "$fallback/bin/java" >/dev/null; then
    echo "$fallback" # not what that java calls its home: Spark has to start the wrapper
else
    exit 1
fi
