#!/bin/sh
# Pins every package of pyproject.toml, with hashes, for all platforms and every Python from 3.11 on.
set -eu
cd "$(dirname "$0")/.."

compile() { # compile FILE ARGUMENT...
    file=$1
    shift
    echo "locking $file"
    .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
        --custom-compile-command "make lock" --output-file "$file" "$@"
}

compile requirements-build.lock --group build
compile requirements-java.lock --group java
compile requirements.lock --extra dev --extra bench --extra delta --extra kafka pyproject.toml
