"""A second node on the same files, with another name and other ports."""

import signal
from pathlib import Path

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.processes.test_processes import WANTED, Site, site

__all__ = ["site"]

pytestmark = [pytest.mark.process, pytest.mark.loopback, pytest.mark.timeout(300)]


def content(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.name: (b"" if path.is_dir() else path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted([directory, *directory.iterdir()])
    }


def all_threads_are_stopped(pid: int) -> bool:
    threads = Path(f"/proc/{pid}/task").iterdir()
    return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)


@pytest.mark.parametrize("name", ["testnode", "another"])
def test_a_second_node_in_the_same_directory_is_refused_and_changes_nothing(site: Site, name: str) -> None:
    node = site.start_node()
    feeder = site.start_feeder(1)
    site.wait_for_events(100)
    node.send_signal(signal.SIGSTOP)
    # A thread inside a write completes it after the signal.
    site.wait_for(lambda: all_threads_are_stopped(node.pid))
    before = content(site.output)
    assert any(path.endswith(".part") for path in before)
    assert "testnode.journal" in before
    second = site.directory / "second.toml"
    text = site.config.read_text().replace('name = "testnode"', f'name = "{name}"')
    for place in (site.data, site.control, "decisions = ", "port = "):
        assert place in text
    lines = []
    for line, port in zip(text.splitlines(), (port for _ in range(100) for port in free_ports(1)), strict=False):
        key = line.partition(" = ")[0]
        if key in ("data", "control", "decisions"):
            lines.append(f'{key} = "tcp://127.0.0.1:{port}"')
        else:
            lines.append(f"port = {port}" if key == "port" else line)
    second.write_text("\n".join(lines))
    refused = site.start("hltnode.daemon", "serve", "--config", str(second))
    assert site.wait(refused, 90.0) == 2, site.logs()
    assert f"{site.output}: another node writes here, pid {node.pid}" in site.logs()
    assert "Traceback" not in site.logs()
    assert content(site.output) == before
    node.send_signal(signal.SIGCONT)
    assert site.wait(feeder, 120.0) == 0, site.logs()
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    assert sorted(site.kept_events()) == sorted(WANTED)
