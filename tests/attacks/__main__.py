"""Runs the attacks and prints the cost of each: python -m tests.attacks [NAME ...]."""

import argparse
import tempfile
from pathlib import Path

from tests.attacks.attacked_node import FAKE, MIB, AttackedNode, PeakSampler
from tests.attacks.catalogue import ATTACKS

SERVE = ("hltnode.daemon", "serve", "--config")


SETTLE_SECONDS = 90.0


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack a node and print memory and descriptors.")
    parser.add_argument("names", nargs="*", choices=[*ATTACKS, []], help="attacks; all if none is given")
    parser.add_argument("--size", type=float, default=1.0, help="1.0 is the full size")
    parser.add_argument("--fake", action="store_true", help="a node with a fake engine instead of hltnode serve")
    options = parser.parse_args()
    print(f"{'attack':32} {'RSS before':>10} {'peak':>7} {'after':>7} MiB   {'fds':>4} {'peak':>5} {'after':>5}   node")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hltnode-attacks-") as directory:
        for number, name in enumerate(options.names or ATTACKS):
            attacked = AttackedNode(Path(directory) / f"{number}", FAKE if options.fake else SERVE)
            try:
                before = attacked.resources()
                with PeakSampler(attacked) as sampler:
                    try:
                        ATTACKS[name].attack(attacked, options.size)
                    except OSError as error:
                        print(f"{name}: {error!r}")
                    alive = attacked.is_alive
                    after = attacked.resources_at_rest(before, SETTLE_SECONDS) if alive else before
                peak = sampler.peak
                failed += not alive
                print(
                    f"{name:32} {before.rss // MIB:10} {peak.rss // MIB:7} {after.rss // MIB:7}"
                    f"       {before.descriptors:4} {peak.descriptors:5} {after.descriptors:5}   "
                    f"{'alive' if alive else f'ended with {attacked.process.poll()}'}",
                    flush=True,
                )
                if not alive:
                    print(attacked.log.read_text()[-300:])
            finally:
                attacked.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
