// Receives UDP datagrams in threads of its own, without the Python interpreter, and hands joined MEPs to the event
// loop, which builds them as the fragments of any other feeder.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../readout/fragment_intake.h"
#include "direct_decisions.h"
#include "packet_joiner.h"

class UdpIntake {
  public:
    // Binds `n_sockets` sockets to one address (SO_REUSEPORT). Throws std::system_error, std::invalid_argument.
    UdpIntake(std::shared_ptr<FragmentIntake> intake, const std::string& host, uint16_t port, std::size_t n_sockets,
              int receive_bytes, const JoinLimits& limits, std::vector<uint16_t> sources,
              const std::vector<std::pair<std::string, std::vector<uint16_t>>>& senders);
    UdpIntake(const UdpIntake&) = delete;
    UdpIntake& operator=(const UdpIntake&) = delete;
    ~UdpIntake();

    void start();

    // Ends the threads and closes the sockets. False if a kernel hangs in a thread: then this object must stay.
    bool stop();

    // Becomes readable when a MEP is ready. `receive` clears it.
    int descriptor() const { return wake_; }
    uint16_t port() const { return port_; }

    // Gives the MEPs of the accepted run this token, and ids from `first_mep` on.
    void welcome(uint64_t first_mep, uint64_t token);

    // Hands over at most `n_meps` ready MEPs, as SocketIntake::receive. `ended`: all that arrived of the MEP `last_mep`
    // is handed over, and it is not complete.
    Outcome receive(const ReadingTimes& times, std::size_t n_meps);

    // Has MEPs decided directly while `arm` allows it. Call it before `start`.
    void decide_directly(std::unique_ptr<DirectDecisions> direct) { direct_ = std::move(direct); }
    void forget_direct() { direct_.reset(); }  // after `stop`

    // Allows the receiving thread to decide the next MEP if its id is below `below` and no other MEP is ready.
    void arm(uint64_t below);

    // Ends that permission, see DirectDecisions::disarm. Also true if a decided MEP is handed over in part.
    bool disarm(int64_t longest_ns) { return (direct_ && direct_->disarm(mutex_, longest_ns)) || (mep_ && decided_); }

    // The times of the MEP that the last call of `receive` handed over, if it was decided directly.
    const std::optional<DirectDecisions::Times>& decided() const { return decided_; }
    int64_t computes_since_ns() const { return direct_ ? direct_->since_ns() : 0; }

    // The frame that Python must handle.
    nanobind::object left_frame();

    // When the first datagram of the MEP came, in ns of the monotonic clock.
    int64_t first_ns() const { return first_ns_; }

    uint64_t next_mep() const { return next_mep_; }
    uint64_t last_mep() const { return next_mep_ - 1; }

    // A dictionary of counters, and the bursts that have ended since the last call.
    nanobind::dict counts();
    nanobind::object run();
    bool is_run_over();
    // The run whose datagrams ended the current one, or None.
    nanobind::object following_run();
    // Drops what is left of the run, half a MEP included, and counts it as discarded. `end_run` refuses its late
    // datagrams from then on, until `reopen_run` (0: any run).
    void leave_run();
    void end_run();
    void reopen_run(uint32_t run);

  private:
    struct Socket {
        int descriptor = -1;
        uint32_t dropped = 0;  // as the kernel has reported it last
    };

    void receive_datagrams(Socket& socket);
    void close_sockets();
    bool take_next();
    void forget_decided();
    void give_back();
    void discard_rest();

    std::shared_ptr<FragmentIntake> intake_;
    std::mutex mutex_;  // guards the joiner
    PacketJoiner joiner_;
    std::vector<Socket> sockets_;
    std::vector<std::thread> threads_;
    std::atomic<uint64_t> n_dropped_{0};
    std::atomic<bool> has_failed_{false}, stopping_{false};
    std::size_t datagram_bytes_;
    uint16_t port_ = 0;
    int wake_ = -1, stop_ = -1;
    std::unique_ptr<DirectDecisions> direct_;
    std::optional<DirectDecisions::Times> decided_;
    // The MEP that is handed over, in the thread of the event loop.
    JoinedMep* mep_ = nullptr;
    std::size_t column_ = 0;
    bool is_complete_ = false;
    int64_t first_ns_ = 0;
    uint64_t next_mep_ = 0, token_ = 0;
};

void add_udp_intake(nanobind::module_& module);
