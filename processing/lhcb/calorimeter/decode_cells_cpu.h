// Cells of the calorimeter on the CPU: eight channels of a card are decoded at once, and the sums are added in vectors.
#pragma once

#include "framework/device/wide_lanes.h"
#include "lhcb/calorimeter/decode_cells.cuh"

namespace hlt {

/// For each pattern of eight channels the place of each in the stream, in units of four bits.
struct ecal_channel_places {
    uint8_t places[256][8];

    constexpr ecal_channel_places() : places{}
    {
        for (uint32_t pattern = 0; pattern < 256u; ++pattern) {
            uint8_t place = 0;
            for (uint32_t channel = 0; channel < 8u; ++channel) {
                places[pattern][channel] = place;
                place = static_cast<uint8_t>(place + ((pattern >> channel & 1u) != 0u ? 3 : 1));
            }
        }
    }
};
inline constexpr ecal_channel_places places_of_ecal_channels;

struct ecal_cells_in_lanes {
    /// The two bytes from each place of sixteen on; the second one of the last place has any value.
    static __attribute__((always_inline)) uint8x16 bytes_from(const sixteen_bytes& bytes, const uint8x16& places)
    {
#if defined(__SSSE3__)
        return (uint8x16)__builtin_ia32_pshufb128(bytes,
                                                  (sixteen_bytes)(((places & 0xfu) * 0x0101u + 0x0100u) & 0x0f0fu));
#else
        uint8x16 found{};
        for (uint32_t k = 0; k < 8u; ++k) {
            const uint32_t place = places[k] & 0xfu;
            found[k] = static_cast<uint16_t>(static_cast<uint8_t>(bytes[place]) |
                                             static_cast<uint8_t>(bytes[(place + 1u) % 16u]) << 8);
        }
        return found;
#endif
    }

    template <typename Work>
    static void for_packed_channels(const uint8_t* data, Work work)
    {
        const uint32_t pattern = load_u32(data);
        const uint8_t* const stream = data + 4u;
        // The stream of a card has four words at least; no byte behind its last word is read.
        const uint32_t last_load = (static_cast<uint32_t>(__builtin_popcount(pattern)) + 3u) / 4u * 4u;
        uint32_t place = 0;  // in units of four bits
        for (uint32_t channel = 0; channel < n_ecal_channels; channel += 8u) {
            const uint32_t of_eight = pattern >> channel & 0xffu;
            const uint32_t from = min_of(place / 2u, last_load);
            sixteen_bytes bytes;
            std::memcpy(&bytes, stream + from, sizeof bytes);
            uint8x16 places;
            load_bytes8(places, places_of_ecal_channels.places[of_eight]);
            places += static_cast<uint16_t>(place - 2u * from);
            uint8x16 found = bytes_from(bytes, places >> 1);
            found = (places & 1u) != 0u ? found >> 4 : found;
            constexpr uint8x16 bit_of_lane{1, 2, 4, 8, 16, 32, 64, 128};
            const int8x16 is_long = (int8x16)((bit_of_lane & static_cast<uint16_t>(of_eight)) != 0u);
            const int8x16 values =
                is_long ? (int8x16)(found & 0xfffu) - int16_t{256} : (int8x16)(found & 0xfu) - int16_t{8};
            for (uint32_t k = 0; k < 8u; ++k) work(channel + k, int32_t{values[k]});
            place += 8u + 2u * static_cast<uint32_t>(__builtin_popcount(of_eight));
        }
    }

    // The compiler makes vectors of the loop over cells.
    static void add(const ecal_geometry& geometry, const int16_t* adc, uint32_t first, float* sums, uint32_t& n_cells,
                    int32_t& largest)
    {
        const float* const gain = geometry.gain + first;
        const int16_t* const value = adc + first;
        const float pedestal = geometry.pedestal;
        int16_t most = 0;
        uint32_t n_void = 0;
        for (uint32_t i = 0; i < n_ecal_sums; ++i) {
            const bool is_void = value[i] == no_ecal_adc;
            n_void += is_void ? 1u : 0u;
            most = max_of(most, value[i]);
            const float energy = gain[i] * (static_cast<float>(value[i]) - pedestal);
            sums[i] += is_void ? 0.f : energy;
        }
        n_cells += n_ecal_sums - n_void;
        largest = max_of(largest, int32_t{most});
    }
};

}  // namespace hlt

HLT_CPU_FORM(ecal_decode_cells)
{
    if (!hlt::compares_eight_lanes) return ecal_decode_cells(p, dim3{event, 1, 1});
    hlt::ecal_decoding_scratch scratch;
    hlt::decode_ecal_cells<hlt::ecal_cells_in_lanes>(p, event, scratch);
}
