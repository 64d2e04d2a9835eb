"""What damaged MFPs of LHCb say: versions and types of all decoders, and some that no decoder knows."""

from hltnode.protocol.raw_data.raw_bank import BankType
from tests.processing.chains.damage import Damage

DAMAGE = Damage(
    versions=(0, 1, 2, 3, 4, 5, 6, 7, 8, 255),
    types=(
        *(BankType.ODIN, BankType.VP, BankType.VP_RETINA_CLUSTER, BankType.UT, BankType.FT_CLUSTER, BankType.MUON),
        *(BankType.RICH, BankType.PCIE_TEST, 255),
    ),
)
