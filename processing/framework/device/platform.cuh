// One source, two back ends.
//
// Kernels are CUDA C++. This header lets the same files compile as plain C++: execution-space keywords vanish, a block
// has one thread, barriers vanish, atomics are plain and a host loop runs the blocks. So a kernel must be correct for
// every block size, 1 included: threads stride over their work,
//     for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) ...
// and results never depend on the assignment of work to threads.
//
// A kernel `name` takes its parameter block by value, as `p`: the struct `name_parameters`, generated from the
// declaration beside the kernel. It has pointers to the columns that the kernel reads and writes, then its constants (4
// bytes each). It does not change between batches, so a whole sequence is one CUDA graph that contains the parameter
// blocks. On a GPU they are in constant memory, and the compiler knows that their pointers point to global memory.
#pragma once

// HLT_ON_GPU is 1 in code for a GPU and 0 in code for a CPU. Only this header tests for the compilers of CUDA: other
// files use `#if HLT_ON_GPU` or `#if !HLT_ON_GPU`. The macro always has a value, so that -Wundef finds a file that
// tests it without this header. A condition on the architecture of a GPU tests __CUDA_ARCH__.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HLT_ON_GPU 1
#else
#define HLT_ON_GPU 0
#endif

#if HLT_ON_GPU

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <cstdint>
#endif

// The size limit of every architecture and CUDA version (CUDA C++ Programming Guide, "Function Parameters"). Function
// attributes may follow the name.
#define HLT_KERNEL(name, ...)                         \
    static_assert(sizeof(name##_parameters) <= 4096); \
    extern "C" __global__ void __VA_ARGS__ name([[maybe_unused]] const __grid_constant__ name##_parameters p)

// At most 64 registers per thread, so that a multiprocessor runs half of its warps. Launch bounds have the same effect,
// but with them the compiler computes addresses again at each use.
#define HLT_HALF_OCCUPANCY __maxnreg__(64)

#else  // plain C++

// Kernels are built for three instruction sets: the baseline, AVX2, and these four AVX-512 sets together.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define HLT_AVX512
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#define __device__ inline
#define __forceinline__ __attribute__((always_inline))
#define __shared__
#define __syncthreads()
#define __syncwarp(...)
#define __restrict__ __restrict

struct dim3 {
    uint32_t x = 1, y = 1, z = 1;
};
static constexpr dim3 threadIdx{0, 0, 0};
static constexpr dim3 blockDim{1, 1, 1};

#define HLT_KERNEL(name, ...) \
    void name([[maybe_unused]] const name##_parameters p, [[maybe_unused]] const dim3 blockIdx)

inline uint32_t atomicAdd(uint32_t* address, uint32_t value)
{
    const uint32_t old = *address;
    *address = old + value;
    return old;
}

inline uint64_t atomicAdd(uint64_t* address, uint64_t value)
{
    const uint64_t old = *address;
    *address = old + value;
    return old;
}

inline uint32_t atomicExch(uint32_t* address, uint32_t value)
{
    const uint32_t old = *address;
    *address = value;
    return old;
}

inline uint32_t atomicOr(uint32_t* address, uint32_t value)
{
    const uint32_t old = *address;
    *address = old | value;
    return old;
}

inline uint32_t atomicCAS(uint32_t* address, uint32_t expected, uint32_t value)
{
    const uint32_t old = *address;
    if (old == expected) *address = value;
    return old;
}

inline uint32_t atomicMin(uint32_t* address, uint32_t value)
{
    const uint32_t old = *address;
    if (value < old) *address = value;
    return old;
}

inline uint32_t atomicMax(uint32_t* address, uint32_t value)
{
    const uint32_t old = *address;
    if (value > old) *address = value;
    return old;
}

inline uint32_t __shfl_sync(uint32_t, uint32_t value, uint32_t) { return value; }
inline uint32_t __shfl_up_sync(uint32_t, uint32_t value, uint32_t) { return value; }
inline uint32_t __reduce_add_sync(uint32_t, uint32_t value) { return value; }
inline uint32_t __ballot_sync(uint32_t, bool predicate) { return predicate ? 1u : 0u; }
inline uint32_t __match_any_sync(uint32_t, uint32_t) { return 1u; }

// Other threads run other blocks; they see the writes before the fence if they see one after it.
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift)
{
    return static_cast<uint32_t>(((uint64_t{high} << 32 | low) << (shift & 31u)) >> 32);
}

inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift)
{
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (shift & 31u));
}

inline uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t shift)
{
    return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}

inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t shift)
{
    return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}

inline int __popc(uint32_t word) { return __builtin_popcount(word); }
inline int __popcll(uint64_t word) { return __builtin_popcountll(word); }
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __ffsll(long long word) { return __builtin_ffsll(word); }
inline int __clz(int word) { return word == 0 ? 32 : __builtin_clz(static_cast<uint32_t>(word)); }
inline int __clzll(long long word) { return word == 0 ? 64 : __builtin_clzll(static_cast<uint64_t>(word)); }

inline float __uint_as_float(uint32_t word)
{
    float value;
    std::memcpy(&value, &word, sizeof value);
    return value;
}

inline uint32_t __float_as_uint(float value)
{
    uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    return word;
}

#endif

namespace hlt {

template <typename T>
__device__ T min_of(T a, T b)
{
    return b < a ? b : a;
}

template <typename T>
__device__ T max_of(T a, T b)
{
    return a < b ? b : a;
}

/// Prefetch the data at an address: a CPU would wait for memory, while a GPU runs other threads. Always inlined:
/// compilers remove calls of functions that only prefetch.
__device__ __forceinline__ void prefetch([[maybe_unused]] const void* address)
{
#if !HLT_ON_GPU
    __builtin_prefetch(address);
#endif
}

/// Little-endian words of raw banks and MFPs, aligned to their size (docs/formats/mfp.md).
template <typename Word>
__device__ Word load_word(const uint8_t* bytes)
{
#if HLT_ON_GPU
    return *reinterpret_cast<const Word*>(bytes);
#else
    Word word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
#endif
}

template <typename Word>
__device__ void store_word(uint8_t* bytes, Word word)
{
#if HLT_ON_GPU
    *reinterpret_cast<Word*>(bytes) = word;
#else
    std::memcpy(bytes, &word, sizeof word);
#endif
}

__device__ uint32_t load_u16(const uint8_t* bytes) { return load_word<uint16_t>(bytes); }
__device__ uint32_t load_u32(const uint8_t* bytes) { return load_word<uint32_t>(bytes); }

/// Four words that one GPU instruction loads or stores; aligned to 16 bytes.
template <typename Word>
struct alignas(16) four_of {
    Word words[4];
};

/// The threads of a block set `n` words to 0; n is a multiple of 4, and the first word is aligned to 16 bytes.
__device__ void zero_words(void* words, uint32_t n)
{
#if HLT_ON_GPU
    four_of<uint32_t>* const fours = static_cast<four_of<uint32_t>*>(words);
    for (uint32_t i = threadIdx.x; i < n / 4u; i += blockDim.x) fours[i] = four_of<uint32_t>{};
#else
    std::memset(words, 0, n * sizeof(uint32_t));
#endif
}

/// The threads of a block copy `n` words; n is a multiple of 4, and both ranges are aligned to 16 bytes.
__device__ void copy_words(void* to, const uint32_t* words, uint32_t n)
{
#if HLT_ON_GPU
    const four_of<uint32_t>* const fours = reinterpret_cast<const four_of<uint32_t>*>(words);
    for (uint32_t i = threadIdx.x; i < n / 4u; i += blockDim.x) static_cast<four_of<uint32_t>*>(to)[i] = fours[i];
#else
    std::memcpy(to, words, n * sizeof *words);
#endif
}

/// The part of a column that belongs to one event. A GPU adds the first index before it computes the address, so one
/// register serves all columns.
template <typename T>
class event_column {
  public:
#if HLT_ON_GPU
    __device__ event_column(T* column, uint32_t first) : column_(column), first_(first) {}
    __device__ T& operator[](uint32_t i) const { return column_[first_ + i]; }
    __device__ event_column from(uint32_t i) const { return {column_, first_ + i}; }

  private:
    T* column_;
    uint32_t first_;
#else
    event_column(T* column, uint32_t first) : first_(column + first) {}
    T& operator[](uint32_t i) const { return first_[i]; }
    event_column from(uint32_t i) const { return {first_, i}; }

  private:
    T* first_;
#endif
};

constexpr uint32_t warp_size = 32;

/// The lanes of this thread's warp that exist: the last warp of a block may have fewer than 32.
__device__ uint32_t warp_lanes()
{
    const uint32_t threads = blockDim.x - threadIdx.x / warp_size * warp_size;
    return threads < warp_size ? (1u << threads) - 1u : 0xffffffffu;
}

/// The number of these lanes.
__device__ uint32_t n_warp_lanes() { return min_of(blockDim.x - threadIdx.x / warp_size * warp_size, warp_size); }

/// The lanes of this thread's warp before its own.
__device__ uint32_t lanes_before() { return (1u << threadIdx.x % warp_size) - 1u; }

/// Barrier of the block; for a block of one warp it is only a barrier of the warp.
__device__ void block_barrier()
{
    if (blockDim.x <= warp_size) {
        __syncwarp(warp_lanes());
    } else {
        __syncthreads();
    }
}

/// The value of the last lane of the warp; all lanes must call it.
__device__ uint32_t of_last_lane(uint32_t value) { return __shfl_sync(warp_lanes(), value, n_warp_lanes() - 1u); }

/// Inclusive prefix sum over the lanes of the warp; all lanes must call it.
__device__ uint32_t warp_inclusive_sum(uint32_t value)
{
    for (uint32_t distance = 1; distance < warp_size; distance <<= 1) {
        const uint32_t other = __shfl_up_sync(warp_lanes(), value, distance);
        if (threadIdx.x % warp_size >= distance) value += other;
    }
    return value;
}

/// Sum over the lanes of the warp; all lanes must call it.
__device__ uint32_t warp_sum(uint32_t value)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    return of_last_lane(warp_inclusive_sum(value));
#else
    return __reduce_add_sync(warp_lanes(), value);
#endif
}

/// Sum of the values of the warps before this one; all lanes of a warp have its value. `total`: sum over all warps.
__device__ uint32_t sum_of_warps_before(uint32_t of_warp, uint32_t* scratch, uint32_t& total)
{
    if (blockDim.x <= warp_size) {
        __syncwarp(warp_lanes());
        total = of_warp;
        return 0;
    }
    const uint32_t warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
    if (lane == 0) scratch[warp] = of_warp;
    __syncthreads();
    uint32_t of_all = 0, of_those_before = 0;
    for (uint32_t other = lane; other * warp_size < blockDim.x; other += n_warp_lanes()) {
        of_all += scratch[other];
        if (other < warp) of_those_before += scratch[other];
    }
    total = warp_sum(of_all);
    const uint32_t before = warp_sum(of_those_before);
    __syncthreads();  // all threads read before a later call writes
    return before;
}

/// Exclusive prefix sum over the threads of the block of one value each; every thread gets its offset, `total` the sum.
/// `scratch` is a shared array of max_block_size / warp_size words. All threads of the block must call it; earlier
/// writes are visible to all threads afterwards.
__device__ uint32_t block_exclusive_sum(uint32_t value, uint32_t* scratch, uint32_t& total)
{
    const uint32_t inclusive = warp_inclusive_sum(value);
    const uint32_t of_warp = of_last_lane(inclusive);
    return sum_of_warps_before(of_warp, scratch, total) + inclusive - value;
}

/// block_exclusive_sum of values that are 0 or 1.
__device__ uint32_t block_exclusive_count(bool counts, uint32_t* scratch, uint32_t& total)
{
    const uint32_t of_warp = __ballot_sync(warp_lanes(), counts);
    const uint32_t before = static_cast<uint32_t>(__popc(of_warp & lanes_before()));
    return sum_of_warps_before(static_cast<uint32_t>(__popc(of_warp)), scratch, total) + before;
}

}  // namespace hlt
