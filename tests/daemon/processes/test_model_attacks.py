"""A node keeps its promises under random programs of peers that are killed, come again and lie at every port.

`make attacks` runs more of them, for longer, and also judges the event loop and the rate of the honest feeders.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.attacked_node import ROOT
from tests.attacks.hostile_peers import Target, write
from tests.attacks.model_attack import ModelAttack
from tests.attacks.planted_fault import EXIT_CODE
from tests.attacks.program_table import attack_by_programs
from tests.attacks.programs import Keys, PeerProgram, Port, Program, Step, make_program

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(400)]

SECONDS = (2.0, 20.0)
"""Of the attack; a busy machine needs the second time for the same steps."""
ENOUGH_STEPS = 50


@pytest.mark.expensive("attacks a node for several seconds of each kind")
@pytest.mark.parametrize(
    ("seed", "keys", "absence"),
    [(1, Keys.NONE, False), pytest.param(2, Keys.ALL, True, marks=pytest.mark.slow)],
)
def test_a_node_keeps_its_promises_under_a_program_of_attacks(
    tmp_path: Path, seed: int, keys: Keys, absence: bool
) -> None:
    program = make_program(seed, keys=keys, absence=absence)
    for seconds in SECONDS:
        folder = tmp_path / f"{seconds}"
        folder.mkdir()
        judgement = ModelAttack(program, folder, seconds=seconds).judge()
        # Rates and delays depend on the machine: `make attacks` judges them.
        assert judgement.broken == {}
        if judgement.steps.total() > ENOUGH_STEPS:
            return
    pytest.fail(f"the attackers made {judgement.steps.total()} steps in {seconds} s")


def test_a_peer_that_is_killed_comes_again_at_its_next_step(tmp_path: Path) -> None:
    steps = tuple(map(Step, ("die", "move", "die", "read")))
    program = Program(1, Keys.NONE, False, (PeerProgram(Port.CONTROL, steps), PeerProgram(Port.HTTP, steps)))
    file = tmp_path / "program.json"
    write(file, Target({}, "", 1, ("honest",), (1,), 8, 0), program)
    line = [sys.executable, "-m", "tests.attacks.hostile_peers", str(file), "0.5"]
    output = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    done = dict(row.rsplit(": ", 1) for row in output.splitlines())
    for port in ("control", "http"):
        assert int(done[f"{port} die"]) >= 2
        assert abs(int(done[f"{port} die"]) - 2 * int(done[f"{port} move"])) <= 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fault_of_a_node_is_found_and_its_program_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tests.attacks.program_table.SHRUNK", tmp_path / "shrunk")
    lie = PeerProgram(Port.CONTROL, (Step("connect"), Step("handshake", "right"), Step("lie", "end of run")))
    others = [PeerProgram(port, (Step("connect"), Step("bytes"), Step("close"))) for port in (Port.DATA, Port.HTTP)]
    program = Program(1, Keys.NONE, False, (others[0], lie, others[1]))
    folders = (tmp_path / str(number) for number in range(1000))
    command = ("tests.attacks.planted_fault",)
    assert attack_by_programs([program], SECONDS[0], command, folders, shrink_seconds=120.0) == 1
    shown = capsys.readouterr().out
    assert f"alive: exit code {EXIT_CODE}" in shown
    assert 'make attacks ATTACKS_ARGUMENTS="--program' in shown
    shortest = Program.of_json((tmp_path / "shrunk" / "seed-1.json").read_text())
    assert shortest.peers == (lie,)
