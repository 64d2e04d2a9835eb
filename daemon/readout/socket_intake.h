// Receives the frames of a ZeroMQ socket and handles those of open MEPs, without the Python interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../../client/libzmq.h"
#include "../security/connection_tally.h"
#include "fragment_intake.h"

class SocketIntake {
  public:
    // `library` is the file of pyzmq's extension module. Throws std::runtime_error.
    SocketIntake(const std::string& library, std::shared_ptr<FragmentIntake> intake,
                 std::shared_ptr<ConnectionTally> tally);
    SocketIntake(const SocketIntake&) = delete;
    SocketIntake& operator=(const SocketIntake&) = delete;
    ~SocketIntake();

    // Receives until Python must handle a frame, a MEP is complete, the socket is empty, or the time is over.
    Outcome receive(std::uintptr_t socket, const ReadingTimes& times);

    // The frame that Python must handle: a view of bytes that keeps the message alive, the descriptor of its connection
    // and its number there.
    nanobind::object left_frame();

    // The errno of the failed read.
    int error() const { return failure_; }

  private:
    // The descriptor of a message's connection, and its number there.
    struct Origin {
        int descriptor = -1;
        uint64_t number = 0;
    };

    // Releases the first message that is not handled yet.
    void release_first();

    // Receives the next message. Returns no value on success, otherwise the reason why there is none.
    std::optional<Outcome> receive_one(void* socket, const ReadingTimes& times);

    // Stages messages until the group is full or a frame is refused (paused), or the group ends for another reason.
    Outcome stage_group(void* socket, const ReadingTimes& times, std::size_t& n_staged);

    int (*init_)(ZmqMessage*);
    int (*receive_)(ZmqMessage*, void* socket, int flags);
    void* (*data_)(ZmqMessage*);
    std::size_t (*size_)(const ZmqMessage*);
    int (*property_)(const ZmqMessage*, int property);
    int (*move_)(ZmqMessage* to, ZmqMessage* from);
    int (*close_)(ZmqMessage*);
    int (*error_)();
    std::shared_ptr<FragmentIntake> intake_;
    std::shared_ptr<ConnectionTally> tally_;
    // Messages of a group and the next one. Those in [first_, end_) are received and not handled yet.
    std::vector<ZmqMessage> messages_;
    std::vector<Origin> origins_;  // of the messages
    std::size_t first_ = 0, end_ = 0;
    int failure_ = 0;
};

void add_socket_intake(nanobind::module_& module);
