"""Print the lines in the decision report of each event in the files of a node.

python examples/read_accepted_events.py output/*.mdf --trigger examples/trigger.toml
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hltnode.processing.framework.event_files import read_all_events
from hltnode.processing.lhcb.chain import CHAIN
from hltnode.protocol import RawBank, decode_odin
from hltnode.protocol.raw_data.bank_types import BankType
from hltnode.protocol.raw_data.reports import decode_dec_reports


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print the lines in the decision report of each event.")
    parser.add_argument("files", nargs="+", type=Path, help="MDF files of a node")
    parser.add_argument("--trigger", type=Path, required=True, help="trigger configuration of the node")
    options = parser.parse_args(arguments)

    trigger = CHAIN.load_trigger(options.trigger)
    tck = CHAIN.document(trigger).tck
    for banks in read_all_events(options.files):
        odin = decode_odin(bank_of_type(banks, BankType.ODIN))
        reports = decode_dec_reports(bank_of_type(banks, BankType.HLT_DEC_REPORTS))
        if reports.tck != tck:
            raise SystemExit(f"event {odin.event_id} has TCK 0x{reports.tck:08X}, {options.trigger} is 0x{tck:08X}")
        fired = [name for name, line in zip(trigger.line_names, reports.lines, strict=True) if line.decision]
        nbytes = sum(len(bank.payload) for bank in banks)
        print(f"run {odin.run} event {odin.event_id}: {nbytes} bytes, {' '.join(fired) or 'no line'}")


def bank_of_type(banks: Sequence[RawBank], wanted: BankType) -> RawBank:
    """The first bank of a type; ends the program if an event has none."""
    for bank in banks:
        if bank.type == wanted:
            return bank
    raise SystemExit(f"an event has no {wanted.name} bank: was the file written by a node?")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
