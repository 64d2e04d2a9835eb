"""Runs the attacks and prints the cost of each: python -m tests.attacks [NAME ...] [--seed N] [--program FILE]."""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.attacks.attacked_node import FAKE, MIB, PROMISED_BY_PORT, SERVE, AttackedNode, promised_bytes
from tests.attacks.catalogue import ATTACKS, Cost
from tests.attacks.frames_without_permission import RATE, judge_frames_without_permission
from tests.attacks.program_table import SHRINK_SECONDS, attack_by_programs
from tests.attacks.programs import Program, make_program
from tests.attacks.returning_peers import CONTENTS, judge, ports

SETTLE_SECONDS = 90.0
SECONDS = 20.0
"""Length of an attack by peers that connect again, at full size."""
UNPERMITTED = "frames without permission"
ONE, MANY = 1, 5000
"""Addresses of these peers."""
KEYS = {"none": (False, False), "data plain": (True, False), "all": (True, True)}
"""Whether the node has keys, and encrypts the data."""
PROGRAMS = "programs"
SEEDS = range(1, 13)
"""Seeds of the programs that run by default."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Attack a node, and print what it costs.")
    names = [*ATTACKS, *CONTENTS, UNPERMITTED, PROGRAMS]
    parser.add_argument("names", nargs="*", choices=[*names, []], help="attacks; all if none is given")
    parser.add_argument("--size", type=float, default=1.0, help="1.0 is the full size")
    parser.add_argument("--fake", action="store_true", help="a node with a fake engine instead of hltnode serve")
    parser.add_argument("--seed", type=int, action="append", default=[], help="of a random program; repeatable")
    parser.add_argument("--program", type=Path, action="append", default=[], help="JSON of a program; repeatable")
    help_text = "longest search for a shorter program that breaks a promise; 0: none"
    parser.add_argument("--shrink-seconds", type=float, default=SHRINK_SECONDS, metavar="SECONDS", help=help_text)
    options = parser.parse_args()
    command = FAKE if options.fake else SERVE
    given = [Program.of_json(file.read_text()) for file in options.program] + list(map(make_program, options.seed))
    chosen = options.names or ([] if given else names)
    programs = given or (list(map(make_program, SEEDS)) if PROGRAMS in chosen else [])
    with tempfile.TemporaryDirectory(prefix="hltnode-attacks-") as directory:
        folders = (Path(directory) / f"{number}" for number in range(1 << 30))
        failed = _attack_once([each for each in ATTACKS if each in chosen], options.size, command, folders)
        returning = [each for each in CONTENTS if each in chosen]
        failed += _attack_again(returning, SECONDS * options.size, command, folders)
        if UNPERMITTED in chosen:
            failed += _displace(SECONDS * options.size, command, next(folders))
        if programs:
            failed += attack_by_programs(programs, SECONDS * options.size, command, folders, options.shrink_seconds)
    return 1 if failed else 0


def _attack_once(names: list[str], size: float, command: tuple[str, ...], folders: Iterator[Path]) -> int:
    """Memory and descriptors before, during and after each attack; returns the number of broken rows."""
    failed = 0
    if names:
        print(
            f"{'attack':32} {'RSS before':>10} {'peak':>7} {'after':>7} {'promised':>8} MiB   "
            f"{'fds':>4} {'peak':>5} {'after':>5}   broken promises"
        )
    for name in names:
        attacked = AttackedNode(next(folders), command)
        try:
            cost = ATTACKS[name].run(attacked, size, SETTLE_SECONDS)
            failed += bool(cost.broken())
            print(f"{name:32} {_row(cost)}", flush=True)
            if not cost.is_alive:
                print(f"ended with {attacked.process.poll()}: {attacked.log.read_text()[-300:]}")
        finally:
            attacked.stop()
    return failed


def _row(cost: Cost) -> str:
    sizes = (cost.before.rss, cost.peak.rss, cost.after.rss, cost.promised_bytes)
    numbers = [each.descriptors for each in (cost.before, cost.peak, cost.after)]
    return (
        "{:10} {:7} {:7} {:8}       ".format(*(size // MIB for size in sizes))
        + "{:4} {:5} {:5}   ".format(*numbers)
        + ", ".join(filter(None, [*cost.broken(), cost.error]))
    )


def _attack_again(names: list[str], seconds: float, command: tuple[str, ...], folders: Iterator[Path]) -> int:
    """Peers that connect again, on each port, from one and from many addresses; returns the number of broken rows."""
    failed = 0
    if names:
        print(
            f"\n{seconds:g} s by peers that connect again, beside an honest feeder; "
            f"promised: stall 1 s, honest rate 50 %, memory: "
            + ", ".join(f"{port} +{promised_bytes(port) // MIB} MiB" for port in (*PROMISED_BY_PORT, "others"))
        )
        print(
            f"{'content':26} {'port':9} {'keys':10} {'addresses':>9} {'connections':>11} "
            f"{'memory':>9} {'stall':>6} {'honest':>6}"
        )
    rows = [(name, port, keys, n) for name in names for port in ports(name) for keys in KEYS for n in (ONE, MANY)]
    for name, port, keys, addresses in rows:
        with_keys, encrypt_data = KEYS[keys]
        attacked = AttackedNode(next(folders), command, with_keys=with_keys, encrypt_data=encrypt_data)
        try:
            found = judge(attacked, port, name, seconds, addresses)
        finally:
            attacked.kill()
        failed += bool(found.broken())
        print(
            f"{name:26} {port:9} {keys:10} {addresses:9} {found.connections:11} +{found.grown_bytes // MIB:4} MiB "
            f"{found.stall_s:4.2f} s {found.honest:6.0%}  {', '.join(found.broken())}",
            flush=True,
        )
        for stall in found.stalls:
            print(f"    {stall}", flush=True)
    return failed


def _displace(seconds: float, command: tuple[str, ...], folder: Path) -> int:
    """Fragments of MEPs to come, from a peer that is no feeder; returns the number of broken rows."""
    attacked = AttackedNode(folder, command)
    try:
        found = judge_frames_without_permission(attacked, seconds)
    finally:
        attacked.kill()
    print(
        f"\n{seconds:g} s of {RATE:g} fragments a second without a token, of MEPs to come; "
        "promised: honest rate 50 %, nothing displaced\n"
        f"{UNPERMITTED}: {found.sent} sent, {found.received:g} refused, {found.displaced:g} displaced, "
        f"honest rate {found.honest:.0%}  {', '.join(found.broken())}",
        flush=True,
    )
    return bool(found.broken())


if __name__ == "__main__":
    raise SystemExit(main())
