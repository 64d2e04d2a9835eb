"""Write the Grafana dashboards; needs the extra `dashboards` (grafana-foundation-sdk).

python -m tools.generate_dashboard            write deploy/grafana/dashboards/*.json
python -m tools.generate_dashboard --check    exit with 1 if a file is out of date
"""

import argparse
import sys
from pathlib import Path

from tools.dashboards.data_quality import DATA_QUALITY
from tools.dashboards.event_builder import EVENT_BUILDER
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.pipeline import PIPELINE
from tools.dashboards.rendering import render
from tools.dashboards.trigger import TRIGGER

FOLDER = Path(__file__).resolve().parents[1] / "deploy" / "grafana" / "dashboards"
BOARDS = (OVERVIEW, EVENT_BUILDER, PIPELINE, TRIGGER, DATA_QUALITY)


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a file is out of date")
    check = parser.parse_args().check
    wanted = {FOLDER / f"{board.uid}.json": render(board) for board in BOARDS}
    there = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    if wanted == there:
        return 0
    if check:
        print(f"{FOLDER} is out of date: run python -m tools.generate_dashboard", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    for path in there.keys() - wanted.keys():
        path.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    print(f"{FOLDER} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
