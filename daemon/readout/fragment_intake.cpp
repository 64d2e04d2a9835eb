#include "fragment_intake.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>

#include <chrono>

#include "../../protocol/crc32c.h"
#include "../../protocol/fragment_frame.h"
#include "../../protocol/frame_range.h"

namespace nb = nanobind;

bool ReadingTimes::is_over() const
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() >= end_ns;
}

FragmentIntake::Taken FragmentIntake::take(const uint8_t* frame, std::size_t size, bool is_shared,
                                           const ReadingTimes& times)
{
    if (!is_on) return Taken::not_taken;
    const InspectedFrame found(frame, size);
    if (!found.is_readable || *found.refusal || found.header.length > max_mfp_bytes_) return Taken::not_taken;
    const FrameHeader& header = found.header;
    const Fragment fragment{header.run, header.source, header.mep, header.length, found.first_event, found.n_events};
    const OpenMeps::Place place = meps_->find(fragment);
    if (!place.mep) return Taken::not_taken;
    const View& slot = slots_[place.mep->slot];
    const auto offset = static_cast<std::size_t>(place.offset);
    if (offset > slot.size() || header.length > slot.size() - offset) return Taken::not_taken;
    uint8_t* to = static_cast<uint8_t*>(slot.data()) + offset;
    if (!copy_and_check(frame, size, to, crc32c::implementations()[0].copy)) return Taken::not_taken;
    // What was checked above may be something else than what has been copied.
    if (is_shared && *refusal_of_placed(to, header.length, header.source, found.first_event, found.n_events))
        return Taken::not_taken;
    ++n_frames_;
    n_bytes_ += size;
    sources_->count(header.source, size, times.true_ns);
    last_mep_ = header.mep;
    return meps_->add(place, fragment, times.now_ns) ? Taken::complete : Taken::placed;
}

std::pair<uint64_t, uint64_t> FragmentIntake::take_counts()
{
    return {std::exchange(n_frames_, 0), std::exchange(n_bytes_, 0)};
}

namespace {

std::shared_ptr<FragmentIntake> make_intake(std::shared_ptr<OpenMeps> meps, std::shared_ptr<SourceTable> sources,
                                            const nb::sequence& slots, std::size_t max_mfp_bytes)
{
    std::vector<View> views;
    for (const nb::handle slot : slots) views.emplace_back(slot.ptr(), PyBUF_WRITABLE);
    return std::make_shared<FragmentIntake>(std::move(meps), std::move(sources), std::move(views), max_mfp_bytes);
}

// Takes the frames of a range from `at` on; returns why it ends, begin and end of the frame that is left, and where the
// next one begins.
nb::tuple take_range(FragmentIntake& intake, const nb::handle& range, std::size_t at, int64_t now_ns, int64_t true_ns,
                     int64_t end_ns)
{
    const View frames(range.ptr());
    const ReadingTimes times{now_ns, true_ns, end_ns};
    Outcome outcome = Outcome::empty;
    std::size_t begin = at, end = at, next = at;
    {
        const nb::gil_scoped_release released;
        while (outcome == Outcome::empty && next < frames.size()) {
            if (times.is_over()) {
                outcome = Outcome::paused;
                break;
            }
            const FrameInRange frame = frame_in_range(frames.bytes(), frames.size(), next);
            begin = next, end = frame.end, next = frame.next;
            switch (intake.take(frames.bytes() + begin, end - begin, true, times)) {
            case FragmentIntake::Taken::not_taken: outcome = Outcome::left; break;
            case FragmentIntake::Taken::complete: outcome = Outcome::complete; break;
            case FragmentIntake::Taken::placed: break;
            }
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
        .value("FAILED", Outcome::failed);
    nb::class_<FragmentIntake>(module, "FragmentIntake", "Takes fragments of MEPs that are open")
        .def(nb::new_(&make_intake), nb::arg("meps"), nb::arg("sources"), nb::arg("slots"), nb::arg("max_mfp_bytes"))
        .def("take_range", &take_range, nb::arg("range"), nb::arg("at"), nb::arg("now_ns"), nb::arg("true_ns"),
             nb::arg("end_ns"))
        .def("take_counts", &FragmentIntake::take_counts)
        .def_prop_ro("last_mep", &FragmentIntake::last_mep)
        .def_rw("is_on", &FragmentIntake::is_on);
}
