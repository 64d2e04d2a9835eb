// Handles the fragments of open MEPs in compiled code: checks each, copies it to its place in the slot with its CRC,
// and adds it to its MEP. It refuses and counts unreadable frames, frames whose token the rule has refused before, and
// copies of a fragment that was refused before.
// All other frames are left, unchanged and not counted, to frame_handler.py: the first fragments of MEPs, other refused
// fragments, damaged frames.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "../../protocol/buffer_view.h"
#include "../../protocol/transport_frame.h"
#include "../event_building/open_meps.h"
#include "../monitoring/source_table.h"
#include "copy_threads.h"
#include "sender_answers.h"

struct InspectedFrame;

// Why a loop over frames ends.
enum class Outcome {
    empty,     // no frame is left
    paused,    // the time is over
    complete,  // a MEP is complete and must be closed
    left,      // Python must handle a frame
    failed,    // the socket cannot be read
    ended,     // the sender has no more fragments of a MEP, which is not complete
};

// Times of the reading loop in monotonic ns: for deadlines, for counters, and its end.
struct ReadingTimes {
    int64_t now_ns, true_ns, end_ns;

    bool is_over() const;
};

// Frames are handled in groups. Each frame gets its place as if it were valid, several threads copy all of them, and
// the frames are added in order. At the first damaged frame the later ones are undone and staged again. So the result,
// with all places, is the same as with one frame at a time. With one thread each group has one frame.
class FragmentIntake {
  public:
    enum class Staged {
        not_taken,
        placed,
        complete,
        refused,           // and counted: no correct feeder sends this frame
        refused_excused,   // and counted: a correct feeder may have sent this frame
        refused_in_group,  // not counted: it must be staged again in a group of its own
    };
    // Refused frames of one reason since the last call of `take_refused`.
    struct Refusals {
        const char* reason;
        uint64_t n;
        std::size_t size;  // bytes of the first of these frames
        std::array<uint8_t, frame_header_size> head;
    };

    FragmentIntake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SenderAnswers> senders,
                   std::shared_ptr<SourceTable> sources, std::vector<View> slots, std::size_t max_mfp_bytes,
                   std::size_t n_threads, std::size_t piece_bytes);
    FragmentIntake(const FragmentIntake&) = delete;
    FragmentIntake& operator=(const FragmentIntake&) = delete;

    // Gives an acceptable frame its place. Its bytes must stay valid until `take_staged`. With `is_shared` the feeder
    // may change them meanwhile, but not their number. A group ends when a frame completes a MEP or the group is full.
    Staged stage(const uint8_t* frame, std::size_t size, bool is_shared, const ReadingTimes& times);

    bool is_full() const;

    // Copies the group and adds its frames; returns the number of frames before the first damaged one.
    std::size_t take_staged(const ReadingTimes& times);

    // Most frames of a group.
    std::size_t max_frames() const { return max_frames_; }

    // The MEP of the last fragment that was added.
    uint64_t last_mep() const { return last_mep_; }

    // Frames and bytes added or refused since the last call.
    std::pair<uint64_t, uint64_t> take_counts();

    std::vector<Refusals> take_refused() { return std::exchange(refused_, {}); }

    // If false, all frames are left to Python.
    bool is_on = true;

  private:
    struct StagedFrame {
        OpenMeps::Place place;
        Fragment fragment;
        std::size_t size;
        bool is_shared;
        uint32_t announced_crc;
        int64_t before_ns;  // arrival of the previous fragment of the MEP
        std::size_t end_of_jobs;
    };

    Staged refuse_copy(const InspectedFrame& found, const uint8_t* frame, std::size_t size, const ReadingTimes& times);
    Staged refuse(const char* reason, const uint8_t* frame, std::size_t size, bool is_excused);
    void add_jobs(const uint8_t* mfp, uint8_t* to, std::size_t size, uint32_t crc);
    bool is_sound(const StagedFrame& frame, std::size_t first_job) const;

    std::shared_ptr<OpenMeps> meps_;
    std::shared_ptr<SenderAnswers> senders_;
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
    std::size_t n_alone_ = 0;  // number of next frames that get a group each
    uint64_t last_mep_ = 0;
    uint64_t n_frames_ = 0, n_bytes_ = 0;
    std::vector<Refusals> refused_;  // at most one entry of each reason
};

void add_fragment_intake(nanobind::module_& module);
