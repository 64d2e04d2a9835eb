"""The C library compiles as C and C++ without warnings, installs, and feeds a real node."""

import asyncio
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hltnode.daemon.event_building.accounting import accounting, closes
from hltnode.daemon.node.node import Node
from hltnode.protocol.errors import RejectReason
from hltnode.protocol.raw_data.mdf import iter_records
from hltnode.protocol.raw_data.odin import decode_odin
from hltnode.protocol.transport.control_messages import CONTROL_VERSION
from hltnode.protocol.transport.feeder_messages import Hello
from hltnode.protocol.transport.frame_header import VERSION
from hltnode.protocol.transport.refusals import HelloRefusal
from tests.client.c.conftest import LIBRARY, WARNINGS, Start, compiler, loaded_libzmq, run
from tests.daemon.fakes import TRACKS_PER_EVENT, make_config, running_node
from tests.daemon.processes.test_processes import Site
from tests.daemon.security.test_curve import Keyring

EVENTS = 50
MEPS = 40
# The fake engine accepts the odd events of a MEP.
WANTED = list(range(1, MEPS * EVENTS, 2))

SOURCE = (LIBRARY / "hltnode_client.c").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def installed_feeder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, linked with the installed library by the flags of its pkg-config file: the feeder, and `ask`."""
    build, prefix = tmp_path_factory.mktemp("c-build"), tmp_path_factory.mktemp("c-prefix")
    run(
        "cmake", "-S", LIBRARY, "-B", build, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib",
        f"-DHLTNODE_LIBZMQ={loaded_libzmq()}",
    )  # fmt: skip
    run("cmake", "--build", build)
    run("cmake", "--install", build)
    flags = flags_of(prefix / "lib" / "pkgconfig" / "hltnode_client.pc")
    for example in ("feeder", "ask"):
        run(
            *compiler("CC", "cc", "gcc", "clang"), "-std=c11", *WARNINGS,
            prefix / f"share/doc/hltnode_client/{example}.c", *flags, f"-Wl,-rpath,{prefix / 'lib'}",
            "-o", build / example,
        )  # fmt: skip
    return build / "feeder"


def flags_of(file: Path) -> list[str]:
    """`pkg-config --cflags --libs`, which is not on each machine."""
    variables: dict[str, str] = {}
    flags: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], line)
        if variable := re.fullmatch(r"(\w+)=(.*)", line):
            variables[variable[1]] = variable[2]
        elif field := re.fullmatch(r"(?:Cflags|Libs): (.*)", line):
            flags += field[1].split()
    assert "-lhltnode_client" in flags
    return flags


@pytest.mark.parametrize("standard", ["c11", "c++17"])
def test_library_and_examples_compile_without_warnings(standard: str) -> None:
    language = "c" if standard.startswith("c1") else "c++"
    command = compiler("CC", "cc", "gcc", "clang") if language == "c" else compiler("CXX", "c++", "g++", "clang++")
    run(
        *command, f"-std={standard}", "-x", language, *WARNINGS, "-fsyntax-only", "-I", LIBRARY,
        LIBRARY / "hltnode_client.c", LIBRARY / "feeder.c", LIBRARY / "ask.c",
    )  # fmt: skip


def test_the_library_knows_the_versions_and_reasons_of_this_protocol() -> None:
    reasons = re.search(r"REASONS\[\] = \{(.*?)\}", SOURCE, re.DOTALL)
    hopeless = re.search(r"HOPELESS\[\] = \{(.*?)\}", SOURCE, re.DOTALL)
    assert reasons is not None
    assert hopeless is not None
    assert re.findall(r'"(\w+)"', reasons[1]) == [*RejectReason, "other"]
    permanent = {
        HelloRefusal.FOREIGN_CHAIN, HelloRefusal.FOREIGN_INPUT, HelloRefusal.NO_SOURCES, HelloRefusal.EVENTS_PER_MEP,
        HelloRefusal.FOREIGN_RUN, HelloRefusal.SOURCES_FIXED, RejectReason.BAD_VERSION, RejectReason.MALFORMED,
        RejectReason.OVERSIZED, HelloRefusal.SHADOW,
    }  # fmt: skip
    assert set(re.findall(r'"(\w+)"', hopeless[1])) == permanent
    assert f"CONTROL_VERSION = {CONTROL_VERSION}, FRAME_VERSION = {VERSION}," in SOURCE


def test_both_ways_to_compute_a_crc_agree_for_all_lengths(driver: Path) -> None:
    assert run(driver, "crc").split() == ["E3069283", "E3069283"]


def test_every_function_of_the_header_is_defined_and_nothing_else_is_visible(installed_feeder: Path) -> None:
    header = (LIBRARY / "hltnode_client.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"HLTNODE_API [^;(]*?\b(hltnode_\w+)\(", header))
    [library] = installed_feeder.parent.glob("libhltnode_client.so.*.*.*")
    listed = run("nm", "--dynamic", "--defined-only", library)
    defined = {line.split()[-1] for line in listed.splitlines() if " T " in line}
    assert defined == declared


async def output_of(feeder: subprocess.Popen[str]) -> tuple[str, str]:
    return await asyncio.to_thread(feeder.communicate, timeout=120)


def kept_events(folder: Path) -> list[int]:
    return sorted(
        decode_odin(record.banks()[0]).event_id
        for path in folder.glob("*.mdf")
        for record in iter_records(path.read_bytes())
    )


def check_accounts(node: Node) -> None:
    accounts = accounting(node.counters, node.builder)
    assert closes(accounts), accounts


@pytest.mark.loopback
async def test_the_example_feeds_a_node(installed_feeder: Path, tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path)) as (node, _):
        command = [str(installed_feeder), node.receiver.endpoint, str(MEPS), node.control.endpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as feeder:
            printed, errors = await output_of(feeder)
        assert (printed, errors, feeder.returncode) == (f"{MEPS} MEPs acknowledged\n", "", 0)
        check_accounts(node)
    assert kept_events(tmp_path / "out") == WANTED


@pytest.mark.loopback
async def test_the_example_asks_a_node(installed_feeder: Path, tmp_path: Path) -> None:
    async with running_node(make_config(tmp_path, requests={"endpoint": "tcp://127.0.0.1:*"})) as (node, _):
        assert node._sockets.requests is not None
        command = [str(installed_feeder.with_name("ask")), node._sockets.requests.endpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
            printed, errors = await output_of(program)
        assert (errors, program.returncode) == ("", 0)
        assert printed.splitlines() == [
            f"event {event}: {'accepted' if event % 2 else 'rejected'}, {TRACKS_PER_EVENT} tracks" for event in range(8)
        ]


@pytest.mark.loopback
async def test_fragments_go_to_the_node_in_shared_memory(start: Start, tmp_path: Path) -> None:
    """The memory holds a few MEPs only, so its places are used many times."""
    path = tmp_path / "memory.sock"
    async with running_node(make_config(tmp_path, shared_memory={"socket": str(path)})) as (node, _):
        options = ("--meps", MEPS, "--memory", 65536, "--boards", 3)
        feeder = start(f"shm://{path}", node.control.endpoint, *options)
        printed, errors = await output_of(feeder)
        assert feeder.returncode == 0, printed + errors
        assert f"{MEPS} MEPs acknowledged, 0 before, 0 kept, {4 * MEPS} fragments sent, 0 again" in printed
        check_accounts(node)
    assert kept_events(tmp_path / "out") == WANTED


@pytest.mark.loopback
async def test_a_node_with_keys_takes_the_feeder_that_it_knows_and_no_other(start: Start, tmp_path: Path) -> None:
    keys = Keyring(tmp_path / "keys")
    config = keys.config(tmp_path, encrypt_data=True)
    server = keys.directory / "node" / "node.key"
    async with running_node(config) as (node, _):
        endpoints = (node.receiver.endpoint, node.control.endpoint)
        stranger = start(*endpoints, "--keys", keys.directory / "else" / "stranger.key_secret", server)
        printed, _ = await output_of(stranger)
        assert (stranger.returncode, printed.splitlines()[0]) == (
            7, "HLTNODE_REFUSED: the node does not know this key: it is not in security.feeders"
        )  # fmt: skip
        feeder = start(*endpoints, "--meps", 5, "--keys", keys.directory / "feeders" / "feeder.key_secret", server)
        printed, errors = await output_of(feeder)
        assert feeder.returncode == 0, printed + errors
        assert accounting(node.counters, node.builder)["fragments"]["received"] == 10


def test_key_files_that_are_open_or_do_not_match_are_refused_by_name(start: Start, tmp_path: Path) -> None:
    keys = Keyring(tmp_path)
    server, own = tmp_path / "node" / "node.key", tmp_path / "feeders" / "feeder.key_secret"
    refused = {
        tmp_path / "feeders" / "feeder.key": "expected a secret key file (.key_secret)",
        tmp_path / "none": "cannot be read: No such file or directory",
    }
    mixed = tmp_path / "mixed.key_secret"
    other_secret = re.search(r"secret-key.*", (tmp_path / "else" / "stranger.key_secret").read_text())
    assert other_secret is not None
    head, _, _ = own.read_text().partition("secret-key")
    mixed.write_text(head + other_secret[0])
    mixed.chmod(0o600)
    refused[mixed] = "public and secret key do not match"
    for file, reason in refused.items():
        if file.suffix == ".key":
            file.chmod(0o600)
        printed, _ = start("tcp://127.0.0.1:1", "-", "--keys", file, server).communicate(timeout=60)
        assert printed.splitlines()[0] == f"HLTNODE_SYSTEM: {file}: {reason}"
    own.chmod(0o644)
    printed, _ = start("tcp://127.0.0.1:1", "-", "--keys", own, server).communicate(timeout=60)
    assert "readable or writable by all users" in printed
    assert keys.of("operators").server.decode() not in printed


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    # A lost frame is sent again at once, but this takes a while if every process is slow.
    monkeypatch.setenv("HLTNODE_BUILDER__OVERTAKEN_AFTER_MS", "10000")
    monkeypatch.setenv("HLTNODE_SHARED_MEMORY__SOCKET", str(tmp_path / "memory.sock"))
    site = Site(tmp_path, 1)
    yield site
    for process in site.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.process
@pytest.mark.loopback
@pytest.mark.parametrize("transport", ["tcp", pytest.param("shm", marks=pytest.mark.slow)])
def test_nothing_is_lost_or_doubled_when_the_node_is_killed_and_started_again(
    site: Site, start: Start, transport: str
) -> None:
    data = site.data if transport == "tcp" else f"shm://{site.directory / 'memory.sock'}"
    feeder = start(data, site.control, "--meps", MEPS, "--boards", 3, "--rate", 1000)
    node = site.start_node()
    site.wait_for_events(5 * EVENTS)
    node.kill()
    node.wait()
    node = site.start_node()
    printed, errors = feeder.communicate(timeout=120)
    assert feeder.returncode == 0, printed + errors + site.logs()
    assert f"{MEPS} MEPs acknowledged" in printed
    assert "refused" not in printed
    status = site.status()
    assert status is not None
    assert closes(status["accounting"]), status["accounting"]
    assert status["accounting"]["meps"]["complete"] == status["accounting"]["meps"]["opened"]
    node.send_signal(signal.SIGTERM)
    assert site.wait(node) == 0, site.logs()
    assert kept_events(site.output) == WANTED


def test_the_hello_of_the_library_has_the_fields_of_this_version() -> None:
    written = set(re.findall(r'write_(?:text|field|text_field)\(to, "(\w+)"', SOURCE))
    assert set(Hello.__struct_fields__) <= written
