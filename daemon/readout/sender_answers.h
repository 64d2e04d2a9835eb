// Remembers the answers of the rule for tokens (frame_permissions.py), each for all frames to which it applies as well,
// until feeders come or leave. It decides nothing: without an answer the rule must be asked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

class SenderAnswers {
  public:
    SenderAnswers() : permitted_(n_source_ids) {}

    // Frames of this source with this token may be built.
    void permit(uint16_t source, uint64_t token) { permitted_[source] = {token, true}; }

    bool permits(uint16_t source, uint64_t token) const
    {
        return permitted_[source].is_known && permitted_[source].token == token;
    }

    // A feeder has this token, or no longer has it. Only the tokens of feeders have an entry, so that peers cannot make
    // the table grow.
    void hold(uint64_t token) { held_.try_emplace(token); }
    void release(uint64_t token);

    // All tokens that no feeder has are refused as `unknown_token`.
    void refuse_unheld() { refuses_unheld_ = true; }

    // A held token is refused as `unknown_token`.
    void refuse_token(uint64_t token);

    // A held token is refused as `foreign_source` in all other runs.
    void refuse_other_runs(uint64_t token, uint32_t run);

    // A held token is refused as `foreign_source` for all sources except these.
    void refuse_other_sources(uint64_t token, const std::vector<uint16_t>& sources);

    // The reason to refuse a frame (a RejectReason value), or null if the rule has not answered.
    const char* refusal(uint64_t token, uint32_t run, uint16_t source) const;

    // Forgets all answers: feeders have come or left.
    void forget();

    // Number of calls of `forget`.
    uint64_t times_forgotten() const { return times_forgotten_; }

    // Until this time (ns) a frame without permission may have been sent with one that has ended since.
    int64_t late_until_ns = 0;

  private:
    struct Permitted {
        uint64_t token = 0;
        bool is_known = false;
    };
    struct Refused {
        bool is_whole = false;
        std::optional<uint32_t> only_run;
        std::vector<bool> sources;  // by source id, 8 KiB; empty without an answer
    };

    static constexpr std::size_t n_source_ids = std::size_t{1} << 16;
    // Bounds the memory to 8 MiB. If more tokens are misused at a time, the rule is asked more often.
    static constexpr std::size_t max_with_sources = 1024;

    std::vector<Permitted> permitted_;  // by source id
    std::unordered_map<uint64_t, Refused> held_;
    std::size_t n_with_sources_ = 0;
    bool refuses_unheld_ = false;
    uint64_t times_forgotten_ = 0;
};

void add_sender_answers(nanobind::module_& module);
