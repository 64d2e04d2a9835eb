// Runs a kernel with blocks of many threads on the CPU, to test without a GPU that results do not depend on the block
// size and that no barrier is missing or unequal. The threads of a block are fibers; a fiber runs until a barrier.
// Tests run them in forward and backward order, because without a required barrier the results of both orders differ.
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#define __CUDACC__
#define __global__
#define __device__ inline
#define __shared__ static
#define __forceinline__ __attribute__((always_inline))
#define __maxnreg__(...)
#define __grid_constant__

struct dim3 {
    uint32_t x = 1, y = 1, z = 1;
};
static dim3 threadIdx, blockDim, blockIdx;

namespace emulator {

enum class State { running, at_warp_barrier, at_block_barrier, done };

struct Fiber {
    ucontext_t context;
    State state = State::running;
    std::vector<char> stack = std::vector<char>(256 * 1024);
};

ucontext_t scheduler;
std::vector<Fiber> fibers;
void (*kernel)(const void*);
const void* kernel_parameters;

void wait_at(State barrier)
{
    const uint32_t self = threadIdx.x;
    fibers[self].state = barrier;
    swapcontext(&fibers[self].context, &scheduler);
}

void run_thread()
{
    kernel(kernel_parameters);
    fibers[threadIdx.x].state = State::done;
    swapcontext(&fibers[threadIdx.x].context, &scheduler);
}

// Releases the threads at a barrier if all running threads of [first, last) have reached it.
bool release(uint32_t first, uint32_t last, State barrier)
{
    bool any = false;
    for (uint32_t i = first; i < last; ++i) {
        if (fibers[i].state == State::done) continue;
        if (fibers[i].state != barrier) return false;
        any = true;
    }
    if (!any) return false;
    for (uint32_t i = first; i < last; ++i)
        if (fibers[i].state == barrier) fibers[i].state = State::running;
    return true;
}

// False if threads wait for each other at different barriers.
bool run_block(uint32_t block_size, bool backward)
{
    if (fibers.size() < block_size) fibers.resize(block_size);
    for (uint32_t i = 0; i < block_size; ++i) {
        getcontext(&fibers[i].context);
        fibers[i].context.uc_stack.ss_sp = fibers[i].stack.data();
        fibers[i].context.uc_stack.ss_size = fibers[i].stack.size();
        fibers[i].context.uc_link = &scheduler;
        fibers[i].state = State::running;
        makecontext(&fibers[i].context, run_thread, 0);
    }
    for (;;) {
        for (uint32_t i = 0; i < block_size; ++i) {
            const uint32_t thread = backward ? block_size - 1 - i : i;
            if (fibers[thread].state != State::running) continue;
            threadIdx.x = thread;
            swapcontext(&scheduler, &fibers[thread].context);
        }
        bool released = release(0, block_size, State::at_block_barrier);
        for (uint32_t first = 0; first < block_size; first += 32) {
            const uint32_t last = first + 32 < block_size ? first + 32 : block_size;
            released |= release(first, last, State::at_warp_barrier);
        }
        if (released) continue;
        for (uint32_t i = 0; i < block_size; ++i)
            if (fibers[i].state != State::done) return false;
        return true;
    }
}

}  // namespace emulator

#define __syncthreads() emulator::wait_at(emulator::State::at_block_barrier)
#define __syncwarp(...) emulator::wait_at(emulator::State::at_warp_barrier)

namespace emulator {

std::vector<uint32_t> exchanged;  // by thread

// Publishes the value of each thread to its warp, until the next warp barrier.
void show_to_warp(uint32_t value)
{
    exchanged.resize(blockDim.x);
    exchanged[threadIdx.x] = value;
    __syncwarp();
}

}  // namespace emulator

inline uint32_t __shfl_sync(uint32_t, uint32_t value, uint32_t lane)
{
    emulator::show_to_warp(value);
    const uint32_t taken = emulator::exchanged[threadIdx.x / 32 * 32 + lane % 32];
    __syncwarp();
    return taken;
}

inline uint32_t __shfl_up_sync(uint32_t, uint32_t value, uint32_t distance)
{
    emulator::show_to_warp(value);
    const uint32_t taken = threadIdx.x % 32 >= distance ? emulator::exchanged[threadIdx.x - distance] : value;
    __syncwarp();
    return taken;
}

inline uint32_t __reduce_add_sync(uint32_t, uint32_t value)
{
    emulator::show_to_warp(value);
    uint32_t sum = 0;
    const uint32_t first = threadIdx.x / 32 * 32;
    for (uint32_t thread = first; thread < first + 32 && thread < blockDim.x; ++thread)
        sum += emulator::exchanged[thread];
    __syncwarp();
    return sum;
}

inline uint32_t __ballot_sync(uint32_t, bool predicate)
{
    emulator::show_to_warp(predicate);
    uint32_t ballot = 0;
    const uint32_t first = threadIdx.x / 32 * 32;
    for (uint32_t thread = first; thread < first + 32 && thread < blockDim.x; ++thread)
        ballot |= emulator::exchanged[thread] << (thread - first);
    __syncwarp();
    return ballot;
}

inline uint32_t __match_any_sync(uint32_t members, uint32_t value)
{
    emulator::show_to_warp(value);
    uint32_t same = 0;
    const uint32_t first = threadIdx.x / 32 * 32;
    for (uint32_t thread = first; thread < first + 32 && thread < blockDim.x; ++thread)
        if (emulator::exchanged[thread] == value) same |= 1u << (thread - first);
    __syncwarp();
    return same & members;
}

// All threads of a grid are fibers of one thread.
inline void __threadfence() {}

inline uint32_t __funnelshift_l(uint32_t low, uint32_t high, uint32_t shift)
{
    shift &= 31u;
    return shift == 0 ? high : high << shift | low >> (32u - shift);
}

inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, uint32_t shift)
{
    shift &= 31u;
    return shift == 0 ? low : low >> shift | high << (32u - shift);
}

inline uint32_t __funnelshift_lc(uint32_t low, uint32_t high, uint32_t shift)
{
    return shift >= 32u ? low : __funnelshift_l(low, high, shift);
}

inline uint32_t __funnelshift_rc(uint32_t low, uint32_t high, uint32_t shift)
{
    return shift >= 32u ? high : __funnelshift_r(low, high, shift);
}

template <typename T, typename U>
T atomicExch(T* address, U value)
{
    const T old = *address;
    *address = static_cast<T>(value);
    return old;
}

template <typename T, typename U>
T atomicAdd(T* address, U value)
{
    const T old = *address;
    *address = old + static_cast<T>(value);
    return old;
}

template <typename T, typename U>
T atomicSub(T* address, U value)
{
    const T old = *address;
    *address = old - static_cast<T>(value);
    return old;
}

template <typename T, typename U>
T atomicOr(T* address, U value)
{
    const T old = *address;
    *address = old | static_cast<T>(value);
    return old;
}

template <typename T, typename U>
T atomicMin(T* address, U value)
{
    const T old = *address;
    if (static_cast<T>(value) < old) *address = static_cast<T>(value);
    return old;
}

template <typename T, typename U>
T atomicMax(T* address, U value)
{
    const T old = *address;
    if (static_cast<T>(value) > old) *address = static_cast<T>(value);
    return old;
}

template <typename T, typename U, typename V>
T atomicCAS(T* address, U expected, V value)
{
    const T old = *address;
    if (old == static_cast<T>(expected)) *address = static_cast<T>(value);
    return old;
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

#include HLT_KERNEL_LIST

// Size of the block of parameters of a kernel; 0 if there is no such kernel.
extern "C" uint32_t parameter_bytes(const char* name)
{
#define SIZE(wanted) \
    if (std::string_view(name) == #wanted) return sizeof(wanted##_parameters);
    HLT_KERNELS(SIZE)
    return 0;
}

// 0: done; 1: no such kernel; 2: threads waited at different barriers.
extern "C" int run_kernel(const char* name, const void* parameters, uint32_t n_blocks, uint32_t block_size,
                          int backward)
{
    emulator::kernel = nullptr;
#define FIND(wanted)                       \
    if (std::string_view(name) == #wanted) \
        emulator::kernel = [](const void* block) { wanted(*static_cast<const wanted##_parameters*>(block)); };
    HLT_KERNELS(FIND)
    if (emulator::kernel == nullptr) return 1;
    emulator::kernel_parameters = parameters;
    blockDim.x = block_size;
    for (blockIdx.x = 0; blockIdx.x < n_blocks; ++blockIdx.x)
        if (!emulator::run_block(block_size, backward != 0)) return 2;
    return 0;
}
