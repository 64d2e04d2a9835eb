#!/bin/sh
# Fetch the scripts that the site of the documentation needs beside those of its theme, from the npm registry: one that
# draws diagrams, and one with which a page that is opened from the disk can search. Without them the site has the text of
# the diagrams, and searches only from a server.
# Usage: tools/fetch_site_scripts.sh [DIRECTORY]     (default: build/site-scripts)
set -eu

directory=$(mkdir -p "${1:-build/site-scripts}" && cd "${1:-build/site-scripts}" && pwd)
fetch() { # PACKAGE@VERSION PATH-IN-PACKAGE NAME
    [ -f "$directory/$3" ] && return
    place=$(mktemp -d)
    (cd "$place" && npm pack --silent "$1" >/dev/null && tar -xzf ./*.tgz "package/$2")
    mv "$place/package/$2" "$directory/$3"
    rm -r "$place"
}
fetch mermaid@11.17.2 dist/mermaid.min.js mermaid.js
fetch iframe-worker@1.0.3 shim/index.js iframe-worker.js
