"""The compiled writer of decision messages makes the bytes of the general encoder."""

import numpy as np
import pytest

from hltnode.protocol._native import DecisionWriter
from hltnode.protocol.errors import MessageError
from hltnode.protocol.transport.decisions import DECISION_VERSION, MepDecision, encode_decision, pack_decision


@pytest.mark.parametrize("n_lines", [0, 1, 32, 33, 200, 2000])
@pytest.mark.parametrize("n_events", [0, 1, 9, 255, 300, 9000])
@pytest.mark.parametrize("chain", ["", "na62_rich"])
def test_the_writer_makes_the_bytes_of_the_encoder(n_events: int, n_lines: int, chain: str) -> None:
    rng = np.random.default_rng(1)
    words = -(-n_lines // 32)
    accepted = rng.integers(0, 3, n_events + 3, np.uint8)
    lines = rng.integers(0, 1 << 32, (n_events + 3, words), np.uint32)
    flags = rng.integers(0, 1 << 32, n_events + 3, np.uint32)
    for number in (0, 127, 128, 255, 256, 65535, 65536, (1 << 32) - 1, 1 << 32, (1 << 64) - 1):
        small = min(number, (1 << 32) - 1)
        for node in ("n", "n" * 31, "n" * 32, "n" * 255):
            writer = DecisionWriter(node, chain, n_lines, DECISION_VERSION)
            written = writer.write(small, number, number, number, n_events, small, accepted, lines, flags)
            decision = MepDecision(
                node=node,
                run=small,
                mep=number,
                seq=number,
                first_event=number,
                n_events=n_events,
                n_lines=n_lines,
                tck=small,
                close_reason="complete",
                missing_sources=(),
                accepted=np.packbits(accepted[:n_events] != 0, bitorder="little").tobytes(),
                lines=lines[:n_events].tobytes(),
                flags=flags[:n_events].tobytes(),
                chain=chain,
            )
            assert written == pack_decision(decision)
        assert written == encode_decision(decision)


def test_the_writer_refuses_results_of_fewer_events() -> None:
    writer = DecisionWriter("n", "c", 40, DECISION_VERSION)
    accepted, lines, flags = (
        np.zeros(1 << 16, np.uint8),
        np.zeros((1 << 16, 2), np.uint32),
        np.zeros(1 << 16, np.uint32),
    )
    writer.write(1, 1, 1, 1, 3, 1, accepted[:3], lines[:3], flags[:3])
    for rows in ((2, 3, 3), (3, 2, 3), (3, 3, 2)):
        with pytest.raises(ValueError, match="fewer rows"):
            writer.write(1, 1, 1, 1, 3, 1, accepted[: rows[0]], lines[: rows[1]], flags[: rows[2]])
    with pytest.raises(ValueError, match="fewer rows"):
        writer.write(1, 1, 1, 1, 1 << 16, 1, accepted, lines, flags)


def test_a_packed_decision_has_the_sizes_of_its_events() -> None:
    decision = MepDecision("n", 1, 1, 1, 1, 3, 1, 1, "complete", (), b"\0", b"\0" * 12, b"\0" * 8)
    with pytest.raises(MessageError, match="12 bytes expected"):
        pack_decision(decision)
