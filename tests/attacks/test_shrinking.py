"""A program that breaks a planted invariant is found, and shortened to the steps that break it."""

from collections.abc import Iterator
from dataclasses import replace

from tests.attacks.programs import Keys, PeerProgram, Port, Program, Step, make_program
from tests.attacks.shrinking import shrink


def effects(peer: PeerProgram) -> Iterator[Step]:
    """The steps that reach a node without keys: those after a connection and a right handshake."""
    is_connected = is_heard = False
    for step in peer.steps:
        match step.verb, step.what:
            case "connect", _:
                is_connected, is_heard = True, False
            case "handshake", "right":
                is_heard = is_connected
            case (("close" | "reset" | "die"), _):
                is_connected = is_heard = False
            case _ if is_heard:
                yield step


def breaks_an_invariant(program: Program) -> bool:
    """A node that ends by a lie about the end of the run, if it has had a damaged fragment."""
    done = {(peer.port, step.verb, step.what) for peer in program.peers for step in effects(peer)}
    return {(Port.CONTROL, "lie", "end of run"), (Port.DATA, "fragments", "damaged")} <= done


def test_a_planted_fault_is_found_and_its_program_is_shortened_to_six_steps() -> None:
    found = next(p for seed in range(1, 100) if breaks_an_invariant(p := make_program(seed, keys=Keys.NONE)))
    assert found.n_steps == 240
    shortest = shrink(found, breaks_an_invariant, 60.0)
    assert breaks_an_invariant(shortest)
    assert {peer.port: [str(step) for step in peer.steps] for peer in shortest.peers} == {
        Port.DATA: ["connect", "handshake right", "fragments damaged"],
        Port.CONTROL: ["connect", "handshake right", "lie end of run"],
    }
    assert not shortest.absence
    assert Program.of_json(shortest.as_json()) == shortest


def test_the_absence_of_a_feeder_stays_if_the_fault_needs_it() -> None:
    program = replace(make_program(3), absence=True)
    shortest = shrink(program, lambda shorter: shorter.absence, 60.0)
    assert shortest.absence
    assert len(shortest.peers) == 1


def test_a_program_that_fails_only_as_a_whole_stays_as_it_is() -> None:
    program = make_program(3)
    assert shrink(program, lambda shorter: shorter == program, 60.0) == program


def test_at_the_end_of_its_time_the_shortest_program_so_far_is_returned() -> None:
    now = 0.0

    def fails(_shorter: Program) -> bool:
        nonlocal now
        now += 10.0
        return True

    shortest = shrink(make_program(3), fails, 25.0, lambda: now)
    assert now == 30.0
    assert len(shortest.peers) == 1
