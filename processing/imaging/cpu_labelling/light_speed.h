// Light speed labelling of runs (L. Lacassagne and B. Zavidovique, Light speed labeling: efficient connected component
// labeling on RISC architectures, J. Real-Time Image Proc. 6 (2011) 117, doi:10.1007/s11554-009-0134-0).
//
// Each pixel gets the number of changes up to it in its row, so the runs above a run are found by column. STD keeps
// these numbers for all pixels, has no branch for a pixel, and replaces each by its label. RLE branches where a row
// changes, keeps the numbers of two rows, and fills the pixels of a run with its label.
#pragma once

#include "imaging/cpu_labelling/binary_image.h"
#include "imaging/cpu_labelling/equivalences.h"

namespace hlt {

template <bool rle>
class light_speed {
  public:
    explicit light_speed(const binary_image& image) : image_{image}, parents_{image.parents - 1} {}

    /// Label all pixels with the number of their component from 1 on. rows, runs: the runs of the image; run_labels:
    /// places for their labels. Returns the number of components.
    uint32_t label(const row_runs* rows, const image_run* runs, uint32_t* run_labels)
    {
        const uint32_t width = image_.shape.width, height = image_.shape.height;
        const uint32_t* labels_above = run_labels;
        for (uint32_t y = 0; y < height; ++y) {
            const uint32_t n_edges = relative_labels(y);
            uint32_t* const labels_own = run_labels + rows[y].first;
            for (uint32_t run = 0; 2u * run < n_edges; ++run)
                labels_own[run] = label_of_run(y, edges_[2u * run], edges_[2u * run + 1u], labels_above);
            labels_above = labels_own;
        }
        const uint32_t n_components = number_labels(parents_, n_);
        for (uint32_t y = 0; y < height; ++y) {
            uint32_t* const own = image_.labels_of_row(y);
            const uint32_t* const labels = run_labels + rows[y].first;
            uint32_t x = 0;
            if (rle) {
                for (uint32_t run = 0; run < rows[y].count; ++run) {
                    const image_run place = runs[rows[y].first + run];
                    const uint32_t number = parents_[labels[run]];
                    for (; x < place.begin; ++x) own[x] = 0;
                    for (; x < place.end; ++x) own[x] = number;
                }
                for (; x < width; ++x) own[x] = 0;
            } else {
                for (; x < width; ++x) own[x] = own[x] % 2u == 0u ? 0u : parents_[labels[own[x] / 2u]];
            }
        }
        return n_components;
    }

  private:
    /// Changes up to column x of a row, which is 2 * run + 1 in a run. The first row has none above.
    uint32_t relative(uint32_t y, uint32_t x) const { return rle ? relative_[y % 2u][x] : image_.labels_of_row(y)[x]; }

    /// Write the relative labels and the edges of a row. Returns the number of edges.
    inline __attribute__((always_inline)) uint32_t relative_labels(uint32_t y)
    {
        const uint32_t width = image_.shape.width;
        const uint8_t* const foreground = pixels_.unpack(image_, y);
        uint32_t* const labels = image_.labels_of_row(y);
        uint32_t n = 0;
        for (uint32_t x = 0; x < width; ++x) {
            const uint32_t change = foreground[x] ^ foreground[static_cast<int32_t>(x) - 1];
            if (rle) {
                if (change != 0u) edges_[n++] = static_cast<uint16_t>(x);
                relative_[y % 2u][x] = static_cast<uint16_t>(n);
            } else {
                edges_[n] = static_cast<uint16_t>(x);
                n += change;
                labels[x] = n;
            }
        }
        if (n % 2u == 1u) edges_[n++] = static_cast<uint16_t>(width);
        return n;
    }

    /// The label of the run [begin, end) of row y.
    inline __attribute__((always_inline)) uint32_t label_of_run(uint32_t y, uint32_t begin, uint32_t end,
                                                                const uint32_t* labels_above)
    {
        if (y != 0u) {
            const uint32_t last = min_of(end, image_.shape.width - 1u);
            const uint32_t first_run = relative(y - 1u, begin == 0u ? 0u : begin - 1u) / 2u;
            const uint32_t end_run = (relative(y - 1u, last) + 1u) / 2u;
            if (end_run > first_run) {
                uint32_t label = labels_above[first_run];
                for (uint32_t run = first_run + 1u; run < end_run; ++run)
                    label = unite_labels(parents_, label, labels_above[run]);
                return label;
            }
        }
        ++n_;
        parents_[n_] = n_;
        return n_;
    }

    binary_image image_;
    uint32_t* parents_;
    uint32_t n_ = 0;
    pixel_row pixels_;
    uint16_t edges_[max_side + 2u + spare_edges];
    uint16_t relative_[2][rle ? max_side : 1];
};

}  // namespace hlt
