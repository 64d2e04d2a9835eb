#!/bin/sh
# Fetch Prometheus, promtool, Alertmanager and amtool from Debian's packages without installing them, and print the
# folder of the programs. Needs no root, and fetches only once.
# Usage: programs=$(tools/fetch_prometheus.sh [DIRECTORY])     (default: build/prometheus)
set -eu

directory=$(mkdir -p "${1:-build/prometheus}" && cd "${1:-build/prometheus}" && pwd)
programs=$directory/usr/bin
# Workers of one test run may call this at the same time.
exec 9> "$directory/lock"
flock 9
if [ ! -x "$programs/promtool" ] || [ ! -x "$programs/prometheus-alertmanager" ]; then
    cd "$directory"
    quick="-o Acquire::Retries=1 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 -o APT::Sandbox::User="
    packages="prometheus prometheus-alertmanager"
    # A machine without package lists, or with old ones, gets new lists.
    # shellcheck disable=SC2086
    if ! apt-get $quick download $packages >&2; then
        own="-o Dir::State=$directory/state -o Dir::Cache=$directory/cache -o Dir::State::status=/var/lib/dpkg/status"
        mkdir -p state/lists/partial cache/archives/partial
        # shellcheck disable=SC2086
        apt-get $quick $own update >&2
        # shellcheck disable=SC2086
        apt-get $quick $own download $packages >&2
        rm -r state cache
    fi
    for package in $packages; do
        dpkg -x "$package"_*.deb .
        rm "$package"_*.deb
    done
fi
echo "$programs"
