"""The node of a demo over UDP: it decides under a deadline, as the boards that send datagrams expect."""

import math
from collections.abc import Sequence

EVENTS_PER_PACKET = 16
PACKETS_PER_S = 250.0
"""MEPs per second that two busy processors took: Python runs for each MEP."""
RATE = EVENTS_PER_PACKET * PACKETS_PER_S
"""Events per second. Without acknowledgements a sender does not know what a node takes."""
DEADLINE_US = 1000
OUTPUT_KEYS = "streams = []"
"""Decisions may leave before files and journal only if no file promises an event."""


def packets_per_mep(rate: float) -> int:
    """Packets of a MEP: one, so that no packet waits for others, up to `RATE` events per second."""
    return max(1, math.ceil(rate / RATE))


def pipeline_keys(rate: float) -> str:
    """Keys of [pipeline]: a batch waits for 0.2 ms. Handing 16 events to a second thread takes longer than computing
    them in one."""
    return f"flush_deadline_us = 200\nthreads = {1 if packets_per_mep(rate) == 1 else 0}"


def sections(endpoint: str, sources: Sequence[int], rate: float) -> str:
    """The sections for datagrams from this machine, and for decisions under a deadline."""
    return f"""[udp]
endpoint = "{endpoint}"
events_per_packet = {EVENTS_PER_PACKET}
packets_per_mep = {packets_per_mep(rate)}
flush_us = 50000
[[udp.senders]]
address = "127.0.0.1"
sources = {list(sources)}
[latency]
decisions_first = true
serial = true
quiet_collector = true
deadline_us = {DEADLINE_US}"""
