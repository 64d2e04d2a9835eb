// The response of a dense network for one candidate, or for the lanes of a vector register.
//
// The table is that of network.py, which checks it: no index leaves it or the values. Each thread has all values of a
// layer; the weights are the same for all threads, so that a GPU loads each once for a warp. Four results at a time
// share the loads of the values, and their sums do not wait for one another. NumPy computes in the same order
// (evaluation/networks.py).
#pragma once

#include "selection/expressions/functions.cuh"

namespace hlt::networks {

enum kind : uint32_t {
    dense,
    add,
    multiply,
    divide,
    relu,
    leaky_relu,
    sigmoid,
    tanh_like,
    group_sort,
    residual,
};

__device__ __forceinline__ float parameter(const uint32_t* __restrict__ table, uint32_t place)
{
    return __uint_as_float(table[place]);
}

/// `n_made` results of `n` values: rows of a bias and n weights.
template <typename Number>
__device__ __forceinline__ void linear(const uint32_t* __restrict__ rows, const Number* values, uint32_t n,
                                       Number* made, uint32_t n_made)
{
    using as = number_words<Number>;
    const uint32_t stride = n + 1u;
    uint32_t row = 0;
    for (; row + 4u <= n_made; row += 4u) {
        const uint32_t* const at = rows + row * stride;
        Number a = as::all(parameter(at, 0)), b = as::all(parameter(at, stride));
        Number c = as::all(parameter(at, 2u * stride)), d = as::all(parameter(at, 3u * stride));
        for (uint32_t i = 1; i <= n; ++i) {
            const Number value = values[i - 1u];
            a = a + value * parameter(at, i);
            b = b + value * parameter(at, stride + i);
            c = c + value * parameter(at, 2u * stride + i);
            d = d + value * parameter(at, 3u * stride + i);
        }
        made[row] = a;
        made[row + 1u] = b;
        made[row + 2u] = c;
        made[row + 3u] = d;
    }
    for (; row < n_made; ++row) {
        const uint32_t* const at = rows + row * stride;
        Number a = as::all(parameter(at, 0));
        for (uint32_t i = 1; i <= n; ++i) a = a + values[i - 1u] * parameter(at, i);
        made[row] = a;
    }
}

/// Sorts each group, the smallest value first: as many rounds of neighbours as a group has values.
template <typename Number>
__device__ __forceinline__ void sort_groups(Number* values, uint32_t n, uint32_t group)
{
    for (uint32_t begin = 0; begin < n; begin += group) {
        for (uint32_t round = 0; round < group; ++round) {
            for (uint32_t i = begin + (round & 1u); i + 1u < begin + group; i += 2u) {
                const Number one = values[i], other = values[i + 1u];
                values[i] = lines::minimum(one, other);
                values[i + 1u] = lines::maximum(one, other);
            }
        }
    }
}

template <typename Number>
__device__ __forceinline__ Number logistic(const Number& x)
{
    return 1.f / (1.f + lines::exponential(-x));
}

/// The hyperbolic tangent, absolute error below 1e-6.
template <typename Number>
__device__ __forceinline__ Number hyperbolic_tangent(const Number& x)
{
    const Number decay = lines::exponential(lines::absolute(x) * -2.f);
    const Number t = (1.f - decay) / (1.f + decay);
    return x < 0.f ? -t : t;
}

/// The response for the features, in their order. A `Number` is a float or lanes of floats; width: that of the table.
template <uint32_t width, typename Number, typename... Numbers>
__device__ Number response_of(const uint32_t* __restrict__ table, const Number& first, const Numbers&... others)
{
    constexpr uint32_t n_features = 1u + sizeof...(others);
    const Number features[n_features] = {first, others...};
    Number values[width], made[width];
    for (uint32_t i = 0; i < n_features; ++i) values[i] = features[i];
    uint32_t n = n_features;
    const uint32_t* at = table + 4;
    for (uint32_t step = 0; step < table[2]; ++step) {
        const uint32_t head = *at++;
        const uint32_t n_made = head >> 8;
        switch (head & 0xFFu) {
        case dense:
            linear(at, values, n, made, n_made);
            for (uint32_t i = 0; i < n_made; ++i) values[i] = made[i];
            at += n_made * (n + 1u);
            break;
        case add:
            for (uint32_t i = 0; i < n; ++i) values[i] = values[i] + parameter(at, i);
            at += n;
            break;
        case multiply:
            for (uint32_t i = 0; i < n; ++i) values[i] = values[i] * parameter(at, i);
            at += n;
            break;
        case divide:
            for (uint32_t i = 0; i < n; ++i) values[i] = values[i] / parameter(at, i);
            at += n;
            break;
        case relu:
            for (uint32_t i = 0; i < n; ++i) values[i] = lines::maximum(values[i], number_words<Number>::all(0.f));
            break;
        case leaky_relu:
            for (uint32_t i = 0; i < n; ++i) values[i] = values[i] < 0.f ? values[i] * parameter(at, 0) : values[i];
            at += 1;
            break;
        case sigmoid:
            for (uint32_t i = 0; i < n; ++i) values[i] = logistic(values[i]);
            break;
        case tanh_like:
            for (uint32_t i = 0; i < n; ++i) values[i] = hyperbolic_tangent(values[i]);
            break;
        case group_sort:
            sort_groups(values, n, at[0]);
            at += 1;
            break;
        default: {  // residual
            Number sum = features[0] * parameter(at, 0);
            for (uint32_t i = 1; i < n_features; ++i) sum = sum + features[i] * parameter(at, i);
            values[0] = values[0] + sum;
            at += n_features;
        }
        }
        n = n_made;
    }
    return values[0];
}

}  // namespace hlt::networks
