"""Small batches on the CUDA back end, for compute-sanitizer: the VELO chain in each encoding with two simulated events
and a large one, and the whole HLT1 with two simulated events.

python -m benchmarks.gpu.small_batch DEVICE
"""

import sys

from benchmarks.gpu.samples import engine_of, fill, simulated, whole_hlt1
from benchmarks.lhcb.real_events import CHAIN
from hltnode.processing.framework.backends.cuda import CudaBackend

EVENTS = 2
WHOLE_SEQUENCE = "forward_then_matching"


def main(device: int) -> None:
    """Raises BackendError."""
    for sample in (*simulated(EVENTS, dense=True), whole_hlt1(WHOLE_SEQUENCE, EVENTS)):
        engine = engine_of(CudaBackend(CHAIN.kernels, device=device), sample, 1)
        workspace = engine.create_workspace()
        fill(workspace, [sample.mep])
        workspace.submit()
        workspace.wait()
        engine.close()
        print(f"{sample.name}: {int(workspace.output.accepted.sum())} of {sample.mep.n_events} accepted")


if __name__ == "__main__":
    main(int(sys.argv[1]))
