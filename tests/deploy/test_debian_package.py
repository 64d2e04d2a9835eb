"""The Debian package is built, unpacked and run in place."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hltnode.daemon.commands.demo_processes import free_ports
from tests.daemon.pages import status_page
from tests.deploy.debian_package import built, require_debian_tools
from tests.deploy.tools import DEPLOY, ROOT, run, tool
from tools.generate_man import page
from tools.generate_reference import command_line_page

SCRIPTS = sorted((DEPLOY / "debian").glob("hltnode.p*"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_the_scripts_of_the_package_are_valid_and_never_touch_the_data(path: Path) -> None:
    checked = run("sh", "-n", path)
    assert checked.returncode == 0, checked.stderr
    text = path.read_text()
    # debhelper inserts its commands at every occurrence of this word.
    assert [line for line in text.splitlines() if "#DEBHELPER#" in line] == ["#DEBHELPER#"]
    removed = [line for line in text.splitlines() if "rm -" in line]
    assert not [line for line in removed if "/var/lib" in line]


@pytest.fixture(scope="module")
def unpacked(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    for options in (("--extract", package, folder), ("--control", package, folder / "DEBIAN")):
        done = run(tool("dpkg-deb"), *options)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.process
@pytest.mark.timeout(900)
def test_the_package_has_units_user_folders_configuration_and_manual(unpacked: Path) -> None:
    for path, source in {
        "lib/systemd/system/hltnode.service": "systemd/hltnode.service",
        "lib/systemd/system/hltnode@.service": "systemd/hltnode.service",
        "usr/lib/sysusers.d/hltnode.conf": "systemd/hltnode.sysusers.conf",
        "usr/lib/tmpfiles.d/hltnode.conf": "systemd/hltnode.tmpfiles.conf",
        "etc/hltnode/node.toml": "node.toml",
    }.items():
        assert (unpacked / path).read_bytes() == (DEPLOY / source).read_bytes()
    monitoring = unpacked / "usr/share/doc/hltnode/examples/monitoring"
    given = [path for path in monitoring.iterdir() if path.suffix in (".json", ".yml", ".gz")]
    kept = [*(DEPLOY / "grafana/dashboards").iterdir(), *(DEPLOY / "prometheus").glob("*.yml")]
    assert sorted(path.name.removesuffix(".gz") for path in given) == sorted(path.name for path in kept)
    of_clients = unpacked / "usr/share/hltnode/client-c"
    assert {path.name: path.read_bytes() for path in of_clients.iterdir()} == {
        path.name: path.read_bytes() for path in (ROOT / "client" / "c").iterdir()
    }
    assert (unpacked / "DEBIAN/conffiles").read_text() == "/etc/hltnode/node.toml\n"
    assert (unpacked / "usr/share/man/man1/hltnode.1.gz").stat().st_size > 3000
    script = (unpacked / "DEBIAN/postinst").read_text()
    assert 0 < script.index("systemd-sysusers") < script.index("systemd-tmpfiles")
    # The package contains no path of the build machine.
    for program in (unpacked / "opt/hltnode/bin").iterdir():
        if program.is_file() and not program.is_symlink():
            assert b"/debian/hltnode/" not in program.read_bytes(), program


@pytest.mark.process
@pytest.mark.timeout(900)
def test_this_machine_has_what_the_package_depends_on(package: Path) -> None:
    done = run(tool("dpkg"), "--dry-run", "--install", package)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
@pytest.mark.timeout(900)
@pytest.mark.parametrize("programs", ["/usr/bin:/bin", "/nonexistent"], ids=["compiler", "no-compiler"])
def test_a_node_runs_from_the_package_and_drains(unpacked: Path, programs: str, tmp_path: Path) -> None:
    data, control, decisions, http = free_ports(4)
    environment = {
        "PATH": programs,
        "HOME": str(tmp_path),
        "HLTNODE_NETWORK__DATA": f"tcp://127.0.0.1:{data}",
        "HLTNODE_NETWORK__CONTROL": f"tcp://127.0.0.1:{control}",
        "HLTNODE_NETWORK__DECISIONS": f"tcp://127.0.0.1:{decisions}",
        "HLTNODE_HTTP__PORT": str(http),
        "HLTNODE_OUTPUT__DIRECTORY": str(tmp_path / "output"),
        "HLTNODE_PIPELINE__SLOT_BYTES": "33554432",
        "HLTNODE_BUILDER__MAX_MEP_BYTES": "16777216",
        "HLTNODE_PIPELINE__MAX_EVENTS": "256",
        "HLTNODE_PIPELINE__BACKEND": "cpu",
    }
    # The shebang names /opt/hltnode.
    python = unpacked / "opt/hltnode/bin/python"
    command: list[str | Path] = [
        python,
        "-m",
        "hltnode.daemon",
        "serve",
        "--config",
        unpacked / "etc/hltnode/node.toml",
    ]
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        end = time.monotonic() + 300
        while status_page(http) is None:
            assert node.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.1)
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) == 0, (tmp_path / "log").read_text()
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(3600)
def test_the_package_is_compiled_of_sources_alone(tmp_path: Path) -> None:
    require_debian_tools()
    content = run(tool("dpkg-deb"), "--contents", built(tmp_path)).stdout
    assert len(re.findall(r"/site-packages/hltnode/\S+\.so$", content, re.MULTILINE)) == 7


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.timeout(3600)
def test_lintian_finds_no_error(package: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    checked = subprocess.run(
        ["lintian", "--fail-on", "error", "--allow-root", package], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout


def test_the_manual_page_has_every_command(tmp_path: Path) -> None:
    commands = [line.removeprefix("## ") for line in command_line_page().splitlines() if line.startswith("## ")]
    assert len(commands) > 15
    sections = [
        line.removeprefix(".Ss ").replace("\\-", "-") for line in page().splitlines() if line.startswith(".Ss ")
    ]
    assert sections == commands
    mandoc = shutil.which("mandoc")
    if mandoc is not None:
        (tmp_path / "hltnode.1").write_text(page())
        checked = run(mandoc, "-T", "lint", "-W", "error", tmp_path / "hltnode.1")
        assert checked.returncode == 0, checked.stdout
