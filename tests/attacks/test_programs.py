"""Random programs of peers: what the model allows, and nothing else."""

from itertools import product

import pytest

from hltnode.protocol.transport.frame_header import decode_header
from tests.attacks.hostile_peers import Hostile, Target
from tests.attacks.programs import Keys, Port, Program, State, Step, choices, make_program

SEEDS = range(1, 40)


def test_the_same_seed_makes_the_same_program_and_another_one_does_not() -> None:
    assert make_program(7) == make_program(7)
    assert make_program(7) != make_program(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_is_the_same_after_a_file(seed: int) -> None:
    program = make_program(seed)
    assert Program.of_json(program.as_json()) == program


def test_a_peer_can_execute_every_step_of_the_model() -> None:
    for port, state, keys, absence in product(Port, State, Keys, (False, True)):
        possible = choices(port, state, keys, absence=absence)
        assert possible
        for _, verb, variants, _ in possible:
            assert callable(getattr(Hostile, f"_{verb}"))
            assert variants


def test_the_programs_of_some_seeds_have_each_step_at_each_port() -> None:
    drawn = {
        (peer.port, step.verb, step.what) for seed in SEEDS for peer in make_program(seed).peers for step in peer.steps
    }
    expected = {
        (port, verb, what)
        for port in Port
        for state in _states(port)
        for _, verb, variants, _ in choices(port, state, Keys.ALL, absence=False)
        for what in variants
    }
    # Rare ones need more seeds.
    assert len(expected & drawn) > 0.9 * len(expected)
    assert drawn <= expected


def _states(port: Port) -> tuple[State, ...]:
    if port in (Port.HTTP, Port.MEMORY):
        return (State.AWAY, State.SPEAKING)
    return tuple(State)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_step_is_possible_after_the_ones_before(seed: int) -> None:
    program = make_program(seed)
    for peer in program.peers:
        states = {State.AWAY}
        for step in peer.steps:
            states = {
                after
                for state in states
                for _, verb, variants, after in choices(peer.port, state, program.keys, absence=program.absence)
                if verb == step.verb and step.what in variants
            }
            assert states, step


def test_without_keys_no_peer_says_hello_while_an_honest_feeder_is_away() -> None:
    for seed in SEEDS:
        program = make_program(seed, keys=Keys.NONE, absence=True)
        assert not any("hello" in (step.verb, step.what) for peer in program.peers for step in peer.steps)


def test_peers_attack_only_the_ports_of_the_node() -> None:
    ports = (Port.DATA, Port.CONTROL, Port.HTTP)
    programs = [make_program(seed, ports=ports) for seed in SEEDS]
    assert {peer.port for program in programs for peer in program.peers} == set(ports)


def test_fragments_have_no_token_a_random_one_or_one_stolen_for_their_own_or_another_source() -> None:
    sources, tokens = (10, 11, 12, 13), (77, 77, 88, 88)
    target = Target({}, "", 1, ("a", "b"), sources, 8, 100, tokens)
    sent: list[bytes] = []

    class Recording(Hostile):
        def _put(self, data: bytes) -> None:
            sent.append(data)

    peer = Recording(target, 0, Port.DATA)
    for what in ("again", "beyond credit", "unknown source"):
        for number in range(100):
            peer.do(Step("fragments", what, number))
    kinds = set()
    for data in sent:
        size = int.from_bytes(data[1:9], "big") if data[0] & 2 else data[1]
        start = 9 if data[0] & 2 else 2
        header = decode_header(data[start : start + size], max_bytes=1 << 20)
        permitted = tokens[sources.index(header.source_id)] if header.source_id in sources else None
        kinds.add(
            "none" if not header.token else "own" if header.token == permitted else
            "of another" if header.token in tokens else "random"
        )  # fmt: skip
    assert kinds == {"none", "random", "own", "of another"}
