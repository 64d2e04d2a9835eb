// Features on the CPU: the sums of a component stay in registers from run to run while the label does.
//
// One thread sees the rows in order, so a row that a component has is its last one so far. Pixels of 1 bit are 1: the
// sums weighted by them are those of the coordinates, which are copied at the end.
#pragma once

#include "imaging/components/measure_components.cuh"

namespace hlt {

/// Sums over some runs of one component in one row.
struct run_sums {
    uint64_t x, intensity, weighted_x;
    uint32_t area, left, right;
};

inline __attribute__((always_inline)) uint64_t load_words(const uint32_t* words)
{
    return static_cast<uint64_t>(words[1]) << 32 | words[0];
}

inline __attribute__((always_inline)) void store_words(uint32_t* words, uint64_t value)
{
    words[0] = static_cast<uint32_t>(value);
    words[1] = static_cast<uint32_t>(value >> 32);
}

/// Add runs of row y to component i; rows come in order.
template <bool grey, typename Columns>
inline __attribute__((always_inline)) void add_runs(const Columns& columns, uint32_t i, uint32_t y,
                                                    const run_sums& sums)
{
    columns.area[i] += sums.area;
    store_words(&columns.sum_x[2u * i], load_words(&columns.sum_x[2u * i]) + sums.x);
    store_words(&columns.sum_y[2u * i], load_words(&columns.sum_y[2u * i]) + static_cast<uint64_t>(y) * sums.area);
    component_box& box = columns.box[i];
    box.left = min_of(box.left, sums.left);
    box.top = min_of(box.top, y);
    box.right = max_of(box.right, sums.right);
    box.bottom = y;
    if (!grey) return;
    store_words(&columns.intensity[2u * i], load_words(&columns.intensity[2u * i]) + sums.intensity);
    store_words(&columns.weighted_x[2u * i], load_words(&columns.weighted_x[2u * i]) + sums.weighted_x);
    store_words(&columns.weighted_y[2u * i],
                load_words(&columns.weighted_y[2u * i]) + static_cast<uint64_t>(y) * sums.intensity);
}

/// Features of the components of an image, which are cleared; grey: pixels have 8 bits.
template <bool grey, typename Parameters>
inline __attribute__((always_inline)) void measure_image(const Parameters& p, uint32_t event)
{
    const uint32_t n_components = p.components.count[event];
    const uint32_t first = p.components.first(event);
    const uint32_t n_rows = p.image_rows.count[event];
    const row_runs* const rows = p.image_rows.runs + p.image_rows.first(event);
    const uint32_t* const data = p.image_rows.data + p.image_rows.first(event);
    const image_run* const spans = p.runs.span + p.runs.first(event);
    const uint32_t* const label = p.runs.label + p.runs.first(event);
    for (uint32_t y = 0; y < n_rows; ++y) {
        const uint32_t end_run = rows[y].first + rows[y].count;
        for (uint32_t run = rows[y].first; run < end_run;) {
            const uint32_t own = label[run];
            run_sums sums{0, 0, 0, 0, spans[run].begin, 0};
            do {
                const uint32_t begin = spans[run].begin, end = spans[run].end;
                sums.area += end - begin;
                // Twice the sum of the columns.
                sums.x += (begin + end - 1u) * (end - begin);
                sums.right = end - 1u;
                if (grey && own < n_components) {
                    const uint8_t* const row = p.input.bytes + data[y];
                    for (uint32_t x = begin; x < end; ++x) {
                        sums.intensity += row[x];
                        sums.weighted_x += x * row[x];
                    }
                }
                ++run;
            } while (run < end_run && label[run] == own);
            sums.x /= 2u;
            if (own < n_components) add_runs<grey>(p.components, first + own, y, sums);
        }
    }
    if (grey) return;
    for (uint32_t i = first; i < first + n_components; ++i) {
        store_words(&p.components.intensity[2u * i], p.components.area[i]);
        store_words(&p.components.weighted_x[2u * i], load_words(&p.components.sum_x[2u * i]));
        store_words(&p.components.weighted_y[2u * i], load_words(&p.components.sum_y[2u * i]));
    }
}

}  // namespace hlt

HLT_CPU_FORM(ccl_measure_components)
{
    if (!p.takes(event)) return;

    hlt::clear_features(p.components, p.components.first(event), p.components.count[event]);
    if (p.images.shape[event].bits == 8u) {
        hlt::measure_image<true>(p, event);
    } else {
        hlt::measure_image<false>(p, event);
    }
}
