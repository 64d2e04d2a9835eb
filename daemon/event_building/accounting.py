"""The accounting identities of a run: each fragment and each MEP is counted in exactly one class."""

from hltnode.daemon.event_building.event_builder import EventBuilder
from hltnode.daemon.monitoring.counters import Counters
from hltnode.protocol.errors import RejectReason

_OWN_CLASS = {
    RejectReason.DUPLICATE: "duplicate",
    RejectReason.LATE: "late",
    RejectReason.REVOKED: "revoked",
    RejectReason.FOREIGN_RUN: "foreign_run",
    RejectReason.UNKNOWN_SOURCE: "unknown_source",
    RejectReason.NO_CREDIT: "no_credit",
    RejectReason.MISMATCH: "mismatch",
    RejectReason.UNKNOWN_TOKEN: "unknown_token",
    RejectReason.FOREIGN_SOURCE: "foreign_source",
}


def fragment_accounting(counters: Counters, builder: EventBuilder) -> dict[str, int]:
    """Number of fragments in each class. ``unaccounted`` counts received fragments in no class: 0 without a defect.

    ``corrupt`` is the sum over all reasons of damage (magic, version, size, CRC, truncated, oversized, malformed).
    ``in_build`` counts the fragments of open MEPs. `received = built + lost_in_drop + duplicate + late + revoked
    + foreign_run + corrupt + abandoned + unknown_source + no_credit + mismatch + unknown_token
    + foreign_source + in_build`.
    """
    classes = {
        "built": counters.fragments_built,
        "lost_in_drop": counters.fragments_lost_in_drop,
        "abandoned": counters.fragments_abandoned,
        "in_build": builder.fragments_in_build,
        "corrupt": 0,
    }
    for reason, count in counters.fragments_rejected.items():
        name = _OWN_CLASS.get(reason, "corrupt")
        classes[name] = classes.get(name, 0) + count
    received = counters.fragments_received
    return {"received": received, **classes, "unaccounted": received - sum(classes.values())}


def mep_accounting(counters: Counters, builder: EventBuilder) -> dict[str, int]:
    """Number of MEPs in each class: `opened = sum over close reasons + abandoned + open + unaccounted`."""
    classes = {
        **{reason.value: count for reason, count in counters.meps_closed.items()},
        "abandoned": counters.meps_abandoned,
        "open": len(builder.open),
    }
    return {"opened": counters.meps_opened, **classes, "unaccounted": counters.meps_opened - sum(classes.values())}


def slice_accounting(counters: Counters, builder: EventBuilder) -> dict[str, int]:
    """Number of closed time slices in each class: `closed = computed + thin + drop + in_slots + unaccounted`.

    ``computed``: those that the back end gets. ``in_slots``: those in slots that are not sealed.
    """
    classes = {
        "computed": counters.meps_sealed,
        **{rule.value: count for rule, count in counters.slices_dropped.items()},
        "in_slots": sum(len(slot.meps) - slot.open_meps for slot in builder.pool.filling),
    }
    closed = sum(counters.meps_closed.values())
    return {"closed": closed, **classes, "unaccounted": closed - sum(classes.values())}


def accounting(counters: Counters, builder: EventBuilder) -> dict[str, dict[str, int]]:
    """The identities, for /status, run summaries and tests; that of slices only for a streaming chain."""
    accounts = {"fragments": fragment_accounting(counters, builder), "meps": mep_accounting(counters, builder)}
    if counters.is_streaming:
        accounts["slices"] = slice_accounting(counters, builder)
    return accounts


def closes(accounts: dict[str, dict[str, int]]) -> bool:
    """True when every fragment and every MEP is accounted for."""
    return all(account["unaccounted"] == 0 for account in accounts.values())
