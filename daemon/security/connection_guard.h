// Follows connections in a thread of its own and acts on the bytes that they send within microseconds. libzmq passes
// all subscriptions that it has read to the event loop in one call, so a flood of them must end before it is read.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

class ConnectionGuard {
  public:
    ConnectionGuard();
    ~ConnectionGuard();
    ConnectionGuard(const ConnectionGuard&) = delete;
    ConnectionGuard& operator=(const ConnectionGuard&) = delete;

    // Follow a connection that may send `capacity` bytes at once, and `per_second` more each second. With
    // `ends_it`, the guard ends the connection that sends more, else it only reports it, once.
    void add(int descriptor, double capacity, double per_second, bool ends_it);
    // Before the descriptor is closed.
    void remove(int descriptor);
    // Descriptors that sent too much since the last call, and whether the guard has ended them.
    std::vector<std::pair<int, bool>> reported();
    // Turns readable when there is something to report.
    int report_descriptor() const { return report_; }
    void close();

  private:
    struct Connection {
        double capacity, per_second, left;
        bool ends_it;
        uint64_t received;
        int64_t since_ns;
    };

    void follow();
    void check(int descriptor);
    void check_all();
    int wait_ms();

    std::mutex mutex_;
    std::unordered_map<int, Connection> connections_;
    std::vector<std::pair<int, bool>> reported_;
    int64_t busy_until_ns_ = 0;
    bool stopping_ = false;
    int epoll_, report_, wake_;
    std::thread thread_;
};

void add_connection_guard(nanobind::module_& module);
