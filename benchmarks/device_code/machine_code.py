"""Number of machine instructions of kernels, from NVIDIA's disassembler if it is installed."""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

_KERNEL = re.compile(r"//-+ \.text\.(\w+)\s")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def disassembler() -> Path | None:
    """Path of nvdisasm, from a CUDA toolkit or from the wheel nvidia-cuda-nvdisasm."""
    installed = shutil.which("nvdisasm")
    if installed is not None:
        return Path(installed)
    wheels = importlib.util.find_spec("nvidia")
    folders = [] if wheels is None else list(wheels.submodule_search_locations or [])
    return next((path for folder in folders for path in sorted(Path(folder).glob("*/bin/nvdisasm"))), None)


def machine_instructions(nvdisasm: Path, cubin: bytes) -> dict[str, int]:
    """Number of instructions of each kernel, without padding at its end. Raises RuntimeError if nvdisasm fails."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([nvdisasm, "--print-code", file.name], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{nvdisasm} cannot read the kernels: {done.stderr.strip()}")
    return count_instructions(done.stdout)


def count_instructions(listing: str) -> dict[str, int]:
    """Number of instructions of each kernel in the output of nvdisasm."""
    counts: dict[str, int] = {}
    kernel = ""
    for line in listing.splitlines():
        if begin := _KERNEL.match(line):
            kernel = begin[1]
            counts[kernel] = 0
        elif (instruction := _INSTRUCTION.match(line)) and instruction[1] != "NOP":
            counts[kernel] += 1
    return counts
