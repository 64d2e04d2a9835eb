// Banks of some events of a MEP, read from the MFPs of its sources (docs/formats/mfp.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trigger_banks.h"

// Place of the MFP of a source in a buffer; not checked.
struct PlacedMfp {
    uint32_t source;
    uint64_t offset, size;
};

// Finds the banks, source by source, and copies them to the records of the events.
//
// Skips trigger banks of the input, and banks that cannot be written.
class MepBanks {
  public:
    // `events` ascend and are numbers of a batch, in which the MEP has the numbers from `first` to `first + n_events`
    // (excluded). Throws std::invalid_argument if an MFP is damaged, or differs from what the receiver accepted.
    MepBanks(const uint8_t* buffer, std::size_t buffer_size, std::vector<PlacedMfp> mfps, const int64_t* events,
             std::size_t n_kept, std::size_t first, std::size_t n_events);

    // Adds the bytes of its banks, headers included, to each event, and sets its ODIN fields if they are readable.
    // Returns the number of banks that cannot be written.
    uint64_t measure(std::size_t* bodies, trigger_banks::Odin* odins);

    // Writes the banks of each event in the order of their sources; call it after `measure`. Moves the places behind
    // the banks.
    void copy(uint8_t** places) const;

  private:
    struct Source {
        const uint8_t* mfp;
        const uint8_t* types;
        const uint8_t* sizes;
        uint64_t mfp_size;
        uint32_t mask;       // packing minus 1
        uint32_t event, at;  // a fragment, and its offset in the MFP
        uint16_t id;
        uint8_t version;
    };
    struct Piece {
        uint32_t offset;
        uint16_t size;
        uint8_t type;  // no_bank: nothing is copied
    };

    static void advance(Source& source, uint32_t event, uint32_t n_events);
    uint64_t measure_source(Source& source, const Source& following, std::size_t begin, std::size_t end, Piece* pieces,
                            std::size_t* bodies, trigger_banks::Odin* odins) const;
    static void prefetch(const uint8_t* mfp, const Piece& piece);
    static uint8_t* copy_fragment(const Source& source, const Piece& piece, uint8_t* to);
    uint8_t* copy_event(uint8_t* to, const Piece* pieces, std::size_t n_group) const;
    void copy_by_source(uint8_t** places, const Piece* pieces, std::size_t n_group) const;

    uint32_t n_events_;
    std::vector<uint32_t> events_;  // numbers in the MEP
    std::vector<Source> sources_;
    std::size_t n_tiles_ = 0;
    std::vector<Piece> pieces_;  // order: group of events, tile of sources, event, source
};
