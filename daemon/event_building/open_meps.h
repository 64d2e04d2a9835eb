// The open MEPs as the compiled code sees them: which sources have arrived, and the place of the next fragment. The
// event builder (event_builder.py) shares this state, and alone opens and closes MEPs.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

// A row of MepRecord.fragments.
struct PlacedFragment {
    int64_t source, offset, size;
};

// Offsets of fragments in a slot are multiples of it. Equal to ALIGNMENT in slots.py.
constexpr int64_t fragment_alignment = 8;

constexpr int64_t padded_fragment(int64_t size) { return (size + fragment_alignment - 1) & -fragment_alignment; }

// The fragments of one MEP that have arrived. Rows never move: views of them stay valid while others are added.
class MepFragments {
  public:
    explicit MepFragments(std::size_t n_sources)
        : capacity_(n_sources), seen_((n_sources + 63) / 64), rows_(new PlacedFragment[n_sources])
    {
    }
    MepFragments(const MepFragments& other);

    // `column` is the index of a source in the sources of the run.
    bool has(std::size_t column) const { return seen_[column / 64] >> column % 64 & 1; }

    // Adds the fragment of a source that has not arrived yet, so there are at most as many rows as sources.
    void add(std::size_t column, const PlacedFragment& fragment, int64_t now_ns)
    {
        seen_[column / 64] |= uint64_t{1} << column % 64;
        rows_[n_++] = fragment;
        bytes += padded_fragment(fragment.size);
        last_ns = now_ns;
    }

    // Removes the fragment that was added last; `before_ns` is the arrival time of the one before it.
    void take_back(std::size_t column, int64_t before_ns)
    {
        seen_[column / 64] &= ~(uint64_t{1} << column % 64);
        bytes -= padded_fragment(rows_[--n_].size);
        last_ns = before_ns;
    }

    bool is_complete() const { return n_ == capacity_; }
    std::size_t size() const { return n_; }
    std::size_t capacity() const { return capacity_; }
    const std::vector<uint64_t>& seen() const { return seen_; }
    PlacedFragment* rows() { return rows_.get(); }

    int64_t bytes = 0;    // with padding
    int64_t last_ns = 0;  // arrival of the last fragment, in ns of the builder's clock

  private:
    std::size_t capacity_, n_ = 0;
    std::vector<uint64_t> seen_;
    std::unique_ptr<PlacedFragment[]> rows_;
};

// A fragment as a valid frame describes it; size of the MFP in bytes.
struct Fragment {
    uint32_t run;
    uint16_t source;
    uint64_t mep;
    uint32_t size;
    uint64_t first_event;
    uint16_t n_events;
};

class OpenMeps {
  public:
    struct Entry {
        uint32_t slot;
        uint64_t first_event;
        uint16_t n_events;
        std::shared_ptr<MepFragments> fragments;
    };
    struct Place {
        Entry* mep;  // null if the event builder has to decide
        std::size_t column;
        int64_t offset;
    };

    OpenMeps(std::size_t n_slots, int64_t mep_bytes)
        : mep_bytes_(mep_bytes), cursors_(n_slots), columns_(n_source_ids, -1)
    {
    }

    // Starts a run without open MEPs.
    void start_run(uint32_t run, const std::vector<uint16_t>& sources);

    void open(uint64_t mep, uint32_t slot, uint64_t first_event, uint16_t n_events,
              std::shared_ptr<MepFragments> fragments);
    void close(uint64_t mep)
    {
        open_.erase(mep);
        n_refused_ = 0;
    }

    // Notes that the event builder has refused a fragment that is in its MEP (`duplicate`) or too late for it. The
    // answer is valid until a MEP is opened or closed, or `forget_refused`. A copy with the right CRC needs the answer
    // to one with the right CRC (`is_sound`), which its feeder was told.
    void note_refused(uint16_t source, uint64_t mep, bool is_late, bool is_sound);

    // The reason to refuse a copy of that fragment (a RejectReason value), or null.
    const char* refusal(uint32_t run, uint16_t source, uint64_t mep, bool is_sound) const;

    void forget_refused() { n_refused_ = 0; }

    // Offset of the next fragment in a slot, in bytes.
    int64_t& cursor(std::size_t slot) { return cursors_.at(slot); }

    // The place of a fragment that an open MEP lacks and that agrees with the MEP. Changes nothing.
    Place find(const Fragment& fragment);

    // Adds a fragment that was copied to its place. Returns true if the MEP is complete: then the caller must have the
    // event builder close it.
    bool add(const Place& place, const Fragment& fragment, int64_t now_ns)
    {
        place.mep->fragments->add(place.column, {fragment.source, place.offset, fragment.size}, now_ns);
        cursors_[place.mep->slot] = place.offset + padded_fragment(fragment.size);
        return place.mep->fragments->is_complete();
    }

    // Undoes the last `add` to the slot; `before_ns` is the earlier `last_ns` of the MEP.
    void take_back(const Place& place, int64_t before_ns)
    {
        place.mep->fragments->take_back(place.column, before_ns);
        cursors_[place.mep->slot] = place.offset;
    }

    // The same by MEP id, for a fragment that the event builder has placed.
    bool add(uint64_t mep, uint16_t source, int64_t offset, uint32_t size, int64_t now_ns);

  private:
    struct RefusedFragment {
        uint16_t source;
        uint64_t mep;
        bool is_late, is_sound;
    };

    static constexpr std::size_t n_source_ids = std::size_t{1} << 16;
    // More different fragments than one connection repeats in a turn of the event loop.
    static constexpr std::size_t max_refused = 64;

    int64_t mep_bytes_;
    std::vector<int64_t> cursors_;
    std::vector<int32_t> columns_;  // by source id; -1 for a source outside the run
    std::array<RefusedFragment, max_refused> refused_{};
    std::size_t n_refused_ = 0;
    std::size_t n_sources_ = 0;
    uint32_t run_ = 0;
    std::unordered_map<uint64_t, Entry> open_;
};

void add_open_meps(nanobind::module_& module);
