"""SIGTERM and SIGHUP to real node processes in every state that lasts, and `hltnode ctl` from outside."""

import json
import signal
import subprocess

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.event_building.accounting import closes
from tests.daemon.pages import metric
from tests.daemon.processes.test_processes import Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback]

COMMANDS = {
    "idle": (),
    "ready": ("configure",),
    "running": ("configure", "start"),
    "paused": ("configure", "start", "pause"),
}


def ctl(site: Site, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["ctl", *arguments, "--to", site.control, "--timeout", "20"])
    assert result.exit_code == 0, result.output + site.logs()
    return result.output


def log_lines(site: Site, event: str) -> list[dict[str, object]]:
    lines = [line for path in site.directory.glob("log*") for line in path.read_text().splitlines()]
    parsed = [json.loads(line) for line in lines if line.startswith("{")]
    return [line for line in parsed if line["event"] == event]


def hang_up(site: Site, node: subprocess.Popen[bytes], outcome: str) -> None:
    """SIGHUP, and wait until the node has dealt with it."""
    counter = f'hltnode_config_reloads_total{{outcome="{outcome}"}}'
    before = metric(site.http, counter)
    node.send_signal(signal.SIGHUP)
    site.wait_for(lambda: metric(site.http, counter) == before + 1)


@pytest.mark.parametrize("state", COMMANDS)
def test_sighup_reloads_and_sigterm_ends_the_node_in_every_state(
    site: Site, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HLTNODE_NODE__AUTOSTART", "false")
    node = site.start_node()
    for command in COMMANDS[state]:
        ctl(site, command)
    assert json.loads(ctl(site, "status", "--json"))["state"] == state
    hang_up(site, node, "ok")
    assert metric(site.http, f'hltnode_run_state{{state="{state}"}}') == 1
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()


def test_sigterm_while_draining_lets_the_drain_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_BUILDER__EXPECTED_SOURCES", "[0, 4096, 4097, 6144, 7777]")
    monkeypatch.setenv("HLTNODE_BUILDER__MEP_TIMEOUT_MS", "2000")
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for(lambda: metric(site.http, "hltnode_meps_open") > 0)
    # Not waited for: the command line would poll until the node is ready again.
    stop = site.start("hltnode.daemon", "ctl", "stop", "--to", site.control, "--timeout", "20")
    site.wait_for(lambda: metric(site.http, 'hltnode_run_state{state="draining"}') == 1)
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    summary = log_lines(site, "run_summary")[-1]
    assert closes({"fragments": summary["fragments"], "meps": summary["meps"]})  # type: ignore[dict-item]
    assert not list(site.output.glob("*.part"))
    stop.kill()


def test_a_second_sigterm_abandons_and_counts_open_meps(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_BUILDER__EXPECTED_SOURCES", "[0, 4096, 4097, 6144, 7777]")
    monkeypatch.setenv("HLTNODE_BUILDER__MEP_TIMEOUT_MS", "600000")
    node = site.start_node()
    site.start_feeder(1)
    site.wait_for(lambda: metric(site.http, "hltnode_meps_open") > 0)
    node.send_signal(signal.SIGTERM)
    site.wait_for(lambda: metric(site.http, 'hltnode_run_state{state="draining"}') == 1)
    node.send_signal(signal.SIGTERM)
    assert site.wait(node, 8.0) == 1, site.logs()
    [abandoned] = log_lines(site, "abandoned")
    summary = log_lines(site, "run_summary")[-1]
    assert isinstance(summary["meps"], dict)
    assert summary["meps"]["abandoned"] == abandoned["meps"] != 0
    assert closes({"fragments": summary["fragments"], "meps": summary["meps"]})  # type: ignore[dict-item]


def test_a_reload_applies_hot_keys_reports_them_and_refuses_a_bad_file(site: Site) -> None:
    node = site.start_node()
    good = site.config.read_text()
    assert metric(site.http, "hltnode_config_version") == 1
    started = metric(site.http, "hltnode_last_reload_success_timestamp_seconds")
    site.config.write_text(
        good.replace("mep_timeout_ms = 400", "mep_timeout_ms = 500").replace(
            "slot_bytes = 524288", "slot_bytes = 600000"
        )
    )
    hang_up(site, node, "ok")
    [change] = log_lines(site, "config_changed")
    assert (change["key"], change["old"], change["new"]) == ("builder.mep_timeout_ms", "400", "500")
    assert log_lines(site, "config_needs_restart")[0]["keys"] == ["pipeline.slot_bytes"]
    assert metric(site.http, "hltnode_config_version") == 2
    assert metric(site.http, "hltnode_last_reload_success_timestamp_seconds") > started
    for bad in ("[builder]\nmep_timeout_ms = 0\n", "no toml", "[walk]\ndog = 1\n"):
        site.config.write_text(bad)
        hang_up(site, node, "refused")
    assert [str(site.config) in str(line["reason"]) for line in log_lines(site, "reload_failed")] == [True] * 3
    assert metric(site.http, "hltnode_config_version") == 2
    result = CliRunner().invoke(app, ["ctl", "reload", "--to", site.control])
    assert result.exit_code == 1
    assert "the old values stay" in result.output.replace("\n", " ")
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()


def test_ctl_over_http_stops_and_starts_and_shows_refusals(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.directory / "token"
    runner = CliRunner()
    assert runner.invoke(app, ["keys", "token", str(token)]).exit_code == 0
    monkeypatch.setenv("HLTNODE_SECURITY__HTTP_TOKEN_FILE", str(token))
    site.start_node()
    url = ["--http", f"http://127.0.0.1:{site.http}"]
    site.wait_for(
        lambda: json.loads(runner.invoke(app, ["ctl", "status", "--json", *url]).output)["state"] == "running"
    )
    for command, says in (("stop", "ready"), ("start", "running")):
        result = runner.invoke(app, ["ctl", command, *url, "--token-file", str(token)])
        assert result.exit_code == 0, result.output
        assert says in result.output
    refused = runner.invoke(app, ["ctl", "start", *url, "--token-file", str(token)])
    assert refused.exit_code == 1
    assert "running" in refused.output
    assert runner.invoke(app, ["ctl", "stop", *url]).exit_code == 2
    token.write_text("another token".replace(" ", "-") * 2)
    wrong = runner.invoke(app, ["ctl", "stop", *url, "--token-file", str(token)])
    assert wrong.exit_code == 2
    assert "wrong token" in wrong.output
