"""Metrics of what comes in: fragments, feeders, shared memory, UDP and requests."""

from collections.abc import Iterator
from itertools import islice

from hltnode.daemon.monitoring.metrics.rows import Kind, Readings, Row, counter, counters, gauge, gauges, histogram

# Only the first few lost feeders get a sample: they show the common cause, and there may be a thousand.
SHOWN_FEEDERS = 16
# Stands for the feeders of a run that an earlier session of the node has begun: none has come back.
UNKNOWN_FEEDER = "unknown"


def _lost_feeders(r: Readings) -> Iterator[tuple[tuple[str, ...], float]]:
    runs = [(r.state.run, r.state.lost_feeders), *r.state.feeders_of_deserted_runs.items()]
    names = ((name or UNKNOWN_FEEDER, str(run)) for run, of_run in runs for name in of_run)
    return ((labels, 1.0) for labels in islice(names, SHOWN_FEEDERS))


INTAKE = (
    # Fragments
    counter(
        "fragments_received",
        "Frames taken from the data socket and shared memory.",
        lambda r: r.counters.fragments_received,
    ),
    counter("fragment_bytes_received", "Bytes of these frames.", lambda r: r.counters.fragment_bytes_received),
    counter("fragments_built", "Fragments of MEPs that were closed and built.", lambda r: r.counters.fragments_built),
    counter(
        "fragments_lost_in_drop",
        "Fragments of open MEPs that were revoked.",
        lambda r: r.counters.fragments_lost_in_drop,
    ),
    counter(
        "fragments_abandoned", "Fragments of MEPs open at a forced stop.", lambda r: r.counters.fragments_abandoned
    ),
    gauge(
        "fragments_in_build",
        "Fragments of MEPs that are open: received = built + lost_in_drop + abandoned + rejected + in_build.",
        lambda r: r.state.fragments_in_build,
    ),
    counters(
        "fragments_rejected", "Fragments refused, by reason.", "reason", lambda r: r.counters.fragments_rejected.items()
    ),
    # Feeders and control messages
    gauge("feeders_connected", "Feeders that sent a hello and no goodbye.", lambda r: r.state.feeders_connected),
    gauge(
        "feeders_expected",
        "Feeders that the run needs, by the configuration and by the announcements of connected feeders.",
        lambda r: r.feeders_expected,
    ),
    gauge(
        "run_waits_seconds",
        "Time for which the run has lacked feeders: it cannot start, or its floor cannot rise. 0 if it lacks none.",
        lambda r: r.state.run_waits_seconds,
    ),
    gauge(
        "feeders_lost",
        "Feeders of the current run that disconnected or fell silent before the end of their data.",
        lambda r: len(r.state.lost_feeders),
    ),
    gauge(
        "runs_deserted",
        "Kept runs without a connected feeder whose feeders had more to send, or are not known after a restart.",
        lambda r: len(r.state.feeders_of_deserted_runs),
    ),
    Row(Kind.GAUGE, "feeder_lost", "1 for some of the lost feeders, by name and run.", ("name", "run"), _lost_feeders),
    Row(
        Kind.COUNTER,
        "error_banks",
        "Error banks that readout boards sent in place of data; without zeros.",
        ("type", "source"),
        lambda r: (((name, str(source)), n) for (name, source), n in r.counters.error_banks()),
    ),
    gauge(
        "sources_expected", "Sources of the run; 0 without one.", lambda r: r.state.run_active * len(r.state.sources)
    ),
    gauges(
        "sources_silent",
        "Sources that do not deliver while others do, by state of their feeder.",
        "feeder",
        lambda r: (
            ("connected", len(r.state.silent_sources) - len(r.state.sources_of_lost_feeders)),
            ("lost", len(r.state.sources_of_lost_feeders)),
        ),
    ),
    counter(
        "control_messages_received", "Control messages understood.", lambda r: r.counters.control_messages_received
    ),
    counter("control_messages_rejected", "Control messages refused.", lambda r: r.counters.control_messages_rejected),
    counter(
        "control_messages_unsent",
        "Messages not sent because the feeder was gone or did not read.",
        lambda r: r.counters.control_messages_unsent,
    ),
    counters(
        "hellos_refused", "Refused hellos of feeders, by reason.", "reason", lambda r: r.counters.hellos_refused.items()
    ),
    counters(
        "control_messages_refused",
        "Other refused messages, by reason.",
        "reason",
        lambda r: r.counters.messages_refused.items(),
    ),
    gauge("runs_kept", "Earlier runs that their feeders have not confirmed.", lambda r: r.state.runs_kept),
    counter("credits_granted", "MEPs that feeders were allowed to send.", lambda r: r.counters.credits_granted),
    gauge(
        "credits_outstanding",
        "MEPs that feeders may send and that are not yet open.",
        lambda r: r.state.credits_outstanding,
    ),
    counter("meps_acknowledged", "MEPs acknowledged to the feeders.", lambda r: r.counters.meps_acknowledged),
    counter("nacks_sent", "Refusals sent to feeders.", lambda r: r.counters.nacks_sent),
    counter("tap_meps", "MEPs that the tap published for a recorder.", lambda r: r.counters.tap.meps),
    counter(
        "tap_meps_dropped",
        "MEPs that the tap dropped because a recorder was slow.",
        lambda r: r.counters.tap.dropped,
    ),
    counter("tap_whole_meps", "Whole MEPs that the tap published for shadow nodes.", lambda r: r.counters.mep_tap.meps),
    counter(
        "tap_whole_meps_dropped",
        "Whole MEPs that the tap dropped because a shadow node was slow.",
        lambda r: r.counters.mep_tap.dropped,
    ),
    gauge("shadow", "1 if this node is a shadow: its decisions count for nothing.", lambda r: r.state.is_shadow),
    counter(
        "shadow_meps", "MEPs that a shadow took from the tap of the productive node.", lambda r: r.counters.shadow.meps
    ),
    counters(
        "shadow_meps_lost",
        "MEPs of the productive node that a shadow did not take, by reason.",
        "reason",
        lambda r: r.counters.shadow.lost.items(),
    ),
    # Shared memory
    gauge(
        "shared_memory_segments",
        "Mapped shared-memory segments of feeders on this machine.",
        lambda r: r.counters.shared_memory.segments,
    ),
    gauge("shared_memory_bytes", "Bytes of these segments.", lambda r: r.counters.shared_memory.bytes),
    counter(
        "shared_memory_range_messages",
        "Messages that named frames in shared memory.",
        lambda r: r.counters.shared_memory.range_messages,
    ),
    counter(
        "shared_memory_left",
        "Segments released because their feeder ended without detaching them.",
        lambda r: r.counters.shared_memory.left,
    ),
    counters(
        "shared_memory_refused",
        "Connections to the memory socket that the node ended, by reason.",
        "reason",
        lambda r: r.counters.shared_memory.refused.items(),
    ),
    # UDP
    counter("udp_datagrams", "Datagrams joined into MEPs.", lambda r: r.counters.udp.datagrams),
    counter("udp_datagram_bytes", "Bytes of these datagrams.", lambda r: r.counters.udp.bytes),
    counter("udp_meps", "MEPs closed by the UDP intake, complete or not.", lambda r: r.counters.udp.meps),
    counter(
        "udp_meps_lost",
        "MEPs of which no datagram came, while earlier and later ones did.",
        lambda r: r.counters.udp.meps_lost,
    ),
    counters(
        "udp_datagrams_missing",
        "Datagrams that had not come when their MEP was closed, by source.",
        "source",
        lambda r: ((str(source), n) for source, n in r.counters.udp.missing.items()),
    ),
    counters(
        "udp_datagrams_refused",
        "Refused datagrams, by reason.",
        "reason",
        lambda r: r.counters.udp.refused.items(),
    ),
    counter(
        "udp_datagrams_discarded",
        "Datagrams that were taken and not built: of a run that the node did not accept, or left when it stopped.",
        lambda r: r.counters.udp.discarded,
    ),
    counter(
        "udp_datagrams_dropped",
        "Datagrams that the kernel dropped, because a receive buffer was full.",
        lambda r: r.counters.udp.dropped,
    ),
    counter("udp_bursts", "Bursts that have ended.", lambda r: r.counters.udp.bursts),
    # Requests
    counter("requests_answered", "Requests of clients that were answered.", lambda r: r.counters.requests.answered),
    counters(
        "requests_refused",
        "Requests of clients that were refused, by reason.",
        "reason",
        lambda r: r.counters.requests.refused.items(),
    ),
    counter(
        "requests_cancelled",
        "Requests that were dropped because their client cancelled them or has gone.",
        lambda r: r.counters.requests.cancelled,
    ),
    counter(
        "requests_undelivered",
        "Answers and refusals whose client has gone or does not read.",
        lambda r: r.counters.requests.undelivered,
    ),
    counter("request_events", "Events of answered requests.", lambda r: r.counters.requests.events),
    counter("request_batches", "Batches of requests.", lambda r: r.counters.requests.batches),
    gauge("requests_waiting", "Requests that wait for a batch.", lambda r: r.counters.requests.waiting),
    histogram("request_seconds", "From the arrival of a request to its answer.", lambda r: r.counters.requests.seconds),
)
