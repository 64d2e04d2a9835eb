// The counters of the luminosity summary on the CPU: SciFi hits are counted by a part of their id, eight at once if
// they are of one module; cells of the calorimeter are in the lanes of vector registers.
#pragma once

#include "lhcb/calorimeter/cells_cpu.h"
#include "lhcb/luminosity/fill_counters.cuh"

namespace hlt {

static_assert(first_middle_ecal_cell % 16u == 0u && first_inner_ecal_cell % 16u == 0u && n_ecal_cells % 16u == 0u);

/// Sum of the lanes, modulo 2^32.
inline uint32_t sum_of_lanes(const uint_wide& lanes)
{
    uint32_t sum = 0;
    for (uint32_t lane = 0; lane < n_wide; ++lane) sum += lanes[lane];
    return sum;
}

template <typename Parameters>
struct lumi_counting_in_lanes : lumi_counting<Parameters> {
    static constexpr uint32_t first_bit = 11, n_places = 512;  // bits of an id: module, quarter, layer, station
    static constexpr uint32_t n_modules_of_place = 8;

    void count_scifi() const
    {
        const auto& p = this->p;
        const uint32_t first_hit = p.scifi_hits.first(this->event), n_hits = p.scifi_hits.count[this->event];
        const uint32_t* const id = p.scifi_hits.id + first_hit;
        uint32_t of_place[n_places] = {};
        const auto place_of = [&](uint32_t i) { return id[i] >> first_bit & (n_places - 1u); };
        uint32_t i = 0;
        for (; i + 8u <= n_hits; i += 8u) {
            uint8x32 ids;
            load8(ids, id + i);
            const uint8x32 places = ids >> first_bit & (n_places - 1u);
            const uint32_t place = place_of(i);
            // Most hits of a layer follow hits of their module.
            if (bits_of(places == place) == 0xffu) {
                of_place[place] += 8u;
                continue;
            }
            for (uint32_t k = 0; k < 8u; ++k) ++of_place[places[k]];
        }
        for (; i < n_hits; ++i) ++of_place[place_of(i)];

        // Places: station, layer (2 bits), upper bit of the quarter, side, module.
        for (uint32_t station = 0; station < n_lumi_stations; ++station)
            for (uint32_t side = 0; side < 2u; ++side) {
                uint8x32 sums{};
                for (uint32_t k = 0; k < 8u; ++k) {
                    uint8x32 of_modules;
                    load8(of_modules, of_place + (16u * (station + 1u) + 2u * k + side) * n_modules_of_place);
                    sums += of_modules;
                }
                for (uint32_t module = 0; module < n_modules_of_place; ++module)
                    this->add_scifi(station, side, module, sums[module]);
            }
    }

    void count_ecal(const ecal_geometry& ecal, const int16_t* adc) const
    {
        constexpr uint32_t ends[] = {first_middle_ecal_cell, first_inner_ecal_cell, n_ecal_cells};
        uint_wide total{};
        uint32_t cell = 0;
        for (uint32_t region = 0; region < 3u; ++region) {
            uint_wide of_all{}, above{};
            for (; cell < ends[region]; cell += n_wide) {
                using counts_of_cells = int16_t __attribute__((vector_size(2u * n_wide)));
                counts_of_cells narrow;
                std::memcpy(&narrow, adc + cell, sizeof narrow);
                const int_wide values = __builtin_convertvector(narrow, int_wide);
                float_wide gain, y, sine;
                load_wide(gain, ecal.gain + cell);
                load_wide(y, ecal.y + cell);
                load_wide(sine, ecal.sine + cell);
                const float_wide energy =
                    lumi_energy_units * (gain * (__builtin_convertvector(values, float_wide) - ecal.pedestal));
                const int_wide is_read = values != no_ecal_adc;
                const int_wide across = floor_of_lanes(energy * sine + 0.5f) & is_read;
                total += (uint_wide)(floor_of_lanes(energy + 0.5f) & is_read);
                of_all += (uint_wide)across;
                above += (uint_wide)(across & (int_wide)(y > 0.f));
            }
            const uint32_t of_region = sum_of_lanes(of_all), of_upper = sum_of_lanes(above);
            this->counts[first_lumi_ecal] += of_region;
            this->counts[first_lumi_ecal + 2u + region] = of_upper;
            this->counts[first_lumi_ecal + 5u + region] = of_region - of_upper;
        }
        this->counts[first_lumi_ecal + 1u] = sum_of_lanes(total);
    }
};

}  // namespace hlt

HLT_CPU_FORM(luminosity_fill_counters)
{
    if (!hlt::compares_eight_lanes) return luminosity_fill_counters(p, dim3{event, 1, 1});
    hlt::lumi_scratch scratch;
    hlt::fill_lumi_counters<hlt::lumi_counting_in_lanes<luminosity_fill_counters_parameters>>(p, event, scratch);
}
