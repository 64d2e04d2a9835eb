"""Output lists of the chain `raw`."""

from hltnode.processing.framework.output_lists import ListValue, OutputList
from hltnode.processing.raw.banks.collections import source_bank, source_count

SOURCE_BANKS = OutputList(
    name="source_banks",
    text="the sources of each event in ascending order, with their banks",
    count=source_count,
    values={
        "source": ListValue(column=source_bank, member="source", text="source id"),
        "bank_type": ListValue(
            column=source_bank,
            member="type",
            text="bank type; 255 without a bank, 256 if it reaches beyond its MFP",
        ),
        "bank_bytes": ListValue(column=source_bank, member="size", text="bytes of the bank, without its header"),
    },
)
