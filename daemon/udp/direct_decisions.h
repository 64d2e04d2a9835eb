// Decides a MEP in the thread that has received its last datagram, before the event loop knows of it.
//
// The event loop arms this while the node has nothing else to do: then it is certain that the next MEP gets the next
// id, an empty slot and a batch of its own. The receiving thread copies that MEP into a workspace of its own, computes
// it, and sends its decision. Then the event loop gets the MEP as any other one, and builds and books it with these
// results.
//
// Whatever could refuse the MEP must disarm this first, and hand over a MEP that is decided.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "../../processing/framework/backends/direct_batch.h"
#include "packet_joiner.h"

class DirectDecisions {
  public:
    // Of a decided MEP, in ns of the monotonic clock.
    struct Times {
        int64_t joined_ns, computed_ns, sent_ns;
    };
    struct Limits {
        std::size_t mep_bytes, mfp_bytes;  // of the event builder
        int64_t deadline_ns;               // a later decision has a mark, and is not made here; 0: none is late
    };

    // `address` is that of the functions of `batch`. `send` gets the id, first event and number of events of a MEP, and
    // returns whether its decision was sent. `drop` is called after each computation whose decision was not sent: its
    // results are not used. `begin` is called in each receiving thread at its start. None of them may raise.
    DirectDecisions(std::uintptr_t address, nanobind::object batch, nanobind::object begin, nanobind::object send,
                    nanobind::object drop, const Limits& limits);

    // What a receiving thread has of the interpreter while it lives. Without it, each decision would make and delete a
    // state of the thread. Construction and destruction wait for the interpreter.
    class ThreadState {
      public:
        explicit ThreadState(const DirectDecisions& direct);
        ~ThreadState();
        ThreadState(const ThreadState&) = delete;
        ThreadState& operator=(const ThreadState&) = delete;

      private:
        PyGILState_STATE before_;
        PyThreadState* own_;
    };

    // The callers of these have the lock of the joiner.
    void arm(uint64_t mep, uint64_t token);
    // Takes the MEP that is ready, if this is armed and it can be decided.
    bool claim(const PacketJoiner& joiner, JoinedMep& mep);
    // Whether the MEP that is ready must not be handed over yet.
    bool is_busy() const { return state_ == State::computing || state_ == State::sending; }
    // The times of the ready MEP if it is decided; forgets it.
    std::optional<Times> take();

    // Computes the claimed MEP, and sends its decision unless `disarm` was called. The caller has no lock.
    void decide(std::mutex& mutex);

    // Ends the permission to decide. Waits for the MEP that is being computed, at most `longest_ns`; then it goes the
    // usual way. Returns whether a decided MEP must be handed over. The caller has neither lock nor interpreter.
    bool disarm(std::mutex& mutex, int64_t longest_ns);

    // Waits until nothing is computed; false if that takes longer. The caller has neither lock nor interpreter.
    bool ends_within(std::mutex& mutex, int64_t longest_ns);

    // When the computation that lasts began; 0: there is none. Any thread.
    int64_t since_ns() const { return since_ns_; }

  private:
    // withdrawn: it is being computed, and its results are not used.
    enum class State { off, armed, computing, sending, decided, withdrawn };

    static void call(const nanobind::object& function, const char* place);
    bool send() const;
    void drop() const;

    const hlt::direct_batch& batch_;
    nanobind::object owner_, begin_, send_, drop_;
    Limits limits_;
    State state_ = State::off;
    std::condition_variable changed_;
    std::atomic<int64_t> since_ns_{0};
    std::vector<hlt::mfp_place> places_;
    uint64_t mep_ = 0, token_ = 0, first_event_ = 0;
    uint32_t n_events_ = 0;
    int64_t first_ns_ = 0;
    Times times_{};
};
