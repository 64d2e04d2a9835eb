"""Values of damaged headers of LHCb: versions and types of all decoders, and unknown ones."""

from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.raw_data.bank_types import BankType
from tests.processing.chains.damage import Damage

DAMAGE = Damage(
    versions=(0, 1, 2, 3, 4, 5, 6, 7, 8, 255),
    types=(
        *(
            BankType.ODIN,
            LhcbBankType.VP,
            LhcbBankType.VP_RETINA_CLUSTER,
            LhcbBankType.UT,
            LhcbBankType.FT_CLUSTER,
            LhcbBankType.MUON,
            LhcbBankType.ECAL_PACKED,
            LhcbBankType.CALO,
        ),
        *(LhcbBankType.RICH, LhcbBankType.PCIE_TEST, 255),
    ),
)
