#include "udp_intake.h"

#include <arpa/inet.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <system_error>

namespace nb = nanobind;

namespace {

// Datagrams of one system call; 64 of 2 KiB stay in the second cache.
constexpr unsigned batch = 64;
constexpr int64_t longest_sleep_ns = 500'000'000;
// A kernel that takes longer at the end hangs. Only short batches are decided directly.
constexpr int64_t longest_kernel_ns = 2'000'000'000;

int64_t now_ns()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

// The address as IPv6; IPv4 is mapped.
std::optional<SenderAddress> parsed(const std::string& text)
{
    SenderAddress address{};
    in_addr v4{};
    if (inet_pton(AF_INET6, text.c_str(), address.data()) == 1) return address;
    if (inet_pton(AF_INET, text.c_str(), &v4) != 1) return std::nullopt;
    address[10] = address[11] = 0xFF;
    std::memcpy(address.data() + 12, &v4, 4);
    return address;
}

SenderAddress address_of(const sockaddr_storage& from)
{
    SenderAddress address{};
    if (from.ss_family == AF_INET6) {
        std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, 16);
    } else {
        address[10] = address[11] = 0xFF;
        std::memcpy(address.data() + 12, &reinterpret_cast<const sockaddr_in&>(from).sin_addr, 4);
    }
    return address;
}

void signal(int event)
{
    const uint64_t one = 1;
    // The counter of an eventfd overflows after 2^64 - 2 writes without a read.
    [[maybe_unused]] const ssize_t written = write(event, &one, sizeof one);
}

}  // namespace

UdpIntake::UdpIntake(std::shared_ptr<FragmentIntake> intake, const std::string& host, uint16_t port,
                     std::size_t n_sockets, int receive_bytes, const JoinLimits& limits, std::vector<uint16_t> sources,
                     const std::vector<std::pair<std::string, std::vector<uint16_t>>>& senders)
    : intake_(std::move(intake)),
      joiner_(limits, std::move(sources)),
      sockets_(n_sockets),
      datagram_bytes_(limits.datagram_bytes)
{
    for (const auto& [text, of_sender] : senders) {
        const std::optional<SenderAddress> address = parsed(text);
        if (!address) throw std::invalid_argument("expected the IP address of a sender, not " + text);
        joiner_.allow(*address, of_sender);
    }
    const bool is_v6 = host.find(':') != std::string::npos;
    sockaddr_storage bound{};
    socklen_t bound_size = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    auto& v4 = reinterpret_cast<sockaddr_in&>(bound);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(bound);
    bound.ss_family = is_v6 ? AF_INET6 : AF_INET;
    void* const to = is_v6 ? static_cast<void*>(&v6.sin6_addr) : &v4.sin_addr;
    if (inet_pton(bound.ss_family, host.c_str(), to) != 1)
        throw std::invalid_argument("expected the IP address of an interface, not " + host);
    try {
        wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        stop_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (wake_ < 0 || stop_ < 0) throw failure("eventfd");
        const int on = 1, off = 0;
        for (Socket& socket : sockets_) {
            (is_v6 ? v6.sin6_port : v4.sin_port) = htons(port_ ? port_ : port);
            socket.descriptor = ::socket(bound.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
            if (socket.descriptor < 0) throw failure("socket");
            // A larger buffer than net.core.rmem_max needs a right; without it the kernel takes its maximum.
            if (setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes) < 0)
                setsockopt(socket.descriptor, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
            if (setsockopt(socket.descriptor, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on) < 0 ||
                (n_sockets > 1 && setsockopt(socket.descriptor, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) < 0))
                throw failure("setsockopt");
            // Both versions of IP, also where net.ipv6.bindv6only says otherwise.
            if (is_v6 && setsockopt(socket.descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
                throw failure("setsockopt");
            if (bind(socket.descriptor, reinterpret_cast<sockaddr*>(&bound), bound_size) < 0) throw failure("bind");
            if (getsockname(socket.descriptor, reinterpret_cast<sockaddr*>(&bound), &bound_size) < 0)
                throw failure("getsockname");
            port_ = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
        }
    } catch (...) {
        close_sockets();
        throw;
    }
}

UdpIntake::~UdpIntake()
{
    // Threads that end may need the interpreter.
    const nb::gil_scoped_release release;
    stop();
}

void UdpIntake::close_sockets()
{
    for (Socket& socket : sockets_)
        if (socket.descriptor >= 0) close(std::exchange(socket.descriptor, -1));
    for (int* const event : {&wake_, &stop_})
        if (*event >= 0) close(std::exchange(*event, -1));
}

void UdpIntake::start()
{
    for (Socket& socket : sockets_) threads_.emplace_back([this, &socket] { receive_datagrams(socket); });
}

bool UdpIntake::stop()
{
    stopping_ = true;
    if (!threads_.empty()) signal(stop_);
    if (direct_ && !direct_->ends_within(mutex_, longest_kernel_ns)) {
        for (std::thread& thread : threads_) thread.detach();
        threads_.clear();
        return false;
    }
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    close_sockets();
    return true;
}

void UdpIntake::receive_datagrams(Socket& socket)
{
    std::optional<DirectDecisions::ThreadState> interpreter;
    if (direct_) interpreter.emplace(*direct_);
    // One byte more than the longest datagram tells that one is longer.
    const std::size_t stride = datagram_bytes_ + 1;
    std::vector<uint8_t> bytes(batch * stride);
    std::vector<mmsghdr> messages(batch);
    std::vector<iovec> vectors(batch);
    std::vector<sockaddr_storage> from(batch);
    struct alignas(cmsghdr) Control {
        char bytes[CMSG_SPACE(sizeof(uint32_t))];
    };
    std::vector<Control> controls(batch);
    for (unsigned i = 0; i < batch; ++i) {
        vectors[i] = {bytes.data() + i * stride, stride};
        msghdr& header = messages[i].msg_hdr;
        header = {};
        header.msg_name = &from[i];
        header.msg_iov = &vectors[i];
        header.msg_iovlen = 1;
        header.msg_control = &controls[i];
    }
    pollfd waiting[2] = {{socket.descriptor, POLLIN, 0}, {stop_, POLLIN, 0}};
    while (true) {
        int64_t deadline_ns;
        {
            const std::lock_guard lock(mutex_);
            deadline_ns = joiner_.next_deadline_ns();
        }
        const int64_t now = now_ns();
        const int64_t sleep_ns = std::clamp(deadline_ns - now, int64_t{0}, longest_sleep_ns);
        const timespec sleep{sleep_ns / 1'000'000'000, sleep_ns % 1'000'000'000};
        ppoll(waiting, 2, &sleep, nullptr);
        if (waiting[1].revents || stopping_) return;
        int n = 0;
        do {
            for (unsigned i = 0; i < batch; ++i) {
                messages[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
                messages[i].msg_hdr.msg_controllen = sizeof(Control);
            }
            n = recvmmsg(socket.descriptor, messages.data(), batch, MSG_DONTWAIT, nullptr);
            // ICMP errors of other datagrams and interruptions pass.
            if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED && errno != ENOMEM) {
                has_failed_ = true;
                signal(wake_);
                return;
            }
            if (n > 0) {
                // The counter of the last datagram is the newest one.
                msghdr& last = messages[static_cast<unsigned>(n) - 1].msg_hdr;
                for (cmsghdr* each = CMSG_FIRSTHDR(&last); each; each = CMSG_NXTHDR(&last, each))
                    if (each->cmsg_level == SOL_SOCKET && each->cmsg_type == SO_RXQ_OVFL) {
                        uint32_t dropped;
                        std::memcpy(&dropped, CMSG_DATA(each), sizeof dropped);
                        n_dropped_ += dropped - std::exchange(socket.dropped, dropped);
                    }
            }
            const int64_t arrived_ns = now_ns();
            bool was_empty, has_ready, is_claimed;
            {
                const std::lock_guard lock(mutex_);
                was_empty = !joiner_.has_ready();
                for (int i = 0; i < n; ++i)
                    joiner_.take(address_of(from[i]), bytes.data() + i * stride, messages[i].msg_len, arrived_ns);
                joiner_.tick(arrived_ns);
                has_ready = joiner_.has_ready();
                is_claimed = direct_ && has_ready && direct_->claim(joiner_, joiner_.first_ready());
            }
            if (is_claimed) direct_->decide(mutex_);
            if (was_empty && has_ready) signal(wake_);
            // Full batches may come for ever; the node must be able to stop.
        } while (n == static_cast<int>(batch) && !stopping_);
    }
}

void UdpIntake::welcome(uint64_t first_mep, uint64_t token)
{
    next_mep_ = first_mep;
    token_ = token;
}

void UdpIntake::arm(uint64_t below)
{
    const std::lock_guard lock(mutex_);
    if (direct_ && !mep_ && !joiner_.has_ready() && next_mep_ < below) direct_->arm(next_mep_, token_);
}

bool UdpIntake::take_next()
{
    const std::lock_guard lock(mutex_);
    // The thread that decides the next MEP wakes the event loop afterwards.
    if (direct_ && direct_->is_busy()) return false;
    mep_ = joiner_.next_ready();
    if (mep_ && direct_) decided_ = direct_->take();
    return mep_ != nullptr;
}

void UdpIntake::give_back()
{
    const std::lock_guard lock(mutex_);
    joiner_.give_back(std::exchange(mep_, nullptr));
}

Outcome UdpIntake::receive(const ReadingTimes& times, std::size_t n_meps)
{
    if (has_failed_) return Outcome::failed;
    uint64_t n_wakes;
    [[maybe_unused]] const ssize_t n_read = read(wake_, &n_wakes, sizeof n_wakes);
    while (true) {
        if (!mep_) {
            decided_.reset();
            if (!n_meps) return Outcome::paused;
            if (!take_next()) return Outcome::empty;
            --n_meps;
            joiner_.finish(*mep_, next_mep_++, token_);
            column_ = 0;
            first_ns_ = mep_->first_ns;
            is_complete_ = false;
        }
        const std::vector<JoinedPart>& parts = mep_->parts;
        while (column_ < parts.size()) {
            const std::size_t first = column_;
            std::size_t next = first;
            std::vector<std::size_t> staged;
            bool is_left = false;
            while (next < parts.size() && !intake_->is_full() && !is_complete_) {
                const JoinedPart& part = parts[next];
                if (!part.frame_size) {
                    ++next;
                    continue;
                }
                const auto answer = intake_->stage(part.bytes.get() + part.frame_at, part.frame_size, false, times);
                if (answer == FragmentIntake::Staged::not_taken) {
                    is_left = true;
                    break;
                }
                if (answer == FragmentIntake::Staged::refused_in_group) break;
                if (answer == FragmentIntake::Staged::refused || answer == FragmentIntake::Staged::refused_excused) {
                    ++next;
                    continue;
                }
                is_complete_ = answer == FragmentIntake::Staged::complete;
                staged.push_back(next++);
            }
            const std::size_t n_taken = intake_->take_staged(times);
            if (n_taken < staged.size()) {
                is_complete_ = false;
                column_ = staged[n_taken];
                return Outcome::left;
            }
            column_ = next;
            if (is_left) return Outcome::left;
            if (is_complete_) break;
        }
        give_back();
        return is_complete_ ? Outcome::complete : Outcome::ended;
    }
}

nb::object UdpIntake::left_frame()
{
    if (!mep_ || column_ >= mep_->parts.size()) throw nb::value_error("no frame is left to Python");
    const JoinedPart& part = mep_->parts[column_++];
    return nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(part.bytes.get() + part.frame_at),
                                             static_cast<Py_ssize_t>(part.frame_size), PyBUF_READ));
}

nb::object UdpIntake::run()
{
    const std::lock_guard lock(mutex_);
    return joiner_.has_run() ? nb::cast(joiner_.run()) : nb::none();
}

bool UdpIntake::is_run_over()
{
    const std::lock_guard lock(mutex_);
    return !mep_ && joiner_.has_run() && joiner_.is_run_over();
}

nb::object UdpIntake::following_run()
{
    const std::lock_guard lock(mutex_);
    const int64_t run = joiner_.following_run();
    return run < 0 ? nb::none() : nb::cast(run);
}

void UdpIntake::discard_rest()
{
    if (!mep_) return;
    uint64_t n_packets = 0;
    for (; column_ < mep_->parts.size(); ++column_) n_packets += mep_->parts[column_].n_packets;
    give_back();
    const std::lock_guard lock(mutex_);
    joiner_.discarded += n_packets;
}

void UdpIntake::forget_decided()
{
    disarm(0);
    const std::lock_guard lock(mutex_);
    if (direct_) direct_->take();
}

void UdpIntake::leave_run()
{
    forget_decided();
    discard_rest();
    const std::lock_guard lock(mutex_);
    joiner_.leave_run();
}

void UdpIntake::end_run()
{
    forget_decided();
    discard_rest();
    const std::lock_guard lock(mutex_);
    joiner_.end_run();
}

void UdpIntake::reopen_run(uint32_t run)
{
    const std::lock_guard lock(mutex_);
    joiner_.reopen_run(run);
}

nb::dict UdpIntake::counts()
{
    nb::dict result;
    nb::list refused, missing, bursts;
    const std::lock_guard lock(mutex_);
    for (const uint64_t n : joiner_.refused) refused.append(n);
    for (const uint64_t n : joiner_.missing) missing.append(n);
    for (const BurstCounts& each : joiner_.bursts)
        bursts.append(nb::make_tuple(each.burst, each.packets, each.missing, each.refused, each.meps));
    joiner_.bursts.clear();
    result["packets"] = joiner_.packets;
    result["bytes"] = joiner_.nbytes_taken;
    result["meps"] = joiner_.meps_closed;
    result["meps_lost"] = joiner_.meps_lost;
    result["discarded"] = joiner_.discarded;
    result["dropped"] = n_dropped_.load();
    result["burst"] = joiner_.burst();
    result["refused"] = refused;
    result["missing"] = missing;
    result["bursts"] = bursts;
    return result;
}

void add_udp_intake(nb::module_& module)
{
    nb::class_<UdpIntake>(module, "UdpIntake", "Receives UDP datagrams and joins them into MEPs")
        .def(
            "__init__",
            [](UdpIntake* self, std::shared_ptr<FragmentIntake> intake, const std::string& host, uint16_t port,
               std::size_t n_sockets, int receive_bytes, uint32_t packets_per_mep, uint32_t events_per_packet,
               uint32_t open_meps, uint32_t datagram_bytes, int64_t flush_ns, std::vector<uint16_t> sources,
               const std::vector<std::pair<std::string, std::vector<uint16_t>>>& senders) {
                try {
                    new (self)
                        UdpIntake(std::move(intake), host, port, n_sockets, receive_bytes,
                                  JoinLimits{packets_per_mep, events_per_packet, open_meps, datagram_bytes, flush_ns},
                                  std::move(sources), senders);
                } catch (const std::system_error& error) {
                    errno = error.code().value();
                    PyErr_SetFromErrno(PyExc_OSError);
                    throw nb::python_error();
                }
            },
            nb::arg("intake"), nb::arg("host"), nb::arg("port"), nb::kw_only(), nb::arg("n_sockets"),
            nb::arg("receive_bytes"), nb::arg("packets_per_mep"), nb::arg("events_per_packet"), nb::arg("open_meps"),
            nb::arg("datagram_bytes"), nb::arg("flush_ns"), nb::arg("sources"), nb::arg("senders"))
        .def("start", &UdpIntake::start)
        .def("stop",
             [](UdpIntake& self) {
                 bool has_stopped;
                 {
                     const nb::gil_scoped_release release;
                     has_stopped = self.stop();
                 }
                 // It has references to Python objects. A thread that hangs needs it, and the intake, for ever.
                 if (has_stopped)
                     self.forget_direct();
                 else
                     nb::find(self).inc_ref();
                 return has_stopped;
             })
        .def(
            "decide_directly",
            [](UdpIntake& self, std::uintptr_t address, nb::object batch, nb::object begin, nb::object send,
               nb::object drop, std::size_t mep_bytes, std::size_t mfp_bytes, int64_t deadline_ns) {
                const DirectDecisions::Limits limits{mep_bytes, mfp_bytes, deadline_ns};
                self.decide_directly(std::make_unique<DirectDecisions>(address, std::move(batch), std::move(begin),
                                                                       std::move(send), std::move(drop), limits));
            },
            nb::arg("address"), nb::arg("batch"), nb::arg("begin"), nb::arg("send"), nb::arg("drop"), nb::kw_only(),
            nb::arg("mep_bytes"), nb::arg("mfp_bytes"), nb::arg("deadline_ns"))
        .def("arm", &UdpIntake::arm, nb::arg("below"))
        .def("disarm", &UdpIntake::disarm, nb::arg("longest_ns"), nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("decided",
                     [](const UdpIntake& self) -> nb::object {
                         const auto& times = self.decided();
                         if (!times) return nb::none();
                         return nb::make_tuple(times->joined_ns, times->computed_ns, times->sent_ns);
                     })
        .def_prop_ro("computes_since_ns", &UdpIntake::computes_since_ns)
        .def("fileno", &UdpIntake::descriptor)
        .def("welcome", &UdpIntake::welcome, nb::arg("first_mep"), nb::arg("token"))
        .def(
            "receive",
            [](UdpIntake& self, int64_t now_ns, int64_t true_ns, int64_t end_ns, std::size_t n_meps) {
                return self.receive({now_ns, true_ns, end_ns}, n_meps);
            },
            nb::arg("now_ns"), nb::arg("true_ns"), nb::arg("end_ns"), nb::arg("n_meps"),
            nb::call_guard<nb::gil_scoped_release>())
        .def("left_frame", &UdpIntake::left_frame)
        .def("counts", &UdpIntake::counts)
        .def("leave_run", &UdpIntake::leave_run, nb::call_guard<nb::gil_scoped_release>())
        .def("end_run", &UdpIntake::end_run, nb::call_guard<nb::gil_scoped_release>())
        .def("reopen_run", &UdpIntake::reopen_run, nb::arg("run"))
        .def_prop_ro("following_run", &UdpIntake::following_run)
        .def_prop_ro("run", &UdpIntake::run)
        .def_prop_ro("is_run_over", &UdpIntake::is_run_over)
        .def_prop_ro("next_mep", &UdpIntake::next_mep)
        .def_prop_ro("last_mep", &UdpIntake::last_mep)
        .def_prop_ro("first_ns", &UdpIntake::first_ns)
        .def_prop_ro("port", &UdpIntake::port);
}
