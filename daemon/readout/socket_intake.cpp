#include "socket_intake.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <utility>

namespace nb = nanobind;

namespace {

constexpr int source_descriptor = 2;  // ZMQ_SRCFD

// A message that an array of Python refers to.
struct KeptMessage {
    ZmqMessage message;
    int (*close)(ZmqMessage*);
    ~KeptMessage() { close(&message); }
};

}  // namespace

SocketIntake::SocketIntake(const std::string& library, std::shared_ptr<FragmentIntake> intake,
                           std::shared_ptr<ConnectionTally> tally)
    : intake_(std::move(intake)), tally_(std::move(tally))
{
    const LibZmq zmq(library);
    zmq.find(init_, "zmq_msg_init");
    zmq.find(receive_, "zmq_msg_recv");
    zmq.find(data_, "zmq_msg_data");
    zmq.find(size_, "zmq_msg_size");
    zmq.find(property_, "zmq_msg_get");
    zmq.find(move_, "zmq_msg_move");
    zmq.find(close_, "zmq_msg_close");
    zmq.find(error_, "zmq_errno");
    init_(&message_);
}

SocketIntake::~SocketIntake() { close_(&message_); }

Outcome SocketIntake::receive(std::uintptr_t socket, const ReadingTimes& times)
{
    while (!times.is_over()) {
        // What the message held before is released.
        if (receive_(&message_, reinterpret_cast<void*>(socket), zmq_dont_wait) < 0) {
            failure_ = error_();
            if (failure_ == EINTR) continue;
            if (failure_ != EAGAIN) return Outcome::failed;
            tally_->empty();
            return Outcome::empty;
        }
        const std::size_t size = size_(&message_);
        if (!tally_->take(property_(&message_, source_descriptor), size, 1)) continue;
        switch (intake_->take(static_cast<const uint8_t*>(data_(&message_)), size, false, times)) {
        case FragmentIntake::Taken::not_taken: return Outcome::left;
        case FragmentIntake::Taken::complete: return Outcome::complete;
        case FragmentIntake::Taken::placed: break;
        }
    }
    return Outcome::paused;
}

nb::object SocketIntake::left_frame()
{
    auto* kept = new KeptMessage;
    kept->close = close_;
    init_(&kept->message);
    const nb::capsule owner(kept, [](void* message) noexcept { delete static_cast<KeptMessage*>(message); });
    move_(&kept->message, &message_);
    using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
    const nb::object bytes = nb::cast(Bytes(data_(&kept->message), {size_(&kept->message)}, owner));
    return nb::steal(PyMemoryView_FromObject(bytes.ptr()));
}

void add_socket_intake(nb::module_& module)
{
    nb::class_<SocketIntake>(module, "SocketIntake", "Receives the frames of a ZeroMQ socket")
        .def(nb::init<const std::string&, std::shared_ptr<FragmentIntake>, std::shared_ptr<ConnectionTally>>(),
             nb::arg("library"), nb::arg("intake"), nb::arg("tally"))
        .def(
            "receive",
            [](SocketIntake& self, std::uintptr_t socket, int64_t now_ns, int64_t true_ns, int64_t end_ns) {
                return self.receive(socket, {now_ns, true_ns, end_ns});
            },
            nb::arg("socket"), nb::arg("now_ns"), nb::arg("true_ns"), nb::arg("end_ns"),
            nb::call_guard<nb::gil_scoped_release>())
        .def("left_frame", &SocketIntake::left_frame)
        .def_prop_ro("error", &SocketIntake::error);
}
