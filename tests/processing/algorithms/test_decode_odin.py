"""decode_odin, compared with protocol.odin, and its result for invalid banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hltnode.processing.algorithms.decode_odin import decode_odin as decode_odin_algorithm
from hltnode.processing.algorithms.fragment_offsets import fragment_offsets
from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.batch import MepInBatch
from hltnode.processing.framework.declaration import AlgorithmSequence
from hltnode.processing.framework.engine import Engine
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.workspace import Workspace
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol.errors import OdinError
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.odin import Odin, decode_odin, encode_odin
from hltnode.protocol.raw_data.raw_bank import RawBank

ODIN_SOURCE = 0


@pytest.fixture(scope="module")
def workspace() -> Workspace:
    limits = BatchLimits(events=32, meps=4, input_bytes=1 << 16, rows=16)
    sequence = AlgorithmSequence((fragment_offsets, decode_odin_algorithm))
    chain = replace(CHAIN, sequence=sequence, accepted=None, lines=None, counts={})
    return Engine(create_backend("cpu", CHAIN.kernels), chain, {}, limits, retain="all").create_workspace()


def decoded(workspace: Workspace, *meps: Sequence[bytes], n_events: int = 0) -> tuple[NDArray[np.void], list[int]]:
    """(odin, flags) of the events of MEPs, each given as the MFPs of source ODIN that it holds (one or none)."""
    offset, placed = 0, []
    for mfps in meps:
        fragments = []
        for mfp in mfps:
            workspace.input_data[offset : offset + len(mfp)] = np.frombuffer(mfp, dtype=np.uint8)
            fragments.append((ODIN_SOURCE, offset, len(mfp)))
            offset += -(-len(mfp) // 8) * 8
        events = int.from_bytes(mfps[0][2:4], "little") if mfps else n_events
        placed.append(MepInBatch(events, fragments))
    workspace.seal(placed)
    workspace.submit()
    workspace.wait()
    n = workspace.n_events
    return workspace.fetch("events.odin")[:n], workspace.host_array("events.flags")[:n].tolist()


def mfp_of(banks: Sequence[RawBank], version: int) -> bytes:
    return encode_mfp(
        source_id=ODIN_SOURCE,
        event_id=1,
        version=version,
        types=[bank.type for bank in banks],
        fragments=[bytes(bank.payload) for bank in banks],
    )


def assert_equal(found: np.void, odin: Odin) -> None:
    assert found["run"] == odin.run
    assert found["event_type"] == odin.event_type
    assert int(found["gps_time_high"]) << 32 | int(found["gps_time_low"]) == odin.gps_time_us
    assert int(found["event_id_high"]) << 32 | int(found["event_id_low"]) == odin.event_id
    assert found["bunch_id"] == odin.bunch_id
    assert found["crossing_type"] == odin.crossing_type
    assert found["orbit"] == odin.orbit
    assert (found["tae_central"], found["tae_half_window"]) == (odin.tae_central, odin.tae_half_window)


odins = st.builds(
    Odin,
    run=st.integers(0, 2**32 - 1),
    event_id=st.integers(0, 2**64 - 1),
    event_type=st.integers(0, 0xFFFF),
    step=st.integers(0, 0xFFFF),
    gps_time_us=st.integers(0, 2**64 - 1),
    bunch_id=st.integers(0, 0xFFF),
    crossing_type=st.integers(0, 3),
    orbit=st.integers(0, 2**32 - 1),
)


@settings(max_examples=40)
@given(events=st.lists(odins, min_size=1, max_size=8), version=st.sampled_from([6, 7]))
def test_both_versions_are_decoded(workspace: Workspace, events: list[Odin], version: int) -> None:
    found, flags = decoded(workspace, [mfp_of([encode_odin(odin, version) for odin in events], version)])
    assert flags == [0] * len(events)
    for one, odin in zip(found, events, strict=True):
        assert_equal(one, odin)


@pytest.mark.parametrize("version", [6, 7])
def test_numbers_of_64_bits_keep_both_words(workspace: Workspace, version: int) -> None:
    numbers = [5, 2**32 - 1, 2**32, 3 << 32 | 7, 2**63 + 1, 2**64 - 1]
    events = [Odin(run=1, event_id=number, gps_time_us=number ^ 9 << 32) for number in numbers]
    found, flags = decoded(workspace, [mfp_of([encode_odin(odin, version) for odin in events], version)])
    assert flags == [0] * len(events)
    assert found["event_id_low"].tolist() == [number % 2**32 for number in numbers]
    assert found["event_id_high"].tolist() == [number >> 32 for number in numbers]
    for one, odin in zip(found, events, strict=True):
        assert_equal(one, odin)


def test_crossings_that_were_read_out_together_are_told_by_version_7(workspace: Workspace) -> None:
    events = [
        Odin(run=1, event_id=i, tae_central=i == 3, tae_half_window=window, tae_first=i == 0, crossing_type=3)
        for i, window in enumerate((0, 1, 62, 63))
    ]
    found, _ = decoded(workspace, [mfp_of([encode_odin(odin, 7) for odin in events], 7)])
    for one, odin in zip(found, events, strict=True):
        assert_equal(one, odin)


def test_every_event_gets_the_bank_of_its_own_mep(workspace: Workspace) -> None:
    meps = [[Odin(run=1, event_id=10 * mep + i) for i in range(3 + mep)] for mep in range(3)]
    found, _ = decoded(workspace, *([mfp_of([encode_odin(odin) for odin in mep], 7)] for mep in meps))
    assert found["event_id_low"].tolist() == [odin.event_id for mep in meps for odin in mep]


def test_a_mep_without_odin_is_flagged(workspace: Workspace) -> None:
    good = mfp_of([encode_odin(Odin(run=5, event_id=6))], 7)
    found, flags = decoded(workspace, [], [good], n_events=2)
    assert flags == [EventFlag.ODIN_ERROR, EventFlag.ODIN_ERROR, 0]
    assert found["run"].tolist() == [0, 0, 5]


@pytest.mark.parametrize(
    ("bank_type", "version", "payload"),
    [
        (LhcbBankType.DAQ_ERROR_FRAGMENT_MISSING, 7, bytes(40)),
        (LhcbBankType.DAQ_ERROR_FRAGMENT_TRUNCATED, 7, b""),
        (LhcbBankType.VP, 7, bytes(40)),
        (BankType.ODIN, 5, bytes(40)),
        (BankType.ODIN, 8, bytes(40)),
        (BankType.ODIN, 7, bytes(36)),
        (BankType.ODIN, 6, bytes(44)),
        (255, 7, b""),
    ],
)
def test_a_bank_that_is_no_odin_is_flagged(workspace: Workspace, bank_type: int, version: int, payload: bytes) -> None:
    bank = RawBank(bank_type, version, 0, memoryview(payload))
    found, flags = decoded(workspace, [mfp_of([bank], version)])
    assert flags == [EventFlag.ODIN_ERROR]
    assert found.tobytes() == bytes(found.nbytes)


payloads = st.binary(max_size=60) | st.binary(min_size=40, max_size=40)


@settings(max_examples=80)
@given(
    version=st.integers(0, 255),
    banks=st.lists(st.tuples(st.just(16) | st.integers(0, 254), payloads), min_size=1, max_size=8),
)
def test_any_bytes_are_either_decoded_or_flagged(
    workspace: Workspace, version: int, banks: list[tuple[int, bytes]]
) -> None:
    raw = [RawBank(kind, version, 0, memoryview(payload)) for kind, payload in banks]
    found, flags = decoded(workspace, [mfp_of(raw, version)])
    for one, flag, bank in zip(found, flags, raw, strict=True):
        try:
            odin = decode_odin(bank)
        except OdinError:
            assert flag == EventFlag.ODIN_ERROR
        else:
            assert flag == 0
            assert_equal(one, odin)


@settings(max_examples=80)
@given(data=st.data())
def test_lying_sizes_never_reach_beyond_the_packet(workspace: Workspace, data: st.DataObject) -> None:
    mfp = bytearray(mfp_of([encode_odin(Odin(run=1, event_id=i)) for i in range(4)], 7))
    for _ in range(data.draw(st.integers(1, 6))):
        mfp[data.draw(st.integers(18, len(mfp) - 1))] = data.draw(st.integers(0, 255))
    _, flags = decoded(workspace, [bytes(mfp)])
    assert set(flags) <= {0, int(EventFlag.ODIN_ERROR)}
