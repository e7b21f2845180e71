#!/usr/bin/env bash
# Installs this checkout into .venv, with the given extras: scripts/install.sh [extra ...]
# Makes .venv if it is missing or broken. Uses uv where it is present, else venv and pip.
set -euo pipefail
cd "$(dirname "$0")/.."

recent='import sys; sys.exit(sys.version_info < (3, 11))'

find_python() {
    local python
    for python in ${PYTHON:-} python3.11 python3.12 python3.13 python3 python; do
        if "$python" -c "$recent" 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}

make_venv() {
    rm -rf .venv
    if type -P uv >/dev/null && uv venv --quiet --seed --python "${PYTHON:->=3.11}" .venv; then
        return
    fi
    local python
    if ! python=$(find_python); then
        echo "Penstock needs Python 3.11 or later, and none was found. Install one, or name it: make PYTHON=/path/to/python" >&2
        exit 1
    fi
    if ! "$python" -m venv .venv; then
        rm -rf .venv
        echo "$python could not make .venv. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    fi
}

.venv/bin/python -c "$recent" 2>/dev/null || make_venv

extras=$(IFS=,; echo "$*")
target=".${extras:+[$extras]}"
echo "Installing penstock${extras:+[$extras]} into .venv (the first time takes some minutes: Spark is large)"
if ! { type -P uv >/dev/null && uv pip install --quiet --python .venv/bin/python -e "$target"; }; then
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    .venv/bin/python -m pip install -qq --disable-pip-version-check -e "$target"
fi

for stamp in core "$@"; do
    touch ".venv/.installed-$stamp"
done
