#!/bin/sh
# Build the Debian package from the files that git tracks, in build/deb: tools/build_deb.sh [FOLDER [WHEEL]]
# Needs dpkg-dev, debhelper, python3-dev, python3-venv and g++ of Debian 12 or later; pip loads the locked dependencies.
# WHEEL: a wheel of these files for Debian's Python; with it, nothing is compiled.
set -eu
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/deb}")
HLTNODE_WHEEL=${2:+$(realpath "$2")}
export HLTNODE_WHEEL
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml | head -n 1)
tree="$folder/hltnode-$version"
rm -rf "$tree"
mkdir -p "$tree"
git ls-files -z | tar --null --files-from=- --create --file=- | tar --extract --file=- --directory="$tree"
mv "$tree/deploy/debian" "$tree/debian"
cat >"$tree/debian/changelog" <<END
hltnode ($version) stable; urgency=medium

  * See CHANGELOG.md.

 -- The hltnode founders <hltnode@localhost>  $(git log -1 --format=%cD)
END
# Use only Debian's programs: the package runs on its python3.
cd "$tree" && PATH=/usr/sbin:/usr/bin:/sbin:/bin dpkg-buildpackage --build=binary --no-sign
