// Data of a warp, a block and a launch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

constexpr uint32_t warp_size = 32;
constexpr uint32_t all_lanes = 0xffffffffu;
constexpr uint8_t poison = 0xa5;  // initial value of every byte of memory and registers

/// An invalid action of the kernel; launch() adds the place to the message.
struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class Space : uint8_t { generic, global, shared, local, param };

/// One instruction (INSTRUCTION in translation.py). Operands and results are slots of the register file, -1 for none;
/// constants and special registers have slots too.
struct Instruction {
    uint16_t operation;
    Space space;
    uint8_t bytes;  // of one element in memory
    uint8_t count;  // elements of a vector
    uint8_t is_signed;
    uint8_t non_coherent;
    uint8_t guard_negated;
    int32_t guard;
    int32_t target, reconvergence;  // of a branch; reconvergence is -1 if the sides meet only at the end of the kernel
    int32_t results[4];
    int32_t operands[5];
    int64_t offset;  // of an address
};
static_assert(sizeof(Instruction) == 64);

/// Next meeting point, after the first statement of a block, of lanes that do not leave loops; sides of a branch that
/// lead out of several loops (MEETING in translation.py).
struct Meeting {
    int32_t next;  // -1: at the end of the kernel
    uint32_t leaving;
};
constexpr uint32_t jump_leaves = 1, fall_leaves = 2;

/// Lanes that run together until they reach `reconvergence`.
struct Path {
    int32_t pc, reconvergence;
    uint32_t mask;
};

struct Warp {
    uint32_t index = 0;               // in its block
    uint32_t alive = 0;               // lanes that have not returned
    uint32_t phase = 0;               // warp barriers that all its lanes have passed
    int32_t barrier = -1;             // pc of the block barrier at which it waits
    std::vector<Path> paths;          // the last one runs
    std::vector<uint64_t> registers;  // [slot][lane]
    std::vector<std::byte> local;     // [lane][byte]

    uint64_t* slot(int32_t number) { return registers.data() + static_cast<std::size_t>(number) * warp_size; }
};

/// A variable in shared or local memory: each access must stay inside.
struct Variable {
    uint64_t begin, end;
};

/// Counts of one instruction of a kernel (COUNTS in machine.py).
struct Counts {
    uint64_t executions, lanes, sectors, bytes, local_bytes;
};

template <typename T>
T get(uint64_t word)
{
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <>
inline bool get<bool>(uint64_t word)
{
    return word != 0;
}

template <typename T>
uint64_t put(T value)
{
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
}

template <typename F>
void for_lanes(uint32_t mask, F&& lane_function)
{
    for (uint32_t lane = 0; lane < warp_size; ++lane)
        if (mask >> lane & 1u) lane_function(lane);
}

}  // namespace ptx
