"""python -m tests.soak --seconds 120 --seed 1: prints the fault matrix and the verdict; exit code 1 on failure."""

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.faults import Kind
from tests.soak.soak import Options, Soak


def main() -> int:
    """Parse the arguments, run the soak, and keep the files after a failure."""
    names = {kind.name.lower().replace("_", "-"): kind for kind in Kind}
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="at least; a soak ends when each kind of fault has struck"
    )
    parser.add_argument("--seed", type=int, default=None, help="of the faults; default: a new one")
    parser.add_argument("--only", action="append", choices=sorted(names), help="kind of fault to use; repeatable")
    arguments = parser.parse_args()
    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    only = tuple(names[name] for name in arguments.only or ())
    print(f"soak      {arguments.seconds:.0f} s, --seed {seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="hltnode-soak-"))
    soak = Soak(directory, Options(arguments.seconds, seed, only))
    good = False
    try:
        soak.run()
        good = soak.report()
        if not good:
            soak.keep_files()
    finally:
        soak.close()
    if good:
        shutil.rmtree(directory)
    else:
        print(f"files     {directory}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
