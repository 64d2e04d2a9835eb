#include "connection_guard.h"

#include <linux/tcp.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

namespace nb = nanobind;

namespace {

// Intervals of the checks of all connections: for a while after one has used half of what it may send, and later.
constexpr int busy_check_ms = 2, calm_check_ms = 250;
constexpr int64_t busy_ns = 1'000'000'000;

int64_t now_ns()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// Bytes that the peer has sent; none for a local socket, which does not count them.
std::optional<uint64_t> bytes_received(int descriptor)
{
    tcp_info info{};
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) < 0) return std::nullopt;
    if (length < offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) return std::nullopt;
    return info.tcpi_bytes_received;
}

// libzmq then reads the end of the stream, and frees what belongs to the connection.
void cut(int descriptor)
{
    const linger reset_at_close{1, 0};
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset_at_close, sizeof reset_at_close);
    shutdown(descriptor, SHUT_RDWR);
    // MSG_TRUNC: the kernel discards the bytes.
    while (recv(descriptor, nullptr, 1 << 20, MSG_TRUNC | MSG_DONTWAIT) > 0) {
    }
}

int checked(int descriptor, const char* what)
{
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
    return descriptor;
}

}  // namespace

ConnectionGuard::ConnectionGuard()
    : epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      report_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")),
      wake_(checked(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd"))
{
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wake_;
    checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event), "epoll_ctl");
    thread_ = std::thread([this] { follow(); });
}

ConnectionGuard::~ConnectionGuard() { close(); }

void ConnectionGuard::close()
{
    if (!thread_.joinable()) return;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    eventfd_write(wake_, 1);
    thread_.join();
    for (const int descriptor : {epoll_, report_, wake_}) ::close(descriptor);
}

void ConnectionGuard::add(int descriptor, double capacity, double per_second, bool ends_it)
{
    // Edge-triggered: libzmq reads the bytes. If it has read them before this thread runs, there is no event; the
    // regular checks then see them.
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    event.data.fd = descriptor;
    {
        // One step for the thread: it must not stop following a connection before epoll has it. epoll would keep that
        // descriptor, and refuse it when it is opened again for the same connection.
        const std::lock_guard<std::mutex> lock(mutex_);
        if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) < 0 &&
            (errno != EEXIST || epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event) < 0))
            throw nb::value_error("the descriptor cannot be followed");
        connections_[descriptor] = {capacity, per_second, capacity, ends_it, 0, now_ns()};
    }
    eventfd_write(wake_, 1);
}

void ConnectionGuard::remove(int descriptor)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    // A report that was not taken yet must not be read as one of the next connection with this number.
    const auto is_of_it = [descriptor](const auto& report) { return report.first == descriptor; };
    reported_.erase(std::remove_if(reported_.begin(), reported_.end(), is_of_it), reported_.end());
    if (!connections_.erase(descriptor)) return;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

std::vector<std::pair<int, bool>> ConnectionGuard::reported()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    eventfd_t count;
    eventfd_read(report_, &count);
    return std::exchange(reported_, {});
}

int ConnectionGuard::wait_ms()
{
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return 0;
    // A connection that is only reported needs no check: its bytes are counted elsewhere too.
    const auto is_ended = [](const auto& entry) { return entry.second.ends_it; };
    if (std::none_of(connections_.begin(), connections_.end(), is_ended)) return -1;
    return now_ns() < busy_until_ns_ ? busy_check_ms : calm_check_ms;
}

void ConnectionGuard::follow()
{
    std::array<epoll_event, 64> events;
    int64_t next_check_ns = 0;
    while (true) {
        const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms());
        for (int i = 0; i < n; ++i) {
            const int descriptor = events[static_cast<std::size_t>(i)].data.fd;
            if (descriptor != wake_) {
                check(descriptor);
                continue;
            }
            eventfd_t count;
            eventfd_read(wake_, &count);
            const std::lock_guard<std::mutex> lock(mutex_);
            if (stopping_) return;
        }
        if (const int64_t now = now_ns(); now >= next_check_ns) {
            check_all();
            next_check_ns = now + busy_check_ms * 1'000'000;
        }
    }
}

void ConnectionGuard::check_all()
{
    std::vector<int> descriptors;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        for (const auto& [descriptor, connection] : connections_) descriptors.push_back(descriptor);
    }
    for (const int descriptor : descriptors) check(descriptor);
}

void ConnectionGuard::check(int descriptor)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = connections_.find(descriptor);
    if (found == connections_.end()) return;
    Connection& connection = found->second;
    const std::optional<uint64_t> received = bytes_received(descriptor);
    if (!received) return;
    const int64_t now = now_ns();
    connection.left += static_cast<double>(now - connection.since_ns) * 1e-9 * connection.per_second;
    connection.left = std::min(connection.capacity, connection.left);
    connection.left -= static_cast<double>(*received - connection.received);
    connection.received = *received;
    connection.since_ns = now;
    if (connection.left >= 0) {
        // A heartbeat now and then must not have all connections checked often.
        if (connection.ends_it && connection.left < connection.capacity / 2) busy_until_ns_ = now + busy_ns;
        return;
    }
    const bool ends_it = connection.ends_it;
    connections_.erase(found);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
    // Reported first: then the end of the connection is never known without its reason.
    reported_.emplace_back(descriptor, ends_it);
    eventfd_write(report_, 1);
    if (ends_it) cut(descriptor);
}

void add_connection_guard(nb::module_& module)
{
    nb::class_<ConnectionGuard>(module, "ConnectionGuard",
                                "Acts on connections that send too much, in a thread of its own")
        .def(nb::init<>())
        .def("add", &ConnectionGuard::add, nb::arg("descriptor"), nb::arg("capacity"), nb::arg("per_second"),
             nb::arg("ends_it"))
        .def("remove", &ConnectionGuard::remove, nb::arg("descriptor"))
        .def("reported", &ConnectionGuard::reported)
        .def_prop_ro("report_descriptor", &ConnectionGuard::report_descriptor)
        .def("close", &ConnectionGuard::close, nb::call_guard<nb::gil_scoped_release>());
}
