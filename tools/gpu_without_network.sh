#!/bin/sh
# `make gpu` on a machine with a GPU and without access to a package index. It needs CuPy, a compiler, CMake, ninja,
# nanobind, scikit-build-core and pytest for its python3. docs/how-to/measure-on-a-gpu.md explains the steps.
#
#   tools/gpu_without_network.sh pack [SHARED]   here: missing packages, into build/gpu-machine
#   tools/gpu_without_network.sh run [FOLDER]    there, in a copy of the repository with build/gpu-machine; report to FOLDER
set -eu

PACKED=build/gpu-machine
PYTHON_VERSION=${PYTHON_VERSION:-3.12}
PACKAGES="crc32c h11 hypothesis jinja2 msgpack msgspec prometheus-client pydantic pydantic-settings pytest-asyncio
    pytest-timeout pyzmq rich scikit-build-core hatch-fancy-pypi-readme nanobind structlog typer uproot uvloop"

pack() {
    shared=${1:-../shared}
    rm -rf "$PACKED"
    mkdir -p "$PACKED/shared"
    platforms=""
    for platform in manylinux_2_28 manylinux_2_27 manylinux_2_17 manylinux2014 manylinux_2_12 manylinux2010 manylinux1; do
        platforms="$platforms --platform ${platform}_x86_64"
    done
    # Resolve all together, so that versions match; packages that the machine already has are packed again, but are
    # small.
    # shellcheck disable=SC2086
    .venv/bin/python -m pip download --quiet --only-binary=:all: --python-version "$PYTHON_VERSION" \
        --implementation cp $platforms --dest "$PACKED/wheels" $PACKAGES
    # CuPy keeps the NumPy that the machine has.
    rm -f "$PACKED"/wheels/numpy-*
    tar -c -C "$shared" data/lhcb-minbias-mdf data/lhcb-geometry | tar -x -C "$PACKED/shared"
    du -sh "$PACKED"
}

run() {
    site=$(mktemp -d)
    python3 -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$PACKED"/wheels/*.whl
    python3 -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
    status=0
    PYTHONPATH="$site" HLTNODE_SHARED="$PWD/$PACKED/shared" make gpu GPU_PYTHON=python3 || status=$?
    if [ -n "${1:-}" ] && [ -d build/gpu ]; then mkdir -p "$1" && cp build/gpu/* "$1/"; fi
    return $status
}

command=${1:-}
[ $# -gt 0 ] && shift
case $command in
    pack) pack "$@" ;;
    run) run "$@" ;;
    *) sed -n '2,6p' "$0" >&2; exit 2 ;;
esac
