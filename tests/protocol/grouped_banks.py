"""Oracle of the compiled packing: raw banks grouped into MFPs one by one."""

from collections.abc import Callable, Collection, Sequence

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import MfpError, RejectReason
from hltnode.protocol.raw_data.bank_types import NO_BANK
from hltnode.protocol.raw_data.mfp import encode_mfp
from hltnode.protocol.raw_data.raw_bank import RawBank


def group_into_mfps(
    events: Sequence[Sequence[RawBank]],
    first_event_id: int,
    source_of: Callable[[RawBank], int | None],
    error_type: int | None = None,
    error_types: Collection[int] = (),
) -> dict[int, bytes]:
    """The MFPs of a MEP, by source id in ascending order, from the raw banks of its events.

    Event i of the MEP has the id first_event_id + i. `source_of` returns the u16 source id of a bank; banks for which
    it returns None are skipped. If a source has several banks in one event, its fragment has the payload of the first
    one and the type `error_type`. Banks of `error_types` may have any version: they get the one of their MFP, which is
    that of the other banks. Raises MfpError for several banks without `error_type`, and for two bank versions.
    """
    n = len(events)
    types_of: dict[int, bytearray] = {}
    fragments_of: dict[int, list[Buffer]] = {}
    version_of: dict[int, int] = {}
    version_of_errors: dict[int, int] = {}
    for i, banks in enumerate(events):
        for bank in banks:
            source = source_of(bank)
            if source is None:
                continue
            types = types_of.get(source)
            if types is None:
                types = types_of[source] = bytearray((NO_BANK,)) * n
                fragments_of[source] = [b""] * n
            if bank.type == NO_BANK:
                raise MfpError(
                    RejectReason.MALFORMED,
                    f"source {source}, event {first_event_id + i}: type {NO_BANK} marks an absent bank",
                )
            if types[i] != NO_BANK and error_type is not None:
                types[i] = error_type
                continue
            if types[i] != NO_BANK:
                raise MfpError(
                    RejectReason.DUPLICATE,
                    f"source {source}, event {first_event_id + i}: second bank (type {bank.type} after {types[i]})",
                )
            if bank.type in error_types:
                version_of_errors.setdefault(source, bank.version)
            elif version_of.setdefault(source, bank.version) != bank.version:
                raise MfpError(
                    RejectReason.MISMATCH,
                    f"source {source}, event {first_event_id + i}: bank version {bank.version}, "
                    f"{version_of[source]} in earlier events",
                )
            types[i] = bank.type
            fragments_of[source][i] = bank.payload
    return {
        source: encode_mfp(
            source_id=source,
            event_id=first_event_id,
            version=version_of[source] if source in version_of else version_of_errors[source],
            types=types_of[source],
            fragments=fragments_of[source],
        )
        for source in sorted(types_of)
    }
