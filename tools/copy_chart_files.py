"""Copy the files that the Helm chart renders into the chart. A chart cannot read files outside its folder.

Links instead of copies do not survive every way of packing a chart, and a copy made by hand can differ from its source.

python tools/copy_chart_files.py            write deploy/helm/hltnode/files/
python tools/copy_chart_files.py --check    exit with 1 if a copy differs from its source
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
COPIES = Path("helm/hltnode/files")
SOURCES = (Path("node.toml"), Path("prometheus/recording.yml"), Path("prometheus/alerts.yml"))


def outdated(deploy: Path) -> Iterator[tuple[Path, Path]]:
    """Source and copy, for each copy that is missing, is a link, or differs."""
    for name in SOURCES:
        source, copy = deploy / name, deploy / COPIES / name.name
        if copy.is_symlink() or not copy.is_file() or copy.read_bytes() != source.read_bytes():
            yield source, copy


def write(deploy: Path) -> list[Path]:
    """Write the copies that are out of date; returns them."""
    written = []
    for source, copy in outdated(deploy):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        copy.write_bytes(source.read_bytes())
        written.append(copy)
    return written


def main() -> int:
    """Write or check the copies; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a copy is out of date")
    if not parser.parse_args().check:
        for copy in write(DEPLOY):
            print(f"{copy} written")
        return 0
    found = list(outdated(DEPLOY))
    for source, copy in found:
        print(f"{copy} differs from {source}: run tools/copy_chart_files.py", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
