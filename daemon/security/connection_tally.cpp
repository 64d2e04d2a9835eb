#include "connection_tally.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace nb = nanobind;

namespace {

// ZMTP encodes the length of a frame in one byte or in eight.
constexpr std::size_t short_frame = 255, short_header = 2, long_header = 9;

}  // namespace

ConnectionTally::Connection& ConnectionTally::at(int descriptor)
{
    const auto index = static_cast<std::size_t>(descriptor);
    if (index >= connections_.size()) connections_.resize(index + 1);
    return connections_[index];
}

std::optional<uint64_t> ConnectionTally::take(int descriptor, std::size_t nbytes, std::size_t parts)
{
    if (descriptor < 0 || !parts) return 0;
    const std::size_t header = nbytes / parts + overhead_ <= short_frame ? short_header : long_header;
    const std::lock_guard<std::mutex> lock(mutex_);
    Connection& connection = at(descriptor);
    connection.wire_bytes += nbytes + parts * (overhead_ + header);
    ++connection.messages;
    ++total_;
    if (connection.is_refused) return std::nullopt;
    return connection.messages;
}

void ConnectionTally::unpermitted(int descriptor, uint64_t number, int64_t now_ns)
{
    if (descriptor < 0) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    Connection& connection = at(descriptor);
    if (!connection.unpermitted || number != connection.last_unpermitted + 1) {
        connection.unpermitted = 0;
        connection.unpermitted_since_ns = now_ns;
    }
    connection.last_unpermitted = number;
    // Not each further message: the limiter may take a while to end a fast connection.
    if (++connection.unpermitted % most_unpermitted_ || now_ns - connection.unpermitted_since_ns < unpermitted_ns_)
        return;
    if (std::find(reported_.begin(), reported_.end(), descriptor) == reported_.end()) reported_.push_back(descriptor);
}

std::vector<int> ConnectionTally::take_reported()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(reported_, {});
}

void ConnectionTally::empty()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    ++times_empty_;
}

std::pair<uint64_t, uint64_t> ConnectionTally::of(int descriptor) const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto index = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || index >= connections_.size()) return {0, 0};
    return {connections_[index].messages, connections_[index].wire_bytes};
}

uint64_t ConnectionTally::total() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return total_;
}

uint64_t ConnectionTally::times_empty() const
{
    const std::lock_guard<std::mutex> lock(mutex_);
    return times_empty_;
}

void ConnectionTally::refuse(int descriptor, bool is_refused)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (descriptor < 0) return;
    Connection& connection = at(descriptor);
    connection.is_refused = is_refused;
    connection.unpermitted = 0;
}

void add_connection_tally(nb::module_& module)
{
    nb::class_<ConnectionTally>(module, "ConnectionTally",
                                "Messages and bytes received on each connection of one socket")
        .def(nb::init<std::size_t, uint64_t, int64_t>(), nb::arg("overhead"), nb::arg("most_unpermitted"),
             nb::arg("unpermitted_ns"))
        .def(
            "take",
            [](ConnectionTally& self, int descriptor, std::size_t nbytes, std::size_t parts) {
                return self.take(descriptor, nbytes, parts).has_value();
            },
            nb::arg("descriptor"), nb::arg("nbytes"), nb::arg("parts"))
        .def("unpermitted", &ConnectionTally::unpermitted, nb::arg("descriptor"), nb::arg("number"), nb::arg("now_ns"))
        .def("take_reported", &ConnectionTally::take_reported)
        .def("empty", &ConnectionTally::empty)
        .def("of", &ConnectionTally::of, nb::arg("descriptor"))
        .def_prop_ro("total", &ConnectionTally::total)
        .def_prop_ro("times_empty", &ConnectionTally::times_empty)
        .def(
            "refuse", [](ConnectionTally& self, int descriptor) { self.refuse(descriptor, true); },
            nb::arg("descriptor"))
        .def(
            "admit", [](ConnectionTally& self, int descriptor) { self.refuse(descriptor, false); },
            nb::arg("descriptor"));
}
