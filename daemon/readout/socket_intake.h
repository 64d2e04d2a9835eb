// Receives the frames of a ZeroMQ socket and takes those of MEPs that are open, without the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <string>

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
    ZmqMessage message_;
    int failure_ = 0;
};

void add_socket_intake(nanobind::module_& module);
