// The sum of an ensemble of decision trees for one candidate, or for the lanes of a vector register.
//
// The table is that of ensemble.py, which checks it: no index leaves it. Oblivious trees compare without branches and
// load one leaf. Binary trees take a fixed number of steps, because a leaf is its own child; on the CPU the lanes take
// each step together, so that their loads overlap. Sums are compensated; NumPy sums in the same order.
#pragma once

#include "framework/device/platform.cuh"

namespace hlt::trees {

/// Adds a number to a compensated sum.
__device__ __forceinline__ void add(float number, float& total, float& lost)
{
    const float term = number - lost;
    const float sum = total + term;
    lost = (sum - total) - term;
    total = sum;
}

/// 1 if a number goes right at a split, else 0.
__device__ __forceinline__ uint32_t goes_right(float x, float threshold, uint32_t split)
{
    return (split >> 9 & 1u) != 0u ? !(x <= threshold) : x > threshold;
}

/// The sums of `width` candidates. inputs[feature][width]; those behind the last feature are -inf.
template <uint32_t width>
__device__ void sum_leaves(const uint32_t* __restrict__ table, const float* inputs, float* total)
{
    constexpr uint32_t feature = (1u << 9) - 1u, oblivious = 1u << 8;
    float lost[width];
    for (uint32_t lane = 0; lane < width; ++lane) {
        total[lane] = __uint_as_float(table[2]);
        lost[lane] = 0.f;
    }
    const uint32_t* at = table + 3;
    for (uint32_t tree = 0; tree < table[0]; ++tree) {
        const uint32_t head = *at++;
        const uint32_t depth = head & 0xFFu;
        uint32_t place[width] = {};
        if ((head & oblivious) != 0u) {
            for (uint32_t k = 0; k < depth; ++k) {
                const float threshold = __uint_as_float(at[2u * k]);
                const uint32_t split = at[2u * k + 1u];
                const float* const x = inputs + (split & feature) * width;
                for (uint32_t lane = 0; lane < width; ++lane) place[lane] |= goes_right(x[lane], threshold, split) << k;
            }
            at += 2u * depth;
            for (uint32_t lane = 0; lane < width; ++lane)
                add(__uint_as_float(at[place[lane]]), total[lane], lost[lane]);
            at += 1u << depth;
        } else {
            for (uint32_t k = 0; k < depth; ++k) {
                for (uint32_t lane = 0; lane < width; ++lane) {
                    const uint32_t split = at[2u * place[lane] + 1u];
                    const float x = inputs[(split & feature) * width + lane];
                    place[lane] = (split >> 10) + goes_right(x, __uint_as_float(at[2u * place[lane]]), split);
                }
            }
            for (uint32_t lane = 0; lane < width; ++lane)
                add(__uint_as_float(at[2u * place[lane]]), total[lane], lost[lane]);
            at += 2u * (head >> 9);
        }
    }
}

__device__ __forceinline__ float of_lane(float number, uint32_t) { return number; }
__device__ __forceinline__ void set_lane(float& number, uint32_t, float value) { number = value; }
template <typename Numbers>
__device__ __forceinline__ float of_lane(const Numbers& numbers, uint32_t lane)
{
    return numbers[lane];
}
template <typename Numbers>
__device__ __forceinline__ void set_lane(Numbers& numbers, uint32_t lane, float value)
{
    numbers[lane] = value;
}

/// The sum of the ensemble for its features, in their order. A `Number` is a float or lanes of floats.
template <typename Number, typename... Numbers>
__device__ __forceinline__ Number sum_of(const uint32_t* __restrict__ table, const Number& first,
                                         const Numbers&... others)
{
    constexpr uint32_t n_features = 1u + sizeof...(others), width = sizeof(Number) / sizeof(float);
    const Number given[n_features] = {first, others...};
    float inputs[(n_features + 1u) * width], total[width];
    for (uint32_t i = 0; i < n_features; ++i)
        for (uint32_t lane = 0; lane < width; ++lane) inputs[i * width + lane] = of_lane(given[i], lane);
    for (uint32_t lane = 0; lane < width; ++lane) inputs[n_features * width + lane] = __uint_as_float(0xFF800000u);
    sum_leaves<width>(table, inputs, total);
    Number sums = first;
    for (uint32_t lane = 0; lane < width; ++lane) set_lane(sums, lane, total[lane]);
    return sums;
}

}  // namespace hlt::trees
