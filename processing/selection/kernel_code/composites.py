"""Writes the kernel of one composite: one block per event.

The candidates of each part that satisfy the conditions on them alone are listed first; without a first part, the second
one is not searched. Then the threads test all pairs of both lists. A prefix sum gives the pairs that pass their places,
so the result does not depend on the number of threads. The conditions on both parts are tested in their order, each one
only if the ones before are true. A pair that passes computes its numbers again: few pairs do.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.expressions.nodes import Node, Variable
from hltnode.processing.selection.kernel_code.expressions import (
    INDENT,
    ExpressionWriter,
    Scope,
    counter_of,
    shared_counts,
)
from hltnode.processing.selection.lines.composite import Combination

INCLUDES = ("selection/expressions/lanes.cuh",)


class CompositeWriter(ExpressionWriter):
    """Writes one kernel.

    members, firsts: C++ names of columns, and of the functions `first` of their collections. lists: those of the
    scratch memory for the numbers of the first and of the second parts.
    """

    def __init__(
        self,
        combination: Combination,
        members: Mapping[Column, str],
        firsts: Mapping[Collection, str],
        lists: tuple[str, str],
    ) -> None:
        super().__init__(members, firsts)
        self._combination = combination
        self._lists = lists
        self._of_both = False
        """Whether the innermost scopes are those of a pair."""
        self._counts_unknown = False

    def write(self, name: str, flags: str) -> str:
        """The kernel `name`. flags: C++ name of the event flags."""
        made = self._combination
        of_first, of_second, of_both = made.factors
        steps = shared_counts(made.roots)
        n_counts = 2 * sum(len(step) for step in steps)
        out = self._event.lines
        out += [
            "if (!p.takes(blockIdx.x)) return;",
            "__shared__ uint32_t scratch[hlt::max_block_size / hlt::warp_size];",
        ]
        if steps:
            out += [
                f"__shared__ uint32_t counted[{n_counts}];",
                f"for (uint32_t i = threadIdx.x; i < {n_counts}u; i += blockDim.x) counted[i] = 0;",
                "__syncthreads();",
            ]
        begin = 0
        for step in steps:
            self._write_counts(step, begin, frozenset())
            begin += 2 * len(step)
        self._uses_parts = False
        first = self._list_part(0, made.first, of_first)
        out += ["uint32_t n_first = 0, n_second = 0, n_made = 0;", *first]
        second = self._list_part(1, made.second, of_second)
        out += ["if (n_first != 0) {", *(INDENT + text for text in second), "}", "__syncthreads();"]
        bound = f"{made.bound}u"
        test = self._test_pair(of_both)
        write = self._write_pair()
        out += [
            f"const uint32_t first_made = {self._firsts[made.collection]}(blockIdx.x);",
            "const uint32_t n_pairs = n_first * n_second;",
            "uint32_t of_first = 0, of_second = threadIdx.x;",
            "for (uint32_t base = 0; base < n_pairs; base += blockDim.x) {",
            INDENT + "for (; of_second >= n_second; of_second -= n_second) ++of_first;",
            INDENT + "bool passes = false;",
            INDENT + f"uint32_t {counter_of(made.first)} = 0, {counter_of(made.second)} = 0;",
            INDENT + "if (of_first < n_first) {",
            *(INDENT * 2 + text for text in test),
            INDENT + "}",
            INDENT + "of_second += blockDim.x;",
            INDENT + "uint32_t total;",
            INDENT + "const uint32_t place = n_made + hlt::block_exclusive_count(passes, scratch, total);",
            INDENT + "n_made += total;",
            INDENT + f"if (passes && place < {bound}) {{",
            *(INDENT * 2 + text for text in write),
            INDENT + "}",
            "}",
            "if (threadIdx.x == 0) {",
            INDENT + f"if (n_made > {bound}) {flags}[blockIdx.x] |= {int(EventFlag.OVERFLOW)}u;",
            INDENT + f"{self._members[made.count]}[blockIdx.x] = hlt::min_of(n_made, {bound});",
            INDENT + f"{self._members[made.left_out]}[blockIdx.x] = n_made - hlt::min_of(n_made, {bound});",
            "}",
        ]
        return "\n".join([f"HLT_KERNEL({name})", "{", *(INDENT + text for text in out), "}", ""])

    def _list_part(self, which: int, variable: Variable, conditions: Sequence[Node]) -> list[str]:
        """List the numbers of the candidates of one part."""
        word, counter = ("first", "second")[which], counter_of(variable)
        loop = self._loop(variable)
        with ExitStack() as inside:
            self._enter_all(conditions, inside)
            self._stack[-1].lines.append("listed = true;")
        assert self._stack.pop() is loop
        return [
            f"const uint32_t n_of_{word} = {self._members[variable.count]}[blockIdx.x];",
            f"uint16_t* const list = {self._lists[which]} + {self._firsts[variable.collection]}(blockIdx.x);"
            if which
            else f"uint16_t* const firsts = {self._lists[0]} + {self._firsts[variable.collection]}(blockIdx.x);",
            f"for (uint32_t base = 0; base < n_of_{word}; base += blockDim.x) {{",
            INDENT + f"const uint32_t {counter} = base + threadIdx.x;",
            INDENT + "bool listed = false;",
            INDENT + f"if ({counter} < n_of_{word}) {{",
            *(INDENT * 2 + text for text in loop.lines),
            INDENT + "}",
            INDENT + "uint32_t total;",
            INDENT + f"const uint32_t place = n_{word} + hlt::block_exclusive_count(listed, scratch, total);",
            INDENT + f"n_{word} += total;",
            INDENT + f"if (listed) {'list' if which else 'firsts'}[place] = static_cast<uint16_t>({counter});",
            "}",
        ]

    def _enter_all(self, conditions: Sequence[Node], inside: ExitStack) -> None:
        """Enter a block in which all conditions are true."""
        for condition in conditions:
            inside.enter_context(self._inside(self._truth(condition)[0]))

    def _pair_scope(self) -> Scope:
        self._of_both = True
        return self._loop(self._combination.second)

    def _test_pair(self, conditions: Sequence[Node]) -> list[str]:
        """Set `passes` for the pair of the places of_first and of_second."""
        made = self._combination
        second = f"{self._lists[1]}[{self._firsts[made.second.collection]}(blockIdx.x) + of_second]"
        scope = self._pair_scope()
        with ExitStack() as inside:
            self._enter_all(conditions, inside)
            self._stack[-1].lines.append("passes = true;")
        assert self._stack.pop() is scope
        self._of_both = False
        return [
            f"{counter_of(made.first)} = firsts[of_first];",
            f"{counter_of(made.second)} = {second};",
            *scope.lines,
        ]

    def _write_pair(self) -> list[str]:
        """Write a candidate at its place."""
        made = self._combination
        scope = self._pair_scope()
        values = {made.columns[name]: self._value(value) for name, value in made.numbers.items()}
        assert self._stack.pop() is scope
        self._of_both = False
        parts = (counter_of(made.first), counter_of(made.second))
        return [
            *scope.lines,
            *(
                f"{self._members[column]}[first_made + place] = static_cast<uint16_t>({part});"
                for column, part in zip(made.parts, parts, strict=True)
            ),
            *(f"{self._members[column]}[first_made + place] = {value};" for column, value in values.items()),
        ]

    def _home(self, at: Node) -> Scope:
        """The innermost scope of the pair for all that depends on a part: it is computed only where it is needed."""
        if self._of_both and self._combination.first in at.free:
            for scope in reversed(self._stack):
                if scope.variable in at.free or scope.variable == self._combination.second:
                    return scope
        return super()._home(at)
