"""The table of the node's metrics: name, help text, label, and how the values are read. A new metric is one row here.

Three kinds of metrics have their own modules, because other rules decide which samples exist: readout sources
(`source_metrics`), the GPU (`gpu_metrics`) and monitoring histograms (`histograms`).
"""

import math
from collections.abc import Callable, Iterator
from itertools import islice

from hltnode.daemon.monitoring.counters import OutputCounters, StreamCounters
from hltnode.daemon.monitoring.health import Condition
from hltnode.daemon.monitoring.metric_rows import (
    ByLabel,
    Kind,
    Readings,
    Row,
    counter,
    counters,
    gauge,
    gauges,
    histogram,
    histograms,
    info,
)
from hltnode.protocol.transport.run_control_messages import RunState

# Only the first few lost feeders get a sample: they show the common cause, and there may be a thousand.
SHOWN_FEEDERS = 16
# Stands for the feeders of a run that an earlier session of the node has begun: none has come back.
UNKNOWN_FEEDER = "unknown"


def _of_outputs(value: Callable[[OutputCounters], int]) -> ByLabel:
    return lambda r: [(name, value(output)) for name, output in r.counters.outputs.items()]


def _of_streams(value: Callable[[StreamCounters], int]) -> ByLabel:
    return lambda r: [(name, value(stream)) for name, stream in r.counters.writer.streams.items()]


def _lost_feeders(r: Readings) -> Iterator[tuple[tuple[str, ...], float]]:
    runs = [(r.state.run, r.state.lost_feeders), *r.state.feeders_of_deserted_runs.items()]
    names = ((name or UNKNOWN_FEEDER, str(run)) for run, of_run in runs for name in of_run)
    return ((labels, 1.0) for labels in islice(names, SHOWN_FEEDERS))


TABLE = (
    # Identity of node and run
    info("build", "Version, node, back end, chain and TCK.", lambda r: r.build),
    info(
        "run",
        "The run, its state, and the configuration of its selection.",
        lambda r: {
            "run": str(r.state.run),
            "state": r.state.run_state,
            "version": r.build["version"],
            "tck": r.build["tck"],
        },
    ),
    gauge("run_active", "1 from the arrival of all feeders of a run until its end.", lambda r: r.state.run_active),
    gauge("run_number", "Number of the current run; 0 before the first feeder.", lambda r: r.state.run),
    # Health
    gauge(
        "healthy",
        "1 if the loop and the pipeline tick, MEPs are acknowledged and the disk accepts events.",
        lambda r: r.is_healthy,
    ),
    gauge("ready", "1 if feeders may send.", lambda r: not r.problems),
    gauges(
        "condition",
        "1 if the condition of readiness holds.",
        "condition",
        lambda r: [(condition, condition not in r.problems) for condition in Condition],
    ),
    gauge("event_loop_lag_seconds", "Delay of the last timer of the event loop.", lambda r: r.counters.loop_lag),
    gauge(
        "event_loop_lag_max_seconds", "Largest delay of a timer of the event loop.", lambda r: r.counters.loop_lag_max
    ),
    counter(
        "event_loop_stalls",
        "Timers of the event loop that were more than 0.25 s late.",
        lambda r: r.counters.loop_stalls,
    ),
    Row(
        Kind.GAUGE,
        "thread_setting",
        "1 if the system took the setting of a thread (latency.cpus, latency.realtime_priority), 0 if it refused.",
        ("thread", "setting"),
        lambda r: r.counters.thread_settings.items(),
    ),
    counters(
        "garbage_collections",
        "Collections with latency.quiet_collector: without a MEP (idle), or 60 s after the last one (due).",
        "moment",
        lambda r: r.counters.collections.items(),
    ),
    counters(
        "exceptions",
        "Contained errors by part of the node.",
        "where",
        lambda r: r.counters.exceptions.items(),
    ),
    counter(
        "log_lines_lost",
        "Lines of the log that were not written: the reader stalls or has gone, or the disk is full.",
        lambda r: r.state.log_lines_lost,
    ),
    gauge("log_fails", "1 if the last line of the log was not written.", lambda r: r.state.log_fails),
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
    # Event building
    counter("meps_opened", "MEPs with at least one received fragment.", lambda r: r.counters.meps_opened),
    counters("meps_closed", "MEPs closed, by reason.", "reason", lambda r: r.counters.meps_closed.items()),
    counter("meps_abandoned", "MEPs open at a forced stop, or revoked.", lambda r: r.counters.meps_abandoned),
    gauge("meps_open", "MEPs in build: opened = closed + abandoned + open.", lambda r: r.state.meps_open),
    counter(
        "accounting_broken",
        "Ends of runs at which fragments or MEPs were in no class of the accounting.",
        lambda r: r.counters.accounting_broken,
    ),
    # Pipeline
    gauges("slots", "Slots by state.", "state", lambda r: r.state.slots.items()),
    gauges(
        "slot_bytes",
        "Bytes of a slot on the device and pinned on the host; thread: bytes of each worker thread.",
        "memory",
        lambda r: (("device", r.memory.device), ("pinned", r.memory.pinned), ("thread", r.memory.thread)),
    ),
    gauge("plan_bytes_per_event", "Bytes per event of the largest batch.", lambda r: r.memory.per_event),
    counter("batches", "Batches computed.", lambda r: r.counters.batches),
    histograms("stage_seconds", "Time of a batch in a stage.", "stage", lambda r: r.counters.stages.items()),
    histograms(
        "mep_stage_seconds",
        "Time of a MEP in a stage between its first fragment and its decision.",
        "stage",
        lambda r: r.counters.mep_stages.items(),
    ),
    histograms(
        "mep_compute_seconds",
        "Time of a MEP in a part of the stage compute.",
        "part",
        lambda r: r.counters.mep_compute.items(),
    ),
    histogram(
        "mep_latency_seconds",
        "From the first fragment of a MEP until its decision is sent: the sum of its stages until then.",
        lambda r: r.counters.mep_latency,
    ),
    histogram(
        "end_to_end_seconds", "From the close of a MEP until its decision is sent.", lambda r: r.counters.end_to_end
    ),
    counter("backend_errors", "Batches that the back end could not compute.", lambda r: r.counters.backend_errors),
    counter(
        "meps_not_processed",
        "MEPs sent to the error stream without computation, because earlier sessions ended while computing them.",
        lambda r: r.counters.meps_not_processed,
    ),
    counters(
        "dead_time_seconds", "Time without free credits, by reason.", "reason", lambda r: r.counters.dead_time.items()
    ),
    # Decisions
    counter("events_processed", "Events with a decision.", lambda r: r.counters.events_processed),
    counter("events_accepted", "Events that at least one line accepted.", lambda r: r.counters.events_accepted),
    counters(
        "events_flagged",
        "Events that carry the flag.",
        "flag",
        lambda r: r.counters.events_flagged.items(),
    ),
    counters(
        "line_accepts",
        "Events that the line accepted.",
        "line",
        lambda r: zip(r.counters.lines, r.counters.line_accepts, strict=True),
    ),
    counter(
        "report_candidates_left_out",
        "Selected candidates that did not fit in the reports of their events.",
        lambda r: r.counters.candidates_left_out,
    ),
    counter(
        "decision_lists_left_out",
        "Output lists that did not fit in the decision messages of their MEPs (decisions.max_list_bytes).",
        lambda r: r.counters.lists_left_out,
    ),
    counters(
        "windows",
        "Windows of time of a streaming chain: slices, their bytes, late ones among them, windows that are kept, their "
        "records, hits and bytes.",
        "count",
        lambda r: r.counters.windows.items(),
    ),
    counters(
        "slices_dropped",
        "Time slices that the rule streaming.head_room dropped, because the buffers were full.",
        "rule",
        lambda r: r.counters.slices_dropped.items(),
    ),
    counters(
        "stream_seconds",
        "Time of the detector: of all slices, of late and of dropped ones, and in records of windows.",
        "time",
        lambda r: [(time, ns / 1e9) for time, ns in r.counters.stream_ns.items()],
    ),
    counters(
        "window_faults",
        "Windows, hits and bytes that are not kept as their chain wants.",
        "fault",
        lambda r: r.counters.window_faults.items(),
    ),
    counter("seeds_sent", "Seeds that were sent to the combiner.", lambda r: r.counters.held.seeds_sent),
    counter("combined_windows", "Windows that the combiner answered with.", lambda r: r.counters.held.windows_received),
    counter(
        "external_windows",
        "Windows that an operator asked the combiner for.",
        lambda r: r.counters.held.external_windows,
    ),
    gauge(
        "held_bytes",
        "Memory of slices that wait for the combiner, with their seeds and its answers.",
        lambda r: r.counters.held.held_bytes,
    ),
    gauge(
        "held_bytes_limit",
        "The bound on it (combiner.max_bytes); 0 without a combiner.",
        lambda r: r.counters.held.max_bytes,
    ),
    gauge(
        "held_oldest_seconds",
        "How long the oldest slice waits for the combiner.",
        lambda r: r.counters.held.oldest_s,
    ),
    gauge(
        "combiner_silent_seconds",
        "Time since the last message of the combiner, which answers every second; 0 without a combiner.",
        lambda r: r.counters.held.silent_s,
    ),
    gauge("held_slices", "Slices that wait for the combiner.", lambda r: r.counters.held.held_slices),
    counters(
        "held_slices_left",
        "Slices that were held, by their end: windows of the combiner, timeout, memory needed.",
        "end",
        lambda r: r.counters.held.slices.items(),
    ),
    counters(
        "seed_faults",
        "Messages, windows and slices that node and combiner could not exchange.",
        "fault",
        lambda r: r.counters.held.faults.items(),
    ),
    counter(
        "late_decisions",
        "Decisions that were sent after their deadline (latency.deadline_us).",
        lambda r: r.counters.late_decisions,
    ),
    counter(
        "decisions_sent_first",
        "Decisions that were sent before files and journal (latency.decisions_first).",
        lambda r: r.counters.decisions_first,
    ),
    counters(
        "objects",
        "Objects found in events, by collection of the chain.",
        "collection",
        lambda r: r.counters.objects.items(),
    ),
    # Numbers of the detector
    gauges(
        "detector_condition_measured",
        "Median of the last values of the histogram that measures the number; NaN before 5,000 values.",
        "quantity",
        lambda r: [(c.name, math.nan if c.measured is None else c.measured) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_configured",
        "The number that the kernels use, in the unit of the measured one.",
        "quantity",
        lambda r: [(c.name, c.configured) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_tolerance",
        "Largest difference between measured and configured number that costs no events.",
        "quantity",
        lambda r: [(c.name, c.tolerance) for c in r.state.detector_conditions],
    ),
    counters(
        "detector_condition_values",
        "Values of the histogram that measures the number.",
        "quantity",
        lambda r: [(c.name, c.values) for c in r.state.detector_conditions],
    ),
    gauges(
        "detector_condition_followed",
        "1 if the number that the kernels use was measured in an earlier run.",
        "quantity",
        lambda r: [(c.name, c.followed) for c in r.state.detector_conditions],
    ),
    # Outputs over sockets
    counters("output_messages_sent", "Messages sent.", "output", _of_outputs(lambda output: output.sent)),
    counters(
        "output_messages_dropped",
        "Messages dropped by the policy of the output.",
        "output",
        _of_outputs(lambda output: sum(output.dropped.values())),
    ),
    counters(
        "output_blocked",
        "Attempts refused by the queue of the consumer.",
        "output",
        _of_outputs(lambda output: output.blocked),
    ),
    gauges(
        "output_messages_queued",
        "Messages kept for a slow consumer.",
        "output",
        _of_outputs(lambda output: output.queued),
    ),
    counter(
        "decisions_published", "Decisions handed to the socket of the publisher.", lambda r: r.counters.decisions.sent
    ),
    counters(
        "decisions_dropped",
        "Decisions not published, by reason.",
        "reason",
        lambda r: r.counters.decisions.dropped.items(),
    ),
    counter(
        "decisions_blocked", "Attempts refused by a full queue of a subscriber.", lambda r: r.counters.decisions.blocked
    ),
    gauge(
        "decision_subscriptions", "Subscriptions to the decision stream.", lambda r: r.counters.decisions.subscribers
    ),
    # Files
    counters("events_written", "Events handed to the disk.", "stream", _of_streams(lambda stream: stream.events)),
    counters("event_bytes_written", "Bytes handed to the disk.", "stream", _of_streams(lambda stream: stream.bytes)),
    counters(
        "event_files_finished", "Files renamed to their final name.", "stream", _of_streams(lambda stream: stream.files)
    ),
    counters(
        "events_not_stored",
        "Kept events of a series without files (output.streams).",
        "stream",
        lambda r: r.counters.events_not_stored.items(),
    ),
    counters(
        "events_dropped",
        "Events not written because the disk refused them.",
        "stream",
        _of_streams(lambda stream: stream.dropped),
    ),
    counters("write_errors", "Write attempts refused by the disk.", "kind", lambda r: r.counters.writer.errors.items()),
    gauge("event_bytes_pending", "Bytes waiting for the disk.", lambda r: r.counters.writer.pending_bytes),
    gauge(
        "output_queue_bytes",
        "Bytes of gathered records and decisions that are not yet acknowledged.",
        lambda r: r.state.output_queue_bytes,
    ),
    counters(
        "quarantined_events",
        "Events moved to quarantine/, by reason.",
        "reason",
        lambda r: r.counters.writer.quarantined_events.items(),
    ),
    counters(
        "quarantined_files",
        "Files written to quarantine/, by reason.",
        "reason",
        lambda r: r.counters.writer.quarantined_files.items(),
    ),
    counter(
        "events_missing",
        "Acknowledged events of the journal that no file contained at the start.",
        lambda r: r.counters.writer.missing_events,
    ),
    counter(
        "revoked_meps_out_of_reach",
        "Revoked MEPs with events that are or may be in a finished file.",
        lambda r: r.counters.writer.out_of_reach_meps,
    ),
    counter(
        "journal_damage",
        "Places where the journal was unreadable at the start.",
        lambda r: r.counters.writer.journal_damage,
    ),
    counter(
        "power_cuts",
        "Starts after an outage of the machine in which the previous session did not end in order.",
        lambda r: r.counters.writer.power_cuts,
    ),
    counters(
        "histograms_saved",
        "Attempts to write a file of histograms.",
        "outcome",
        lambda r: r.counters.writer.histogram_files.items(),
    ),
    gauges(
        "output_free_bytes",
        "Free bytes of the file system of output.directory; NaN if they cannot be read.",
        "filesystem",
        lambda r: [(r.state.output_filesystem, r.state.output_free_bytes)],
    ),
    # Operation of the node
    gauges(
        "run_state",
        "1 for the state of the run control.",
        "state",
        lambda r: [(known, known is r.state.run_state) for known in RunState],
    ),
    Row(
        Kind.COUNTER,
        "commands",
        "Commands of operators.",
        ("command", "outcome"),
        lambda r: r.counters.operation.commands.items(),
    ),
    gauge(
        "config_version",
        "Generation of the configuration; rises with each applied reload.",
        lambda r: r.counters.operation.config_version,
    ),
    counters(
        "config_reloads", "Reloads of the configuration.", "outcome", lambda r: r.counters.operation.reloads.items()
    ),
    gauge(
        "last_reload_successful",
        "0 if the last reload was refused: the file or a key of it is not valid.",
        lambda r: not r.counters.operation.last_reload_refused,
    ),
    gauge(
        "last_reload_success_timestamp_seconds",
        "Unix time when the configuration in force was read.",
        lambda r: r.counters.operation.last_reload_s,
    ),
    Row(
        Kind.COUNTER,
        "connection_events",
        "Connections made, ended or failed.",
        ("socket", "event"),
        lambda r: r.counters.operation.connections.items(),
    ),
    gauges(
        "connections", "Connections that are open.", "socket", lambda r: r.counters.operation.open_connections.items()
    ),
    Row(
        Kind.COUNTER,
        "connections_refused",
        "Connections ended by a limit.",
        ("socket", "reason"),
        lambda r: r.counters.operation.connections_refused.items(),
    ),
    counter(
        "address_refusals",
        "Times that an address was refused, for what its connections had sent.",
        lambda r: r.counters.operation.address_refusals,
    ),
    gauge(
        "refused_addresses",
        "Addresses whose connections are refused now.",
        lambda r: r.counters.operation.refused_addresses,
    ),
    gauge(
        "refuses_unknown_addresses",
        "1 while new connections of all unknown addresses are refused.",
        lambda r: int(r.counters.operation.refuses_unknown),
    ),
    gauges(
        "unfinished_bytes",
        "Bytes read from peers that are not yet part of a complete message.",
        "socket",
        lambda r: r.counters.operation.unfinished_bytes.items(),
    ),
    Row(
        Kind.COUNTER,
        "login_failures",
        "Peers and commands refused.",
        ("socket", "reason"),
        lambda r: r.counters.operation.login_failures.items(),
    ),
)
