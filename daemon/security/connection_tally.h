// Messages and bytes (as they were on the wire) that were taken of each connection of one socket, by descriptor. One
// thread receives, that of the connection limiter reads and refuses.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

class ConnectionTally {
  public:
    // `overhead`: bytes that encryption adds to each part of a message.
    explicit ConnectionTally(std::size_t overhead) : overhead_(overhead) {}

    // Notes a message of `parts` parts with `nbytes` bytes in all; false if its connection is refused, and the message
    // is to be dropped. A negative descriptor, of a peer that speaks ZMTP 1 or 2, is not noted: its connection ends as
    // one that delivers nothing.
    bool take(int descriptor, std::size_t nbytes, std::size_t parts);

    // Notes that there is nothing to receive at the moment.
    void empty();

    // Messages and bytes of a connection.
    std::pair<uint64_t, uint64_t> of(int descriptor) const;

    uint64_t total() const;
    uint64_t times_empty() const;

    // Whether what is still queued of a connection is dropped.
    void refuse(int descriptor, bool is_refused);

  private:
    struct Connection {
        uint64_t messages = 0, wire_bytes = 0;
        bool is_refused = false;
    };

    Connection& at(int descriptor);

    std::size_t overhead_;
    mutable std::mutex mutex_;
    // Descriptors are small: the process has a limit of them.
    std::vector<Connection> connections_;
    uint64_t total_ = 0, times_empty_ = 0;
};

void add_connection_tally(nanobind::module_& module);
