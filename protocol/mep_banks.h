// The banks of some events of a MEP, which lies in memory as the MFPs of its sources (docs/formats/mfp.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trigger_banks.h"

// Where the MFP of a source lies in a buffer; nothing of it has been checked.
struct PlacedMfp {
    uint32_t source;
    uint64_t offset, size;
};

// Finds the banks, source by source, and copies them to the records of the events.
//
// Banks of the trigger that came with the input are left out, and fragments that are larger than a bank may be.
class MepBanks {
  public:
    // `events` ascend and are numbers of a batch in which the MEP has those from `first` to before `first + n_events`.
    // Throws std::invalid_argument where an MFP is not sound, or not what the receiver has let in.
    MepBanks(const uint8_t* buffer, std::size_t buffer_size, std::vector<PlacedMfp> mfps, const int64_t* events,
             std::size_t n_kept, std::size_t first, std::size_t n_events);

    // Adds the bytes of its banks to each event, headers included, and sets what ODIN says of it where that is
    // readable. Returns the number of fragments that are too large.
    uint64_t measure(std::size_t* bodies, trigger_banks::Odin* odins);

    // Writes the banks of each event, after `measure`, in the order of their sources; moves the places behind them.
    void copy(uint8_t** places) const;

  private:
    struct Source {
        const uint8_t* mfp;
        const uint8_t* types;
        const uint8_t* sizes;
        uint64_t mfp_size;
        uint32_t mask;       // packing less one
        uint32_t event, at;  // a fragment, and the byte of the MFP at which it begins
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
    std::vector<Piece> pieces_;  // by group of events, by tile of sources, by event, by source
};
