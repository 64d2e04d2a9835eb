#!/bin/sh
# Fetch promtool from the Debian package "prometheus" without installing it, and print its path.
# Usage: PROMTOOL=$(tools/fetch_promtool.sh [DIRECTORY])     (default: build/promtool)
set -eu

directory=$(mkdir -p "${1:-build/promtool}" && cd "${1:-build/promtool}" && pwd)
promtool=$directory/usr/bin/promtool
if [ ! -x "$promtool" ]; then
    cd "$directory"
    apt-get download prometheus >&2
    dpkg -x prometheus_*.deb .
    rm prometheus_*.deb
fi
echo "$promtool"
