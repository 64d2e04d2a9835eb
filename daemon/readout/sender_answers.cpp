#include "sender_answers.h"

#include <nanobind/stl/vector.h>

#include <algorithm>

namespace nb = nanobind;

void SenderAnswers::release(uint64_t token)
{
    const auto found = held_.find(token);
    if (found == held_.end()) return;
    n_with_sources_ -= !found->second.sources.empty();
    held_.erase(found);
}

void SenderAnswers::refuse_token(uint64_t token)
{
    if (const auto found = held_.find(token); found != held_.end()) found->second.is_whole = true;
}

void SenderAnswers::refuse_other_runs(uint64_t token, uint32_t run)
{
    if (const auto found = held_.find(token); found != held_.end()) found->second.only_run = run;
}

void SenderAnswers::refuse_other_sources(uint64_t token, const std::vector<uint16_t>& sources)
{
    const auto found = held_.find(token);
    if (found == held_.end()) return;
    if (found->second.sources.empty()) {
        if (n_with_sources_ == max_with_sources) {
            for (auto& [_, refused] : held_) refused.sources = {};
            n_with_sources_ = 0;
        }
        ++n_with_sources_;
    }
    found->second.sources.assign(n_source_ids, true);
    for (const uint16_t source : sources) found->second.sources[source] = false;
}

const char* SenderAnswers::refusal(uint64_t token, uint32_t run, uint16_t source) const
{
    const auto found = held_.find(token);
    if (found == held_.end()) return refuses_unheld_ ? "unknown_token" : nullptr;
    const Refused& refused = found->second;
    if (refused.is_whole) return "unknown_token";
    if (refused.only_run && *refused.only_run != run) return "foreign_source";
    return !refused.sources.empty() && refused.sources[source] ? "foreign_source" : nullptr;
}

void SenderAnswers::forget()
{
    std::fill(permitted_.begin(), permitted_.end(), Permitted{});
    for (auto& [_, refused] : held_) refused = Refused{};
    n_with_sources_ = 0;
    refuses_unheld_ = false;
    ++times_forgotten_;
}

void add_sender_answers(nb::module_& module)
{
    nb::class_<SenderAnswers>(module, "SenderAnswers", "Answers of the rule for tokens, until feeders come or leave")
        .def(nb::init<>())
        .def("permit", &SenderAnswers::permit, nb::arg("source"), nb::arg("token"))
        .def("permits", &SenderAnswers::permits, nb::arg("source"), nb::arg("token"))
        .def("hold", &SenderAnswers::hold, nb::arg("token"))
        .def("release", &SenderAnswers::release, nb::arg("token"))
        .def("refuse_unheld", &SenderAnswers::refuse_unheld)
        .def("refuse_token", &SenderAnswers::refuse_token, nb::arg("token"))
        .def("refuse_other_runs", &SenderAnswers::refuse_other_runs, nb::arg("token"), nb::arg("run"))
        .def("refuse_other_sources", &SenderAnswers::refuse_other_sources, nb::arg("token"), nb::arg("sources"))
        .def("refusal", &SenderAnswers::refusal, nb::arg("token"), nb::arg("run"), nb::arg("source"))
        .def("forget", &SenderAnswers::forget)
        .def_prop_ro("times_forgotten", &SenderAnswers::times_forgotten)
        .def_rw("late_until_ns", &SenderAnswers::late_until_ns);
}
