"""A shadow node beside a productive one, as processes: it harms nothing when it is slow, stopped or killed."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hltnode.client import DecisionSubscriber
from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.pages import all_metrics, status_page
from tests.daemon.processes.test_processes import Site

pytestmark = [pytest.mark.process, pytest.mark.loopback]

MEPS = 200
# Long enough for hundreds of MEPs of the productive node.
STOPPED_S = 2.0


class ShadowedSite(Site):
    """A productive node with two feeders and a tap of whole MEPs, and a shadow with the same configuration."""

    def __init__(self, directory: Path, *, buffer_bytes: int) -> None:
        super().__init__(directory, feeders=2, meps=MEPS)
        tap, data, control, self.shadow_decisions, self.shadow_http = free_ports(5)
        productive = self.config.read_text()
        self.productive_decisions = productive.split('decisions = "')[1].split('"')[0]
        self.config.write_text(
            productive + f'[tap]\nmeps_endpoint = "tcp://127.0.0.1:{tap}"\nbuffer_bytes = {buffer_bytes}\n'
        )
        self.shadow_output = directory / "shadow"
        shadow = productive.replace(self.data, f"tcp://127.0.0.1:{data}").replace(
            self.control, f"tcp://127.0.0.1:{control}"
        )
        shadow = shadow.replace(self.productive_decisions, f"tcp://127.0.0.1:{self.shadow_decisions}")
        shadow = shadow.replace(str(self.output), str(self.shadow_output))
        shadow = shadow.replace(f"port = {self.http}", f"port = {self.shadow_http}")
        self.shadow_config = directory / "shadow.toml"
        self.shadow_config.write_text(shadow + f'[shadow]\nof = "tcp://127.0.0.1:{tap}"\n')
        self.shadow_control = f"tcp://127.0.0.1:{control}"
        self.shadow_data = f"tcp://127.0.0.1:{data}"

    def start_shadow(self) -> "subprocess.Popen[bytes]":
        shadow = self.start("tests.daemon.node_process", str(self.shadow_config))
        self.wait_for(lambda: status_page(self.shadow_http) is not None)
        return shadow

    def status_of_shadow(self) -> dict[str, Any]:
        status = status_page(self.shadow_http)
        assert status is not None, self.logs()
        return status


@pytest.fixture
def site(tmp_path: Path) -> Iterator[ShadowedSite]:
    site = ShadowedSite(tmp_path, buffer_bytes=1 << 26)
    yield site
    for process in site.processes:
        process.kill()
        process.wait()


def by_mep(decisions: DecisionSubscriber) -> dict[int, tuple[int, bytes, bytes, bytes]]:
    received = (decisions.receive(20.0) for _ in range(MEPS))
    return {each.mep: (each.first_event, each.accepted, each.lines, each.flags) for each in received}


def wait_for_subscribers(site: Site, port: int, n: int = 1) -> None:
    site.wait_for(lambda: all_metrics(port)["hltnode_decision_subscriptions"] >= n)


def test_a_shadow_decides_on_every_mep_and_is_marked_everywhere(site: ShadowedSite) -> None:
    node, shadow = site.start_node(), site.start_shadow()
    with (
        DecisionSubscriber(site.productive_decisions) as productive,
        DecisionSubscriber(f"tcp://127.0.0.1:{site.shadow_decisions}", shadow=True) as of_shadow,
    ):
        compared = site.directory / "compared.json"
        comparing = site.start(
            *("hltnode.daemon", "shadow", site.productive_decisions, f"tcp://127.0.0.1:{site.shadow_decisions}"),
            *("--meps", str(MEPS), "--json", str(compared)),
        )
        wait_for_subscribers(site, site.http, 2)
        wait_for_subscribers(site, site.shadow_http, 2)
        feeders = [site.start_feeder(number) for number in (1, 2)]
        assert [site.wait(feeder) for feeder in feeders] == [0, 0], site.logs()
        expected, found = by_mep(productive), by_mep(of_shadow)
        assert site.wait(comparing) == 0, site.logs()
    counted = json.loads(compared.read_text())
    assert (counted["meps"], counted["differing_events"]) == (MEPS, 0)
    assert counted["accepted"]["both"] == len(site.wanted)
    assert found == expected
    assert any(any(accepted) for _, accepted, _, _ in found.values())
    refused = site.start(
        "hltnode.daemon", "replay", "--to", site.shadow_data, "--control", site.shadow_control, str(site.input)
    )
    assert site.wait(refused) == 1, site.logs()
    text = "is a shadow of another node and takes no feeders: feed the productive node"
    assert text in " ".join(site.logs().split())
    lost = site.status_of_shadow()["shadow_meps"]["lost"]
    assert site.status_of_shadow()["shadow_meps"] == {"taken": MEPS, "lost": dict.fromkeys(lost, 0)}
    of_shadow_node, of_node = all_metrics(site.shadow_http), all_metrics(site.http)
    assert (of_shadow_node["hltnode_shadow"], of_shadow_node["hltnode_shadow_meps_total"]) == (1, MEPS)
    assert (of_node["hltnode_shadow"], of_node["hltnode_tap_whole_meps_total"]) == (0, MEPS)
    for process in (shadow, node):
        process.send_signal(signal.SIGTERM)
        assert site.wait(process) == 0, site.logs()
    assert not list(site.shadow_output.glob("*.mdf*"))
    # A MEP whose fragments one feeder sends again may be built after the next one.
    assert sorted(site.kept_events()) == site.wanted
    summaries = list(site.shadow_output.glob("*summary.json"))
    assert summaries
    assert all(path.name.startswith("testnode-shadow_") for path in summaries)


def test_a_slow_a_stopped_and_a_killed_shadow_leave_the_productive_node_unharmed(
    site: ShadowedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = site.start_node()
    monkeypatch.setenv("TEST_BATCH_SECONDS", "0.2")
    shadow = site.start_shadow()
    feeders = [site.start_feeder(number) for number in (1, 2)]
    site.wait_for(lambda: site.status_of_shadow()["shadow_meps"]["taken"] > 0)
    shadow.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    # The node acknowledges at the pace of its feeders meanwhile.
    assert all_metrics(site.http)["hltnode_meps_acknowledged_total"] > MEPS / 4, site.logs()
    shadow.send_signal(signal.SIGCONT)
    taken = site.status_of_shadow()["shadow_meps"]["taken"]
    site.wait_for(lambda: site.status_of_shadow()["shadow_meps"]["taken"] > taken)
    shadow.send_signal(signal.SIGKILL)
    shadow.wait()
    again = site.start_shadow()
    assert [site.wait(feeder) for feeder in feeders] == [0, 0], site.logs()
    of_node = all_metrics(site.http)
    assert of_node["hltnode_meps_acknowledged_total"] == MEPS
    assert of_node['hltnode_meps_closed_total{reason="complete"}'] == MEPS
    for process in (again, node):
        process.send_signal(signal.SIGTERM)
        assert site.wait(process) == 0, site.logs()
    # A MEP whose fragments one feeder sends again may be built after the next one.
    assert sorted(site.kept_events()) == site.wanted
