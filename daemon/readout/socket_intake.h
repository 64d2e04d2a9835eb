// Receives the frames of a ZeroMQ socket and takes those of MEPs that are open, without the interpreter.
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

    // Receives until a frame is left, a MEP complete, nothing there or the time over.
    Outcome receive(std::uintptr_t socket, const ReadingTimes& times);

    // The frame that is left, as a view of bytes that keeps the message.
    nanobind::object left_frame();

    // Why the socket could not be read.
    int error() const { return failure_; }

  private:
    // Receives the next message behind the others; nothing if there is one, else why not.
    std::optional<Outcome> receive_one(void* socket, const ReadingTimes& times);

    // Stages messages until the group is full (paused), or ends for another reason.
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
    // Messages of a group and the one behind it; those in [first_, end_) are received and neither taken nor left yet.
    std::vector<ZmqMessage> messages_;
    std::size_t first_ = 0, end_ = 0;
    int failure_ = 0;
};

void add_socket_intake(nanobind::module_& module);
