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
#include "copy_threads.h"

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

// Frames pass in groups: each gets its place as if it were sound, all are copied, by several threads if there are any,
// and are taken in their order. With the first that is damaged those behind it are given back, and come again: so what
// is taken, and where it lies, is the same as if frames were taken one by one. With one thread they are.
class FragmentIntake {
  public:
    enum class Staged { not_taken, placed, complete };

    FragmentIntake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SourceTable> sources, std::vector<View> slots,
                   std::size_t max_mfp_bytes, std::size_t n_threads, std::size_t piece_bytes);
    FragmentIntake(const FragmentIntake&) = delete;
    FragmentIntake& operator=(const FragmentIntake&) = delete;

    // Gives a frame its place if it can be taken; its bytes have to stay until `take_staged`. With `is_shared` they may
    // change meanwhile, but not their number. A group ends with a frame that completes a MEP, and when it is full.
    Staged stage(const uint8_t* frame, std::size_t size, bool is_shared, const ReadingTimes& times);

    bool is_full() const;

    // Copies the group and takes it; returns the number of frames up to the first that is damaged.
    std::size_t take_staged(const ReadingTimes& times);

    // The most frames in a group.
    std::size_t max_frames() const { return max_frames_; }

    // The MEP of the last fragment that was taken.
    uint64_t last_mep() const { return last_mep_; }

    // Frames and bytes that were taken since the last call.
    std::pair<uint64_t, uint64_t> take_counts();

    // Whether frames are taken at all; else all are left to Python.
    bool is_on = true;

  private:
    struct StagedFrame {
        OpenMeps::Place place;
        Fragment fragment;
        std::size_t size;
        bool is_shared;
        uint32_t announced_crc;
        int64_t before_ns;  // of the fragment before it in its MEP
        std::size_t end_of_jobs;
    };

    void add_jobs(const uint8_t* mfp, uint8_t* to, std::size_t size, uint32_t crc);
    bool is_sound(const StagedFrame& frame, std::size_t first_job) const;
    uint8_t* at_place(const StagedFrame& frame) const;

    std::shared_ptr<OpenMeps> meps_;
    std::shared_ptr<SourceTable> sources_;
    std::vector<View> slots_;
    std::size_t max_mfp_bytes_;
    crc32c::Copy copy_;
    CopyThreads threads_;
    std::size_t piece_bytes_;
    std::size_t max_frames_;
    std::vector<StagedFrame> staged_;
    std::vector<CopyJob> jobs_;
    std::size_t staged_bytes_ = 0;
    std::size_t n_alone_ = 0;  // the next frames are taken one by one
    uint64_t last_mep_ = 0;
    uint64_t n_frames_ = 0, n_bytes_ = 0;
};

void add_fragment_intake(nanobind::module_& module);
