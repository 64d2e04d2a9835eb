"""A node survives attacks of raw peers on its ports, and regains its memory and descriptors.

The attacks at full size, as a table: `python -m tests.attacks`.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.readout.frame_handler import IN_FLIGHT_NS
from hltnode.protocol.raw_data.mep import encode_mep
from tests.attacks.attacked_node import MIB, ROOT, AttackedNode
from tests.attacks.catalogue import ATTACKS
from tests.attacks.frames_without_permission import ADDRESS, RATE, judge_frames_without_permission
from tests.attacks.returning_peers import judge
from tests.daemon.fakes import RUN, synthetic_meps

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(300)]

SMALL = 0.15
"""Part of the full size in the normal suite."""
LIMITS = f"unfinished_bytes = {40 * MIB}"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[AttackedNode]]:
    """Nodes that have been started; the last one is attacked next."""
    nodes: list[AttackedNode] = []
    yield nodes
    for node in nodes:
        node.stop()


@pytest.fixture
def attacked(nodes: list[AttackedNode], tmp_path: Path) -> AttackedNode:
    """The node of the test before, if it has survived that."""
    if not nodes or not nodes[-1].is_alive:
        nodes.append(AttackedNode(tmp_path / "node", limits=LIMITS))
    return nodes[-1]


def attack(attacked: AttackedNode, name: str, size: float, seconds: float = 90.0) -> None:
    cost = ATTACKS[name].run(attacked, size, seconds)
    assert not cost.error
    assert not cost.broken(), (cost, attacked.log.read_text()[-1000:])


@pytest.mark.parametrize("name", ATTACKS)
def test_a_node_survives_an_attack_and_regains_memory_and_descriptors(attacked: AttackedNode, name: str) -> None:
    attack(attacked, name, SMALL)


def test_after_all_attacks_the_same_node_takes_a_run(attacked: AttackedNode, tmp_path: Path) -> None:
    """This test runs after the others, on the same node."""
    events = tmp_path / "events.mep"
    events.write_bytes(b"".join(encode_mep(list(mep.mfps.values())) for mep in synthetic_meps(50)))
    line = [
        sys.executable, "-m", "hltnode.daemon", "replay", "--to", f"tcp://127.0.0.1:{attacked.data}",
        "--control", f"tcp://127.0.0.1:{attacked.control}", str(events), "--run", str(RUN),
    ]  # fmt: skip
    feed = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=50)
    assert feed.returncode == 0, feed.stderr + attacked.log.read_text()[-1000:]
    assert attacked.metric("hltnode_events_processed_total") == 50 * 8


@pytest.mark.parametrize("name", ["malformed_handshakes", "mutated_streams", "connections", "unfinished_frames"])
def test_a_node_with_keys_survives_attackers_without_keys(tmp_path: Path, name: str) -> None:
    attacked = AttackedNode(tmp_path, limits=LIMITS, with_keys=True)
    try:
        attack(attacked, name, SMALL)
        assert attacked.metric('hltnode_connection_events_total{event="connected",socket="data"}') == 0
    finally:
        attacked.stop()


@pytest.mark.parametrize(
    ("port", "content"),
    [
        ("decisions", "short topics"),
        pytest.param("control", "tiny messages", marks=pytest.mark.slow),
        pytest.param("data", "empty frames", marks=pytest.mark.slow),
    ],
)
def test_peers_that_connect_again_cost_no_more_than_is_promised(tmp_path: Path, port: str, content: str) -> None:
    attacked = AttackedNode(tmp_path)
    try:
        found = judge(attacked, port, content, 2.0, 5000)
    finally:
        attacked.kill()
    # Rates and delays depend on the machine: `make attacks` judges them.
    assert {"memory", "alive"}.isdisjoint(found.broken()), found
    assert found.honest > 0
    assert found.connections > 20


def test_fragments_without_permission_displace_none_of_a_feeder(tmp_path: Path) -> None:
    attacked = AttackedNode(tmp_path)
    try:
        found = judge_frames_without_permission(attacked, 4.0)
    finally:
        attacked.kill()
    assert {"no displaced fragment", "alive"}.isdisjoint(found.broken()), found
    assert found.honest > 0
    assert found.received > 2 * RATE


@pytest.mark.slow
def test_a_peer_that_sends_only_such_fragments_loses_its_connection_and_a_feeder_does_not(
    tmp_path: Path,
) -> None:
    attacked = AttackedNode(tmp_path)
    try:
        found = judge_frames_without_permission(attacked, IN_FLIGHT_NS / 1e9 + 10.0)
        assert found.displaced == 0, found
        assert found.honest > 0
        assert attacked.refused("data", "unpermitted") == 1
        assert attacked.metric("hltnode_address_refusals_total") == 1
        assert f'"address": "{ADDRESS}"' in attacked.log.read_text()
    finally:
        attacked.kill()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_node_survives_the_attack_at_full_size(tmp_path: Path, name: str) -> None:
    attacked = AttackedNode(tmp_path)
    try:
        attack(attacked, name, 1.0)
    finally:
        attacked.stop()
