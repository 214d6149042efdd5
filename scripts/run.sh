#!/usr/bin/env bash
# Runs a command with .venv first on PATH and a Java that Spark takes: `scripts/run.sh pytest tests/test_imports.py`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

JAVA_HOME=$("$root/scripts/java-home.sh") || { echo "no Java 17 or 21 found any more: run scripts/setup.sh" >&2; exit 1; }
export JAVA_HOME PATH="$root/.venv/bin:$PATH"
export PYSPARK_PYTHON="$root/.venv/bin/python" # Spark's workers would take the first python3 on PATH
unset SPARK_HOME                               # another Spark on the machine must not stand in for the pinned one
exec "$@"
