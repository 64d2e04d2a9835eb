"""Shortens a program of an attack that breaks a promise, as long as the shorter program breaks it too."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.attacks.programs import PeerProgram, Program


def shrink(
    program: Program, fails: Callable[[Program], bool], seconds: float, clock: Callable[[], float] = time.monotonic
) -> Program:
    """The shortest program found within some seconds that still fails: first without peers, then without steps.

    Args:
        fails: whether a program breaks the same promise; one call may take longer than what is left of the time.
    """
    end = clock() + seconds
    found = True
    while found:
        found = False
        for shorter in _shorter(program):
            if clock() >= end:
                return program
            if fails(shorter):
                program = shorter
                found = True
                break
    return program


def _shorter(program: Program) -> Iterator[Program]:
    """Programs without some peers or some steps of one peer, those that lack most first."""
    peers = program.peers
    size = len(peers) // 2
    while size:
        for at in range(0, len(peers), size):
            if kept := peers[:at] + peers[at + size :]:
                yield replace(program, peers=kept)
        size //= 2
    if program.absence:
        yield replace(program, absence=False)
    longest = max((len(peer.steps) for peer in peers), default=0)
    size = (longest + 1) // 2
    while size:
        for number, peer in enumerate(peers):
            for at in range(0, len(peer.steps), size):
                if steps := peer.steps[:at] + peer.steps[at + size :]:
                    changed = (*peers[:number], PeerProgram(peer.port, steps), *peers[number + 1 :])
                    yield replace(program, peers=changed)
        size //= 2
