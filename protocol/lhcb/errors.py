"""Errors of banks of LHCb's detectors and simulation."""

from hltnode.protocol.errors import BankError


class TruthError(BankError):
    """The Monte Carlo truth banks of an event are malformed."""


class VeloBankError(BankError):
    """A VELO super-pixel or retina-cluster bank is malformed."""


class UtBankError(BankError):
    """A UT bank is malformed."""


class SciFiBankError(BankError):
    """A SciFi (FTCluster) bank is malformed."""


class MuonBankError(BankError):
    """A muon bank is malformed."""


class PlumeBankError(BankError):
    """A bank of the luminometer PLUME is malformed."""


class EcalBankError(BankError):
    """A bank of the electromagnetic calorimeter is malformed."""
