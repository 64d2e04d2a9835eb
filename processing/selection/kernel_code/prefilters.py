"""Writes the kernel of prefilters at one point of a sequence: one block per event."""

from collections.abc import Sequence

from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.expressions.nodes import Node
from hltnode.processing.selection.kernel_code.expressions import INDENT, ExpressionWriter, shared_counts

INCLUDES = ("selection/expressions/lanes.cuh",)


class PrefilterWriter(ExpressionWriter):
    """Writes one kernel."""

    def write(
        self,
        name: str,
        passed: Sequence[tuple[Node, str]],
        needs: Sequence[Sequence[Node]],
        flags: str,
        removed: int,
    ) -> str:
        """The kernel `name`.

        passed: condition of each prefilter, and the C++ name of the column with its result. needs: for each group of
        lines that need the reconstruction behind this point, the prefilters known here; an event is skipped if each
        group has one that is false. flags: C++ name of the event flags. removed: flags of events that were skipped or
        cut before, which fail here and get no flag.
        """
        steps = shared_counts([*(condition for condition, _ in passed), *(node for group in needs for node in group)])
        n_counts = max(2 * sum(len(step) for step in steps), 1)
        out = self._event.lines
        out += [
            "if (!p.takes(blockIdx.x)) return;",
            f"__shared__ uint32_t counted[{n_counts}];",
            f"for (uint32_t i = threadIdx.x; i < {n_counts}u; i += blockDim.x) counted[i] = 0;",
            "__syncthreads();",
        ]
        begin = 0
        for step in steps:
            self._write_counts(step, begin, frozenset())
            begin += 2 * len(step)
        # Only one thread reads the flags that it writes.
        out.append("if (threadIdx.x != 0) return;")
        results = [(self._truth(condition)[0], member) for condition, member in passed]
        failed = ["(" + " | ".join(self._truth(node)[1] for node in group) + ")" for group in needs]
        out += [
            f"const bool is_left = ({flags}[blockIdx.x] & {removed}u) == 0u;",
            *(f"{member}[blockIdx.x] = is_left & {true} ? 1u : 0u;" for true, member in results),
        ]
        if failed:
            out.append(f"if (is_left & {' & '.join(failed)}) {flags}[blockIdx.x] |= {int(EventFlag.PREFILTERED)}u;")
        return "\n".join([f"HLT_KERNEL({name})", "{", *(INDENT + text for text in out), "}", ""])
