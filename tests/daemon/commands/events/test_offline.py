"""hltnode process, simulate and inspect: results for machines, and errors that a user can correct."""

import gzip
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.daemon.storage.root_file import read_root
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record, iter_records
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from tests.processing.framework.cupy_stand_in import install
from tests.processing.framework.simulated_gpu import SimulatedGpu

runner = CliRunner()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve simulated events."""
    path = tmp_path_factory.mktemp("simulated") / "minbias.mdf"
    result = runner.invoke(app, ["simulate", "-n", "12", "--seed", "3", "--run", "77", "-o", str(path)])
    assert result.exit_code == 0, result.output
    return path


COMMANDS = ("process", "inspect", "validate")


def test_without_accepted_events_their_file_is_empty_and_inspect_finds_none(sample: Path, tmp_path: Path) -> None:
    accepted, out, trigger = tmp_path / "accepted.mdf", tmp_path / "out.json", tmp_path / "trigger.toml"
    line = 'type = "NDisplacedVeloTracks"\nname = "Hlt1Some"\nmin_tracks = 1\nmin_ip = 0.1\nprescale = 0.0\n'
    trigger.write_text(f"[[lines]]\n{line}")
    options = ["--backend", "cpu", "--sequence", "velo", "--trigger", str(trigger), "--accepted", str(accepted)]
    done = runner.invoke(app, ["process", str(sample), *options])
    assert done.exit_code == 0, done.output
    assert "accepted.mdf is empty: no event is accepted" in " ".join(done.output.split())
    assert accepted.stat().st_size == 0
    found = runner.invoke(app, ["inspect", str(accepted), "--json", str(out)])
    assert (found.exit_code, json.loads(out.read_text())["events"]) == (0, 0), found.output


def test_process_lists_each_event_once_however_often_it_repeats(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    arguments = ["process", str(sample), "--backend", "cpu", "--threads", "2", "--repeat", "20", "--json", str(out)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert found["events"] == 240
    assert found["events_per_second"] == pytest.approx(found["events"] / found["seconds"])
    assert (found["backend"], found["threads"]) == ("cpu", 2)
    assert [event["event"] for event in found["per_event"]] == list(range(12))
    first = found["per_event"][0]
    assert first["run"] == 77
    assert first["velo_clusters"] > first["velo_tracks"] > first["pvs"] >= 0
    assert all(bool(event["lines"]) == event["accepted"] for event in found["per_event"])


def test_no_output_replaces_an_input_and_an_incomplete_output_gets_no_name(sample: Path, tmp_path: Path) -> None:
    before = sample.read_bytes()
    link = tmp_path / "link.mdf"
    link.symlink_to(sample)
    commands: list[list[str | Path]] = [
        ["process", sample, "--accepted", sample],
        ["process", sample, "--accepted", link],
        ["rates", sample, "--json", link],
        ["validate", sample, "--json", sample],
        ["process", sample, "--json", tmp_path / "a", "--histograms", tmp_path / "a"],
    ]
    for command in commands:
        result = runner.invoke(app, [*(str(part) for part in command), "--force"])
        assert result.exit_code == 2, result.output
        assert "of the same command" in " ".join(result.output.split())
    assert sample.read_bytes() == before
    (tmp_path / "cut.mdf").write_bytes(before[:-1])
    accepted = tmp_path / "accepted.mdf"
    assert runner.invoke(app, ["process", str(tmp_path / "cut.mdf"), "--accepted", str(accepted)]).exit_code == 1
    assert accepted.exists(), "the events before the cut are processed"


def test_a_gzip_file_gives_the_results_of_its_content_and_a_damaged_one_is_reported(
    sample: Path, tmp_path: Path
) -> None:
    packed = tmp_path / "minbias.mdf.gz"
    packed.write_bytes(gzip.compress(sample.read_bytes()))
    found = [inspected(path, tmp_path / "out.json") for path in (sample, packed)]
    assert found[0] == found[1]
    packed.write_bytes(packed.read_bytes()[:-100])
    result = runner.invoke(app, ["inspect", str(packed)])
    assert result.exit_code == 1
    assert "damaged gzip file" in " ".join(result.output.split())


def test_process_names_the_types_of_banks_without_a_source(sample: Path, tmp_path: Path) -> None:
    first = next(iter_records(sample.read_bytes()))
    unknown = encode_banks([RawBank(200, 1, 3, memoryview(b"whose"))])
    path, out = tmp_path / "x.mdf", tmp_path / "out.json"
    path.write_bytes(encode_record(bytes(first.body) + unknown, run=1))
    result = runner.invoke(app, ["process", str(path), "--json", str(out)])
    assert result.exit_code == 0
    assert "not read: banks of type 200, whose source is not known" in " ".join(result.output.split())
    assert json.loads(out.read_text())["unknown_types"] == [200]


def inspected(path: Path, out: Path) -> Any:
    """The result of `inspect` for a file."""
    result = runner.invoke(app, ["inspect", str(path), "--json", str(out), "--force"])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    return [found[key] for key in ("events", "runs", "first_event", "last_event", "banks")]


def test_process_counts_each_event_once_in_histograms(sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "h.root"
    for repeat in ("1", "3"):
        arguments = ["process", str(sample), "--backend", "cpu", "--repeat", repeat, "--histograms", str(path)]
        result = runner.invoke(app, [*arguments, "--force"])
        assert result.exit_code == 0, result.output
        assert [file.name for file in tmp_path.iterdir()] == ["h.root"]
        held = {content.shape.name: content for content in read_root(path)}
        assert held["velo_tracks"].entries == 12
    listed = runner.invoke(app, ["histograms", str(path)])
    assert "VELO tracks" in listed.output
    wrong = runner.invoke(app, ["histograms", str(path), "velo_trucks"])
    assert wrong.exit_code == 2
    assert "no histogram 'velo_trucks'; the nearest are velo_tracks" in " ".join(wrong.output.split())


@pytest.mark.parametrize("repeat", [1, 40])
def test_process_takes_events_of_any_density(tmp_path: Path, repeat: int) -> None:
    full = [RawBank(LhcbBankType.VP_RETINA_CLUSTER, 3, sensor, memoryview(bytes(60_004))) for sensor in range(8)]
    path, out = tmp_path / "dense.mdf", tmp_path / "out.json"
    path.write_bytes(12 * encode_record(encode_banks(full), run=1))
    arguments = ["process", str(path), "--sequence", "velo", "--repeat", str(repeat), "--json", str(out)]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert (found["events"], len(found["per_event"])) == (12 * repeat, 12)


def test_a_missing_gpu_is_refused(
    sample: Path, tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, SimulatedGpu(tiny.TINY.kernels, name="Only GPU"))
    config = tmp_path / "node.toml"
    config.write_text("[pipeline]\nbackend = 'cuda'\ndevice = 1\n")
    for command in (["process", str(sample), "--backend", "auto", "--device", "1"], ["serve", "--config", str(config)]):
        result = runner.invoke(app, command)
        assert result.exit_code == 2
        assert "there is no GPU 1: the driver finds 1: 0 is Only GPU" in " ".join(result.output.split())


def test_the_same_seed_gives_the_same_file(sample: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.mdf"
    runner.invoke(app, ["simulate", "-n", "12", "--seed", "3", "--run", "77", "-o", str(again)])
    assert again.read_bytes() == sample.read_bytes()


def test_inspect_counts_banks_and_names_the_run(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    result = runner.invoke(app, ["inspect", str(sample), "--json", str(out)])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    assert (found["events"], found["runs"], found["first_event"], found["last_event"]) == (12, [77], 0, 11)
    velo = next(bank for bank in found["banks"] if bank["name"] == "VP_RETINA_CLUSTER")
    assert (velo["version"], velo["banks_per_event"]) == (3, 208)


def test_inspect_sums_several_files_and_folders(sample: Path, tmp_path: Path) -> None:
    records = [record.body for record in iter_records(sample.read_bytes())]
    for name, some, run in (("a.mdf", records[:5], 77), ("b.mdf", records[5:], 77)):
        (tmp_path / name).write_bytes(b"".join(encode_record(body, run=run) for body in some))
    (tmp_path / "0x1234ABCD.txt").write_text("no events")
    result = runner.invoke(app, ["inspect", str(tmp_path), str(sample), "--json", "-"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(Path(file["file"]).name, file["events"]) for file in found["files"]] == [
        ("a.mdf", 5), ("b.mdf", 7), (sample.name, 12)
    ]  # fmt: skip
    assert (found["events"], found["runs"], found["first_event"], found["last_event"]) == (24, [77], 0, 11)
    assert found["bytes"] == sum(file["bytes"] for file in found["files"])
    velo = next(bank for bank in found["banks"] if bank["name"] == "VP_RETINA_CLUSTER")
    assert velo["banks_per_event"] == 208
    assert "24 events" in result.stderr
    (tmp_path / "empty").mkdir()
    refused = runner.invoke(app, ["inspect", str(tmp_path / "empty")])
    assert refused.exit_code == 2
    assert "no event file among 0 files" in " ".join(refused.output.split())


def test_inspect_reads_the_old_multi_event_packet(shared: Path, tmp_path: Path) -> None:
    (packet,) = (shared / "data" / "lhcb-mep-2019").glob("*.mep")
    out = tmp_path / "out.json"
    result = runner.invoke(app, ["inspect", str(packet), "--json", str(out)])
    assert result.exit_code == 0, result.output
    assert json.loads(out.read_text())["events"] == 10


def test_inspect_plans_the_memory_of_a_node_with_defaults(tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    result = runner.invoke(app, ["inspect", "--plan", "--json", str(out)])
    assert result.exit_code == 0, result.output
    assert "velo_search_by_triplet" in result.output
    found = json.loads(out.read_text())
    assert (found["limits"]["input_bytes"], found["limits"]["events"]) == (128 << 20, 4096)
    assert found["bytes_per_slot"] <= 9 << 29
    assert found["bytes_per_event"] == -(-found["bytes_per_slot"] // 4096)
    cuda, cpu = found["backends"]["cuda"], found["backends"]["cpu"]
    assert found["bytes_per_slot"] == cuda["bytes_per_slot"] < cuda["unshared"]["bytes_per_slot"] / 2
    assert cpu["bytes_per_slot"] < cuda["bytes_per_slot"] / 5
    assert (cuda["bytes_per_thread"], cpu["bytes_per_thread"] > 0) == (0, True)
    peak = next(item for item in found["algorithms"] if item["name"] == cuda["peak"]["algorithm"])
    assert peak["bytes_in_use"] == sum(cuda["peak"]["columns"].values())
    assert peak["bytes_in_use"] == max(item["bytes_in_use"] for item in found["algorithms"])


def test_inspect_plans_for_the_given_limits(tmp_path: Path) -> None:
    out, config = tmp_path / "plan.json", tmp_path / "node.toml"
    config.write_text(
        "[builder]\nmax_mep_bytes = 1048576\n[network]\nmax_frame_bytes = 1048576\n"
        "[pipeline]\nslot_bytes = 2097152\nmax_events = 100\n"
    )
    arguments = ["inspect", "--plan", "--config", str(config), "--json", str(out)]
    assert runner.invoke(app, arguments).exit_code == 0
    limits = json.loads(out.read_text())["limits"]
    assert (limits["input_bytes"], limits["events"], limits["meps"]) == (2 << 20, 100, 100)
    assert runner.invoke(app, [*arguments, "--slot-bytes", "4194304", "--max-events", "512", "--force"]).exit_code == 0
    limits = json.loads(out.read_text())["limits"]
    assert (limits["input_bytes"], limits["events"], limits["meps"]) == (4 << 20, 512, 256)


def test_inspect_plans_with_the_constants_of_the_trigger(tmp_path: Path) -> None:
    config, trigger = tmp_path / "node.toml", tmp_path / "trigger.toml"
    config.write_text(f'[trigger]\nchain = "ccl"\nfile = "{trigger}"\n[pipeline]\nmax_events = 10\n')
    planned = []
    for most in (4096, 100_000):
        trigger.write_text(f"[sequence.ccl_place_images]\nmax_components = {most}\n")
        arguments = ["inspect", "--plan", "--config", str(config), "--json", str(tmp_path / f"{most}.json")]
        assert runner.invoke(app, arguments).exit_code == 0
        planned.append(json.loads((tmp_path / f"{most}.json").read_text())["bytes_per_slot"])
    # A component has more than 40 bytes.
    assert planned[1] - planned[0] > 10 * (100_000 - 4096) * 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected FILES, or --plan"),
        (["events.mdf", "--plan"], "expected no FILES with --plan"),
        (["events.mdf", "--max-events", "5"], "expected --plan with --slot-bytes, --max-events and --config"),
    ],
)
def test_inspect_refuses_options_that_contradict_one_another(arguments: list[str], message: str) -> None:
    result = runner.invoke(app, ["inspect", *arguments])
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("command", "slots"), [(["serve", "--config"], 2), (["process", "--backend", "cpu"], 3)], ids=["serve", "process"]
)
def test_slots_without_enough_memory_are_refused_with_the_largest_fitting_size(
    command: list[str], slots: int, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuBackend, "free_bytes", lambda _: 32 << 20)
    config = tmp_path / "node.toml"
    config.write_text("[pipeline]\nslots = 2\nbackend = 'cpu'\nthreads = 1\n")
    result = runner.invoke(app, [*command, str(sample if command[0] == "process" else config)])
    assert result.exit_code == 2
    assert f"error: {slots} slots of " in result.output
    assert "32.0 MiB are free: " in result.output
    assert "slot_bytes = " in result.output


@pytest.mark.parametrize(
    ("command", "content", "message"),
    [
        *((command, None, "No such file") for command in COMMANDS),
        *((command, b"", "the file is empty") for command in COMMANDS if command != "inspect"),
        *((command, b"\0" * 100, "MDF record") for command in COMMANDS),
        *((command, b"garbage", "less than any header") for command in COMMANDS),
    ],
)
def test_an_unreadable_file_is_reported_by_name(
    command: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.mdf"
    if content is not None:
        path.write_bytes(content)
    result = runner.invoke(app, [command, str(path)])
    assert result.exit_code == 2
    text = " ".join(result.output.split())
    assert "bad.mdf" in text.replace(" ", "")
    assert message in text


@pytest.mark.parametrize("command", ["process", "inspect", "validate", "rates", "replay-check"])
def test_a_pipe_is_refused_without_waiting(command: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe.mdf"
    os.mkfifo(path)
    result = runner.invoke(app, [command, str(path)])
    assert result.exit_code == 2
    assert "neither a file nor a folder" in " ".join(result.output.split())


def test_a_truncated_file_is_named_with_the_position(sample: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.mdf"
    cut.write_bytes(sample.read_bytes()[:-10])
    result = runner.invoke(app, ["inspect", str(cut)])
    assert result.exit_code == 1
    assert "MDF record at byte" in " ".join(result.output.split())


@pytest.mark.parametrize("command", ["process", "rates", "inspect"])
def test_events_beside_a_damaged_one_give_results_and_the_damage_is_named(
    command: str, sample: Path, tmp_path: Path
) -> None:
    first, second, *others = (encode_record(record.body, run=1) for record in iter_records(sample.read_bytes()))
    damaged = bytearray(second)
    damaged[-1] ^= 1
    path, out = tmp_path / "one.mdf", tmp_path / "out.json"
    path.write_bytes(b"".join((first, damaged, *others, bytes(4096))))
    result = runner.invoke(app, [command, str(path), "--json", str(out)])
    assert result.exit_code == 1
    found = json.loads(out.read_text())
    assert found["events"] == 1 + len(others)
    checksum, rest = found["damage"]["first"]
    assert f"one.mdf: MDF record at byte {len(first)}: checksum" in checksum
    assert checksum.endswith("(event 1 of the file)")
    assert "size 0 is less than a header" in rest
    assert "the rest of the file cannot be read" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--geometry", "/nowhere"], "velo_geometry.bin"),
        (["--trigger", "/nowhere.toml"], "/nowhere.toml"),
        (["--backend", "fpga"], "unknown back end 'fpga'"),
    ],
)
def test_a_broken_option_is_named(sample: Path, option: list[str], message: str) -> None:
    result = runner.invoke(app, ["process", str(sample), *option])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_simulate_refuses_an_impossible_number_of_collisions(tmp_path: Path) -> None:
    result = runner.invoke(app, ["simulate", "-n", "1", "--nu", "-3", "-o", str(tmp_path / "x.mdf")])
    assert result.exit_code == 2
    assert "nu = -3" in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("process", "minbias.mdf"),
        ("inspect", "minbias.mdf"),
        ("replay", "--to", "tcp://127.0.0.1:5555", "minbias.mdf"),
        ("serve", "--config", "node.toml"),
        ("demo",),
    ],
)
def test_an_unwritable_result_is_refused_before_the_work_starts(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # If they began to work, these would be their errors.
    for name in ("minbias.mdf", "node.toml"):
        (tmp_path / name).write_text("neither events nor a configuration")
    found = runner.invoke(app, [*command, "--json", "no/where.json"])
    assert found.exit_code == 2
    assert "no/where.json: there is no folder no" in found.output
