"""The declarations in Python and the parameter structs of the kernels say the same."""

import re
from pathlib import Path

import numpy as np
import pytest

import hltnode.processing
from hltnode.processing.framework.declaration import (
    Algorithm,
    AlgorithmSequence,
    Buffer,
    Constant,
    Grid,
    Role,
    SequenceError,
)
from hltnode.processing.lhcb.hlt1 import HLT1_SEQUENCE

KERNELS = Path(hltnode.processing.__file__ or "").parent

C_TYPES = {"uint8_t": "u1", "uint16_t": "<u2", "uint32_t": "<u4", "uint64_t": "<u8", "int16_t": "<i2", "float": "<f4"}


def struct_fields(kernel: str) -> list[tuple[str, bool, str]]:
    """(C type, is a pointer, name) of each field of `<kernel>_parameters`."""
    for source in sorted(KERNELS.rglob("*.cuh")):
        match = re.search(rf"struct {kernel}_parameters \{{(.*?)\n\}};", source.read_text(), re.DOTALL)
        if match:
            body = re.sub(r"//[^\n]*", "", match[1])
            fields = re.findall(r"(?:const\s+)?([\w:]+)\s*(\*?)\s*(\w+)\s*;", body)
            return [(c_type, bool(star), name) for c_type, star, name in fields]
    raise AssertionError(f"no struct {kernel}_parameters in {KERNELS}")


@pytest.mark.parametrize("algorithm", HLT1_SEQUENCE.algorithms, ids=lambda algorithm: algorithm.name)
def test_a_parameter_struct_has_the_declared_fields_in_the_declared_order(algorithm: Algorithm) -> None:
    fields = struct_fields(algorithm.name)
    words = (*algorithm.constants, *algorithm.capacities)
    declared = [buffer.name for buffer in algorithm.buffers] + [word.name for word in words]
    assert [name for _, _, name in fields] == declared
    for (c_type, is_pointer, name), buffer in zip(fields, algorithm.buffers, strict=False):
        assert is_pointer, name
        if c_type in C_TYPES and buffer.dtype.names is None:
            assert np.dtype(C_TYPES[c_type]) == buffer.dtype, name
    for (c_type, is_pointer, name), word in zip(fields[len(algorithm.buffers) :], words, strict=True):
        assert not is_pointer, name
        assert (c_type == "float") == (isinstance(word, Constant) and isinstance(word.value, float)), name


def a_buffer(name: str, role: Role = Role.ARENA) -> Buffer:
    return Buffer(name=name, dtype=np.dtype("<u4"), count=lambda limits: limits.events, role=role)


def an_algorithm(name: str, inputs: tuple[Buffer, ...], outputs: tuple[Buffer, ...]) -> Algorithm:
    return Algorithm(name=name, grid=Grid.EVENTS, block_size=32, inputs=inputs, outputs=outputs)


def test_an_input_that_nobody_makes_is_refused() -> None:
    with pytest.raises(SequenceError, match="reads hits, which no algorithm before it makes"):
        AlgorithmSequence((an_algorithm("fit", (a_buffer("hits"),), ()),))


def test_a_buffer_made_twice_is_refused() -> None:
    hits = a_buffer("hits")
    with pytest.raises(SequenceError, match="makes hits, which is there already"):
        AlgorithmSequence((an_algorithm("decode", (), (hits,)), an_algorithm("decode_again", (), (hits,))))


def test_buffers_stand_in_the_order_of_their_first_use() -> None:
    raw, hits, tracks = a_buffer("raw", Role.INPUT), a_buffer("hits"), a_buffer("tracks", Role.OUTPUT)
    sequence = AlgorithmSequence((an_algorithm("decode", (raw,), (hits,)), an_algorithm("track", (hits,), (tracks,))))
    assert [buffer.name for buffer in sequence.buffers] == ["raw", "hits", "tracks"]
