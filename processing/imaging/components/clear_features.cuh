// Features of components without pixels.
#pragma once

#include "imaging/components/generated/component_types.h"

namespace hlt {

/// The threads of a block clear the features of n components; `columns` are those of the collection `components`.
template <typename Columns>
__device__ void clear_features(const Columns& columns, uint32_t first, uint32_t n)
{
    for (uint32_t i = first + threadIdx.x; i < first + n; i += blockDim.x) {
        columns.area[i] = 0;
        columns.box[i] = {0xffffffffu, 0xffffffffu, 0, 0};
        for (uint32_t word = 2u * i; word < 2u * i + 2u; ++word) {
            columns.sum_x[word] = 0;
            columns.sum_y[word] = 0;
            columns.intensity[word] = 0;
            columns.weighted_x[word] = 0;
            columns.weighted_y[word] = 0;
        }
    }
}

}  // namespace hlt
