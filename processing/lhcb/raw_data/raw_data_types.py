"""Sub-detectors and bank types of LHCb for kernels."""

from hltnode.processing.framework.collections import SharedTypes
from hltnode.protocol.lhcb.bank_types import LhcbBankType
from hltnode.protocol.lhcb.subdetectors import SubDetector
from hltnode.protocol.raw_data.bank_types import NO_BANK

raw_data_types = SharedTypes(
    __file__,
    "raw_data_types",
    enums={"subdetector": SubDetector},
    sizes={
        "no_bank_type": NO_BANK,
        "retina_bank": int(LhcbBankType.VP_RETINA_CLUSTER),
        "super_pixel_bank": int(LhcbBankType.VP),
        "ut_bank_type": int(LhcbBankType.UT),
        "scifi_bank_type": int(LhcbBankType.FT_CLUSTER),
    },
)
