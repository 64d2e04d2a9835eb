#include "socket_intake.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <utility>

namespace nb = nanobind;

namespace {

constexpr int source_descriptor = 2;  // ZMQ_SRCFD

// A message that a Python array keeps alive.
struct KeptMessage {
    ZmqMessage message;
    int (*close)(ZmqMessage*);
    ~KeptMessage() { close(&message); }
};

}  // namespace

SocketIntake::SocketIntake(const std::string& library, std::shared_ptr<FragmentIntake> intake,
                           std::shared_ptr<ConnectionTally> tally)
    : intake_(std::move(intake)),
      tally_(std::move(tally)),
      messages_(intake_->max_frames() + 1),
      origins_(messages_.size())
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
    for (ZmqMessage& message : messages_) init_(&message);
}

SocketIntake::~SocketIntake()
{
    for (ZmqMessage& message : messages_) close_(&message);
}

Outcome SocketIntake::receive(std::uintptr_t socket, const ReadingTimes& times)
{
    while (!times.is_over()) {
        std::size_t n_staged = 0;
        const Outcome outcome = stage_group(reinterpret_cast<void*>(socket), times, n_staged);
        const std::size_t n_taken = intake_->take_staged(times);
        for (std::size_t n = n_taken; n; --n) release_first();
        if (n_taken < n_staged) return Outcome::left;
        if (outcome != Outcome::paused) return outcome;
    }
    return Outcome::paused;
}

void SocketIntake::release_first()
{
    close_(&messages_[first_]);
    init_(&messages_[first_++]);
}

Outcome SocketIntake::stage_group(void* socket, const ReadingTimes& times, std::size_t& n_staged)
{
    if (first_ == end_) first_ = end_ = 0;
    while (!intake_->is_full()) {
        const std::size_t next = first_ + n_staged;
        if (next == messages_.size()) break;
        if (next == end_)
            if (const std::optional<Outcome> ended = receive_one(socket, times)) return *ended;
        ZmqMessage& message = messages_[next];
        switch (intake_->stage(static_cast<const uint8_t*>(data_(&message)), size_(&message), false, times)) {
        case FragmentIntake::Staged::not_taken: return Outcome::left;
        case FragmentIntake::Staged::complete: ++n_staged; return Outcome::complete;
        case FragmentIntake::Staged::placed: ++n_staged; break;
        case FragmentIntake::Staged::refused:
            tally_->unpermitted(origins_[next].descriptor, origins_[next].number, times.now_ns);
            [[fallthrough]];
        case FragmentIntake::Staged::refused_excused: release_first(); return Outcome::paused;
        case FragmentIntake::Staged::refused_in_group: return Outcome::paused;
        }
    }
    return Outcome::paused;
}

std::optional<Outcome> SocketIntake::receive_one(void* socket, const ReadingTimes& times)
{
    ZmqMessage& message = messages_[end_];
    while (true) {
        // This releases the earlier content of the message, from a refused connection.
        if (receive_(&message, socket, zmq_dont_wait) < 0) {
            failure_ = error_();
            if (failure_ == EINTR) continue;
            if (failure_ != EAGAIN) return Outcome::failed;
            tally_->empty();
            return Outcome::empty;
        }
        const int descriptor = property_(&message, source_descriptor);
        if (const std::optional<uint64_t> number = tally_->take(descriptor, size_(&message), 1)) {
            origins_[end_++] = {descriptor, *number};
            return std::nullopt;
        }
        if (times.is_over()) return Outcome::paused;
    }
}

nb::object SocketIntake::left_frame()
{
    if (first_ == end_) throw nb::value_error("no frame is left to Python");
    auto* kept = new KeptMessage;
    kept->close = close_;
    init_(&kept->message);
    const nb::capsule owner(kept, [](void* message) noexcept { delete static_cast<KeptMessage*>(message); });
    const Origin origin = origins_[first_];
    move_(&kept->message, &messages_[first_++]);
    using Bytes = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
    const nb::object bytes = nb::cast(Bytes(data_(&kept->message), {size_(&kept->message)}, owner));
    return nb::make_tuple(nb::steal(PyMemoryView_FromObject(bytes.ptr())), origin.descriptor, origin.number);
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
