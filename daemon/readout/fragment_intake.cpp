#include "fragment_intake.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "../../protocol/crc32c.h"
#include "../../protocol/fragment_frame.h"
#include "../../protocol/frame_range.h"

namespace nb = nanobind;

namespace {

// Most bytes of a group: enough for all threads, and a small part of one turn of the event loop.
constexpr std::size_t group_frames = 64;
constexpr std::size_t group_pieces = 32;
constexpr std::size_t piece_bytes = 128 << 10;
// Below this size a copy takes about as long as the wake-up of other threads.
constexpr std::size_t shared_pieces = 8;

}  // namespace

bool ReadingTimes::is_over() const
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() >= end_ns;
}

FragmentIntake::FragmentIntake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SenderAnswers> senders,
                               std::shared_ptr<SourceTable> sources, std::vector<View> slots, std::size_t max_mfp_bytes,
                               std::size_t n_threads, std::size_t piece_bytes)
    : meps_(std::move(meps)),
      senders_(std::move(senders)),
      sources_(std::move(sources)),
      slots_(std::move(slots)),
      max_mfp_bytes_(max_mfp_bytes),
      copy_(crc32c::implementations()[0].copy),
      threads_(n_threads, copy_),
      piece_bytes_(piece_bytes),
      max_frames_(n_threads > 1 ? group_frames : 1)
{
    staged_.reserve(max_frames_);
    jobs_.reserve(max_frames_);
}

FragmentIntake::Staged FragmentIntake::stage(const uint8_t* frame, std::size_t size, bool is_shared,
                                             const ReadingTimes& times)
{
    if (!is_on) return Staged::not_taken;
    const InspectedFrame found(frame, size);
    const FrameHeader& header = found.header;
    if (!found.is_readable) return refuse(found.refusal, frame, size, false);
    if (!senders_->permits(header.source, header.token)) {
        const char* const reason = senders_->refusal(header.token, header.run, header.source);
        return reason ? refuse(reason, frame, size, times.now_ns < senders_->late_until_ns) : Staged::not_taken;
    }
    if (header.length > max_mfp_bytes_) return Staged::not_taken;
    const Fragment fragment{header.run, header.source, header.mep, header.length, found.first_event, found.n_events};
    const OpenMeps::Place place = *found.refusal ? OpenMeps::Place{} : meps_->find(fragment);
    if (!place.mep) return refuse_copy(found, frame, size, times);
    const View& slot = slots_[place.mep->slot];
    const auto offset = static_cast<std::size_t>(place.offset);
    if (offset > slot.size() || header.length > slot.size() - offset) return Staged::not_taken;
    const FrameCrc crc(frame, size, copy_);
    if (!crc.is_sound) return Staged::not_taken;
    add_jobs(frame + frame_header_size, static_cast<uint8_t*>(slot.data()) + offset, header.length, crc.of_header);
    staged_.push_back({place, fragment, size, is_shared, crc.announced, place.mep->fragments->last_ns, jobs_.size()});
    staged_bytes_ += size;
    return meps_->add(place, fragment, times.now_ns) ? Staged::complete : Staged::placed;
}

// Refuses a frame without a place if it is a copy of a fragment that was refused before; leaves others to Python.
FragmentIntake::Staged FragmentIntake::refuse_copy(const InspectedFrame& found, const uint8_t* frame, std::size_t size,
                                                   const ReadingTimes& times)
{
    const FrameHeader& header = found.header;
    if (!meps_->refusal(header.run, header.source, header.mep, false)) return Staged::not_taken;
    const bool is_sound = copy_and_check(frame, size, nullptr, copy_);
    if (is_sound && *found.refusal) return Staged::not_taken;
    const char* const reason = meps_->refusal(header.run, header.source, header.mep, is_sound);
    if (!reason) return Staged::not_taken;
    const Staged answer = refuse(is_sound ? reason : "bad_crc", frame, size, true);
    if (answer == Staged::refused_excused) sources_->count(header.source, size, times.true_ns);
    return answer;
}

FragmentIntake::Staged FragmentIntake::refuse(const char* reason, const uint8_t* frame, std::size_t size,
                                              bool is_excused)
{
    // A group may be staged again from any of its frames on, and no frame counts twice.
    if (!staged_.empty()) return Staged::refused_in_group;
    ++n_frames_;
    n_bytes_ += size;
    const auto is_reason = [reason](const Refusals& each) { return std::string_view(each.reason) == reason; };
    if (const auto known = std::find_if(refused_.begin(), refused_.end(), is_reason); known != refused_.end()) {
        ++known->n;
    } else {
        Refusals first{reason, 1, size, {}};
        std::copy_n(frame, std::min(size, first.head.size()), first.head.begin());
        refused_.push_back(first);
    }
    return is_excused ? Staged::refused_excused : Staged::refused;
}

// A fragment is split into pieces, so that threads share the copy of a large one.
void FragmentIntake::add_jobs(const uint8_t* mfp, uint8_t* to, std::size_t size, uint32_t crc)
{
    while (threads_.n_threads() > 1 && size > piece_bytes_) {
        jobs_.push_back({mfp, to, piece_bytes_, crc});
        crc = 0;
        mfp += piece_bytes_;
        to += piece_bytes_;
        size -= piece_bytes_;
    }
    jobs_.push_back({mfp, to, size, crc});
}

bool FragmentIntake::is_full() const
{
    return staged_.size() >= (n_alone_ ? 1 : max_frames_) || staged_bytes_ >= group_pieces * piece_bytes_;
}

std::size_t FragmentIntake::take_staged(const ReadingTimes& times)
{
    threads_.run(jobs_, staged_bytes_ >= shared_pieces * piece_bytes_);
    std::size_t n_taken = 0, first_job = 0;
    for (const StagedFrame& frame : staged_) {
        if (!is_sound(frame, first_job)) break;
        const uint8_t* const mfp = jobs_[first_job].to;
        first_job = frame.end_of_jobs;
        ++n_taken;
        ++n_frames_;
        n_bytes_ += frame.size;
        sources_->count(frame.fragment.source, frame.size, times.true_ns);
        sources_->count_error_banks(frame.fragment.source, mfp + mfp_header_size, frame.fragment.n_events);
        last_mep_ = frame.fragment.mep;
    }
    n_alone_ -= std::min(n_alone_, n_taken);
    if (n_taken < staged_.size()) {
        for (std::size_t i = staged_.size(); i-- > n_taken;) meps_->take_back(staged_[i].place, staged_[i].before_ns);
        // One frame at a time for a while: repeated damage must not have all other frames copied twice.
        n_alone_ = max_frames_;
    }
    staged_.clear();
    jobs_.clear();
    staged_bytes_ = 0;
    return n_taken;
}

bool FragmentIntake::is_sound(const StagedFrame& frame, std::size_t first_job) const
{
    uint32_t crc = jobs_[first_job].crc;
    for (std::size_t i = first_job + 1; i < frame.end_of_jobs; ++i)
        crc = crc32c::joined(crc, jobs_[i].crc, jobs_[i].size);
    if (crc != frame.announced_crc) return false;
    if (!frame.is_shared) return true;
    // The feeder may have changed the bytes between the first check and the copy.
    const Fragment& fragment = frame.fragment;
    return !*refusal_of_placed(jobs_[first_job].to, fragment.size, fragment.source, fragment.first_event,
                               fragment.n_events);
}

std::pair<uint64_t, uint64_t> FragmentIntake::take_counts()
{
    return {std::exchange(n_frames_, 0), std::exchange(n_bytes_, 0)};
}

namespace {

std::shared_ptr<FragmentIntake> make_intake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SenderAnswers> senders,
                                            std::shared_ptr<SourceTable> sources, const nb::sequence& slots,
                                            std::size_t max_mfp_bytes, std::size_t n_threads, std::size_t piece_bytes)
{
    if (!n_threads || !piece_bytes)
        throw nb::value_error("expected at least one thread, and pieces of at least one byte");
    std::vector<View> views;
    for (const nb::handle slot : slots) views.emplace_back(slot.ptr(), PyBUF_WRITABLE);
    return std::make_shared<FragmentIntake>(std::move(meps), std::move(senders), std::move(sources), std::move(views),
                                            max_mfp_bytes, n_threads, piece_bytes);
}

// The refused frames since the last call, by reason: how many, bytes of the first, and its start, at most a header.
std::vector<nb::tuple> take_refused(FragmentIntake& intake)
{
    std::vector<nb::tuple> taken;
    for (const FragmentIntake::Refusals& each : intake.take_refused())
        taken.push_back(nb::make_tuple(each.reason, each.n, each.size,
                                       nb::bytes(each.head.data(), std::min(each.size, each.head.size()))));
    return taken;
}

// Handles the frames of a range from `at` on. Returns the outcome, begin and end of the frame that is left to Python,
// and the offset of the next frame.
nb::tuple take_range(FragmentIntake& intake, const nb::handle& range, std::size_t at, int64_t now_ns, int64_t true_ns,
                     int64_t end_ns)
{
    const View frames(range.ptr());
    const ReadingTimes times{now_ns, true_ns, end_ns};
    Outcome outcome = Outcome::empty;
    std::size_t begin = at, end = at, next = at;
    struct {
        std::size_t begin, end, next;
    } staged[group_frames];
    {
        const nb::gil_scoped_release released;
        while (outcome == Outcome::empty && next < frames.size()) {
            if (times.is_over()) {
                outcome = Outcome::paused;
                break;
            }
            std::size_t n_staged = 0;
            bool is_group_over = false;
            while (outcome == Outcome::empty && !is_group_over && next < frames.size() && !intake.is_full()) {
                const FrameInRange frame = frame_in_range(frames.bytes(), frames.size(), next);
                begin = next, end = frame.end, next = frame.next;
                staged[n_staged] = {begin, end, next};
                switch (intake.stage(frames.bytes() + begin, end - begin, true, times)) {
                case FragmentIntake::Staged::not_taken: outcome = Outcome::left; break;
                case FragmentIntake::Staged::complete: outcome = Outcome::complete; [[fallthrough]];
                case FragmentIntake::Staged::placed: ++n_staged; break;
                case FragmentIntake::Staged::refused:
                case FragmentIntake::Staged::refused_excused: is_group_over = true; break;
                case FragmentIntake::Staged::refused_in_group:
                    is_group_over = true;
                    next = begin;
                    break;
                }
            }
            const std::size_t n_taken = intake.take_staged(times);
            if (n_taken == n_staged) continue;
            outcome = Outcome::left;
            begin = staged[n_taken].begin, end = staged[n_taken].end, next = staged[n_taken].next;
        }
    }
    return nb::make_tuple(outcome, begin, end, next);
}

}  // namespace

void add_fragment_intake(nb::module_& module)
{
    nb::enum_<Outcome>(module, "Outcome", "Why a loop over frames ends")
        .value("EMPTY", Outcome::empty)
        .value("PAUSED", Outcome::paused)
        .value("COMPLETE", Outcome::complete)
        .value("LEFT", Outcome::left)
        .value("FAILED", Outcome::failed)
        .value("ENDED", Outcome::ended);
    nb::class_<FragmentIntake>(module, "FragmentIntake", "Handles fragments of open MEPs")
        .def(nb::new_(&make_intake), nb::arg("meps"), nb::arg("senders"), nb::arg("sources"), nb::arg("slots"),
             nb::arg("max_mfp_bytes"), nb::arg("n_threads") = 1, nb::arg("piece_bytes") = piece_bytes)
        .def("take_range", &take_range, nb::arg("range"), nb::arg("at"), nb::arg("now_ns"), nb::arg("true_ns"),
             nb::arg("end_ns"))
        .def("take_counts", &FragmentIntake::take_counts)
        .def("take_refused", &take_refused)
        .def_prop_ro("last_mep", &FragmentIntake::last_mep)
        .def_rw("is_on", &FragmentIntake::is_on);
}
