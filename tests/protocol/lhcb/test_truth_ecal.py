"""Truth of the calorimeter in its bank."""

import numpy as np
import pytest

from hltnode.protocol.errors import RejectReason
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.errors import TruthError
from hltnode.protocol.lhcb.truth_ecal import SHOWER, decode_ecal_truth, encode_ecal_truth
from hltnode.protocol.raw_data.raw_bank import RawBank

ROWS = np.array([(-1, 22, 100.5, -20.0, 5000.0, 4800.0), (17, -11, 0.0, 3.0, 900.0, 850.0)], SHOWER)
PAYLOAD = bytes(encode_ecal_truth(ROWS).payload)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_showers_come_back_as_written(n: int) -> None:
    bank = encode_ecal_truth(ROWS[:n])
    assert (bank.type, bank.version, len(bank.payload)) == (LhcbBankType.MC_ECAL, 1, 4 + 24 * n)
    assert decode_ecal_truth(bank).tolist() == ROWS[:n].tolist()


@pytest.mark.parametrize(
    ("bank_type", "version", "payload", "reason"),
    [
        (LhcbBankType.MC_VERTICES, 1, PAYLOAD, RejectReason.MISMATCH),
        (LhcbBankType.MC_ECAL, 2, PAYLOAD, RejectReason.BAD_VERSION),
        (LhcbBankType.MC_ECAL, 1, PAYLOAD[:3], RejectReason.TRUNCATED),
        (LhcbBankType.MC_ECAL, 1, PAYLOAD[:-1], RejectReason.BAD_SIZE),
        (LhcbBankType.MC_ECAL, 1, PAYLOAD + b"\0", RejectReason.BAD_SIZE),
        (LhcbBankType.MC_ECAL, 1, PAYLOAD[:-4] + b"\0\0\xc0\x7f", RejectReason.MALFORMED),
    ],
)
def test_a_damaged_bank_is_refused(bank_type: int, version: int, payload: bytes, reason: RejectReason) -> None:
    with pytest.raises(TruthError) as refused:
        decode_ecal_truth(RawBank(bank_type, version, 0, memoryview(payload)))
    assert refused.value.reason == reason
