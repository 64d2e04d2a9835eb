"""The part of the kernel that writes the selected candidates of accepted events (reports/selected.py).

During the evaluation of lines, each object gets the words of the lines that select it. After the decisions, one thread
goes through the candidates in order, numbers their objects and assigns their places, as far as they fit. Then all
threads write the objects. One thread is enough, because few events are accepted and few candidates selected.
"""

from collections.abc import Mapping, Sequence

from hltnode.processing.framework.collections import Collection, Column
from hltnode.processing.framework.flags import EventFlag
from hltnode.processing.selection.reports.reported import NO_HIT, Hits, Reported
from hltnode.processing.selection.reports.reported_lines import Group, ReportedLines, lines_name, object_name
from hltnode.processing.selection.reports.selected import (
    HEADER_WORDS,
    MAX_CANDIDATES_OF_LINE,
    MAX_OBJECTS,
    OBJECT_WORDS,
)

_INDENT = "    "


class CandidateWriter:
    """Writes the code.

    members, scratch, firsts: C++ names of columns, of scratch memory, and of the functions `first` of collections.
    rows, count, flags: names of the rows of words, their numbers of words, and the flags of events. max_words: the
    largest row.
    """

    def __init__(
        self,
        lines: ReportedLines,
        members: Mapping[Column, str],
        scratch: Mapping[str, str],
        firsts: Mapping[Collection, str],
        *,
        rows: str,
        count: str,
        flags: str,
        max_words: int,
    ) -> None:
        self.lines = lines
        self._members = members
        self._scratch = scratch
        self._firsts = firsts
        self._rows = rows
        self._count = count
        self._flags = flags
        self._max_words = max_words

    @property
    def shared(self) -> list[str]:
        """Declarations of shared memory."""
        most = MAX_OBJECTS + max((self.lines.objects_of(collection) for collection in self.lines.groups), default=0)
        return [f"__shared__ uint32_t objects[{most}], places[{most}], n_reported;"]

    def keeps(self, collection: Collection, count: Column) -> Group | None:
        """The group of the lines on a collection; None if their candidates are not reported."""
        group = self.lines.groups.get(collection)
        return group if group is not None and group.count is count else None

    def keep(self, group: Group, counter: str, lanes: str, masks: Mapping[int, str]) -> list[str]:
        """In the loop over the candidates of a group: store the words of the lines that select them."""
        return [
            f"{lanes}.store({self._lines_of(group, f'{word}u', f'n_{counter}')}, {mask});"
            for word, mask in masks.items()
        ]

    def _lines_of(self, group: Group, word: str, n: str) -> str:
        """Start of the words of one word index; the words of all n candidates of the event are consecutive."""
        begin = f"{self._scratch[lines_name(group.collection)]} + {self._firsts[group.collection]}(blockIdx.x)"
        return begin if group.n_words == 1 else f"{begin} * {group.n_words}u + ({word} - {group.first_word}u) * {n}"

    def number_objects(self, n_line_words: int) -> list[str]:
        """One thread numbers the objects of the candidates that fit."""
        out = [
            f"uint32_t* const words = {self._rows} + static_cast<uint64_t>(blockIdx.x) * {self._max_words}u;",
            "if (threadIdx.x == 0) {",
            *self._indented(self._add_functions()),
            _INDENT + f"for (uint32_t word = 0; word < {n_line_words}u; ++word) {{",
            _INDENT * 2 + "for (uint32_t left = decisions[word]; left != 0; left &= left - 1) {",
            _INDENT * 3 + "const uint32_t bit = left & (~left + 1u);",
            _INDENT * 3 + "const uint32_t line = word * 32u + static_cast<uint32_t>(__ffs(static_cast<int>(bit)) - 1);",
        ]
        for group in self.lines.groups.values():
            out += self._indented(self._take_group(group), 3)
        return [
            *out,
            _INDENT * 2 + "}",
            _INDENT + "}",
            # The loop fills the row from both ends; a row has no free words.
            _INDENT + f"const uint32_t n_free = {self._max_words}u - n_words - n_candidates;",
            _INDENT + "for (uint32_t i = n_words; n_free != 0 && i < n_words + n_candidates; ++i)",
            _INDENT * 2 + "words[i] = words[i + n_free];",
            _INDENT + f"{self._count}[blockIdx.x] = n_words + n_candidates;",
            _INDENT + "words[0] = n_candidates | n_objects << 16;",
            _INDENT + "words[1] = left_out;",
            _INDENT + "n_reported = n_objects;",
            _INDENT + f"if (left_out != 0) {self._flags}[blockIdx.x] |= {int(EventFlag.CANDIDATES_LEFT_OUT)}u;",
            "}",
        ]

    def no_row(self) -> str:
        """For an event that is not accepted."""
        return f"if (threadIdx.x == 0) {self._count}[blockIdx.x] = 0;"

    @staticmethod
    def _indented(lines: Sequence[str], levels: int = 1) -> list[str]:
        return [_INDENT * levels + text for text in lines]

    def _add_functions(self) -> list[str]:
        """A function for each collection that returns the number of an object in the report, and adds a new object."""
        out = [
            f"uint32_t n_objects = 0, n_words = {HEADER_WORDS}, n_candidates = 0, left_out = 0;",
            "bool full = false;",
        ]
        for index, one in reversed(list(enumerate(self.lines.reported))):
            name = one.collection.name
            number = f"{self._scratch[object_name(one.collection)]}[{self._firsts[one.collection]}(blockIdx.x) + i]"
            fixed = OBJECT_WORDS + len(one.values) + one.n_parts
            out += [
                f"const auto add_{name} = [&](uint32_t i) {{",
                _INDENT + f"const uint32_t known = {number};",
                _INDENT + f"if (known < n_objects && objects[known] == ({index << 16}u | i)) return known;",
                _INDENT + "const uint32_t object = n_objects++;",
                _INDENT + f"objects[object] = {index << 16}u | i;",
                _INDENT + "places[object] = n_words;",
                _INDENT + f"{number} = static_cast<uint16_t>(object);",
                _INDENT + f"n_words += {fixed};",
            ]
            for hits in one.hits:
                out += self._indented(self._count_hits(one, hits))
            for parts in one.parts:
                part = f"add_{parts.collection.name}"
                width = parts.numbers.width
                place = f"({self._firsts[one.collection]}(blockIdx.x) + i) * {width}u"
                numbers = self._members[parts.numbers]
                out.append(_INDENT + f"for (uint32_t k = 0; k < {width}u; ++k) {part}({numbers}[{place} + k]);")
            out += [_INDENT + "return object;", "};"]
        return out

    def _begin_of_hits(self, one: Reported, hits: Hits, number: str) -> tuple[list[str], str]:
        """Declares `owner`, the object of the batch that owns the hits; returns the index of its first hit."""
        if hits.through is not None:
            number = f"{self._members[hits.through]}[{self._firsts[one.collection]}(blockIdx.x) + {number}]"
        first = f"{self._firsts[_collection(hits.numbers.collection)]}(blockIdx.x)"
        return [f"const uint32_t owner = {first} + {number};"], f"owner * {hits.numbers.width}u"

    def _count_hits(self, one: Reported, hits: Hits) -> list[str]:
        declared, begin = self._begin_of_hits(one, hits, "i")
        if hits.count is not None:
            return ["{", *self._indented(declared), _INDENT + f"n_words += {self._members[hits.count]}[owner];", "}"]
        numbers = self._members[hits.numbers]
        return [
            "{",
            *self._indented(declared),
            _INDENT + f"for (uint32_t k = 0; k < {hits.numbers.width}u; ++k)",
            _INDENT * 2 + f"n_words += {numbers}[{begin} + k] != {NO_HIT}u ? 1u : 0u;",
            "}",
        ]

    def _take_group(self, group: Group) -> list[str]:
        """The candidates of a line, if it is one of the group."""
        words = range(group.first_word, group.first_word + group.n_words)
        mask = " : ".join(f"word == {word}u ? {group.mask(word)}u" for word in words if group.mask(word))
        return [
            f"if ((bit & ({mask} : 0u)) != 0) {{",
            _INDENT + "uint32_t n_of_line = 0;",
            _INDENT + f"const uint32_t n = {self._members[group.count]}[blockIdx.x];",
            _INDENT + f"const uint32_t* const lines = {self._lines_of(group, 'word', 'n')};",
            _INDENT + "for (uint32_t i = 0; i < n; ++i) {",
            _INDENT * 2 + "if ((lines[i] & bit) == 0) continue;",
            _INDENT * 2 + "const uint32_t objects_before = n_objects, words_before = n_words;",
            _INDENT * 2 + f"if (full || n_of_line == {MAX_CANDIDATES_OF_LINE}u) {{",
            _INDENT * 3 + "++left_out;",
            _INDENT * 3 + "continue;",
            _INDENT * 2 + "}",
            _INDENT * 2 + f"const uint32_t object = add_{group.collection.name}(i);",
            _INDENT * 2 + f"if (n_objects > {MAX_OBJECTS}u || n_words + n_candidates >= {self._max_words}u) {{",
            _INDENT * 3 + "full = true;",
            _INDENT * 3 + "n_objects = objects_before;",
            _INDENT * 3 + "n_words = words_before;",
            _INDENT * 3 + "++left_out;",
            _INDENT * 3 + "continue;",
            _INDENT * 2 + "}",
            _INDENT * 2 + "++n_of_line;",
            _INDENT * 2 + f"words[{self._max_words - 1}u - n_candidates++] = line | object << 16;",
            _INDENT + "}",
            "}",
        ]

    def write_object(self, index: int, number: str, values: Sequence[str]) -> list[str]:
        """An object of the collection of this index, with its number in the event, at `at`. values: its numbers."""
        one = self.lines.reported[index]
        begin = OBJECT_WORDS + len(values)
        out = [f"at[0] = {one.class_id | len(values) << 16}u;"]
        out += [f"at[{OBJECT_WORDS + k}] = __float_as_uint({value});" for k, value in enumerate(values)]
        if one.hits:
            out.append("uint32_t n_ids = 0;")
        for hits in one.hits:
            declared, of_hits = self._begin_of_hits(one, hits, number)
            n = f"{hits.numbers.width}u" if hits.count is None else f"uint32_t({self._members[hits.count]}[owner])"
            there = f"if (hit != {NO_HIT}u) " if hits.count is None else ""
            first = f"{self._firsts[_collection(hits.ids.collection)]}(blockIdx.x)"
            out += [
                "{",
                *self._indented(declared),
                _INDENT + f"for (uint32_t h = 0; h < {n}; ++h) {{",
                _INDENT * 2 + f"const uint32_t hit = {self._members[hits.numbers]}[{of_hits} + h];",
                _INDENT * 2 + f"{there}at[{begin}u + n_ids++] = {self._members[hits.ids]}[{first} + hit];",
                _INDENT + "}",
                "}",
            ]
        out.append(f"at[1] = {'n_ids' if one.hits else '0u'} | {one.n_parts << 16}u;")
        for parts in one.parts:
            part, width = parts.collection, parts.numbers.width
            numbers = self._members[parts.numbers]
            place = f"({self._firsts[one.collection]}(blockIdx.x) + {number}) * {width}u + part"
            out += [
                f"for (uint32_t part = 0; part < {width}u; ++part)",
                _INDENT + f"at[{begin}u + part] = {self._scratch[object_name(part)]}"
                f"[{self._firsts[part]}(blockIdx.x) + {numbers}[{place}]];",
            ]
            begin += width
        return out


def _collection(collection: Collection | None) -> Collection:
    assert collection is not None
    return collection
