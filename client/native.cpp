// The extension module of the client: memory for frames, and frames to a socket of libzmq without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "../protocol/buffer_view.h"
#include "frame_memory.h"
#include "libzmq.h"

namespace nb = nanobind;

namespace {

using Array = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;

Array allocate_frames(std::size_t size)
{
    FrameMemory::Block* block = FrameMemory::instance().take(size);
    const nb::capsule owner(block, [](void* of_array) noexcept {
        FrameMemory::instance().release(static_cast<FrameMemory::Block*>(of_array));
    });
    return Array(block->data, {size}, owner);
}

void release_block(void*, void* block) { FrameMemory::instance().release(static_cast<FrameMemory::Block*>(block)); }

class FrameSender {
  public:
    // `library` is the file of pyzmq's extension module.
    explicit FrameSender(const std::string& library)
    {
        const LibZmq zmq(library);
        zmq.find(init_data_, "zmq_msg_init_data");
        zmq.find(init_size_, "zmq_msg_init_size");
        zmq.find(data_, "zmq_msg_data");
        zmq.find(send_, "zmq_msg_send");
        zmq.find(close_, "zmq_msg_close");
        zmq.find(error_, "zmq_errno");
    }

    // Sends the first of these frames, as many as the socket has room for; returns their number, or minus an errno. A
    // frame in memory of `allocate_frames` is sent from there; other frames are copied.
    int send(std::uintptr_t socket, const nb::list& frames) const
    {
        int n_sent = 0;
        for (const nb::handle frame : frames) {
            ZmqMessage message;
            if (!make(message, View(frame.ptr()))) return -error_();
            int result;
            do result = send_(&message, reinterpret_cast<void*>(socket), zmq_dont_wait);
            while (result < 0 && error_() == EINTR);
            if (result < 0) {
                const int error = error_();
                close_(&message);
                return error == EAGAIN ? n_sent : -error;
            }
            ++n_sent;
        }
        return n_sent;
    }

  private:
    // Below this size a copy is cheaper than reference counting.
    static constexpr std::size_t least_shared = 1024;

    int (*init_data_)(ZmqMessage*, void* data, std::size_t, void (*)(void*, void*), void*);
    int (*init_size_)(ZmqMessage*, std::size_t);
    void* (*data_)(ZmqMessage*);
    int (*send_)(ZmqMessage*, void* socket, int flags);
    int (*close_)(ZmqMessage*);
    int (*error_)();

    bool make(ZmqMessage& message, const View& frame) const
    {
        FrameMemory& memory = FrameMemory::instance();
        FrameMemory::Block* block = frame.size() < least_shared ? nullptr : memory.share(frame.bytes(), frame.size());
        if (block) {
            if (init_data_(&message, frame.data(), frame.size(), release_block, block) == 0) return true;
            memory.release(block);
            return false;
        }
        if (init_size_(&message, frame.size()) != 0) return false;
        std::memcpy(data_(&message), frame.bytes(), frame.size());
        return true;
    }
};

}  // namespace

NB_MODULE(_native, module)
{
    // nanobind would report objects that live until the process ends as leaks.
    nb::set_leak_warnings(false);
    module.def("allocate_frames", &allocate_frames, nb::arg("size"),
               "Memory that is reused when no array and no message refers to it");
    nb::class_<FrameSender>(module, "FrameSender", "Sends frames through the libzmq that pyzmq has loaded")
        .def(nb::init<const std::string&>(), nb::arg("library"))
        .def("send", &FrameSender::send, nb::arg("socket"), nb::arg("frames"),
             "Send the first of these frames, as many as there is room for; returns their number, or minus an errno");
}
