"""The decision message."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hltnode.protocol.errors import MessageError, RejectReason
from hltnode.protocol.transport.decisions import MepDecision, decode_decision, encode_decision
from tests.protocol.strategies import u16, u32, u64


@st.composite
def decisions(draw: st.DrawFn) -> MepDecision:
    n = draw(st.integers(0, 40))

    def exactly(size: int) -> bytes:
        return draw(st.binary(min_size=size, max_size=size))

    return MepDecision(
        node=draw(st.text(max_size=20)),
        run=draw(u32),
        mep=draw(u64),
        seq=draw(u64),
        first_event=draw(u64),
        n_events=n,
        tck=draw(u32),
        close_reason=draw(st.text(max_size=20)),
        missing_sources=tuple(draw(st.lists(u16, max_size=5))),
        accepted=exactly((n + 7) // 8),
        lines=exactly(8 * n),
        flags=exactly(4 * n),
    )


GOOD = MepDecision("node", 1, 2, 3, 4, 9, 6, "timeout", (7,), b"\x15\x01", bytes(72), bytes(36))


@given(decisions())
def test_a_decision_comes_back_as_written(decision: MepDecision) -> None:
    assert decode_decision(encode_decision(decision)) == decision


@pytest.mark.parametrize(
    "decision",
    [
        replace(GOOD, accepted=b"\x15"),
        replace(GOOD, lines=bytes(71)),
        replace(GOOD, flags=bytes(40)),
        replace(GOOD, n_events=65536),
        replace(GOOD, missing_sources=(65536,)),
        replace(GOOD, tck=-1),
    ],
)
def test_a_decision_whose_parts_do_not_agree_cannot_be_written(decision: MepDecision) -> None:
    with pytest.raises(MessageError):
        encode_decision(decision)


@pytest.mark.parametrize("change", [{"type": "credit"}, {"more": 1}, {"accepted": "text"}, {"n_events": 10}])
def test_a_changed_decision_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(MessageError) as error:
        decode_decision(msgpack.packb(msgpack.unpackb(encode_decision(GOOD)) | change))
    assert error.value.reason is RejectReason.MALFORMED


def test_a_decision_on_the_most_events_of_a_mep_fits() -> None:
    n = 0xFFFF
    large = replace(GOOD, n_events=n, accepted=bytes((n + 7) // 8), lines=bytes(8 * n), flags=bytes(4 * n))
    assert decode_decision(encode_decision(large)) == large
