"""The engine: allocations of a batch, refusals of a workspace, independence of batches."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from hltnode.processing.framework import offline_runner
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.interface import BackendError, DeviceMemory, Mirror
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.histograms import n_counts
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import (
    EncodedMep,
    OfflineRunner,
    batches_of,
    encode_mep,
    encode_meps,
)
from hltnode.processing.lhcb.chain import CHAIN, geometry_constants
from hltnode.processing.lhcb.geometry.velo import VeloGeometry
from hltnode.processing.lhcb.lines.line_types.event_lines import Passthrough
from hltnode.processing.lhcb.lines.line_types.velo import VeloMicroBias
from hltnode.processing.lhcb.offline.simulation.velo_generator import simulate_events
from hltnode.processing.lhcb.velo.collections import tracks
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.raw_bank import RawBank

LIMITS = BatchLimits(events=64, meps=16, input_bytes=2 << 20, rows=8192)
GEOMETRY = VeloGeometry.builtin()


class CountingBackend(CpuBackend):
    """A CPU back end that counts its allocations."""

    def __init__(self) -> None:
        super().__init__(CHAIN.kernels, threads=1)
        self.allocations = 0

    def allocate_mirror(self, nbytes: int) -> Mirror:
        self.allocations += 1
        return super().allocate_mirror(nbytes)

    def allocate_device(self, nbytes: int) -> DeviceMemory:
        self.allocations += 1
        return super().allocate_device(nbytes)


def an_engine(backend: CpuBackend) -> Engine:
    return CHAIN.create_engine(backend, geometry_constants(GEOMETRY), CHAIN.load_trigger(None, "velo"), LIMITS)


@pytest.fixture(scope="module")
def meps() -> list[EncodedMep]:
    return list(encode_meps(CHAIN, simulate_events(32, 5, geometry=GEOMETRY), 8))


@pytest.fixture
def backend() -> Iterator[CountingBackend]:
    made = CountingBackend()
    yield made
    made.close()


def test_nothing_is_allocated_after_the_workspaces(backend: CountingBackend, meps: list[EncodedMep]) -> None:
    runner = OfflineRunner(an_engine(backend))
    allocations = backend.allocations
    for _ in runner.run(meps * 8):
        pass
    resident = psutil.Process().memory_info().rss
    events = sum(batch.workspace.n_events for batch in runner.run(meps * 100))
    assert events == 3200
    assert backend.allocations == allocations
    assert psutil.Process().memory_info().rss - resident < 4 << 20


def test_results_do_not_depend_on_how_events_are_packed(backend: CountingBackend, meps: list[EncodedMep]) -> None:
    runner = OfflineRunner(an_engine(backend))
    events = [banks for mep in meps for banks in mep.events]

    def results(packing: int) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        for batch in runner.run(encode_meps(CHAIN, events, packing)):
            output = batch.workspace.output
            columns: list[NDArray[np.uint8] | NDArray[np.uint32]] = [output.lines, output.accepted, output.flags]
            columns += output.counts.values()
            rows += zip(*(column.tolist() for column in columns), strict=True)
        return rows

    whole = results(32)
    assert len(whole) == 32
    assert results(1) == whole
    assert results(7) == whole


def test_meps_have_fewer_events_where_these_have_too_many_bytes(meps: list[EncodedMep]) -> None:
    events = [banks for mep in meps for banks in mep.events]
    most = meps[0].data.nbytes // 2
    cut = list(encode_meps(CHAIN, events, 8, max_bytes=most))
    assert [banks for mep in cut for banks in mep.events] == events
    assert len(cut) > len(meps)
    assert all(mep.data.nbytes <= most or mep.n_events == 1 for mep in cut)
    first = [int(mep.data[8:16].view(np.uint64)[0]) for mep in cut]
    assert first == np.cumsum([0, *(mep.n_events for mep in cut[:-1])]).tolist()
    alone = encode_meps(CHAIN, events, 8, max_bytes=1)
    assert [mep.n_events for mep in alone] == [1] * len(events)


def test_meps_and_batches_hold_events_of_bounded_memory(
    meps: list[EncodedMep], monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [banks for mep in meps for banks in mep.events]
    bound = 3 * min(int(mep.events.nbytes().min()) for mep in meps)
    monkeypatch.setattr(offline_runner, "MAX_HELD_BYTES", bound)
    cut = list(encode_meps(CHAIN, events, 8))
    assert [banks for mep in cut for banks in mep.events] == events
    # A MEP ends with the event that reaches the bound.
    assert all(mep.events.nbytes()[:-1].sum() < bound for mep in cut)
    assert 2 <= max(mep.n_events for mep in cut) <= 3
    assert max(len(batch) for batch in batches_of(cut, LIMITS)) <= 2


@pytest.mark.parametrize("version", [2, 3])
def test_events_of_both_encodings_in_one_stream_are_all_read(backend: CountingBackend, version: int) -> None:
    runner = OfflineRunner(an_engine(backend))
    retina, super_pixels = (
        list(simulate_events(3, 5, geometry=GEOMETRY, velo_banks=encoding)) for encoding in ("retina", "superpixel")
    )
    # Banks of the version of the retina clusters share one packet; other versions are in several packets.
    super_pixels = [
        [bank._replace(version=version) if bank.type == LhcbBankType.VP else bank for bank in banks]
        for banks in super_pixels
    ]

    def clusters(events: list[list[RawBank]]) -> list[int]:
        batches = runner.run(encode_meps(CHAIN, events, 8))
        return [n for batch in batches for n in batch.workspace.output.counts["velo_clusters"].tolist()]

    apart = clusters(retina) + clusters(super_pixels)
    assert min(apart) > 0
    assert clusters(retina + super_pixels) == apart


def test_an_event_without_odin_is_flagged_and_the_others_are_not(backend: CountingBackend) -> None:
    events = list(simulate_events(3, 5, geometry=GEOMETRY))
    events[1] = [bank for bank in events[1] if bank.type != BankType.ODIN]
    (batch,) = OfflineRunner(an_engine(backend)).run([encode_mep(CHAIN, events)])
    assert batch.workspace.output.flags.tolist() == [0, int(EventFlag.ODIN_ERROR), 0]


def test_a_second_submit_before_the_first_is_done_is_refused(backend: CountingBackend, meps: list[EncodedMep]) -> None:
    runner = OfflineRunner(an_engine(backend))
    workspace = runner.workspaces[0]
    workspace.seal([])
    workspace.submit()
    with pytest.raises(BackendError, match="still running"):
        workspace.submit()
    workspace.wait()


def test_a_mep_that_fits_in_no_batch_is_refused_with_the_numbers(meps: list[EncodedMep]) -> None:
    small = BatchLimits(events=4, meps=16, input_bytes=2 << 20, rows=8192)
    with pytest.raises(ValueError, match=r"8 events and .* bytes does not fit in a batch of 4 events"):
        list(batches_of(meps, small))


def test_batches_keep_the_order_of_meps_and_stay_within_the_limits(meps: list[EncodedMep]) -> None:
    many = meps * 10
    batches = list(batches_of(many, LIMITS))
    assert [mep for batch in batches for mep in batch] == many
    for batch in batches:
        assert sum(mep.n_events for mep in batch) <= LIMITS.events
        assert sum(mep.data.nbytes for mep in batch) <= LIMITS.input_bytes


def test_a_constant_of_the_wrong_size_is_refused(backend: CountingBackend) -> None:
    engine = an_engine(backend)
    with pytest.raises(ValueError, match="velo_geometry has 4 bytes, expected 16460"):
        Engine(backend, engine.chain, {"velo_geometry": np.zeros(4, np.uint8)}, LIMITS)


def test_the_output_has_a_row_of_words_for_each_event_and_as_many_as_the_lines_need(
    backend: CountingBackend, meps: list[EncodedMep]
) -> None:
    menu = tuple(VeloMicroBias(f"AtLeast{n}", min_tracks=n).line() for n in range(1, 501))
    engine = CHAIN.create_engine(backend, geometry_constants(GEOMETRY), TriggerConfig(menu, sequence="velo"), LIMITS)
    expected_limits = replace(LIMITS, lines=500, histogram_counts=n_counts(engine.histograms))
    assert replace(engine.limits, constants={}) == expected_limits
    for batch in OfflineRunner(engine).run(meps):
        output = batch.workspace.output
        assert output.lines.shape == (batch.workspace.n_events, 16)
        expected = output.counts["velo_tracks"][:, None] >= np.arange(1, 501)
        assert 0 < expected[:, 31:].sum() < expected[:, 31:].size
        found = np.unpackbits(output.lines.view(np.uint8), axis=1, bitorder="little")
        assert (found[:, :500] == expected).all()
        assert not found[:, 500:].any()


def test_lines_behind_the_first_word_decide_in_the_engine_too(backend: CountingBackend, meps: list[EncodedMep]) -> None:
    menu = tuple(Passthrough(f"Line{i}", prescale=float(i == 499)).line() for i in range(500))
    (batch,) = OfflineRunner(
        CHAIN.create_engine(backend, geometry_constants(GEOMETRY), TriggerConfig(menu, sequence="velo"), LIMITS)
    ).run(meps[:1])
    output = batch.workspace.output
    assert output.lines.tolist() == [[0] * 15 + [1 << 499 % 32]] * batch.workspace.n_events
    assert output.accepted.all()


def test_a_column_whose_memory_others_share_is_not_fetched(backend: CountingBackend) -> None:
    workspace = an_engine(backend).create_workspace()
    message = r"velo_hits\.x is not retained: other columns share its memory; .* retain=\['velo_hits\.x'\]"
    with pytest.raises(ValueError, match=message):
        workspace.fetch("velo_hits.x")
    with pytest.raises(ValueError, match=r"no column velo_hits\.q; there are velo_hits\.x"):
        workspace.fetch("velo_hits.q")
    with pytest.raises(ValueError, match=r"velo_clusters\.offset is not retained"):
        workspace.first(tracks)


def test_retained_transferred_and_constant_columns_are_fetched(backend: CountingBackend) -> None:
    engine = CHAIN.create_engine(
        backend,
        geometry_constants(GEOMETRY),
        CHAIN.load_trigger(None, "velo"),
        LIMITS,
        retain=("velo_hits.x",),
    )
    workspace = engine.create_workspace()
    assert workspace.fetch("velo_hits.x", 3).shape == (3,)
    assert workspace.fetch("velo_tracks.count").shape == (LIMITS.events,)
    assert workspace.fetch("velo_geometry").tobytes() == GEOMETRY.to_bytes()
