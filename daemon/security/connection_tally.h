// Counts the messages and wire bytes that the node has received on each connection of one socket, by descriptor. The
// receiving thread writes; the thread of the connection limiter reads, and refuses connections.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

class ConnectionTally {
  public:
    // `overhead`: bytes that encryption adds to each part of a message. A connection is reported after
    // `most_unpermitted` messages without permission in a row, over at least `unpermitted_ns`.
    ConnectionTally(std::size_t overhead, uint64_t most_unpermitted, int64_t unpermitted_ns)
        : overhead_(overhead), most_unpermitted_(most_unpermitted), unpermitted_ns_(unpermitted_ns)
    {
    }

    // Counts a message of `parts` parts with `nbytes` bytes in total, and returns its number on its connection, from 1.
    // No value if the connection is refused: the caller must then drop the message. A negative descriptor (a peer with
    // ZMTP 1 or 2) is not counted, so the limiter ends that connection as idle.
    std::optional<uint64_t> take(int descriptor, std::size_t nbytes, std::size_t parts);

    // Counts a message without permission, by its number. Those without a permitted one between them are in a row.
    void unpermitted(int descriptor, uint64_t number, int64_t now_ns);

    // Descriptors of connections that had too many messages without permission since the last call.
    std::vector<int> take_reported();

    // Notes that the socket had no message to receive.
    void empty();

    // Messages and bytes of a connection.
    std::pair<uint64_t, uint64_t> of(int descriptor) const;

    uint64_t total() const;
    uint64_t times_empty() const;

    // Sets whether queued messages of a connection are dropped. A new connection is admitted first.
    void refuse(int descriptor, bool is_refused);

  private:
    struct Connection {
        uint64_t messages = 0, wire_bytes = 0;
        bool is_refused = false;
        // The last messages without permission: how many in a row, the number of the last, the time of the first.
        uint64_t unpermitted = 0, last_unpermitted = 0;
        int64_t unpermitted_since_ns = 0;
    };

    Connection& at(int descriptor);

    std::size_t overhead_;
    uint64_t most_unpermitted_;
    int64_t unpermitted_ns_;
    mutable std::mutex mutex_;
    // Indexed by descriptor: descriptors are small numbers, because the process has a limit on them.
    std::vector<Connection> connections_;
    std::vector<int> reported_;
    uint64_t total_ = 0, times_empty_ = 0;
};

void add_connection_tally(nanobind::module_& module);
