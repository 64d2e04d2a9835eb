// Features that move to the remaining label when two labels are joined, "on the fly" (A. Hennequin, Performance
// optimization for the LHCb experiment, PhD thesis, Sorbonne Universite, 2022, section 4.4.2, algorithm 15).
//
// Features lie at the labels of runs, so threads that change them at the same time change other addresses. A thread
// takes them from a label that is no root any more and gives them to its root. The fences order this after the link: a
// thread that sees the link too late still moves what was given to a label that has lost its root.
#pragma once

#include "imaging/gpu_labelling/generated/label_types.h"
#include "imaging/gpu_labelling/label_image.cuh"
#include "imaging/gpu_labelling/run_features.cuh"

namespace hlt {

/// Take everything from one place and give it to another one. Each number moves on its own.
__device__ void move_features(label_features& from, label_features& to)
{
    const uint32_t area = exchange_between_blocks(&from.area, 0u);
    if (area != 0u) add_between_blocks(&to.area, area);
    const uint64_t sum_x = exchange_between_blocks(&from.sum_x, uint64_t{0});
    if (sum_x != 0u) add_between_blocks(&to.sum_x, sum_x);
    const uint64_t sum_y = exchange_between_blocks(&from.sum_y, uint64_t{0});
    if (sum_y != 0u) add_between_blocks(&to.sum_y, sum_y);
    const uint32_t left = exchange_between_blocks(&from.left, 0xffffffffu);
    if (left != 0xffffffffu) lower_between_blocks(&to.left, left);
    const uint32_t right = exchange_between_blocks(&from.right, 0u);
    if (right != 0u) raise_between_blocks(&to.right, right);
    const uint32_t bottom = exchange_between_blocks(&from.bottom, 0u);
    if (bottom != 0u) raise_between_blocks(&to.bottom, bottom);
}

/// Labels whose features move with them; as plain_labels. Two labels share no place: they are not adjacent.
struct moving_labels {
    uint32_t* labels;
    label_features* features;

    __device__ void begin(uint32_t k, uint32_t before, uint32_t x, uint32_t y, uint32_t length) const
    {
        labels[k] = k;
        features[k / 2u] = {
            (2u * x + length - 1u) * length / 2u, static_cast<uint64_t>(y) * length, length, x, x + length - 1u, y};
        if (before != 0u) join(k, k - before);
    }
    __device__ void join(uint32_t a, uint32_t b) const
    {
        a = root_of_label(labels, a);
        b = root_of_label(labels, b);
        __threadfence();
        while (a != b) {
            if (b < a) {
                const uint32_t smaller = b;
                b = a;
                a = smaller;
            }
            const uint32_t old = lower_between_blocks(labels + b, a);
            __threadfence();
            move_features(features[b / 2u], features[a / 2u]);
            __threadfence();
            if (old == b) break;
            b = old;
        }
        // Another thread may have joined `a` meanwhile, and moved its features before these came.
        for (uint32_t root = root_of_label(labels, a); root != a; root = root_of_label(labels, a)) {
            __threadfence();
            move_features(features[a / 2u], features[root / 2u]);
            __threadfence();
            a = root;
        }
    }
};

}  // namespace hlt
