"""Prefilters decide as plain Python on every back end, and skip only events that no line needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hltnode.processing.algorithms.decode_odin import ODIN_DATA
from hltnode.processing.framework.backends import _executor
from hltnode.processing.framework.backends.cpu import CpuBackend
from hltnode.processing.framework.backends.cpu_compiler import compile_kernel
from hltnode.processing.framework.backends.cuda_kernels import compile_options
from hltnode.processing.framework.codegen import generated_source
from hltnode.processing.framework.collections import PROCESSING
from hltnode.processing.framework.declaration import Algorithm, EventSizes
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.framework.workspace import BatchOutput
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.processing.lhcb.lines.inputs.event_fields import event
from hltnode.processing.lhcb.lines.inputs.track_fields import long_tracks
from hltnode.processing.lhcb.lines.line_types.electron_lines import SingleHighPtElectron
from hltnode.processing.lhcb.lines.line_types.event_lines import OdinEventType, Passthrough, PassthroughPv
from hltnode.processing.lhcb.lines.line_types.photon_lines import CaloDigitsMinADC, DiPhotonMass
from hltnode.processing.lhcb.lines.line_types.tracks import SingleHighPtTrack, TrackMVA
from hltnode.processing.lhcb.lines.line_types.two_tracks import TwoTrackMVA
from hltnode.processing.lhcb.lines.line_types.velo import VeloMicroBias
from hltnode.processing.lhcb.lines.menu import HLT1_MENU
from hltnode.processing.lhcb.lines.prefilters import PREFILTERS, beam_one
from hltnode.processing.lhcb.primary_vertices.collections import MAX_PVS, PRIMARY_VERTEX
from hltnode.processing.lhcb.raw_data.flags import GLOBAL_EVENT_CUT
from hltnode.processing.selection.configuration.trigger_config import TriggerConfig
from hltnode.processing.selection.lines.histogram import Histogram
from hltnode.processing.selection.lines.line import Line
from hltnode.processing.selection.lines.line_type import LineType
from hltnode.processing.selection.lines.prefilter import Prefilter
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.odin import Odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank
from tests.processing.framework.kernel_runner import (
    Allocate,
    Launch,
    generated_kernels,
    host_memory,
    run_algorithms,
    with_block_size,
)
from tests.processing.framework.nvrtc_library import nvrtc_of
from tests.processing.lhcb.calorimeter.ecal_batches import with_ecal
from tests.processing.lhcb.full_events import full_events
from tests.processing.selection.line_evaluators import KERNELS, targets
from tests.ptx.chain import PtxLauncher
from tests.ptx.kernels import CUDA_VERSION, machine_of
from tests.ptx.nvrtc import ptx_of_source
from tests.ptx.parser import parse

pytestmark = pytest.mark.timeout(300)
"""The first test compiles the machine that runs PTX."""

KNOWN = HLT1_MENU.prefilters_by_name
PREFILTERED = int(EventFlag.PREFILTERED)
NEVER = Prefilter("never", event, lambda e: e.n_velo_tracks > 100000)


def configured(*lines: LineType | Line, sequence: str = "forward_then_matching") -> TriggerConfig:
    return TriggerConfig(
        tuple(line if isinstance(line, Line) else line.prefiltered_line(KNOWN) for line in lines), sequence=sequence
    )


def kernels_of(trigger: TriggerConfig) -> list[Algorithm]:
    """The kernels that skip events, in their order."""
    return [each for each in CHAIN.with_lines(trigger).sequence if each.name.startswith("prefilter_events")]


# --- the kernels on given columns -------------------------------------------------------------------------------------


def random_columns(n: int, seed: int) -> dict[str, NDArray[Any]]:
    """Columns that prefilters read: all crossing types, cut and unreadable events, vertices in both regions and NaN."""
    rng = np.random.default_rng(seed)
    odin = np.zeros(n, ODIN_DATA.dtype)
    odin["crossing_type"] = rng.integers(0, 4, n)
    odin["event_type"] = rng.integers(0, 16, n)
    odin["tae_central"] = rng.integers(0, 2, n)
    odin["tae_half_window"] = rng.integers(0, 3, n)
    vertices = np.zeros(n * MAX_PVS, PRIMARY_VERTEX.dtype)
    vertices["z"] = rng.choice([-600.0, -537.5, -500.0, -341.0, -340.0, -337.5, 0.0, np.nan], n * MAX_PVS)
    flags = rng.choice([0, 0, 0, int(EventFlag.ODIN_ERROR), GLOBAL_EVENT_CUT.mask, int(EventFlag.BANK_ERROR)], n)
    return {
        "events.odin": odin,
        "events.flags": flags,
        "pvs.count": rng.integers(0, 4, n),
        "pvs.vertex": vertices,
        "velo_tracks.count": rng.integers(0, 14, n),
    }


def truths(given: Mapping[str, NDArray[Any]], i: int) -> dict[str, bool | None]:
    """The prefilters of an event in plain Python; None: undecided because of a NaN."""
    odin, flags = given["events.odin"][i], int(given["events.flags"][i])
    readable, bits, n_tracks = (
        not flags & EventFlag.ODIN_ERROR,
        int(odin["event_type"]),
        int(given["velo_tracks.count"][i]),
    )
    z = given["pvs.vertex"]["z"][i * MAX_PVS : i * MAX_PVS + int(given["pvs.count"][i])]

    def any_between(low: float, high: float) -> bool | None:
        if any(low < each < high for each in z):
            return True
        return None if np.isnan(z).any() else False

    crossing = int(odin["crossing_type"])
    crossings = {"no_beam": 0, "beam_one": 1, "beam_two": 2, "both_beams": 3}
    return {
        "odin_readable": readable,
        **{name: readable and crossing == each for name, each in crossings.items()},
        "odin_no_bias": readable and bool(bits & 4),
        "odin_lumi": readable and bool(bits & 8),
        "velo_open": readable and bool(bits & 1),
        "velo_closed": readable and not bits & 1,
        "tae_central": readable and bool(odin["tae_central"] == 1 and odin["tae_half_window"] >= 1),
        "event_cut": not flags & GLOBAL_EVENT_CUT.mask,
        "low_multiplicity": 1 <= n_tracks <= 5,
        "high_multiplicity": n_tracks >= 10,
        "pv_in_gas": any_between(-537.5, -337.5),
        "pv_of_beams": any_between(-341.0, np.inf),
    }


OF_VELO = ("low_multiplicity", "high_multiplicity", "pv_in_gas", "pv_of_beams")
"""Prefilters that are known only behind the VELO."""


def expected(given: Mapping[str, NDArray[Any]], needs: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """Results of all prefilters, and the flags, for lines of long tracks with these prefilters.

    A prefilter that an event does not reach is 0.
    """
    names = list(dict.fromkeys(name for group in needs for name in group))
    found: dict[str, list[int]] = {name: [] for name in (*names, "flags")}
    for i in range(len(given["events.flags"])):
        truth, flags = truths(given, i), int(given["events.flags"][i])
        for stage in (0, 1):
            removed = PREFILTERED | (GLOBAL_EVENT_CUT.mask if stage else 0)
            is_left = not flags & removed
            for name in names:
                if (name in OF_VELO) == (stage == 1):
                    found[name].append(int(is_left and truth[name] is True))
            known = [[name for name in group if stage == 1 or name not in OF_VELO] for group in needs]
            if is_left and all(any(truth[name] is False for name in group) for group in known):
                flags |= PREFILTERED
        found["flags"].append(flags)
    return found


def by_kernels(
    algorithms: Sequence[Algorithm], given: Mapping[str, NDArray[Any]], launch: Launch, allocate: Allocate
) -> Mapping[str, NDArray[Any]]:
    n = len(given["events.flags"])
    return run_algorithms(algorithms, given, n, BatchLimits(events=n), launch, allocate=allocate)


def by_numpy(algorithms: Sequence[Algorithm], given: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    n = len(given["events.flags"])
    limits = BatchLimits(events=n)
    columns: dict[Any, NDArray[Any]] = {}
    for algorithm in algorithms:
        for column in algorithm.columns:
            if column not in columns:
                columns[column] = np.zeros(column.count(limits), column.dtype)
                if column.name in given:
                    columns[column][: len(given[column.name])] = given[column.name]
        assert algorithm.generated is not None
        assert list(algorithm.generated.evaluate(columns, n)), "the evaluation must report its progress"
    return {column.name: content for column, content in columns.items()}


def by_compiler(algorithms: Sequence[Algorithm], given: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    def launch(algorithm: Algorithm, _: EventSizes, parameters: NDArray[np.uint8], header: NDArray[np.void]) -> None:
        library = compile_kernel(algorithm.name, generated_source(algorithm), (PROCESSING,), targets()[0], "")
        assert library is not None
        address = ctypes.cast(library.run_block, ctypes.c_void_p).value
        assert address is not None
        step = (address, parameters.ctypes.data, int(algorithm.grid), parameters.nbytes)
        _executor.Executor(1).run(_executor.Program([step], header.ctypes.data))

    return by_kernels(algorithms, given, launch, host_memory)


def by_blocks(algorithms: Sequence[Algorithm], given: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    def launch(algorithm: Algorithm, *others: Any) -> None:
        kernels = generated_kernels(generated_source(algorithm), (PROCESSING,), algorithm.name)
        with_block_size(48, backward=True, kernels=kernels)(algorithm, *others)

    return by_kernels(algorithms, given, launch, host_memory)


def by_ptx(algorithms: Sequence[Algorithm], given: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = dict(given)
    for algorithm in algorithms:
        source = generated_source(algorithm)
        ptx = ptx_of_source(nvrtc_of(CUDA_VERSION), source, "90", *compile_options(KERNELS))
        machine = machine_of(parse(ptx))
        launcher = PtxLauncher(machine, 64)
        columns |= by_kernels([algorithm], columns, launcher, machine.allocate)
        assert [it.text for it in launcher.conflicts if not it.equal] == []
        columns.pop("batch.header", None)
    return columns


MENUS: tuple[Sequence[Sequence[str]], ...] = (
    [[prefilter.name] for prefilter in PREFILTERS],
    [["beam_one", "velo_closed"], ["both_beams", "pv_in_gas"], ["odin_lumi", "high_multiplicity"]],
    [["event_cut"], ["tae_central", "low_multiplicity", "pv_of_beams"]],
)


@pytest.mark.parametrize("evaluate", [by_numpy, by_compiler, by_blocks, by_ptx])
def test_prefilters_decide_and_skip_as_plain_python(evaluate: Callable[..., Mapping[str, NDArray[Any]]]) -> None:
    given = random_columns(60, 3)
    # All prefilters cost two minutes to compile for the emulator and for PTX.
    for needs in MENUS[1:2] if evaluate in (by_blocks, by_ptx) else MENUS:
        lines = [TrackMVA(f"Line{i}", prefilters=tuple(group)) for i, group in enumerate(needs)]
        found = evaluate(kernels_of(configured(*lines)), given)
        wanted = expected(given, needs)
        for name, values in wanted.items():
            column = "events.flags" if name == "flags" else f"events.prefilter_{name}"
            assert found[column][: len(values)].tolist() == values, (needs, name)
            assert len(set(values)) > 1, (needs, name)
        assert any(flags & PREFILTERED for flags in wanted["flags"]) == (len(needs) < len(PREFILTERS))


# --- whole sequences --------------------------------------------------------------------------------------------------


def with_odin(banks: Sequence[RawBank], i: int) -> list[RawBank]:
    """The event as another one, with its crossing type and event type."""
    odin = encode_odin(
        Odin(run=1, event_id=i, event_type=(4, 8, 1, 0)[i // 4 % 4], crossing_type=i % 4, gps_time_us=10**15 + i)
    )
    return [odin if bank.type == BankType.ODIN else bank for bank in banks]


def events() -> list[list[RawBank]]:
    """16 events with random energies in the calorimeter: every crossing type with every event type."""
    of_four = with_ecal(full_events(4, 5), 5)
    return [with_odin(of_four[i // 4], i) for i in range(16)]


def outputs(trigger: TriggerConfig, backend: CpuBackend) -> BatchOutput:
    chain = CHAIN.with_sequence(trigger.sequence)
    limits = BatchLimits(events=16, input_bytes=16 << 20)
    engine = CHAIN.create_engine(backend, chain.load_geometry(None), trigger, limits)
    [batch] = OfflineRunner(engine).run(encode_meps(chain, events(), 16))
    output = batch.workspace.output.copy()
    engine.close()
    return output


def everywhere(line: Line) -> Line:
    """The line with the conditions of its prefilters in its selection: nothing is skipped."""

    def selects(candidate: Any) -> Any:
        passes = [prefilter.selection(event.candidate()) for prefilter in line.prefilters]
        selected = line.selection(candidate)
        for each in passes:
            selected = each & selected
        return selected

    return replace(line, selection=selects, prefilters=())


def lines_of(sequence: str) -> list[Line]:
    """Lines with prefilters of both points, and lines without that need ODIN alone or nothing."""
    of_velo = [
        VeloMicroBias("Bias", min_tracks=30, prefilters=("both_beams", "velo_closed")),
        PassthroughPv("Pv", min_z=-100.0, max_z=100.0, prefilters=("beam_one",)),
        Passthrough("All", prescale=0.5),
        OdinEventType("NoBias", mask=4),
    ]
    long = [
        TrackMVA("Mva", prefilters=("both_beams", "pv_of_beams")),
        TwoTrackMVA("Two", prefilters=("beam_one", "high_multiplicity")),
        SingleHighPtTrack("Single", min_pt=500.0, prefilters=("both_beams", "low_multiplicity")),
    ]
    ecal = [
        DiPhotonMass("Photons", max_mass=1e5, prefilters=("both_beams", "high_multiplicity")),
        SingleHighPtElectron("Electron", min_pt=1000.0, prefilters=("beam_one", "pv_of_beams")),
        CaloDigitsMinADC("Cell", min_adc=2000, prefilters=("both_beams", "pv_of_beams")),
    ]
    lines = of_velo if sequence.startswith("velo") else [*of_velo, *long]
    return [line.prefiltered_line(KNOWN) for line in [*lines, *(ecal if sequence == "hlt1_2026" else ())]]


def assert_same_decisions(found: BatchOutput, wanted: BatchOutput) -> None:
    assert found.lines.tolist() == wanted.lines.tolist()
    assert found.accepted.tolist() == wanted.accepted.tolist()
    assert found.selected.offsets.tolist() == wanted.selected.offsets.tolist()
    for name, values in found.selected.values.items():
        assert values.tolist() == wanted.selected.values[name].tolist()
    assert found.counts["unknown_selections"].tolist() == wanted.counts["unknown_selections"].tolist()


@pytest.mark.parametrize("sequence", ["velo_simd", "forward_then_matching", "no_ut", "hlt1_2026"])
def test_skipping_changes_no_decision(sequence: str) -> None:
    lines = lines_of(sequence)
    skipping = configured(*lines, sequence=sequence)
    wanted = outputs(configured(*map(everywhere, lines), sequence=sequence), CpuBackend(CHAIN.kernels))
    found = outputs(skipping, CpuBackend(CHAIN.kernels))
    assert_same_decisions(found, wanted)
    assert 0 < np.count_nonzero(found.flags & PREFILTERED) < 16
    assert not np.any(wanted.flags & PREFILTERED)
    assert len({tuple(row) for row in found.lines.tolist()}) > 3


def test_skipping_is_alike_for_several_threads_in_plain_form_and_without_a_compiler() -> None:
    trigger = configured(*lines_of("forward_then_matching"))
    wanted = outputs(trigger, CpuBackend(CHAIN.kernels))
    others = [
        *(CpuBackend(CHAIN.kernels, threads=n) for n in (2, 8)),
        CpuBackend(CHAIN.kernels, common=True),
        CpuBackend(CHAIN.kernels, compiles=False, threads=2),
    ]
    for backend in others:
        found = outputs(trigger, backend)
        assert found.flags.tolist() == wanted.flags.tolist()
        assert_same_decisions(found, wanted)
        assert {name: it.tolist() for name, it in found.counts.items()} == {
            name: it.tolist() for name, it in wanted.counts.items()
        }


def test_an_event_that_fails_is_not_reconstructed_behind_the_point() -> None:
    """Every detector is left out: its counts are those of an event of the same banks if the event is needed, else 0."""
    lines = [
        TrackMVA("Mva", prefilters=("both_beams", "high_multiplicity")).prefiltered_line(KNOWN),
        Line("Tracks", long_tracks, lambda t: t.pt > 0, prefilters=[beam_one, NEVER]),
    ]
    sequence = "hlt1_2026"
    found = outputs(configured(*lines, sequence=sequence), CpuBackend(CHAIN.kernels))
    whole = outputs(configured(*map(everywhere, lines), sequence=sequence), CpuBackend(CHAIN.kernels))
    crossing = np.arange(16) % 4
    of_velo = ("velo_clusters", "velo_tracks", "pvs")
    behind = ("ut_hits", "scifi_hits", "muon_hits", "long_tracks", "ecal_cells", "ecal_energy", "photon_pairs")
    for name in of_velo:
        needed = (crossing == 3) | (crossing == 1)
        assert found.counts[name].tolist() == np.where(needed, whole.counts[name], 0).tolist(), name
        assert np.count_nonzero(whole.counts[name]) > 8, name
    for name in behind:
        assert found.counts[name].tolist() == np.where(crossing == 3, whole.counts[name], 0).tolist(), name
        # Few events have two photons.
        assert np.count_nonzero(whole.counts[name]) > (3 if name == "photon_pairs" else 8), name
    assert found.counts["prefilter_both_beams"].tolist() == (crossing == 3).tolist()
    assert found.counts["prefilter_never"].tolist() == [0] * 16
    # An event that the global event cut removed is not reached by the second point.
    is_cut = (found.flags & GLOBAL_EVENT_CUT.mask) != 0
    assert 0 < np.count_nonzero(is_cut) < 16
    assert ((found.flags & PREFILTERED) != 0).tolist() == ((crossing != 3) & ~(is_cut & (crossing == 1))).tolist()


# --- which lines need an event ----------------------------------------------------------------------------------------


def skips(trigger: TriggerConfig) -> list[bool]:
    """For each point whether its kernel can skip events."""
    return [f"|= {PREFILTERED}u" in each.generated.body for each in kernels_of(trigger) if each.generated is not None]


def test_a_line_without_prefilters_that_needs_the_reconstruction_keeps_every_event() -> None:
    line = TrackMVA("Mva", prefilters=("both_beams", "pv_of_beams"))
    assert skips(configured(line)) == [True, True]
    assert skips(configured(line, Passthrough("All"), OdinEventType("NoBias", mask=4))) == [True, True]
    assert skips(configured(line, VeloMicroBias("Bias"))) == [False, True]
    assert skips(configured(line, TrackMVA("Other"))) == [False, False]
    assert skips(configured(line, Line("Flags", event, lambda e: (e.flags & 1) != 0))) == [False, False]
    assert skips(configured(line, Line("Odin", event, lambda e: ~e.has_odin | ~e.passes_gec))) == [True, True]


def test_lines_that_give_a_luminosity_summary_need_its_counts() -> None:
    line = TrackMVA("Mva", prefilters=("both_beams", "pv_of_beams"))
    assert skips(configured(line, OdinEventType("Hlt1ODINLumi", mask=8))) == [False, False]
    assert skips(configured(line, OdinEventType("Hlt1ODINLumi", mask=8, prefilters=("odin_lumi",)))) == [True, True]


def test_histograms_of_a_line_need_the_objects_that_they_show() -> None:
    line = TrackMVA("Mva", prefilters=("both_beams",))
    shown = Histogram("n", lambda e: e.n_long_tracks, 10, 0, 100)
    assert skips(configured(line, Line("All", event, lambda _: True))) == [True]
    assert skips(configured(line, Line("All", event, lambda _: True, histograms=[shown]))) == [False]


def test_without_prefilters_the_sequence_is_unchanged() -> None:
    for name, sequence in CHAIN.sequences.items():
        trigger = CHAIN.load_trigger(None, name)
        made = [algorithm.name for algorithm in CHAIN.with_lines(trigger).sequence]
        plain = [algorithm.name for algorithm in sequence.algorithms]
        assert made[: len(plain) + 1] == [*plain, "select_lines"]


def test_a_prefilter_known_too_late_skips_nothing_and_is_counted() -> None:
    """The flags of an event may change until the end of the sequence."""
    late = [
        Prefilter("many", event, lambda e: e.n_long_tracks > 10),
        Prefilter("unflagged", event, lambda e: e.flags == 0),
    ]
    lines = [
        Line("A", long_tracks, lambda t: t.pt > 0, prefilters=late),
        TrackMVA("B", prefilters=("beam_one",)).prefiltered_line(KNOWN),
    ]
    trigger = configured(*lines)
    assert not any(skips(trigger))
    found = outputs(trigger, CpuBackend(CHAIN.kernels))
    assert_same_decisions(found, outputs(configured(*map(everywhere, lines)), CpuBackend(CHAIN.kernels)))
    assert found.counts["prefilter_many"].tolist() == (found.counts["long_tracks"] > 10).tolist()
    later = np.uint32(EventFlag.CANDIDATES_LEFT_OUT)
    assert found.counts["prefilter_unflagged"].tolist() == (found.flags & ~later == 0).tolist()
