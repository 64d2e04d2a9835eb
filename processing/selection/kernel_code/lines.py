"""Writes the kernel of all lines and histograms: one block per event, every expression once, each collection in one
loop.

Counts over collections that depend on no candidate are made first, in parallel, in as many steps as they depend on one
another. Then each collection is taken once: a thread takes a candidate through all lines on it, and into histograms.
Histograms of some events only (accepted ones, a sample) come behind the decision, in loops that other events skip.
"""

from collections.abc import Mapping, Sequence

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.histograms import histogram_counts
from hltnode.processing.framework.limits import line_words
from hltnode.processing.selection.expressions.expression import Kind, Node, Op, Variable, postorder
from hltnode.processing.selection.kernel_code.expressions import (
    INDENT,
    ExpressionWriter,
    by_variable,
    counter_of,
    shared_counts,
)
from hltnode.processing.selection.kernel_code.selected import CandidateWriter
from hltnode.processing.selection.lines.histogram import RecordedHistogram, sample_limit
from hltnode.processing.selection.lines.line import Line

INCLUDES = ("selection/expressions/functions.cuh", "selection/lines/histograms.cuh", "selection/lines/scalers.cuh")

Fill = tuple[int, RecordedHistogram]
"""A histogram, and the number of its first counter."""
ByCandidate = dict[Variable | None, list[Fill]]


class KernelWriter(ExpressionWriter):
    """Writes one kernel. candidates: writes what is reported of candidates, None: nothing is."""

    def __init__(
        self,
        members: Mapping[Column, str],
        firsts: Mapping[Collection, str],
        candidates: CandidateWriter | None = None,
    ) -> None:
        super().__init__(members, firsts)
        self._candidates = candidates

    def write(
        self, name: str, lines: Sequence[Line], event_words: Sequence[Node], histograms: Sequence[RecordedHistogram]
    ) -> str:
        """The kernel `name`. event_words: by what scalers know an event."""
        n_words = line_words(len(lines))
        filled = [node for histogram in histograms for node in (histogram.condition, histogram.value)]
        selecting = frozenset(postorder([line.condition for line in lines]))
        steps = shared_counts([*(line.condition for line in lines), *filled])
        n_counts = 2 * sum(len(step) for step in steps)
        out = self._event.lines
        out += [
            "if (!p.takes(blockIdx.x)) return;",
            f"__shared__ uint32_t selected[{n_words}], decisions[{n_words}], unknown;",
            f"__shared__ uint32_t counted[{max(n_counts, 1)}];",
            *(() if self._candidates is None else self._candidates.shared),
            f"for (uint32_t i = threadIdx.x; i < {n_words}u; i += blockDim.x) selected[i] = decisions[i] = 0;",
            f"for (uint32_t i = threadIdx.x; i < {max(n_counts, 1)}u; i += blockDim.x) counted[i] = 0;",
            "if (threadIdx.x == 0) unknown = 0;",
            "__syncthreads();",
        ]
        begin = 0
        for step in steps:
            self._write_counts(step, begin, selecting)
            begin += 2 * len(step)
        of_every_event, of_some = self._by_events(histograms)
        lines_on = by_variable([line.variable for line in lines])
        for variable in dict.fromkeys((*lines_on, *of_every_event)):
            self._counts_unknown = True
            on = [(place, lines[place]) for place in lines_on.get(variable, ())]
            if variable is None:
                self._write_lines_on_events(on)
                self._fill_of_events(of_every_event.get(variable, ()))
            else:
                self._write_loop(variable, on, of_every_event.get(variable, ()))
        words = ", ".join(self._value(word) for word in event_words)
        out += [
            "__syncthreads();",
            f"const uint32_t event_words[{len(event_words)}] = {{{words}}};",
            f"for (uint32_t i = threadIdx.x; i < {len(lines)}u; i += blockDim.x) {{",
            INDENT + "if ((selected[i / 32] >> i % 32 & 1u) == 0) continue;",
            INDENT + "const hlt::line_record line = p.line_table[i];",
            INDENT + "if (hlt::scaler_passes(line.prescale, event_words) && "
            "hlt::scaler_passes(line.postscale, event_words))",
            INDENT * 2 + "atomicOr(&decisions[i / 32], 1u << i % 32);",
            "}",
            "__syncthreads();",
            f"for (uint32_t i = threadIdx.x; i < {n_words}u; i += blockDim.x)",
            INDENT + f"p.events.lines[static_cast<uint64_t>(blockIdx.x) * {n_words}u + i] = decisions[i];",
            "uint32_t any = 0;",
            f"for (uint32_t i = 0; i < {n_words}u; ++i) any |= decisions[i];",
            "if (threadIdx.x == 0) {",
            INDENT + "p.events.accepted[blockIdx.x] = any != 0 ? 1 : 0;",
            INDENT + "p.events.unknown_selections[blockIdx.x] = unknown;",
            "}",
        ]
        for condition, by_candidate in of_some.items():
            with self._inside(condition):
                for variable, fills in by_candidate.items():
                    if variable is None:
                        self._fill_of_events(fills)
                    else:
                        self._write_loop(variable, (), fills)
        if self._candidates is not None:
            self._write_candidates(self._candidates, n_words)
        return "\n".join([f"HLT_KERNEL({name})", "{", *(INDENT + text for text in out), "}", ""])

    # --- lines --------------------------------------------------------------------------------------------------------

    def _write_lines_on_events(self, lines: Sequence[tuple[int, Line]]) -> None:
        """All lines that look at the event alone."""
        if not lines:
            return
        truths = [(place, line, *self._truth(line.condition)) for place, line in lines]
        self._event.lines.append("if (threadIdx.x == 0) {")
        for place, line, true, false in truths:
            self._event.lines.append(INDENT + f"if ({true}) atomicOr(&selected[{place // 32}], {1 << place % 32}u);")
            if line.condition.may_be_unknown:
                self._event.lines.append(INDENT + f"if (!{true} && !{false}) atomicAdd(&unknown, 1u);")
        self._event.lines.append("}")

    def _write_loop(self, variable: Variable, lines: Sequence[tuple[int, Line]], fills: Sequence[Fill]) -> None:
        """All lines and histograms on one collection."""
        out = self._stack[-1].lines
        words = sorted({place // 32 for place, _ in lines})
        name = f"of_{variable.collection.name}"
        unknown = any(line.condition.may_be_unknown for _, line in lines)
        loop = self._loop(variable)
        masks = {word: f"lines_{word}" for word in words}
        loop.lines += [f"uint32_t {mask} = 0;" for mask in masks.values()]
        for place, line in lines:
            true, false = self._truth(line.condition)
            loop.lines.append(f"{masks[place // 32]} |= {true} ? {1 << place % 32}u : 0u;")
            if line.condition.may_be_unknown:
                loop.lines.append(f"{name}_unknown += {true} | {false} ? 0u : 1u;")
        loop.lines += [f"{name}_{word} |= {mask};" for word, mask in masks.items()]
        if lines and self._candidates is not None:
            group = self._candidates.keeps(variable.collection, variable.count)
            loop.lines += self._candidates.keep(group, counter_of(variable), masks) if group else []
        self._fill(fills)
        out += [f"uint32_t {name}_{word} = 0;" for word in words]
        out += [f"uint32_t {name}_unknown = 0;"] if unknown else []
        self._close(loop, "threadIdx.x", "blockDim.x")
        out += [f"if ({name}_{word} != 0) atomicOr(&selected[{word}], {name}_{word});" for word in words]
        out += [f"if ({name}_unknown != 0) atomicAdd(&unknown, {name}_unknown);"] if unknown else []

    # --- candidates ---------------------------------------------------------------------------------------------------

    def _write_candidates(self, writer: CandidateWriter, n_words: int) -> None:
        """Of an accepted event: the candidates of its lines, and the objects that they are."""
        out = [*writer.number_objects(n_words), "__syncthreads();"]
        out.append("for (uint32_t k = threadIdx.x; k < n_reported; k += blockDim.x) {")
        out.append(INDENT + "uint32_t* const at = words + places[k];")
        for index, one in enumerate(writer.lines.reported):
            variable = one.input.variable(0)
            assert variable is not None
            loop = self._loop(variable)
            values = [self._value(value) for value in one.values]
            assert self._stack.pop() is loop
            out += [
                INDENT + f"if (objects[k] >> 16 == {index}u) {{",
                INDENT * 2 + f"const uint32_t {counter_of(variable)} = objects[k] & 0xFFFFu;",
                *(INDENT * 2 + text for text in (*self._parts(loop), *loop.lines)),
                *(INDENT * 2 + text for text in writer.write_object(index, counter_of(variable), values)),
                INDENT + "}",
            ]
        out.append("}")
        self._event.lines += ["if (any == 0) return;", *out]

    # --- histograms ---------------------------------------------------------------------------------------------------

    def _by_events(self, histograms: Sequence[RecordedHistogram]) -> tuple[ByCandidate, dict[str, ByCandidate]]:
        """Histograms of all events by their candidates, and those of some events by the condition on the event; each
        with the number of its first counter."""
        every: ByCandidate = {}
        some: dict[str, ByCandidate] = {}
        begin = 0
        for histogram in histograms:
            conditions = ["any != 0"] if histogram.accepted else []
            if (sample := sample_limit(histogram.prescale)) is not None:
                scaler = f"hlt::line_scaler{{{sample[0]}u, {sample[1]}u, 0u}}"
                conditions.append(f"hlt::scaler_passes({scaler}, event_words)")
            group = some.setdefault(" && ".join(conditions), {}) if conditions else every
            group.setdefault(histogram.variable, []).append((begin, histogram))
            begin += histogram.shape.n_counts
        return every, some

    def _fill_of_events(self, fills: Sequence[Fill]) -> None:
        if fills:
            with self._inside("threadIdx.x == 0"):
                self._fill(fills)

    def _fill(self, fills: Sequence[Fill]) -> None:
        """Count what the innermost scope has: a candidate, or the event."""
        self._counts_unknown = False
        for begin, histogram in fills:
            if histogram.condition.op is Op.CONST and histogram.condition.payload:
                self._add(begin, histogram)
                continue
            true, false = self._truth(histogram.condition)
            with self._inside(true):
                self._add(begin, histogram)
            if histogram.condition.may_be_unknown:
                last = begin + histogram.shape.n_counts - 1
                counter = f"{self._members[histogram_counts]}[{last}]"
                self._stack[-1].lines.append(f"if (!{true} && !{false}) atomicAdd(&{counter}, 1u);")
        self._counts_unknown = True

    def _add(self, begin: int, histogram: RecordedHistogram) -> None:
        assert histogram.value.kind is Kind.FLOAT
        value = self._value(histogram.value)
        limits = ", ".join(f"({float(limit).hex()}f)" for limit in histogram.limits)
        counters = f"{self._members[histogram_counts]} + {begin}u"
        self._stack[-1].lines.append(
            f"hlt::lines::count_value({counters}, {value}, {limits}, {histogram.shape.bins}u);"
        )
