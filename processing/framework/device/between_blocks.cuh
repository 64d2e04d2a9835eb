// Atomic operations on words that several blocks change at the same time: parts of one event, for example.
//
// atomicAdd and its relatives of platform.cuh are plain operations on a CPU, where a block is one thread. Threads of a
// CPU run different blocks, so words that blocks share need the functions here. On a GPU both are the same.
// All are relaxed: they order no other access. What a block writes is visible to the next kernel.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt {

/// The word, which other blocks may change meanwhile. A GPU may give a former value until the next __threadfence.
__device__ uint32_t load_between_blocks(const uint32_t* address)
{
#if HLT_ON_GPU
    return *address;
#else
    return __atomic_load_n(address, __ATOMIC_RELAXED);
#endif
}

/// Replaces a uint32_t or uint64_t; returns the old value.
template <typename Word>
__device__ Word exchange_between_blocks(Word* address, Word value)
{
#if HLT_ON_GPU
    return atomicExch(address, value);
#else
    return __atomic_exchange_n(address, value, __ATOMIC_RELAXED);
#endif
}

/// Adds `value` to a uint32_t or uint64_t; returns the old value.
template <typename Word>
__device__ Word add_between_blocks(Word* address, Word value)
{
#if HLT_ON_GPU
    return atomicAdd(address, value);
#else
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
#endif
}

/// Sets the bits of `value`; returns the old value.
__device__ uint32_t set_bits_between_blocks(uint32_t* address, uint32_t value)
{
#if HLT_ON_GPU
    return atomicOr(address, value);
#else
    return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
#endif
}

/// Replaces the word by `value` if it is `expected`; returns the old value.
__device__ uint32_t replace_between_blocks(uint32_t* address, uint32_t expected, uint32_t value)
{
#if HLT_ON_GPU
    return atomicCAS(address, expected, value);
#else
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
#endif
}

/// Lowers the word to `value` if it is larger; returns the old value.
__device__ uint32_t lower_between_blocks(uint32_t* address, uint32_t value)
{
#if HLT_ON_GPU
    return atomicMin(address, value);
#else
    uint32_t old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (value < old &&
           !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
#endif
}

/// Raises the word to `value` if it is smaller; returns the old value.
__device__ uint32_t raise_between_blocks(uint32_t* address, uint32_t value)
{
#if HLT_ON_GPU
    return atomicMax(address, value);
#else
    uint32_t old = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (value > old &&
           !__atomic_compare_exchange_n(address, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return old;
#endif
}

}  // namespace hlt
