"""The decisions on several MEPs in one message."""

import msgpack
import numpy as np
import pytest
from msgspec.structs import replace

from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.decisions import (
    COMPLETE,
    MAX_DECISION_SIZE,
    MAX_MEPS_OF_GROUP,
    DecisionGroup,
    MepDecision,
    decode_decision,
    decode_decisions,
    encode_decision,
    max_events_of_decision,
    max_events_of_group,
)

SIZES = (3, 16, 1, 12)
N_LINES = 33


def alone(mep: int, n_events: int) -> MepDecision:
    random = np.random.default_rng(mep)
    return MepDecision(
        node="n",
        run=7,
        mep=mep,
        seq=5,
        first_event=100 * mep,
        n_events=n_events,
        n_lines=N_LINES,
        tck=9,
        close_reason=COMPLETE,
        missing_sources=(),
        accepted=np.packbits(random.integers(0, 2, n_events), bitorder="little").tobytes(),
        lines=random.bytes(8 * n_events),
        flags=random.bytes(4 * n_events),
        chain="raw",
    )


DECISIONS = [alone(mep, n) for mep, n in zip((4, 1 << 40, 6, 7), SIZES, strict=True)]
GROUP = DecisionGroup(
    node="n",
    run=7,
    seq=5,
    n_lines=N_LINES,
    tck=9,
    meps=np.array([each.mep for each in DECISIONS], "<u8").tobytes(),
    first_events=np.array([each.first_event for each in DECISIONS], "<u8").tobytes(),
    n_events=np.array(SIZES, "<u2").tobytes(),
    accepted=np.packbits(np.concatenate([each.accepted_events() for each in DECISIONS]), bitorder="little").tobytes(),
    lines=b"".join(each.lines for each in DECISIONS),
    flags=b"".join(each.flags for each in DECISIONS),
    chain="raw",
)


def test_a_group_is_read_as_the_decisions_of_its_meps() -> None:
    assert decode_decisions(encode_decision(GROUP)) == DECISIONS
    assert decode_decisions(encode_decision(DECISIONS[1])) == [DECISIONS[1]]
    with pytest.raises(MessageError, match="unknown type 'decisions'"):
        decode_decision(encode_decision(GROUP))


def test_a_group_without_some_meps_has_the_decisions_on_the_others() -> None:
    assert GROUP.without({5}) == [GROUP]
    assert GROUP.without({6}) == [DECISIONS[0], DECISIONS[1], DECISIONS[3]]
    assert GROUP.without({each.mep for each in DECISIONS}) == []
    assert DECISIONS[0].without({4}) == []
    assert DECISIONS[0].without({5}) == [DECISIONS[0]]


@pytest.mark.parametrize("field", ["meps", "first_events", "n_events", "accepted", "lines", "flags"])
def test_a_field_of_another_size_is_refused(field: str) -> None:
    good = msgpack.unpackb(encode_decision(GROUP))
    for value in (good[field][:-1], good[field] + b"\0", b""):
        with pytest.raises(MessageError):
            decode_decisions(msgpack.packb({**good, field: value}))


def test_the_largest_group_is_read_and_one_more_mep_is_refused() -> None:
    def empty(n: int) -> DecisionGroup:
        ids, nothing = bytes(8 * n), b""
        return replace(
            GROUP, meps=ids, first_events=ids, n_events=bytes(2 * n), accepted=nothing, lines=nothing, flags=nothing
        )

    assert len(decode_decisions(encode_decision(empty(MAX_MEPS_OF_GROUP)))) == MAX_MEPS_OF_GROUP
    with pytest.raises(MessageError, match=f"{MAX_MEPS_OF_GROUP + 1} found"):
        encode_decision(empty(MAX_MEPS_OF_GROUP + 1))


def test_the_largest_number_of_events_of_a_group_fits_into_a_message() -> None:
    for n_lines in (1, 1984, 16_378):
        n = max_events_of_group(n_lines)
        assert 0 < n <= max_events_of_decision(n_lines)
        ids = 8 * MAX_MEPS_OF_GROUP
        sizes = np.zeros(MAX_MEPS_OF_GROUP, "<u2")
        sizes[0] = n
        words = -(-n_lines // 32)
        largest = replace(
            GROUP,
            n_lines=n_lines,
            node="n" * 4096,
            meps=bytes(ids),
            first_events=bytes(ids),
            n_events=sizes.tobytes(),
            accepted=bytes(-(-n // 8)),
            lines=bytes(4 * words * n),
            flags=bytes(4 * n),
        )
        assert len(encode_decision(largest)) <= MAX_DECISION_SIZE
