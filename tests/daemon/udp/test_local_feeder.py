"""The feeder of the UDP intake: which messages of the node let it hand over further MEPs."""

import pytest

from hltnode.daemon.udp.local_feeder import LocalFeeder
from hltnode.protocol.transport.control_messages import ControlMessage
from hltnode.protocol.transport.feeder_messages import Ack, Credit, Missed, Welcome


@pytest.mark.parametrize(
    ("message", "lets_it_send"),
    [
        (Credit(7, 5), True),
        # Its credits come back without a message of their own.
        (Ack(7, ((0, 0),)), True),
        (Missed(7, 1, ((0, 0),)), False),
        (Welcome("node", "session", 7, 1000, 1), False),
    ],
)
def test_credits_and_acknowledgements_let_it_hand_over_further_meps(
    message: ControlMessage, *, lets_it_send: bool
) -> None:
    woken: list[None] = []
    feeder = LocalFeeder(
        lambda _identity, _message: None,
        session="s",
        chain="raw",
        sources=(1,),
        events_per_mep=10,
        max_fragment_bytes=1000,
        credits_grew=lambda: woken.append(None),
    )
    feeder.message(message)
    assert bool(woken) is lets_it_send
