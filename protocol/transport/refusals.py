"""Reasons why a node refuses a message: reasons of an `Error` and metric labels."""

from enum import StrEnum, unique


@unique
class HelloRefusal(StrEnum):
    """Reasons why a hello was refused.

    foreign_chain: the node runs another chain than that of the data; foreign_input: the run is unfinished and has
    MEPs of another input; name_taken: another process feeds under its name;
    source_taken: a feeder of another name sends one of its sources; sources_fixed: the run started without one of its
    sources; foreign_run: the node was configured or started for another run; run_active: the feeders of another run
    still feed; connection_taken: the connection belongs to another feeder or run; too_many_runs: an operator must close
    kept runs; no_conditions: the node's folder of conditions has none for the run; shadow: the node is a shadow of
    another node, which takes no feeders.
    """

    FOREIGN_CHAIN = "foreign_chain"
    FOREIGN_INPUT = "foreign_input"
    NO_SOURCES = "no_sources"
    EVENTS_PER_MEP = "events_per_mep"
    FOREIGN_RUN = "foreign_run"
    RUN_ACTIVE = "run_active"
    TOO_MANY_FEEDERS = "too_many_feeders"
    SOURCE_TAKEN = "source_taken"
    SOURCES_FIXED = "sources_fixed"
    NAME_TAKEN = "name_taken"
    CONNECTION_TAKEN = "connection_taken"
    TOO_MANY_RUNS = "too_many_runs"
    RUN_CANNOT_START = "run_cannot_start"
    NO_CONDITIONS = "no_conditions"
    SHADOW = "shadow"


@unique
class MessageRefusal(StrEnum):
    """Reasons why a control message other than a hello was refused; a refused message changes no state.

    unknown_feeder: this connection has sent no hello, the next hello repairs that; unexpected: not for a node, or not
    of its run; not_permitted: revoked MEPs that the sender may not revoke; too_many: more than a feeder sends, dropped
    unread.
    """

    MALFORMED = "malformed"
    UNKNOWN_FEEDER = "unknown_feeder"
    UNEXPECTED = "unexpected"
    NOT_PERMITTED = "not_permitted"
    TOO_MANY = "too_many"
