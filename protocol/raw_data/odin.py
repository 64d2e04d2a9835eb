"""ODIN banks: the event record of the timing and readout supervisor (docs/formats/odin.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hltnode.protocol.buffers import Buffer
from hltnode.protocol.errors import OdinError, RejectReason
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.mfp import Mfp
from hltnode.protocol.raw_data.raw_bank import RawBank

BANK_SIZE = 40
READABLE_VERSIONS = (6, 7)

# v7: run, event type, step, GPS time, TCK, partition, misc, orbit, event id.
_V7 = struct.Struct("<IHHQIIIIQ")
# v6: ten words; run, event type | step << 16, orbit, event id high and low, GPS time high and low, detector status
# (not kept), bunch word, TCK.  Run, event id and the bunch word were checked against simulated events.
_V6 = struct.Struct("<10I")
_U32 = 0xFFFF_FFFF
# v6 bunch word: bunch id 0-11, trigger type 16-18, crossing type 22-23.
_V6_TRIGGER_TYPE_SHIFT = 16
_V6_MAX_TRIGGER_TYPE = 7
_V6_CROSSING_SHIFT = 22


class CrossingType(IntEnum):
    """The beams with a bunch in this crossing."""

    NO_BEAM = 0
    BEAM_1 = 1
    BEAM_2 = 2
    BEAM_BEAM = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Odin:
    """The decoded bank.

    `gps_time_us` in microseconds; `event_type` a bit mask; `bunch_id` 12 bits; `crossing_type` as CrossingType;
    `tae_half_window` in crossings (6 bits); `trigger_type`, `calibration_type` 4 bits.
    """

    run: int
    event_id: int
    event_type: int = 0
    step: int = 0
    gps_time_us: int = 0
    tck: int = 0
    partition: int = 0
    bunch_id: int = 0
    crossing_type: int = CrossingType.NO_BEAM
    non_zero_suppressed: bool = False
    tae_central: bool = False
    tae_half_window: int = 0
    step_run: bool = False
    trigger_type: int = 0
    tae_first: bool = False
    calibration_type: int = 0
    orbit: int = 0


def decode_odin(bank: RawBank) -> Odin:
    """Decode an ODIN bank of version 6 or 7.

    A version-6 bank has no partition, TAE, step-run or calibration fields: they are 0; its detector status, force
    bit and bunch current are dropped.  Raises OdinError for another type, version or size.
    """
    if bank.type != BankType.ODIN:
        raise OdinError(RejectReason.MISMATCH, f"ODIN: bank type {BankType.ODIN:d} expected, {bank.type} found")
    if bank.version not in READABLE_VERSIONS:
        raise OdinError(RejectReason.BAD_VERSION, f"ODIN: version {bank.version}, {READABLE_VERSIONS} are supported")
    if len(bank.payload) != BANK_SIZE:
        raise OdinError(RejectReason.BAD_SIZE, f"ODIN: {BANK_SIZE} bytes expected, {len(bank.payload)} found")
    return _decode_v7(bank.payload) if bank.version == 7 else _decode_v6(bank.payload)


def _decode_v7(payload: memoryview) -> Odin:
    run, event_type, step, gps_time_us, tck, partition, misc, orbit, event_id = _V7.unpack(payload)
    return Odin(
        run=run,
        event_type=event_type,
        step=step,
        gps_time_us=gps_time_us,
        tck=tck,
        partition=partition,
        bunch_id=misc & 0xFFF,
        crossing_type=misc >> 12 & 0x3,
        non_zero_suppressed=bool(misc >> 14 & 1),
        tae_central=bool(misc >> 15 & 1),
        tae_half_window=misc >> 16 & 0x3F,
        step_run=bool(misc >> 22 & 1),
        trigger_type=misc >> 23 & 0xF,
        tae_first=bool(misc >> 27 & 1),
        calibration_type=misc >> 28,
        orbit=orbit,
        event_id=event_id,
    )


def _decode_v6(payload: memoryview) -> Odin:
    run, kind, orbit, event_high, event_low, gps_high, gps_low, _, bunch, tck = _V6.unpack(payload)
    return Odin(
        run=run,
        event_type=kind & 0xFFFF,
        step=kind >> 16,
        gps_time_us=gps_high << 32 | gps_low,
        tck=tck,
        bunch_id=bunch & 0xFFF,
        crossing_type=bunch >> _V6_CROSSING_SHIFT & 0x3,
        trigger_type=bunch >> _V6_TRIGGER_TYPE_SHIFT & _V6_MAX_TRIGGER_TYPE,
        orbit=orbit,
        event_id=event_high << 32 | event_low,
    )


def set_run(mfp: Buffer, run: int) -> None:
    """Write another run into all ODIN banks of an encoded MFP; other banks do not change.

    Raises MfpError for a damaged MFP, OdinError for a run that does not fit.
    """
    if not 0 <= run <= _U32:
        raise OdinError(RejectReason.OVERSIZED, f"ODIN: run {run} does not fit 32 bits")
    parsed = Mfp.parse(mfp)
    if parsed.version not in READABLE_VERSIONS:
        return
    # Both versions start with the run.
    places = parsed.offsets[(parsed.types == BankType.ODIN) & (parsed.sizes == BANK_SIZE)]
    content = np.frombuffer(mfp, np.uint8)
    for byte, value in enumerate(run.to_bytes(4, "little")):
        content[places + byte] = value


def encode_odin(odin: Odin, version: int = 7) -> RawBank:
    """The raw bank of `odin` with source id 0.  Raises OdinError for a value that the version cannot hold."""
    if version not in READABLE_VERSIONS:
        raise OdinError(RejectReason.BAD_VERSION, f"ODIN: version {version}, {READABLE_VERSIONS} are supported")
    fits = {
        "bunch_id": odin.bunch_id <= 0xFFF,
        "crossing_type": odin.crossing_type <= CrossingType.BEAM_BEAM,
        "tae_half_window": odin.tae_half_window <= 0x3F,
        "trigger_type": odin.trigger_type <= 0xF,
        "calibration_type": odin.calibration_type <= 0xF,
    }
    if not all(fits.values()):
        raise OdinError(
            RejectReason.OVERSIZED,
            f"ODIN of event {odin.event_id}: {[name for name in fits if not fits[name]]} too large",
        )
    try:
        payload = _encode_v7(odin) if version == 7 else _encode_v6(odin)
    except struct.error as error:
        raise OdinError(RejectReason.OVERSIZED, f"ODIN of event {odin.event_id}: {error}") from error
    return RawBank(BankType.ODIN, version, 0, memoryview(payload))


def _encode_v7(odin: Odin) -> bytes:
    misc = (
        odin.bunch_id
        | odin.crossing_type << 12
        | odin.non_zero_suppressed << 14
        | odin.tae_central << 15
        | odin.tae_half_window << 16
        | odin.step_run << 22
        | odin.trigger_type << 23
        | odin.tae_first << 27
        | odin.calibration_type << 28
    )
    return _V7.pack(
        odin.run,
        odin.event_type,
        odin.step,
        odin.gps_time_us,
        odin.tck,
        odin.partition,
        misc,
        odin.orbit,
        odin.event_id,
    )


def _encode_v6(odin: Odin) -> bytes:
    v7_only = {
        "partition": odin.partition,
        "non_zero_suppressed": odin.non_zero_suppressed,
        "tae_central": odin.tae_central,
        "tae_half_window": odin.tae_half_window,
        "step_run": odin.step_run,
        "tae_first": odin.tae_first,
        "calibration_type": odin.calibration_type,
        "trigger_type": odin.trigger_type > _V6_MAX_TRIGGER_TYPE,
        "event_type": odin.event_type > 0xFFFF,
    }
    if any(v7_only.values()):
        raise OdinError(
            RejectReason.MISMATCH,
            f"ODIN of event {odin.event_id}: version 6 cannot hold {[name for name in v7_only if v7_only[name]]}",
        )
    bunch = odin.bunch_id | odin.trigger_type << _V6_TRIGGER_TYPE_SHIFT | odin.crossing_type << _V6_CROSSING_SHIFT
    return _V6.pack(
        odin.run,
        odin.event_type | odin.step << 16,
        odin.orbit,
        odin.event_id >> 32,
        odin.event_id & _U32,
        odin.gps_time_us >> 32,
        odin.gps_time_us & _U32,
        0,
        bunch,
        odin.tck,
    )
