"""Reads PTX of NVRTC: kernels with their parameters, variables and instructions (PTX ISA, "Syntax")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}


class PtxError(ValueError):
    """PTX that this interpreter does not support."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter; `values` are its initial elements of `element_bytes`."""

    name: str
    space: str
    align: int
    element_bytes: int
    count: int
    values: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        return self.element_bytes * self.count


@dataclass(frozen=True, slots=True)
class Statement:
    """One instruction: `@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+8];` has opcode ld.global.v2.u32 and two operands."""

    text: str
    opcode: str
    operands: tuple[str, ...]
    guard: str | None = None
    guard_negated: bool = False


@dataclass(slots=True)
class Kernel:
    """One entry function. `labels` are positions among its statements; `registers` are declared by name, or by prefix
    with their number: `.reg .b32 %r<4>;` has %r0 to %r3."""

    name: str
    parameters: list[Variable] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    registers: dict[str, int] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def declares(self, register: str) -> bool:
        """Whether there is such a register."""
        if register in self.registers:
            return self.registers[register] == 0
        prefix = register.rstrip("0123456789")
        return register != prefix and int(register[len(prefix) :]) < self.registers.get(prefix, 0)


@dataclass(frozen=True, slots=True)
class Module:
    """Result of one compilation."""

    target: str
    variables: tuple[Variable, ...]
    kernels: dict[str, Kernel]


_COMMENT = re.compile(r"//[^\n]*")
_ENTRY = re.compile(r"(?:\.visible\s+)?\.entry\s+([\w$]+)\s*\(([^)]*)\)([^{;]*)\{")
_VARIABLE = re.compile(
    r"(?:\.visible\s+)?\.(?P<space>param|global|const|shared|local)\s+(?:\.align\s+(?P<align>\d+)\s+)?"
    r"\.[busf](?P<bits>8|16|32|64)\s+(?:\.ptr\s+(?:\.align\s+\d+\s+)?)?(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?(?:\s*=\s*(?P<values>.+))?$",
    re.DOTALL,
)
_REGISTERS = re.compile(r"\.reg \.\w+ (%[\w$]+)(?:<(\d+)>)?$")
_LABEL = re.compile(r"\s*([\w$]+):")
_STATEMENT = re.compile(r"(?:@(!?)(%[\w$]+)\s+)?([a-z][\w.]*)\s*(.*)$", re.DOTALL)
_OPERAND_SEPARATOR = re.compile(r",(?![^{\[]*[}\]])")


def parse(text: str) -> Module:
    """Read a whole module. Raises PtxError."""
    text = _COMMENT.sub("", text)
    target = re.search(r"\.target\s+(\w+)", text)
    if target is None:
        raise PtxError("PTX without .target")
    kernels: dict[str, Kernel] = {}
    outside: list[str] = []
    position = 0
    for entry in _ENTRY.finditer(text):
        outside.append(text[position : entry.start()])
        end = _closing_brace(text, entry.end())
        kernel = Kernel(entry[1])
        kernel.parameters += [_variable(piece.strip()) for piece in entry[2].split(",") if piece.strip()]
        _read_body(kernel, text[entry.end() : end])
        kernels[kernel.name] = kernel
        position = end + 1
    outside.append(text[position:])
    return Module(target[1], tuple(_module_variables("".join(outside))), kernels)


def _closing_brace(text: str, position: int) -> int:
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, position):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    raise PtxError("a kernel without end")


def _module_variables(text: str) -> Iterator[Variable]:
    text = re.sub(r"^\s*\.(version|target|address_size)[^\n]*$", "", text, flags=re.MULTILINE)
    for piece in text.split(";"):
        if piece.strip():
            yield _variable(piece.strip())


def _variable(text: str) -> Variable:
    match = _VARIABLE.match(text)
    if match is None:
        raise PtxError(f"unknown declaration {text!r}")
    element = BYTES[match["bits"]]
    values = tuple(
        literal(value.strip()) for value in (match["values"] or "").strip("{} \n").split(",") if value.strip()
    )
    return Variable(
        name=match["name"],
        space=match["space"],
        align=int(match["align"] or element),
        element_bytes=element,
        count=int(match["count"] or 1),
        values=values,
    )


def _read_body(kernel: Kernel, body: str) -> None:
    for piece in body.split(";"):
        while label := _LABEL.match(piece):
            kernel.labels[label[1]] = len(kernel.statements)
            piece = piece[label.end() :]
        text = " ".join(piece.split())
        if not text or text.startswith(".pragma "):
            continue
        if registers := _REGISTERS.match(text):
            kernel.registers[registers[1]] = int(registers[2] or 0)
        elif text.startswith("."):
            kernel.variables.append(_variable(text))
        else:
            kernel.statements.append(_statement(text))


def _statement(text: str) -> Statement:
    match = _STATEMENT.match(text)
    if match is None:
        raise PtxError(f"unknown statement {text!r}")
    negated, guard, opcode, operands = match.groups()
    pieces = tuple(piece.strip() for piece in _OPERAND_SEPARATOR.split(operands)) if operands else ()
    return Statement(text, opcode, pieces, guard, negated == "!")


def literal(text: str) -> int:
    """The bits of a constant: integers of any base, 0f and 0d with the bits of a float. Raises PtxError."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    try:
        if digits[:2].lower() in ("0f", "0d"):
            return int(digits[2:], 16)
        digits = digits.rstrip("U")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xXbB"
        return sign * int(digits, 8 if octal else 0)
    except ValueError:
        raise PtxError(f"unknown constant {text!r}") from None
