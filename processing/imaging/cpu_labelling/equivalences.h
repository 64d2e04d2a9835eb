// A table of equivalent labels for one thread (A. Hennequin, Performance optimization for the LHCb experiment, PhD
// thesis, Sorbonne Universite, 2022, section 4.2.3, algorithms 3 and 4): without shortening of paths, the smaller root
// wins.
#pragma once

#include <cstdint>

namespace hlt {

inline __attribute__((always_inline)) uint32_t find_label(const uint32_t* parents, uint32_t label)
{
    while (parents[label] != label) label = parents[label];
    return label;
}

inline __attribute__((always_inline)) uint32_t unite_labels(uint32_t* parents, uint32_t one, uint32_t other)
{
    one = find_label(parents, one);
    other = find_label(parents, other);
    if (one < other) {
        parents[other] = one;
        return one;
    }
    parents[one] = other;
    return other;
}

}  // namespace hlt
