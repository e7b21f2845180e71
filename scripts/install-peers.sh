#!/usr/bin/env bash
# Installs peer engines for the benchmarks, each into an environment of its own: scripts/install-peers.sh [peer ...]
# Peers: flink, bytewax, pathway; all of them if none is named. One that is there at the pinned version is left as it is.
# Uses uv where it is present, else venv and pip. Succeeds if at least one of them is there in the end.
set -uo pipefail
cd "$(dirname "$0")/.."

home=${PENSTOCK_BENCH_HOME:-.bench}
recent='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' # what the peers' wheels are made for

packages_of() {
    case $1 in
        flink) echo "apache-flink==2.3.0" ;; # brings py4j, pyarrow, pandas and numpy, and Flink's jars
        bytewax) echo "bytewax==0.21.1 pyarrow==26.0.1 numpy==2.4.6" ;;
        pathway) echo "pathway==0.33.0 pyarrow==25.0.1 pandas==3.1.1 numpy==2.4.6" ;;
        *) return 1 ;;
    esac
}

find_python() {
    local python
    for python in ${PYTHON:-} python3.11 python3.12 python3 python; do
        if "$python" -c "$recent" 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    return 1
}

# Whether the environment holds every one of the packages at its version.
holds() {
    local env=$1
    shift
    "$env/bin/python" - "$@" 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

sys.exit(any(version(name) != pinned for name, pinned in (package.split("==") for package in sys.argv[1:])))
PYTHON
}

make_venv() {
    rm -rf "$1"
    if type -P uv >/dev/null && uv venv --quiet --seed --python "${PYTHON:->=3.11,<3.13}" "$1"; then
        return
    fi
    local python
    if ! python=$(find_python); then
        echo "no Python 3.11 or 3.12 was found. Name one: PYTHON=/path/to/python"
        return 1
    fi
    "$python" -m venv "$1"
}

install() {
    local env=$1
    shift
    make_venv "$env" || return 1
    if type -P uv >/dev/null && uv pip install --quiet --python "$env/bin/python" "$@"; then
        return
    fi
    "$env/bin/python" -m pip install -qq --disable-pip-version-check "$@"
}

(($#)) || set -- flink bytewax pathway
mkdir -p "$home"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
there=0
for peer in "$@"; do
    if ! packages=$(packages_of "$peer"); then
        echo "$peer: no such peer. There are flink, bytewax and pathway." >&2
        continue
    fi
    env=$home/$peer
    read -r pinned _ <<<"$packages"
    # shellcheck disable=SC2086 - the packages are words
    if holds "$env" $packages; then
        echo "$peer: $pinned is in $env"
        there=1
        continue
    fi
    echo "$peer: installing $pinned into $env (some minutes)"
    trap 'rm -rf "$env" "$log"; exit 130' INT TERM # a half made environment would be taken for a peer
    # shellcheck disable=SC2086
    if install "$env" $packages >"$log" 2>&1; then
        there=1
    else
        rm -rf "$env"
        echo "$peer: could not be installed: $(grep -v '^WARNING' "$log" | tail -n 1)" >&2
    fi
    trap - INT TERM
done
((there))
