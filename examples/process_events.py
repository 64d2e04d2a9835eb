"""Run the events of files through the HLT1 chain, without a node, and print the accepted events of each line.

python examples/process_events.py minbias.mdf --trigger examples/trigger.toml
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hltnode.processing.framework.backends.factory import create_backend
from hltnode.processing.framework.event_files import read_all_tables
from hltnode.processing.framework.limits import BatchLimits
from hltnode.processing.framework.offline_runner import OfflineRunner, encode_meps
from hltnode.processing.lhcb.chain import CHAIN

EVENTS_PER_MEP = 50
LIMITS = BatchLimits(events=200, input_bytes=8 << 20)

INPUT_RATE_KHZ = 30_000
"""LHCb's rate of crossings with bunches of both beams in kHz, which HLT1 reads without a hardware trigger."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Print the accepted events of each selection line.")
    parser.add_argument("files", nargs="+", type=Path, help="MDF or MEP files")
    parser.add_argument("--trigger", type=Path, help="trigger configuration; default: the built-in one")
    parser.add_argument("--sequence", help="sequence to run; default: the configured one")
    options = parser.parse_args(arguments)

    backend = create_backend("cpu", CHAIN.kernels, threads=2)
    trigger = CHAIN.load_trigger(options.trigger, options.sequence)
    geometry = CHAIN.with_sequence(trigger.sequence).load_geometry(None)
    engine = CHAIN.create_engine(backend, geometry, trigger, LIMITS)

    n_events = n_accepted = 0
    of_line = np.zeros(len(engine.lines), dtype=np.int64)
    found = dict.fromkeys(engine.collections, 0)
    for batch in OfflineRunner(engine).run(encode_meps(engine.chain, read_all_tables(options.files), EVENTS_PER_MEP)):
        # The next batch overwrites the output, so count it here.
        output = batch.workspace.output
        n_events += len(output.accepted)
        n_accepted += int(output.accepted.sum())
        bits = np.unpackbits(output.lines.view(np.uint8), axis=1, count=len(engine.lines), bitorder="little")
        of_line += bits.sum(axis=0, dtype=np.int64)
        for name, counts in output.counts.items():
            found[name] += int(counts.sum())
    engine.close()

    print(f"{n_events} events, TCK 0x{engine.tck:08X}")
    for name, total in found.items():
        print(f"{name:<22} {total / n_events:6.1f} per event")
    for name, accepted in zip((*engine.lines, "any line"), (*of_line.tolist(), n_accepted), strict=True):
        rate = accepted / n_events * INPUT_RATE_KHZ
        print(f"{name:<22} {accepted:4} events, {rate:6.0f} kHz of {INPUT_RATE_KHZ}")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
