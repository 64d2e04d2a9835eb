"""A second chain, with two sources, runs on the same framework: headers, kernels, engine, block emulator, commands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from hltnode.daemon.cli import app
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.collections import DeclarationError
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_mep, encode_meps
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.errors import TriggerConfigError
from hltnode.processing.selection.trigger_chain import installed_chain
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.mdf import encode_record
from hltnode.protocol.raw_data.raw_bank import RawBank, encode_banks
from hltnode.protocol.raw_data.source_id import source_id
from tests.processing.framework.backends.tiny_batches import found_list, listed_hits, payloads_of
from tests.processing.framework.kernel_runner import run_algorithms, with_block_size

LIMITS = BatchLimits(events=64, meps=8, input_bytes=1 << 16, rows=64)
THRESHOLD, MIN_HITS = 100, 10
FOREIGN_SOURCE = source_id(22, 0)

Payloads = list[list[bytes]]


def some_payloads(n_events: int, seed: int = 1) -> Payloads:
    """The bytes of both sides in each event, some of them empty."""
    rng = np.random.default_rng(seed)
    return [[rng.bytes(int(rng.integers(0, 16))) for _ in range(2)] for _ in range(n_events)]


def events_of(tiny: ModuleType, payloads: Payloads) -> list[list[RawBank]]:
    """Raw banks, including one of a source that the chain does not read."""
    return [
        [
            *(
                RawBank(tiny.HITS, 1, source, memoryview(payload))
                for source, payload in zip(tiny.SOURCES, event, strict=True)
            ),
            RawBank(tiny.HITS, 1, FOREIGN_SOURCE, memoryview(b"\xff" * 40)),
        ]
        for event in payloads
    ]


def expected_hits(payloads: Payloads, threshold: int = THRESHOLD) -> list[int]:
    """Expected counts of the kernel."""
    return [sum(byte >= threshold for byte in b"".join(event)) for event in payloads]


def test_the_engine_counts_hits_and_decides(tiny: ModuleType) -> None:
    payloads = some_payloads(150)
    backend = create_backend("cpu", tiny.TINY.kernels, threads=2)
    engine = tiny.TINY.create_engine(backend, tiny.TINY.load_geometry(None), tiny.TINY.load_trigger(None), LIMITS)
    found: list[int] = []
    accepted: list[int] = []
    flags: list[int] = []
    for batch in OfflineRunner(engine).run(encode_meps(tiny.TINY, events_of(tiny, payloads), 16)):
        output = batch.workspace.output
        found += output.counts["hits"].tolist()
        accepted += output.accepted.tolist()
        flags += output.flags.tolist()
    engine.close()
    hits = expected_hits(payloads)
    assert found == hits
    assert accepted == [int(n >= MIN_HITS) for n in hits]
    assert 0 < sum(accepted) < len(accepted)
    assert flags == [tiny.TINY.flags[0].mask if n == 0 else 0 for n in hits]
    assert flags.count(0) < len(flags)
    assert engine.flags.names(flags[hits.index(0)]) == ["NO_HITS"]
    assert engine.lines == ("TinyManyHits",)
    assert engine.collections == ("hits", "unknown_selections")


@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize("threads", [1, 3, 8])
def test_lists_are_the_same_for_any_number_of_threads(tiny: ModuleType, threads: int, compiles: bool) -> None:
    payloads = payloads_of(tiny, 7, 200)
    hits = listed_hits(payloads)
    backend = CpuBackend(tiny.TINY.kernels, threads=threads, compiles=compiles)
    engine = tiny.TINY.create_engine(backend, {}, tiny.TINY.load_trigger(None), LIMITS)
    first = 0
    flagged = 0
    for batch in OfflineRunner(engine).run(encode_meps(tiny.TINY, events_of(tiny, payloads), 16)):
        output = batch.workspace.output.copy()
        left = 16 * LIMITS.events
        for event, found in enumerate(found_list(output)):
            assert found == hits[first + event][:left]
            is_flagged = bool(output.flags[event] & EventFlag.LIST_LEFT_OUT)
            assert is_flagged == (len(found) < len(hits[first + event]))
            flagged += is_flagged
            left -= len(found)
        first += len(output.flags)
    engine.close()
    assert first == 200
    assert 0 < flagged < 200


def test_a_broken_bank_flags_its_event_alone(tiny: ModuleType) -> None:
    mep = encode_mep(tiny.TINY, events_of(tiny, some_payloads(3)))
    data = mep.data.copy()
    _, offset, _ = mep.fragments[0]
    data[offset + 20 + 4 + 2 : offset + 20 + 4 + 4] = 0xFF  # the size of fragment 1
    backend = create_backend("cpu", tiny.TINY.kernels)
    workspace = tiny.TINY.create_engine(backend, {}, tiny.TINY.load_trigger(None), LIMITS).create_workspace()
    workspace.input_data[: data.nbytes] = data
    workspace.seal([MepInBatch(3, mep.fragments)])
    workspace.submit()
    workspace.wait()
    flags = workspace.output.flags.tolist()
    backend.close()
    assert flags[:2] == [0, EventFlag.BANK_ERROR]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("block_size", [1, 32, 100])
def test_results_do_not_depend_on_the_threads(tiny: ModuleType, block_size: int, backward: bool) -> None:
    payloads = [[event[0] * 20, event[1] * 7] for event in some_payloads(8)]
    mep = encode_mep(tiny.TINY, events_of(tiny, payloads))
    limits = BatchLimits(events=8, meps=1, input_bytes=-(-mep.data.nbytes // 8) * 8, rows=2, lines=1)
    backend = create_backend("cpu", tiny.TINY.kernels)
    trigger = tiny.TINY.load_trigger(None)
    workspace = tiny.TINY.create_engine(backend, {}, trigger, limits).create_workspace()
    workspace.input_data[: mep.data.nbytes] = mep.data
    workspace.seal([MepInBatch(8, mep.fragments)])
    names = ("input.bytes", "input.mfp_rows", "input.mep_rows", "input.event_rows", "events.flags")
    given: dict[str, NDArray[Any]] = {name: workspace.host_array(name).copy() for name in names}
    backend.close()
    launch = with_block_size(block_size, backward=backward, kernels=tiny.TINY.kernels)
    result = run_algorithms(tuple(tiny.TINY.sequence), given, 8, limits, launch)
    assert result["hits.count"].tolist() == expected_hits(payloads)


def test_a_trigger_configuration_sets_its_constants_and_lines(tiny: ModuleType) -> None:
    text = '[sequence.tiny_count_hits]\nthreshold = 200\n[[lines]]\ntype = "ManyHits"\nname = "One"\nmin_hits = 1'
    trigger = TriggerConfig.from_toml(text, tiny.TINY.menu)
    payloads = some_payloads(40)
    backend = create_backend("cpu", tiny.TINY.kernels)
    engine = tiny.TINY.create_engine(backend, {}, trigger, LIMITS)
    (batch,) = OfflineRunner(engine).run([encode_mep(tiny.TINY, events_of(tiny, payloads))])
    output = batch.workspace.output
    hits = expected_hits(payloads, threshold=200)
    assert output.counts["hits"].tolist() == hits
    assert output.accepted.tolist() == [int(n > 0) for n in hits]
    assert engine.tck != tiny.TINY.load_trigger(None).tck(tiny.TINY.sequence)
    engine.close()


def test_lines_of_another_chain_are_unknown(tiny: ModuleType) -> None:
    lhcb = installed_chain("lhcb")
    text = '[[lines]]\ntype = "ManyHits"\nname = "A"'
    with pytest.raises(
        TriggerConfigError, match="'ManyHits' is not one of BeamGas, BeamGasImaging, CaloDigitsMinADC, ConeJet"
    ):
        TriggerConfig.from_toml(text, lhcb.menu)
    with pytest.raises(TriggerConfigError, match="'Passthrough' is not one of ManyHits"):
        TriggerConfig.from_toml(text.replace("ManyHits", "Passthrough"), tiny.TINY.menu)


def test_the_command_line_runs_the_chain_of_another_package(tiny: ModuleType, tmp_path: Path) -> None:
    payloads = some_payloads(30)
    file, result_file = tmp_path / "events.mdf", tmp_path / "out.json"
    records = (encode_record(encode_banks(banks), run=5, checksum=False) for banks in events_of(tiny, payloads))
    file.write_bytes(b"".join(records))
    arguments = ["process", str(file), "--chain", "tiny", "--backend", "cpu", "--threads", "1", "--repeat", "3"]
    result = CliRunner().invoke(app, [*arguments, "--json", str(result_file)])
    assert result.exit_code == 0, result.output
    found = json.loads(result_file.read_text())
    hits = expected_hits(payloads)
    assert [event["hits"] for event in found["per_event"]] == hits
    listed = listed_hits(payloads)
    assert [event["hit_list"] for event in found["per_event"]] == list(map(len, listed))
    for i, name in enumerate(("charge", "side", "byte")):
        assert [event[name] for event in found["per_event"]] == [[hit[i] for hit in event] for event in listed]
    assert found["objects"] == {"hits": sum(hits), "unknown_selections": 0}
    # The count that measures the size of its events, with all repetitions.
    assert found["hits_per_second"] == pytest.approx(3 * sum(hits) / found["seconds"])
    assert f"found in them: {sum(hits)} hits" in result.output
    assert {line for event in found["per_event"] for line in event["lines"]} == {"TinyManyHits"}


def test_the_size_of_events_must_be_a_count(tiny: ModuleType) -> None:
    with pytest.raises(DeclarationError, match="chain tiny measures events by tiles, which it does not count"):
        replace(tiny.TINY, size="tiles")


def test_a_file_without_any_source_of_the_chain_is_refused_and_named(tiny: ModuleType, tmp_path: Path) -> None:
    good, foreign = tmp_path / "good.mdf", tmp_path / "foreign.mdf"
    records = [encode_record(encode_banks(banks), run=5, checksum=False) for banks in events_of(tiny, some_payloads(3))]
    good.write_bytes(b"".join(records))
    banks = [RawBank(LhcbBankType.TEST_DET, 1, source, memoryview(b"\xff" * 40)) for source in (FOREIGN_SOURCE, 0, 1)]
    foreign.write_bytes(encode_record(encode_banks(banks), run=5, checksum=False) * 3)
    output = tmp_path / "accepted.mdf"
    options = ["--chain", "tiny", "--backend", "cpu", "--threads", "1", "--accepted", str(output)]
    result = CliRunner().invoke(app, ["process", str(good), str(foreign), *options])
    assert result.exit_code == 2
    assert " ".join(result.output.split()) == (
        f"error: {foreign}: chain tiny reads none of its 3 sources, which belong to the sub-detectors 0, 22; "
        "the chain reads the sub-detectors 24 (LEFT), 25 (RIGHT)"
    )
    assert not output.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--chain", "nowhere"],
            # Behind these come the chains that the tests have installed.
            "no chain named 'nowhere': installed are alice_tpc, ccl, km3net, lhcb, mu3e, na62_rich, raw, ",
        ),
        (["--chain", "tiny", "--encoding", "morse"], "unknown encoding 'morse': expected auto"),
        (["--chain", "tiny", "--geometry", "/somewhere"], "/somewhere: chain tiny has no geometry"),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_what_a_chain_does_not_have_is_named(options: list[str], message: str, tmp_path: Path) -> None:
    file = tmp_path / "events.mdf"
    file.touch()
    result = CliRunner().invoke(app, ["process", str(file), *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("json:dumps", "chain 'broken': json:dumps is not a TriggerChain"),
        ("json:magic", "chain 'broken': json:magic cannot be loaded"),
        ("no_such_package:CHAIN", "chain 'broken': no_such_package:CHAIN cannot be loaded"),
    ],
)
def test_an_entry_point_that_offers_no_chain_is_named(
    value: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = tmp_path / "broken-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[hltnode.chains]\nbroken = {value}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=message):
        installed_chain("broken")
