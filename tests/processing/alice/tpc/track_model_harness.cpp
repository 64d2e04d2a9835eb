// The track model for test_track_model.py: a state of 16 floats, a filter of 13.
#include <cstdint>
#include <cstring>

#include "alice/tpc/tracks/track_model.cuh"

namespace {

hlt::tpc_filter filter_from(const float* numbers)
{
    hlt::tpc_filter filter;
    static_assert(sizeof filter == 13 * sizeof(float));
    std::memcpy(&filter, numbers, sizeof filter);
    return filter;
}

}  // namespace

extern "C" int propagate_state(const float* filter, float* state, float x)
{
    hlt::tpc_state t;
    static_assert(sizeof t == 16 * sizeof(float));
    std::memcpy(&t, state, sizeof t);
    const bool moved = hlt::propagate(filter_from(filter), t, x);
    std::memcpy(state, &t, sizeof t);
    return moved;
}

// The start of a fit at the last of three points, or at the first one; a point is x, y, z and the length of its pads.
extern "C" int start_track(const float* filter, const float* points, int at_first, float* state)
{
    hlt::tpc_state t;
    hlt::tpc_point of[3];
    static_assert(sizeof of == 12 * sizeof(float));
    std::memcpy(of, points, sizeof of);
    const bool started = hlt::start_state(filter_from(filter), of[0], of[1], of[2], at_first != 0, t);
    std::memcpy(state, &t, sizeof t);
    return started;
}

// Fits of n tracks with random errors from the last row inwards; returns how many have a variance that is not positive,
// or a covariance larger than the variances allow.
extern "C" uint32_t wrong_fits(const float* filter, const float* row_x, uint32_t n_rows, const float* starts,
                               const float* noise, uint32_t n_noise, uint32_t n)
{
    const hlt::tpc_filter f = filter_from(filter);
    uint32_t wrong = 0, k = 0;
    for (uint32_t i = 0; i < n; ++i) {
        hlt::tpc_state t;
        std::memcpy(&t, starts + 16 * i, sizeof t);
        for (uint32_t row = n_rows - 1; row-- > 0;) {
            if (!hlt::propagate(f, t, row_x[row])) break;
            const hlt::tpc_errors errors = hlt::errors_at(f, t, t.z, 1.f);
            hlt::update(t, errors, t.y + hlt::square_root(errors.y) * noise[k % n_noise],
                        t.z + hlt::square_root(errors.z) * noise[(k + 1) % n_noise]);
            k += 2;
            const bool good = t.yy > 0.f && t.zz > 0.f && t.ss > 0.f && t.ll > 0.f && t.qq > 0.f &&
                              t.sy * t.sy <= t.yy * t.ss * 1.001f && t.lz * t.lz <= t.zz * t.ll * 1.001f;
            if (!good) {
                ++wrong;
                break;
            }
        }
    }
    return wrong;
}
