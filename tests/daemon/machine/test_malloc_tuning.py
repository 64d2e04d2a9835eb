"""Freed blocks of megabytes stay in the heap."""

import subprocess
import sys

import pytest

ROUNDS = 20
BLOCKS = 8
"""Blocks that are freed together: more than the heap keeps by default."""
PAGES = 1024
"""Pages of a block."""
PROGRAM = f"""
import resource, sys
from hltnode.daemon.machine.malloc_tuning import keep_heap
kept = sys.argv[1] == "keep" and keep_heap()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    blocks = [b"x" * ({PAGES} * 4096) for _ in range({BLOCKS})]
    del blocks
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is of glibc")
@pytest.mark.parametrize("asked", ["keep", "not"])
def test_blocks_that_were_freed_cost_no_page_faults_again(asked: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    kept, faults = done.stdout.split()
    assert kept == str(asked == "keep")
    # The first blocks have their faults in any case.
    assert (int(faults) < 3 * BLOCKS * PAGES) == (asked == "keep"), faults
