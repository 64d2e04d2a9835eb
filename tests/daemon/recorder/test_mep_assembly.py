"""MEPs from the messages of a tap."""

import pytest

from hltnode.daemon.recorder.mep_assembly import MepAssembly
from hltnode.protocol.errors import MessageError
from hltnode.protocol.raw_data.mep import Mep
from hltnode.protocol.transport.tap_message import CLOSED, FRAGMENT, TapHeader, encode_tap_header
from tests.daemon.fakes import RUN, SOURCES, synthetic_meps


def messages(n_meps: int, first: int = 0, sequence: int = 0) -> list[list[bytes]]:
    """The messages of the tap for some MEPs, by source."""
    found: list[list[bytes]] = []
    for mep in synthetic_meps(n_meps, first=first):
        for frame in mep.frames(RUN, 0).values():
            header = TapHeader(FRAGMENT, sequence + len(found), RUN, mep.mep, 0)
            found.append([encode_tap_header(header), bytes(frame)])
        closed = TapHeader(CLOSED, sequence + len(found), RUN, mep.mep, len(SOURCES))
        found.append([encode_tap_header(closed)])
    return found


def test_a_closed_mep_has_the_bytes_of_its_fragments() -> None:
    assembly = MepAssembly()
    [sent] = synthetic_meps(1)
    *before, last = [assembly.take(parts) for parts in messages(1)]
    assert before == [None] * len(SOURCES)
    assert last is not None
    assert {m.source_id: bytes(m.view) for m in Mep.parse(last.content).mfps} == {
        source: bytes(mfp) for source, mfp in sent.mfps.items()
    }
    assert (assembly.counts.meps, assembly.counts.events) == (1, sent.n_events)


def test_a_mep_with_a_missing_message_is_counted_and_not_recorded() -> None:
    assembly = MepAssembly()
    found = messages(3)
    of_a_mep = len(SOURCES) + 1
    del found[of_a_mep + 1]
    taken = [mep.mep for parts in found if (mep := assembly.take(parts)) is not None]
    assert taken == [0, 2]
    assert (assembly.counts.cut_meps, assembly.counts.missed_messages) == (1, 1)


def test_each_message_of_a_gap_counts_as_missed() -> None:
    assembly = MepAssembly()
    found = messages(4)
    of_a_mep = len(SOURCES) + 1
    del found[of_a_mep : 3 * of_a_mep]
    taken = [mep.mep for parts in found if (mep := assembly.take(parts)) is not None]
    assert taken == [0, 3]
    assert assembly.counts.missed_messages == 2 * of_a_mep


def test_meps_cut_by_start_or_end_of_the_recording_are_counted() -> None:
    assembly = MepAssembly()
    for parts in messages(2)[2:-1]:
        assert assembly.take(parts) is None
    assembly.end()
    assert (assembly.counts.cut_meps, assembly.counts.missed_messages) == (2, 0)


def test_meps_without_an_end_do_not_fill_the_memory() -> None:
    assembly = MepAssembly(max_open_bytes=10_000)
    for parts in messages(200):
        if len(parts) == 2:
            assembly.take(parts)
    assert assembly.counts.cut_meps > 100
    assert assembly._open_bytes <= 10_000


def test_a_mep_without_odin_is_recorded() -> None:
    assembly = MepAssembly()
    found = messages(1)
    del found[0]
    found[-1] = [encode_tap_header(TapHeader(CLOSED, len(SOURCES), RUN, 0, len(SOURCES) - 1))]
    (recorded,) = [mep for parts in found if (mep := assembly.take(parts)) is not None]
    assert Mep.parse(recorded.content).source_ids == tuple(sorted(SOURCES)[1:])
    assert (assembly.counts.meps, assembly.counts.damaged_meps) == (1, 0)


def test_fragments_that_form_no_mep_are_counted() -> None:
    assembly = MepAssembly()
    found = messages(1)
    found[1] = found[0]  # one source twice
    assert [assembly.take(parts) for parts in found] == [None] * len(found)
    assert (assembly.counts.meps, assembly.counts.damaged_meps) == (0, 1)


@pytest.mark.parametrize("header", [b"", b"F" * 22, b"X" + bytes(22)])
def test_messages_that_are_not_from_a_tap_are_refused(header: bytes) -> None:
    with pytest.raises(MessageError):
        MepAssembly().take([header])
