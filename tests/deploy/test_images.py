"""Names in Dockerfiles and compose.yml exist in the repository, in the package and in the defaults of the node.

These tests build no image, because that needs a registry and a daemon.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.configuration.loading import load_config
from hltnode.daemon.monitoring.http_hosts import HostNames
from tests.deploy.tools import DEPLOY, LONGEST_STOP_SECONDS, ROOT, read_yaml, run, tool

DOCKERFILES = sorted((ROOT / "docker").glob("Dockerfile.*"))
COMPOSE = ROOT / "docker" / "compose.yml"
of_each_image = pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)


@cache
def instructions(path: Path) -> list[tuple[str, str]]:
    """Instructions of a Dockerfile with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


def final_stage(path: Path) -> list[tuple[str, str]]:
    found = instructions(path)
    last = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    return found[last + 1 :]


def environment(path: Path) -> dict[str, str]:
    parts = (part for name, rest in final_stage(path) if name == "ENV" for part in shlex.split(rest))
    return {name: value for name, _, value in (part.partition("=") for part in parts)}


def ports_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Ports of a node in the image."""
    for name, value in environment(path).items():
        if name.startswith("HLTNODE_"):
            monkeypatch.setenv(name, value)
    config = load_config(DEPLOY / "node.toml")
    endpoints = (config.network.data, config.network.control, config.network.decisions)
    return {int(endpoint.rsplit(":", 1)[1]) for endpoint in endpoints} | {config.http.port}


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_hadolint_accepts_the_dockerfile(path: Path) -> None:
    checked = run(tool("hadolint"), path)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_image_runs_without_privileges_and_receives_signals(path: Path) -> None:
    final = path.read_text().split("\nFROM ")[-1]
    assert "\nUSER 987:987\n" in final
    assert '\nENTRYPOINT ["hltnode"]\n' in final
    assert "\nSTOPSIGNAL SIGTERM\n" in final
    assert "\nHEALTHCHECK " in final
    assert "org.opencontainers.image.licenses" in final


def test_there_are_images_for_both_back_ends() -> None:
    assert [path.name for path in DOCKERFILES] == ["Dockerfile.cpu", "Dockerfile.cuda"]


def test_the_environment_of_the_images_is_a_valid_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in DOCKERFILES:
        for name, value in re.findall(r"(HLTNODE_\w+)=(\S+)", path.read_text()):
            monkeypatch.setenv(name, value)
        config = load_config(DEPLOY / "node.toml")
        assert config.network.data == "tcp://*:5555"
        assert config.pipeline.backend == path.suffix.removeprefix(".")


@of_each_image
def test_base_images_have_exact_tags_and_can_be_pinned_by_digest(path: Path) -> None:
    found = instructions(path)
    defaults = dict(rest.split("=", 1) for name, rest in found if name == "ARG" and "IMAGE" in rest)
    stages = [rest.split()[0] for name, rest in found if name == "FROM"]
    assert len(stages) == 2
    for stage in stages:
        variable = stage.removeprefix("${").removesuffix("}")
        assert re.fullmatch(r"python:\d+\.\d+\.\d+(-slim)?-bookworm", defaults[variable])
        assert f"--build-arg {variable}=" in path.read_text()


@of_each_image
def test_what_is_copied_exists_and_is_not_kept_out_of_the_build(path: Path) -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    stages = {rest.split()[-1] for name, rest in instructions(path) if name == "FROM" and " AS " in rest}
    sources = [shlex.split(rest) for name, rest in instructions(path) if name == "COPY"]
    assert len(sources) == 3
    for *options, source, _ in sources:
        if options:
            assert options[0].removeprefix("--from=") in stages
            continue
        assert (ROOT / source).exists(), source
        assert not any(Path(source).match(pattern) for pattern in ignored if not pattern.startswith(".")), source
    requirements = [
        name.replace("${CUDA_EXTRA}", extra)
        for name in re.findall(r'--requirement "?([^\s"]+)', path.read_text())
        for extra in ("cuda12", "cuda13")
    ]
    assert requirements
    assert all((ROOT / name).exists() and name.split("/")[0] not in ignored for name in requirements)


@of_each_image
def test_the_ports_are_those_that_the_node_listens_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (exposed,) = [rest for name, rest in final_stage(path) if name == "EXPOSE"]
    listening = ports_of(path, monkeypatch)
    assert {int(port) for port in exposed.split()} == listening
    (check,) = [rest for name, rest in final_stage(path) if name == "HEALTHCHECK"]
    url = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", check)
    assert url is not None
    assert int(url[1]) == load_config(DEPLOY / "node.toml").http.port
    # tests/daemon/monitoring/test_http_server.py shows that a node answers it.
    assert url[2] == "/healthz"


@of_each_image
def test_the_user_exists_and_owns_what_the_node_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = final_stage(path)
    (made,) = [rest for name, rest in found if name == "RUN" and "useradd" in rest]
    (user,) = [rest for name, rest in found if name == "USER"]
    uid, gid = user.split(":")
    assert re.search(rf"groupadd .*--gid {gid} (\w+)", made)
    account = re.search(rf"useradd .*--uid {uid} --gid {gid} .*?(\w+) +&&", made)
    assert account is not None
    owned = re.search(rf"install -d -o {account[1]} -g {account[1]} ([^&]+)", made)
    assert owned is not None
    folders = {Path(folder) for folder in owned[1].split()}
    (volumes,) = [rest for name, rest in found if name == "VOLUME"]
    assert {Path(folder) for folder in re.findall(r'"([^"]+)"', volumes)} == folders
    assert load_config(DEPLOY / "node.toml").output.directory.parent in folders
    written = {
        Path(value) for name, value in environment(path).items() if name.endswith(("CACHE_DIRECTORY", "CACHE_DIR"))
    }
    assert written <= folders
    assert {Path(rest) for name, rest in found if name == "WORKDIR"} <= folders


@of_each_image
def test_the_command_is_one_of_the_command_line_and_reads_the_file_that_is_copied(path: Path) -> None:
    found = dict(final_stage(path))
    command, *arguments = re.findall(r'"([^"]+)"', found["CMD"])
    copied = [rest.split()[-1] for name, rest in final_stage(path) if name == "COPY"]
    assert arguments == ["--config", "/etc/hltnode/node.toml"]
    assert arguments[1] in copied
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert re.findall(r'"([^"]+)"', found["ENTRYPOINT"]) == [*scripts]
    assert environment(path)["PATH"].split(":")[0] in {f"{folder}/bin" for folder in copied}


def test_an_extra_that_an_image_installs_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (default,) = re.findall(r"ARG CUDA_EXTRA=(\w+)", (ROOT / "docker" / "Dockerfile.cuda").read_text())
    assert default in extras


def test_compose_names_files_ports_and_volumes_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    compose: dict[str, Any] = read_yaml(COMPOSE)
    node = compose["services"]["node"]
    context = COMPOSE.parent / node["build"]["context"]
    dockerfile = context / node["build"]["dockerfile"]
    assert dockerfile.resolve() in DOCKERFILES
    published = {int(port.rsplit(":", 1)[1]) for port in node["ports"]}
    assert published == ports_of(dockerfile.resolve(), monkeypatch)
    (volumes,) = [rest for name, rest in final_stage(dockerfile.resolve()) if name == "VOLUME"]
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            assert (COMPOSE.parent / source).exists() if source.startswith(".") else source in compose["volumes"], (
                volume
            )
            if name == "node":
                assert f'"{target}"' in volumes
    seconds = int(node["stop_grace_period"].removesuffix("s"))
    assert seconds > 1.25 * LONGEST_STOP_SECONDS


def test_the_node_of_compose_answers_to_the_names_in_use_and_to_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    compose = read_yaml(COMPOSE)
    of_service = compose["services"]["node"]["environment"]
    dockerfile = COMPOSE.parent / compose["services"]["node"]["build"]["context"]
    dockerfile /= compose["services"]["node"]["build"]["dockerfile"]
    for name, value in {**environment(dockerfile.resolve()), **of_service}.items():
        if name.startswith("HLTNODE_"):
            monkeypatch.setenv(name, value)
    http = load_config(DEPLOY / "node.toml").http
    hosts = HostNames(http.host, http.host_names or ())
    (group,) = read_yaml(COMPOSE.parent / "prometheus-targets.yml")
    assert all(hosts.accept(target) for target in (*group["targets"], "localhost:9105", "127.0.0.1:9105"))
    assert not hosts.accept("attacker.example:9105")


def test_grafana_starts_with_the_dashboard_that_is_mounted() -> None:
    grafana = read_yaml(COMPOSE)["services"]["grafana"]
    mounted = dict(volume.split(":")[1::-1] for volume in grafana["volumes"])
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (COMPOSE.parent / mounted[str(home.parent)] / home.name).is_file()
    (folder,) = [
        provider["options"]["path"]
        for provider in read_yaml(DEPLOY / "grafana/provisioning/dashboards/hltnode.yml")["providers"]
    ]
    assert any(target.startswith(folder) for target in mounted)


def test_prometheus_reads_the_rules_and_targets_that_are_mounted() -> None:
    prometheus = read_yaml(COMPOSE)["services"]["prometheus"]
    mounted = [Path(volume.split(":")[1]) for volume in prometheus["volumes"]]
    config = read_yaml(DEPLOY / "prometheus" / "prometheus.yml")
    named = [*config["rule_files"]]
    for job in config["scrape_configs"]:
        named += [name for found in job.get("file_sd_configs", []) for name in found["files"]]
    assert named
    for name in named:
        # Relative to its folder, as in the configuration.
        assert any(path.match(str(Path("/etc/prometheus") / name)) for path in mounted), name


def locked(name: str) -> dict[str, str]:
    """The block of each package in a lock, by its name; `make lock` writes them."""
    blocks = re.split(r"\n(?=[a-z])", (DEPLOY / f"{name}.lock").read_text())
    assert all("--hash=sha256:" in block for block in blocks)
    return {block.split("==")[0]: block for block in blocks}


def names_of(requirements: Iterable[str]) -> set[str]:
    return {re.split(r"[>=<\[ ;]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize(("lock", "extras"), [("requirements", []), ("cuda12", ["cuda12"]), ("cuda13", ["cuda13"])])
def test_the_locked_dependencies_are_those_of_the_package(lock: str, extras: list[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = names_of(project["dependencies"])
    for extra in extras:
        names |= names_of(project["optional-dependencies"][extra])
    assert {name for name, block in locked(lock).items() if "hltnode (pyproject.toml)" in block} == names


def test_the_locks_of_the_extras_have_the_versions_of_the_package() -> None:
    def versions(lock: str) -> dict[str, str]:
        return {name: block.split("==")[1].split()[0] for name, block in locked(lock).items()}

    of_package = versions("requirements")
    for lock in ("cuda12", "cuda13"):
        assert of_package.items() <= versions(lock).items()


def test_what_compiles_the_package_is_locked() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert set(build) <= set((DEPLOY / "build-requirements.in").read_text().splitlines())
    assert names_of(build) | {"cmake", "ninja"} <= set(locked("build"))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_an_image_installs_only_locked_packages_from_an_index(path: Path) -> None:
    commands = re.findall(r"pip (?:install|wheel) [^&]*", path.read_text().replace("\\\n", " "))
    assert len(commands) == 4
    for command in commands:
        assert "--require-hashes --requirement" in command or "--no-deps" in command
        if "pip wheel" in command:
            assert "--no-build-isolation" in command
