"""The node of a demo over UDP."""

import tomllib

import pytest

from hltnode.daemon.commands import udp_demo
from hltnode.daemon.configuration.input_sections import UdpSection
from hltnode.daemon.configuration.node_sections import LatencySection


@pytest.mark.parametrize(
    ("rate", "packets", "threads"), [(100.0, 1, 1), (4000.0, 1, 1), (4001.0, 2, 0), (100_000.0, 25, 0)]
)
def test_a_mep_is_one_packet_up_to_a_rate_that_any_machine_takes(rate: float, packets: int, threads: int) -> None:
    """Above it there are no more than 250 MEPs a second, large enough for all threads."""
    sections = tomllib.loads(udp_demo.sections("udp://127.0.0.1:5560", [0, 2048], rate))
    udp = UdpSection.model_validate(sections["udp"])
    assert (udp.packets_per_mep, udp.events_per_packet, udp.sources) == (packets, 16, (0, 2048))
    assert tomllib.loads(udp_demo.pipeline_keys(rate)) == {"flush_deadline_us": 200, "threads": threads}
    assert LatencySection.model_validate(sections["latency"]).decisions_first
