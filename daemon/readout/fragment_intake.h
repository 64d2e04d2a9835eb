// The compiled way of a fragment of a MEP that is open: checked, copied to its place in the slot while its CRC is
// computed, and noted. Everything else is left, unchanged and not counted, to the rules of the event builder in Python
// (frame_handler.py): MEPs that are not open, all that is refused, all that is damaged.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../../protocol/buffer_view.h"
#include "../event_building/open_meps.h"
#include "../monitoring/source_table.h"

// Why a loop over frames ends.
enum class Outcome {
    empty,     // there is nothing more
    paused,    // its time is over
    complete,  // a MEP is complete, and to be closed
    left,      // a frame is left to Python
    failed,    // the socket cannot be read
};

// Times of the loop that reads: of the deadlines, of the counters, and when it is over; monotonic ns.
struct ReadingTimes {
    int64_t now_ns, true_ns, end_ns;

    bool is_over() const;
};

class FragmentIntake {
  public:
    enum class Taken { not_taken, placed, complete };

    FragmentIntake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SourceTable> sources, std::vector<View> slots,
                   std::size_t max_mfp_bytes)
        : meps_(std::move(meps)), sources_(std::move(sources)), slots_(std::move(slots)), max_mfp_bytes_(max_mfp_bytes)
    {
    }

    FragmentIntake(const FragmentIntake&) = delete;
    FragmentIntake& operator=(const FragmentIntake&) = delete;

    // Takes a frame if it can; with `is_shared` its bytes may change meanwhile, but not their number.
    Taken take(const uint8_t* frame, std::size_t size, bool is_shared, const ReadingTimes& times);

    // The MEP of the last fragment that was taken.
    uint64_t last_mep() const { return last_mep_; }

    // Frames and bytes that were taken since the last call.
    std::pair<uint64_t, uint64_t> take_counts();

    // Whether frames are taken at all; else all are left to Python.
    bool is_on = true;

  private:
    std::shared_ptr<OpenMeps> meps_;
    std::shared_ptr<SourceTable> sources_;
    std::vector<View> slots_;
    std::size_t max_mfp_bytes_;
    uint64_t last_mep_ = 0;
    uint64_t n_frames_ = 0, n_bytes_ = 0;
};

void add_fragment_intake(nanobind::module_& module);
