"""The configuration: accepted values, precedence, and error messages."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hltnode.daemon.common.vocabulary import BackendChoice, FsyncPolicy
from hltnode.daemon.configuration.loading import ConfigError, errors_of, load_config
from hltnode.daemon.configuration.model import NodeConfig

ROOT = Path(__file__).resolve().parents[3]


def write(directory: Path, text: str) -> Path:
    path = directory / "node.toml"
    path.write_text(text)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_an_empty_file_gives_the_defaults_and_listens_on_localhost_only(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, ""))
    assert config.network.data == "tcp://127.0.0.1:5555"
    assert config.network.control == "tcp://127.0.0.1:5556"
    assert config.network.decisions == "tcp://127.0.0.1:5557"
    assert config.http.host == "127.0.0.1"
    assert config.node.run == 0
    assert config.node.name


def test_values_of_the_file_have_their_types(tmp_path: Path) -> None:
    config = load_config(
        write(
            tmp_path,
            """
            [node]
            name = "farm-1"
            [builder]
            expected_sources = [0, 2048]
            [pipeline]
            backend = "cpu"
            [geometry]
            directory = "/geo"
            [output]
            fsync = "flush"
            """,
        )
    )
    assert config.node.name == "farm-1"
    assert config.builder.expected_sources == (0, 2048)
    assert config.pipeline.backend is BackendChoice.CPU
    assert config.geometry.directory == Path("/geo")
    assert config.output.fsync is FsyncPolicy.FLUSH


def test_the_environment_overrides_the_file_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_PIPELINE__SLOTS", "5")
    monkeypatch.setenv("HLTNODE_BUILDER__EXPECTED_SOURCES", "[1, 2]")
    config = load_config(write(tmp_path, "[pipeline]\nslots = 4\nmax_events = 77\n"))
    assert config.pipeline.slots == 5
    assert config.pipeline.max_events == 77
    assert config.builder.expected_sources == (1, 2)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent.toml"
    assert refusal(path) == f"{path}: cannot be read: No such file or directory"


def test_broken_toml_is_named_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path, "[node]\nname = \n")
    message = refusal(path)
    assert message.startswith(f"{path}: not a TOML file: ")
    assert "line 2" in message


def test_bytes_that_are_not_text_are_not_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_bytes(b"\xff\xfe\x00[node]")
    assert "not a TOML file" in refusal(path)
    path.write_bytes(b"x = " + 3000 * b"[")
    assert "not a TOML file" in refusal(path)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (
            "[pipelines]\nslots = 3",
            "pipelines",
            "unknown section; did you mean 'pipeline'? Expected one of node, network",
        ),
        (
            "[pipeline]\nslot = 3",
            "pipeline.slot",
            "unknown key; did you mean 'slots'? Expected one of slots, slot_bytes",
        ),
        ("[pipeline]\nslots = 0", "pipeline.slots", "expected greater than or equal to 2, not 0"),
        ('[pipeline]\nslots = "many"', "pipeline.slots", "expected a valid integer"),
        ('[pipeline]\nbackend = "gpu"', "pipeline.backend", "expected 'auto', 'cpu' or 'cuda', not 'gpu'"),
        ("pipeline = 3", "pipeline", "expected a section [pipeline], not 3"),
        (
            '[network]\ndata = "127.0.0.1:5555"',
            "network.data",
            "expected the transport before it: tcp://127.0.0.1:5555",
        ),
        ('[network]\ndata = "5555"', "network.data", "expected a ZeroMQ endpoint"),
        (f'[network]\ndata = "ipc:///{107 * "d"}"', "network.data", "expected a path of at most 107 bytes"),
        ('[network]\ndata = "tcp://127.0.0.1:70000"', "network.data", "expected a port of at most 65535"),
        (
            '[network]\ncontrol = "tcp://127.0.0.1:5555"',
            "network.control",
            "expected an endpoint different from network.data",
        ),
        ('[output]\ndirectory = ""', "output.directory", "expected a path"),
        ('[trigger]\nfile = ""', "trigger.file", "expected a path"),
        ('[security]\nfeeders = ""', "security.feeders", "expected a path"),
        ("[network]\nmax_frame_bytes = 67108864", "network.max_frame_bytes", "expected at most builder.max_mep_bytes"),
        ("[builder]\nmax_mep_bytes = 268435456", "builder.max_mep_bytes", "expected at most pipeline.slot_bytes"),
        ("[builder]\nexpected_sources = [1, 1]", "builder.expected_sources", "expected each source id once"),
        ("[builder]\nexpected_sources = []", "builder.expected_sources", "at least 1 item"),
        ("[builder]\nexpected_sources = [65536]", "builder.expected_sources.0", "less than or equal to 65535"),
        ('[log]\nlevel = "loud"', "log.level", "debug|info|warning|error|critical"),
        ('[node]\nname = "two words"', "node.name", "pattern"),
        ("[http]\nport = -1", "http.port", "expected greater than or equal to 0"),
        ("[decisions]\ndrop_after_ms = -1", "decisions.drop_after_ms", "expected greater than or equal to 0, not -1"),
        ("[decisions]\ndrop_after_ms = 10001", "decisions.drop_after_ms", "expected less than or equal to 10000"),
    ],
)
def test_a_bad_value_is_refused_with_file_key_and_expectation(
    tmp_path: Path, text: str, key: str, expected: str
) -> None:
    path = write(tmp_path, text)
    message = refusal(path)
    assert message.startswith(f"{path}: {key}: ")
    assert expected in message


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "[pipeline]\nslots = 0\nthreads = -1\n[http]\nprot = 1\n"))
    assert [line.split(": ")[1] for line in message.splitlines()] == [
        "pipeline.slots",
        "pipeline.threads",
        "http.prot",
    ]


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("HLTNODE_PIPELINE__SLOTS", "x", "pipeline.slots: expected a valid integer"),
        ("hltnode_pipeline__slots", "x", "pipeline.slots: expected a valid integer"),
        ("HLTNODE_PIPELINE__SLOT", "3", "unknown key; did you mean 'slots'? Expected one of slots, "),
        ("HLTNODE_PIPELIN__SLOTS", "3", "unknown section 'pipelin'"),
        ("HLTNODE_BUILDER__EXPECTED_SOURCES", "[1", "builder.expected_sources: expected a valid tuple"),
        ("HLTNODE_BUILDER__EXPECTED_SOURCES", "[70000]", "builder.expected_sources.0: expected less than"),
        ("HLTNODE_PIPELINE__SLOTS__X", "3", "pipeline.slots: expected a valid integer"),
        ("HLTNODE_BUILDER", "[1", "expected the section as a JSON value"),
        ("HLTNODE_PIPELINE", "5", "expected the section as a JSON value"),
        ("HLTNODE_PIPELINE", '{"slots": 0}', "pipeline.slots: expected greater than"),
        ("HLTNODE_PIPELINE", '{"slot": 3}', "pipeline.slot: unknown key"),
        ("HLTNODE_SLOTS", "5", "not a key; expected HLTNODE_PIPELINE__SLOTS"),
        ("HLTNODE_SLOT", "5", "not a key; expected HLTNODE_PIPELINE__SLOTS"),
        ("HLTNODE_PIPELINE_SLOTS", "5", "not a key; expected HLTNODE_PIPELINE__SLOTS"),
        ("HLTNODE_DIRECTORY", "x", "expected HLTNODE_GEOMETRY__DIRECTORY or HLTNODE_OUTPUT__DIRECTORY"),
        ("HLTNODE_OUTPUT__DIRECTORY", "", "output.directory: expected a path"),
        # Checks of several keys together.
        ("HLTNODE_NETWORK__MAX_FRAME_BYTES", "67108864", "network.max_frame_bytes: expected at most builder.max_mep"),
        ("HLTNODE_BUILDER__MAX_FEEDERS", "1", "builder.max_feeders: expected at least builder.min_feeders"),
        ("HLTNODE_NETWORK__DATA", "tcp://127.0.0.1:5556", "network.control: expected an endpoint different from"),
        ("HLTNODE_SHADOW__OF", "tcp://127.0.0.1:5555", "shadow.of: expected the tap of another node"),
        ("HLTNODE_SHADOW__KEY_FILE", "/k", "shadow.server_key: expected together with shadow.key_file"),
        ("HLTNODE_COMBINER__KEY_FILE", "/k", "combiner.server_key: expected together with combiner.key_file"),
        ("HLTNODE_SECURITY__ENCRYPT_DATA", "1", "security.server_key: expected with security.encrypt_data"),
    ],
)
def test_a_bad_variable_is_named_once_and_the_file_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str
) -> None:
    path = write(tmp_path, "[builder]\nmin_feeders = 2\n")
    monkeypatch.setenv(variable, value)
    message = refusal(path)
    assert message.startswith(f"environment: {variable}: ")
    assert expected in message
    assert len(message.splitlines()) == 1
    assert str(path) not in message


def test_problems_of_file_and_environment_name_their_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_PIPELINE__THREADS", "-1")
    path = write(tmp_path, "[pipeline]\nslots = 0\n[http]\nport = -1\n")
    assert sorted(line.partition(": expected")[0] for line in refusal(path).splitlines()) == [
        f"{path}: http.port",
        f"{path}: pipeline.slots",
        "environment: HLTNODE_PIPELINE__THREADS: pipeline.threads",
    ]


def test_without_a_file_the_environment_is_checked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_config(None).pipeline.slots == 3
    monkeypatch.setenv("HLTNODE_PIPELINE__SLOTS", "0")
    with pytest.raises(ConfigError, match=r"^environment: HLTNODE_PIPELINE__SLOTS: pipeline\.slots: expected"):
        load_config(None)


def test_an_error_about_a_relative_path_says_where_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught, errors_of(Path("node.toml"), "trigger.file", Path("absent.toml")):
        Path("absent.toml").read_text()
    assert str(caught.value) == (
        "node.toml: trigger.file: absent.toml: No such file or directory; the path starts at the current folder, "
        f"{tmp_path}"
    )
    monkeypatch.setenv("HLTNODE_TRIGGER__FILE", "/absent.toml")
    with pytest.raises(ConfigError) as caught, errors_of(Path("node.toml"), "trigger.file", Path("/absent.toml")):
        Path("/absent.toml").read_text()
    origin = "environment: HLTNODE_TRIGGER__FILE"
    assert str(caught.value) == f"{origin}: trigger.file: /absent.toml: No such file or directory"


def test_a_key_of_an_earlier_version_is_answered_with_its_new_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = refusal(write(tmp_path, "[builder]\nfeeders = 4\n"))
    assert "builder.feeders: replaced by two keys: builder.min_feeders" in message
    assert "builder.max_feeders" in message
    monkeypatch.setenv("HLTNODE_BUILDER__FEEDERS", "4")
    assert refusal(write(tmp_path, "")).startswith("environment: HLTNODE_BUILDER__FEEDERS: replaced by two keys")


def test_min_feeders_is_at_most_max_feeders(tmp_path: Path) -> None:
    message = refusal(write(tmp_path, "[builder]\nmin_feeders = 4\nmax_feeders = 3\n"))
    assert "builder.max_feeders: expected at least builder.min_feeders" in message


def test_as_many_feeders_as_connections_are_allowed_and_one_more_is_refused(tmp_path: Path) -> None:
    text = "[builder]\nmin_feeders = {}\nmax_feeders = 40\n[limits]\nconnections = 32\n"
    assert load_config(write(tmp_path, text.format(32))).builder.min_feeders == 32
    assert "limits.connections: expected at least builder.min_feeders" in refusal(write(tmp_path, text.format(33)))


def test_variables_that_resemble_no_key_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HLTNODE_SHARED", "/somewhere")
    # Kubernetes sets this for a service.
    monkeypatch.setenv("HLTNODE_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("HLTNODE_PORT", "tcp://10.0.0.1:5555")
    monkeypatch.setenv("HLTNODE_PORT_5555_TCP_ADDR", "10.0.0.1")
    assert load_config(write(tmp_path, "")).pipeline.slots == 3


@given(st.binary(max_size=200))
def test_any_bytes_give_a_configuration_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "node.toml"
    path.write_bytes(text)
    with contextlib.suppress(ConfigError):
        assert isinstance(load_config(path), NodeConfig)


def test_the_configuration_cannot_be_changed(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, ""))
    with pytest.raises(ValueError, match="frozen"):
        config.pipeline.slots = 9


def test_the_example_loads_and_shows_every_key(monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "deploy" / "node.toml"
    load_config(path)
    uncommented = "\n".join(
        line.removeprefix("# ") if " = " in line else line for line in path.read_text().splitlines()
    )
    shown = tomllib.loads(uncommented)
    known = {name: set(section.model_dump()) for name, section in NodeConfig()}
    assert {name: set(section) for name, section in shown.items()} == known


def test_the_nodes_of_a_farm_are_http_addresses(tmp_path: Path) -> None:
    valid = ["http://node-1:9105", "https://farm.example/node-2/", "http://[::1]:9105", "http://10.0.0.7"]
    config = load_config(write(tmp_path, f"[http]\nfarm_nodes = {valid}\n"))
    assert config.http.farm_nodes == tuple(valid)
    assert load_config(write(tmp_path, "")).http.farm_nodes is None


@pytest.mark.parametrize(
    "addresses",
    [
        [], ["node-1:9105"], ["tcp://node-1:9105"], ["http://"], ["http://:9105"], ["http://a:99999"], ["http://a:0"],
        ["http://user:secret@a"], ["http://a/?x=1"], ["http://a#x"], ["javascript:alert(1)"], ["http://a b"], ["http://ä"],
        ["http://[::1"], ["http://a\\n"], ["http://a:1", "http://A:1/"], ["http://" + "a" * 300],
        [f"http://n{i}" for i in range(257)],
    ],
)  # fmt: skip
def test_other_addresses_of_a_farm_are_refused(tmp_path: Path, addresses: list[str]) -> None:
    listed = ", ".join(f'"{address}"' for address in addresses)
    assert "http.farm_nodes" in refusal(write(tmp_path, f"[http]\nfarm_nodes = [{listed}]\n"))


def test_decisions_go_first_only_if_no_accepted_event_is_promised(tmp_path: Path) -> None:
    first = "[latency]\ndecisions_first = true\n"
    for streams in ("", '[output]\nstreams = ["accepted"]\n', '[output]\nstreams = ["error", "accepted"]\n'):
        text = refusal(write(tmp_path, first + streams))
        assert 'latency.decisions_first: expected output.streams without "accepted"' in text
    for streams in ("[]", '["error"]'):
        config = load_config(write(tmp_path, f"{first}[output]\nstreams = {streams}\n"))
        assert config.latency.decisions_first
    udp = UDP.format(sender="10.0.0.2")
    assert load_config(write(tmp_path, f"{first}[output]\nstreams = []\n{udp}")).latency.decisions_first
    # The other keys promise nothing, so they need nothing.
    assert load_config(write(tmp_path, "[latency]\nserial = true\ndeadline_us = 1000\ncpus = [0, 1]\n")).latency.serial


def test_streams_and_cpus_are_listed_once(tmp_path: Path) -> None:
    assert "expected each stream once" in refusal(write(tmp_path, '[output]\nstreams = ["error", "error"]\n'))
    assert "expected each CPU once" in refusal(write(tmp_path, "[latency]\ncpus = [1, 1]\n"))
    assert "latency.cpus" in refusal(write(tmp_path, "[latency]\ncpus = []\n"))
    assert "output.streams" in refusal(write(tmp_path, '[output]\nstreams = ["rejected"]\n'))


def test_messages_of_several_meps_have_no_lists(tmp_path: Path) -> None:
    text = "[decisions]\nmeps_per_message = {}\nlists = ['rings']\n"
    assert load_config(write(tmp_path, text.format(1))).decisions.lists == ("rings",)
    assert "decisions.meps_per_message: expected 1 with decisions.lists" in refusal(write(tmp_path, text.format(2)))


def test_only_a_shadow_may_use_curve_without_feeders(tmp_path: Path) -> None:
    text = "[security]\nserver_key = '/k'\n"
    assert "security.feeders: expected with security.server_key" in refusal(write(tmp_path, text))
    assert load_config(write(tmp_path, text + "[shadow]\nof = 'tcp://a:5563'\n")).shadow.of == "tcp://a:5563"


UDP = """[udp]
endpoint = "udp://127.0.0.1:0"
events_per_packet = 16
packets_per_mep = 16
[[udp.senders]]
address = "{sender}"
sources = [3, 4]
"""


def test_a_node_with_datagrams_has_no_other_feeders_and_takes_whole_meps(tmp_path: Path) -> None:
    udp = UDP.format(sender="10.0.0.2")
    for section, expected in {
        "[builder]\nmin_feeders = 2\n": "builder.min_feeders: expected 1 with udp.endpoint",
        "[builder]\nexpected_sources = [3, 4, 7]\n": "builder.expected_sources: expected only sources of udp.senders",
        "[pipeline]\nmax_events_per_mep = 255\n": "expected at most pipeline.max_events_per_mep events per MEP",
        "[pipeline]\nmax_events = 255\n": "expected at most pipeline.max_events events per MEP",
    }.items():
        assert expected in refusal(write(tmp_path, section + udp))
    fits = "[builder]\nexpected_sources = [3]\n[pipeline]\nmax_events_per_mep = 256\n"
    assert load_config(write(tmp_path, fits + udp)).udp.sources == (3, 4)


def test_a_scope_of_an_ipv6_address_is_refused_by_name(tmp_path: Path) -> None:
    assert "expected an IPv6 address without a scope" in refusal(write(tmp_path, UDP.format(sender="fe80::2%eth0")))
    udp = UDP.format(sender="fe80::2").replace("127.0.0.1", "[fe80::1%eth0]")
    assert "expected an IPv6 address without a scope" in refusal(write(tmp_path, udp))


@pytest.mark.parametrize(
    ("address", "sender", "is_reached"),
    [
        ("10.0.0.1", "10.0.0.2", True),
        ("10.0.0.1", "fd00::2", False),
        ("0.0.0.0", "fd00::2", False),
        ("0.0.0.0", "::ffff:10.0.0.2", True),
        ("[fd00::1]", "fd00::2", True),
        ("[fd00::1]", "10.0.0.2", False),
        ("[::]", "10.0.0.2", True),
        ("[::]", "fd00::2", True),
        ("[::ffff:10.0.0.1]", "10.0.0.2", True),
        ("[::ffff:10.0.0.1]", "fd00::2", False),
    ],
)
def test_a_sender_of_the_other_version_of_ip_is_refused(
    tmp_path: Path, address: str, sender: str, is_reached: bool
) -> None:
    path = write(tmp_path, UDP.format(sender=sender).replace("127.0.0.1", address))
    if is_reached:
        assert load_config(path).udp.senders[0].sources == (3, 4)
    else:
        assert f"udp.senders: {sender} cannot send to udp://{address}:0" in refusal(path)


def test_an_ipv4_address_and_its_form_in_ipv6_are_one_sender(tmp_path: Path) -> None:
    udp = UDP.format(sender="10.0.0.2").replace("127.0.0.1", "0.0.0.0")
    second = '[[udp.senders]]\naddress = "{}"\nsources = [5]\n'
    assert load_config(write(tmp_path, udp + second.format("::ffff:10.0.0.3"))).udp.sources == (3, 4, 5)
    for same in ("10.0.0.2", "::ffff:10.0.0.2"):
        assert "udp.senders: expected each address once" in refusal(write(tmp_path, udp + second.format(same)))


@pytest.mark.parametrize(
    ("endpoint", "is_refused"),
    [("tcp://10.0.0.1:5571", True), ("tcp://[fe80::1]:5571", True), ("tcp://farm1:5571", True),
     ("tcp://127.0.0.1:5571", False), ("tcp://localhost:5571", False), ("ipc:///run/combiner", False)],
)  # fmt: skip
def test_a_node_with_keys_sends_no_seeds_in_clear_to_another_machine(
    tmp_path: Path, endpoint: str, is_refused: bool
) -> None:
    keys = "[security]\nserver_key = '/k'\nfeeders = '/f'\n"
    text = f"{keys}[combiner]\nendpoint = '{endpoint}'\n"
    expected = "combiner.server_key: expected with security.server_key"
    if is_refused:
        assert expected in refusal(write(tmp_path, text))
        load_config(write(tmp_path, text + "server_key = '/c'\nkey_file = '/k'\n"))
    else:
        load_config(write(tmp_path, text))
