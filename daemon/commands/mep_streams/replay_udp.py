"""hltnode replay to UDP: events of files or of a simulation, or a capture of tcpdump, as datagrams."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from hltnode.daemon.commands.mep_streams.replay_setup import ReplayOptions, make_streams
from hltnode.daemon.common.endpoints import check_udp_endpoint
from hltnode.daemon.configuration.input_sections import udp_address
from hltnode.daemon.replay.datagrams import (
    Packet,
    SentDatagrams,
    datagrams_of_capture,
    datagrams_of_stream,
    send_datagrams,
)
from hltnode.daemon.replay.input_files import FeedError

CAPTURES = (".pcap", ".pcapng")


def is_capture(path: Path) -> bool:
    """Whether a file is a capture, by its name."""
    return path.suffix in CAPTURES


def replay_to_udp(options: ReplayOptions, events_per_packet: int) -> SentDatagrams:
    """Send the input of a replay. Raises FeedError, and errors of the input."""
    if len(options.to) != 1 or options.control or options.part or options.supervisor or options.faults:
        raise FeedError("--to udp://: expected one node, without --control, --part, --supervisor and --fault")
    if options.repeat is None:
        raise FeedError("--to udp://: expected --repeat instead of --loop")
    try:
        host, port = udp_address(check_udp_endpoint(options.to[0]))
    except ValueError as error:
        raise FeedError(f"--to {options.to[0]}: {error}") from None
    skipped: list[Path] = []
    captures = [path for path in options.inputs if is_capture(path)]
    if captures and len(captures) < len(options.inputs):
        raise FeedError("expected either captures or files with events")

    def packets() -> Iterator[Packet]:
        if captures:
            for path in captures:
                yield from datagrams_of_capture(path, partial(skipped.append, path))
            return
        for stream in make_streams(options):
            yield from datagrams_of_stream(stream, events_per_packet, bursts=options.repeat or 1)

    sent = send_datagrams(packets(), host, port, options.rate)
    return sent._replace(skipped=len(skipped))


def describe_sent(sent: SentDatagrams) -> dict[str, Any]:
    """The result for the JSON report."""
    return sent._asdict()


def text_of_sent(sent: SentDatagrams) -> str:
    """The result for the terminal."""
    per_second = sent.events / sent.seconds if sent.seconds else 0.0
    skipped = f"; {sent.skipped} other packets skipped" if sent.skipped else ""
    rate = f"{sent.events} events in {sent.seconds:.2f} s: {per_second:.0f} events/s"
    return (
        f"{sent.datagrams} datagrams, {rate}{skipped}\n"
        "UDP has no acknowledgements: the metrics of the node (hltnode_udp_*) tell what arrived."
    )
