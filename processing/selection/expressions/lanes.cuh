// Candidates that a thread processes in one step: the lanes of a vector register on the CPU; one on a GPU, whose
// threads are the lanes. Code between loads and stores is the same: arithmetic, comparisons, `condition ? a : b`.
#pragma once

#include "selection/expressions/functions.cuh"

namespace hlt::lines {

#if HLT_ON_GPU

constexpr uint32_t n_lanes = 1;
using floats = float;
using uints = uint32_t;
using truths = bool;

/// The candidates of an event from number `first` on; the event has n. On a GPU there is one, which exists.
struct lanes {
    uint32_t first;

    __device__ lanes(uint32_t first, uint32_t) : first(first) {}

    /// Numbers of the candidates.
    __device__ uint32_t numbers() const { return first; }
    /// Number of candidates for which a condition holds.
    __device__ uint32_t count(bool condition) const { return condition ? 1u : 0u; }
    __device__ bool any(bool condition) const { return condition; }
    /// Sum over all candidates.
    __device__ uint32_t sum(uint32_t words) const { return words; }
    __device__ uint32_t bits_of_any(uint32_t words) const { return words; }

    /// Values of a column of the event that has one value per candidate.
    template <typename Column>
    __device__ auto load(const Column& column) const
    {
        return column[first];
    }

    template <typename T>
    __device__ void store(T* column, T value) const
    {
        column[first] = value;
    }
    /// Values of a column for objects of the event, given by their numbers; `begin` is the index of the first object.
    template <typename T>
    __device__ T gather(const T* column, uint32_t begin, uint32_t numbers, uint32_t width, uint32_t element) const
    {
        return column[(begin + numbers) * width + element];
    }
    /// The same for a member of the records of a column.
    template <typename T, typename Record>
    __device__ T gather(const Record* column, T Record::* member, uint32_t begin, uint32_t numbers, uint32_t width,
                        uint32_t element) const
    {
        return column[(begin + numbers) * width + element].*member;
    }
};

__device__ float in_lanes(float value) { return value; }
__device__ uint32_t in_lanes(uint32_t value) { return value; }
__device__ bool in_lanes(bool value) { return value; }
__device__ float as_floats(uint32_t counts) { return static_cast<float>(counts); }
__device__ uint32_t word_where(bool condition, uint32_t word) { return condition ? word : 0u; }

#else

// The ABI for returned vectors differs with and without AVX. All these functions are in one translation unit.
#pragma GCC diagnostic ignored "-Wpsabi"

#if defined(HLT_AVX512)
#if !defined(__clang__)  // its intrinsics for these types take other types
#define HLT_LINES_MASKED
#endif
constexpr uint32_t n_lanes = 16;
#elif defined(__AVX2__)
constexpr uint32_t n_lanes = 8;
#else
constexpr uint32_t n_lanes = 4;
#endif

template <typename T>
struct vector_type {
    typedef T type
        __attribute__((vector_size(n_lanes * sizeof(T))));  // compilers ignore the attribute on an alias of T
};
template <typename T>
using vector_of = typename vector_type<T>::type;

using floats = vector_of<float>;
using uints = vector_of<uint32_t>;
using truths = vector_of<int32_t>;

/// Bit l is set if lane l of a comparison is true.
__device__ __forceinline__ uint32_t bits_of(const truths& comparison)
{
#if defined(HLT_AVX512)
    return static_cast<uint16_t>(__builtin_ia32_cvtd2mask512(comparison));
#elif defined(__AVX2__)
    return static_cast<uint32_t>(__builtin_ia32_movmskps256((floats)comparison));
#elif defined(__SSE2__)
    return static_cast<uint32_t>(__builtin_ia32_movmskps((floats)comparison));
#else
    uint32_t bits = 0;
    for (uint32_t l = 0; l < n_lanes; ++l) bits |= (comparison[l] & 1u) << l;
    return bits;
#endif
}

/// As on a GPU; lanes beyond the last candidate have no candidate, and load 0.
struct lanes {
    uint32_t first;
    uint32_t n;
    uint32_t bits;

    lanes(uint32_t first, uint32_t end)
        : first(first), n(end - first < n_lanes ? end - first : n_lanes), bits((1u << n) - 1u)
    {
    }

    uints numbers() const
    {
        uints numbers;
        for (uint32_t l = 0; l < n_lanes; ++l) numbers[l] = first + l;
        return numbers;
    }

    __forceinline__ uint32_t where(const truths& condition) const { return bits_of(condition) & bits; }
    __forceinline__ uint32_t count(const truths& condition) const
    {
        return static_cast<uint32_t>(__builtin_popcount(where(condition)));
    }
    __forceinline__ bool any(const truths& condition) const { return where(condition) != 0; }

    uint32_t sum(const uints& words) const
    {
        uint32_t total = 0;
        for (uint32_t left = where(words != 0u); left != 0; left &= left - 1) total += words[__builtin_ctz(left)];
        return total;
    }
    uint32_t bits_of_any(const uints& words) const
    {
        uint32_t of_any = 0;
        for (uint32_t left = where(words != 0u); left != 0; left &= left - 1) of_any |= words[__builtin_ctz(left)];
        return of_any;
    }

    template <typename Column>
    __forceinline__ auto load(const Column& column) const
    {
        return widened(load_first(&column[first]));
    }

    __forceinline__ void store(uint32_t* column, const uints& words) const
    {
#if defined(HLT_LINES_MASKED)
        __builtin_ia32_storedqusi512_mask(reinterpret_cast<int32_t*>(column + first), (truths)words,
                                          static_cast<uint16_t>(bits));
#else
        std::memcpy(column + first, &words, n * sizeof *column);
#endif
    }

    template <typename T>
    auto gather(const T* column, uint32_t begin, const uints& numbers, uint32_t width, uint32_t element) const
    {
        return gather_steps(column + static_cast<std::size_t>(begin) * width + element, numbers,
                            width * static_cast<uint32_t>(sizeof(T)));
    }
    template <typename T, typename Record>
    auto gather(const Record* column, T Record::* member, uint32_t begin, const uints& numbers, uint32_t width,
                uint32_t element) const
    {
        return gather_steps(&(column[static_cast<std::size_t>(begin) * width + element].*member), numbers,
                            width * static_cast<uint32_t>(sizeof(Record)));
    }

  private:
    static __forceinline__ floats widened(const floats& values) { return values; }
    template <typename Vector>
    static __forceinline__ uints widened(const Vector& values)
    {
        return __builtin_convertvector(values, uints);
    }

    template <typename T>
    __forceinline__ vector_of<T> load_first(const T* from) const
    {
        vector_of<T> values{};
#if defined(HLT_LINES_MASKED)
        const uint16_t mask = static_cast<uint16_t>(bits);
        if constexpr (sizeof(T) == 4) {
            const truths loaded =
                __builtin_ia32_loaddqusi512_mask(reinterpret_cast<const int32_t*>(from), truths{}, mask);
            return (vector_of<T>)loaded;
        } else if constexpr (sizeof(T) == 2) {
            return (vector_of<T>)__builtin_ia32_loaddquhi256_mask(reinterpret_cast<const int16_t*>(from),
                                                                  vector_of<int16_t>{}, mask);
        } else if constexpr (sizeof(T) == 1) {
            return (vector_of<T>)__builtin_ia32_loaddquqi128_mask(reinterpret_cast<const char*>(from),
                                                                  vector_of<char>{}, mask);
        }
#endif
        if (n == n_lanes)
            std::memcpy(&values, from, sizeof values);
        else
            for (uint32_t l = 0; l < n; ++l) values[l] = from[l];
        return values;
    }

    /// Values at a distance of `step` bytes from object to object.
    template <typename T>
    auto gather_steps(const T* of_first, const uints& numbers, uint32_t step) const
    {
#if defined(HLT_LINES_MASKED)
        if constexpr (sizeof(T) == 4)
            return widened((vector_of<T>)__builtin_ia32_gathersiv16si(truths{}, of_first, (truths)(numbers * step),
                                                                      static_cast<uint16_t>(bits), 1));
#endif
        T found[n_lanes] = {};
        for (uint32_t l = 0; l < n; ++l)
            std::memcpy(found + l, reinterpret_cast<const char*>(of_first) + numbers[l] * std::size_t{step}, sizeof(T));
        vector_of<T> values;
        std::memcpy(&values, found, sizeof values);
        return widened(values);
    }
};

__device__ __forceinline__ floats in_lanes(float value) { return value - floats{}; }  // keeps -0
__device__ __forceinline__ uints in_lanes(uint32_t value) { return value + uints{}; }
__device__ __forceinline__ truths in_lanes(bool value) { return truths{} - (value ? 1 : 0); }
__device__ __forceinline__ floats as_floats(const uints& counts) { return __builtin_convertvector(counts, floats); }
__device__ __forceinline__ uints word_where(const truths& condition, uint32_t word) { return (uints)condition & word; }

__device__ __forceinline__ floats square_root(const floats& x)
{
#if defined(HLT_LINES_MASKED)
    constexpr int as_set = 4;  // rounding mode
    return __builtin_ia32_sqrtps512_mask(x, x, static_cast<int16_t>(-1), as_set);
#elif defined(__AVX2__) && !defined(__clang__)
    return __builtin_ia32_sqrtps256(x);
#else
    floats roots;
    for (uint32_t l = 0; l < n_lanes; ++l) roots[l] = sqrtf(x[l]);
    return roots;
#endif
}

#undef HLT_LINES_MASKED

#endif

}  // namespace hlt::lines
