"""Runs programs of attacks, prints a row for each, and the smallest part of a program that breaks a promise."""

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.attacks.attacked_node import MIB, ROOT
from tests.attacks.model_attack import LEAST_RATE, PROMISED_TO_PROGRAMS, STALL_SECONDS, Judgement, ModelAttack
from tests.attacks.programs import Program
from tests.attacks.shrinking import shrink

SHRINK_SECONDS = 600.0
SHRUNK = ROOT / "build" / "attacks"
"""Folder of the shortened programs."""
_COMMANDS = 'make attacks ATTACKS_ARGUMENTS="{}"'


def judge(program: Program, folder: Path, command: tuple[str, ...], seconds: float) -> Judgement:
    """Run a program; an attack without a verdict breaks the promise `verdict`."""
    try:
        return ModelAttack(program, folder, command, seconds=seconds).judge()
    except (RuntimeError, TimeoutError, subprocess.TimeoutExpired) as error:
        return Judgement(broken={"verdict": str(error)})


def attack_by_programs(
    programs: Iterable[Program],
    seconds: float,
    command: tuple[str, ...],
    folders: Iterator[Path],
    shrink_seconds: float = SHRINK_SECONDS,
) -> int:
    """Judge each program beside honest feeders, for some seconds; returns the number of those that break a promise."""
    failed = 0
    print(
        f"\n{seconds:g} s of random programs of peers, beside two honest feeders; "
        f"promised: memory +{PROMISED_TO_PROGRAMS // MIB} MiB, stall {STALL_SECONDS:g} s, honest rate {LEAST_RATE:.0%}"
    )
    print(
        f"{'seed':>6} {'keys':10} {'absence':7} {'peers':>5} {'steps':>6} {'memory':>9} {'stall':>6} "
        f"{'node':>5} {'honest':>6}"
    )
    for program in programs:
        judgement = judge(program, next(folders), command, seconds)
        broken = judgement.broken_with_times()
        print(_row(program, judgement), flush=True)
        for promise, why in broken.items():
            print(f"       {promise}: {why}", flush=True)
        if broken:
            failed += 1
            _print_shortest(program, set(broken), seconds, command, folders, shrink_seconds)
    return failed


def _row(program: Program, judgement: Judgement) -> str:
    honest = "-" if judgement.honest is None else f"{judgement.honest:.0%}"
    return (
        f"{program.seed:6} {program.keys:10} {'yes' if program.absence else 'no':7} {len(program.peers):5} "
        f"{judgement.steps.total():6} +{judgement.grown_bytes // MIB:4} MiB {judgement.stall_s:4.2f} s "
        f"{judgement.node_processors:5.2f} {honest:>6}  "
        f"{', '.join(judgement.broken_with_times())}"
    )


def _print_shortest(
    program: Program,
    broken: set[str],
    seconds: float,
    command: tuple[str, ...],
    folders: Iterator[Path],
    shrink_seconds: float,
) -> None:
    """Print the command that repeats the whole program, and the shortest part that breaks one of its promises."""
    print(f"       again: {_COMMANDS.format(f'--seed {program.seed}')}")

    def fails(shorter: Program) -> bool:
        return bool(broken & judge(shorter, next(folders), command, seconds).broken_with_times().keys())

    if not shrink_seconds:
        return
    shortest = shrink(program, fails, shrink_seconds)
    if shortest == program:
        print(f"       no shorter program broke it within {shrink_seconds:g} s")
        return
    SHRUNK.mkdir(parents=True, exist_ok=True)
    file = SHRUNK / f"seed-{program.seed}.json"
    file.write_text(shortest.as_json())
    print(f"       the shortest part that breaks it, {_COMMANDS.format(f'--program {file}')}:\n{shortest}", flush=True)
