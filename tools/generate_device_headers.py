"""Write the C++ headers that follow from the declarations of algorithms.

python tools/generate_device_headers.py            write the generated/*.h files beside the declarations
python tools/generate_device_headers.py --check    exit with 1 if a header differs from the declarations
"""

import argparse
import sys

from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.lhcb.chain import CHAIN


def main() -> int:
    """Write or check the headers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    headers = CHAIN.headers
    known = {path for path in PROCESSING.rglob("generated/*.h") if path.is_file()}
    stale = sorted(path for path, text in headers.items() if path not in known or path.read_text() != text)
    forgotten = sorted(known - set(headers))
    if check:
        for path in (*stale, *forgotten):
            print(f"{path.relative_to(PROCESSING)}: differs from the declarations; run make headers")
        return 1 if stale or forgotten else 0
    for path in stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(headers[path])
        print(f"wrote {path.relative_to(PROCESSING)}")
    for path in forgotten:
        path.unlink()
        print(f"removed {path.relative_to(PROCESSING)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
