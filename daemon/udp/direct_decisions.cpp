#include "direct_decisions.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "../../protocol/transport_frame.h"

namespace nb = nanobind;

namespace {

// Offsets of MFPs in a batch are multiples of it. Equal to MFP_ALIGNMENT in processing/framework/batch.py.
constexpr std::size_t mfp_alignment = 8;

int64_t now_ns()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

DirectDecisions::DirectDecisions(std::uintptr_t address, nb::object batch, nb::object begin, nb::object send,
                                 nb::object drop, const Limits& limits)
    : batch_(*reinterpret_cast<const hlt::direct_batch*>(address)),
      owner_(std::move(batch)),
      begin_(std::move(begin)),
      send_(std::move(send)),
      drop_(std::move(drop)),
      limits_(limits)
{
}

DirectDecisions::ThreadState::ThreadState(const DirectDecisions& direct) : before_(PyGILState_Ensure())
{
    call(direct.begin_, "the start of a receiving thread");
    own_ = PyEval_SaveThread();
}

DirectDecisions::ThreadState::~ThreadState()
{
    PyEval_RestoreThread(own_);
    PyGILState_Release(before_);
}

void DirectDecisions::call(const nb::object& function, const char* place)
{
    try {
        function();
    } catch (nb::python_error& error) {
        error.discard_as_unraisable(place);
    }
}

void DirectDecisions::arm(uint64_t mep, uint64_t token)
{
    // A computation that was withdrawn may still use the memory of the batch.
    if (state_ != State::off) return;
    mep_ = mep;
    token_ = token;
    state_ = State::armed;
}

bool DirectDecisions::claim(const PacketJoiner& joiner, JoinedMep& mep)
{
    if (state_ != State::armed) return false;
    state_ = State::off;
    // An incomplete MEP keeps the usual order of the stages.
    for (const JoinedPart& part : mep.parts)
        if (!part.n_packets) return false;
    times_.joined_ns = now_ns();
    joiner.finish(mep, mep_, token_);
    places_.clear();
    std::size_t end = 0;
    for (std::size_t column = 0; column < mep.parts.size(); ++column) {
        const JoinedPart& part = mep.parts[column];
        const std::size_t size = part.frame_size - frame_header_size;
        const std::size_t padded = (size + mfp_alignment - 1) & ~(mfp_alignment - 1);
        if (size > limits_.mfp_bytes || end + padded > limits_.mep_bytes || end + padded > batch_.input_bytes)
            return false;
        std::memcpy(batch_.input + end, part.bytes.get() + part.frame_at + frame_header_size, size);
        places_.push_back({joiner.sources()[column], static_cast<int64_t>(end), static_cast<int64_t>(size)});
        end += padded;
    }
    n_events_ = mep.n_events;
    first_event_ = mep.first_event;
    first_ns_ = mep.first_ns;
    since_ns_ = times_.joined_ns;
    state_ = State::computing;
    return true;
}

std::optional<DirectDecisions::Times> DirectDecisions::take()
{
    if (state_ != State::decided) return std::nullopt;
    state_ = State::off;
    return times_;
}

void DirectDecisions::decide(std::mutex& mutex)
{
    const bool has_tables = batch_.write_tables(batch_.self, n_events_, places_.data(), places_.size());
    if (has_tables) batch_.compute(batch_.self);
    times_.computed_ns = now_ns();
    bool may_send;
    {
        const std::lock_guard lock(mutex);
        may_send = has_tables && state_ == State::computing &&
                   (!limits_.deadline_ns || times_.computed_ns - first_ns_ <= limits_.deadline_ns);
        if (may_send) state_ = State::sending;
    }
    const bool is_sent = may_send && send();
    times_.sent_ns = now_ns();
    if (!is_sent) drop();
    {
        const std::lock_guard lock(mutex);
        state_ = is_sent ? State::decided : State::off;
        since_ns_ = 0;
    }
    changed_.notify_all();
}

bool DirectDecisions::send() const
{
    const nb::gil_scoped_acquire interpreter;
    try {
        return nb::cast<bool>(send_(mep_, first_event_, n_events_));
    } catch (nb::python_error& error) {
        error.discard_as_unraisable("the decision of a MEP");
        return false;
    }
}

void DirectDecisions::drop() const
{
    const nb::gil_scoped_acquire interpreter;
    call(drop_, "results of a MEP that are not used");
}

bool DirectDecisions::ends_within(std::mutex& mutex, int64_t longest_ns)
{
    std::unique_lock lock(mutex);
    return changed_.wait_for(lock, std::chrono::nanoseconds(longest_ns), [this] { return !since_ns_; });
}

bool DirectDecisions::disarm(std::mutex& mutex, int64_t longest_ns)
{
    std::unique_lock lock(mutex);
    if (state_ == State::armed) state_ = State::off;
    changed_.wait_for(lock, std::chrono::nanoseconds(longest_ns), [this] { return state_ != State::computing; });
    if (state_ == State::computing) state_ = State::withdrawn;
    // A send does not wait for a subscriber.
    changed_.wait(lock, [this] { return state_ != State::sending; });
    return state_ == State::decided;
}
