"""The error hierarchy."""

from __future__ import annotations

import pickle

import pytest

from hltnode.protocol import ProtocolError, RejectReason
from hltnode.protocol.errors import MfpError


def test_an_error_has_its_text_and_its_reason() -> None:
    error = MfpError(RejectReason.BAD_SIZE, "MFP of source 5: too short")
    assert str(error) == "MFP of source 5: too short"
    assert error.reason is RejectReason.BAD_SIZE
    assert isinstance(error, ProtocolError)
    assert isinstance(error, ValueError)


def test_an_error_is_unchanged_after_pickling() -> None:
    error = pickle.loads(pickle.dumps(MfpError(RejectReason.TRUNCATED, "text")))
    assert (type(error), error.reason, str(error)) == (MfpError, RejectReason.TRUNCATED, "text")


@pytest.mark.parametrize("reason", RejectReason)
def test_a_reason_is_its_own_label(reason: RejectReason) -> None:
    assert reason == reason.name.lower()
