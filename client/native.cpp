// The extension module of the client: memory for frames, and frames to a socket of libzmq without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "../protocol/buffer_view.h"
#include "frame_memory.h"

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

// The functions of the libzmq that pyzmq has loaded: two libraries in one process could not share a socket.
class FrameSender {
  public:
    // `library` is the file of pyzmq's extension module.
    explicit FrameSender(const std::string& library)
    {
        // Already loaded, and never unloaded: the handle is not closed.
        void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (!handle) throw std::runtime_error(library + " is not loaded");
        find(init_data_, handle, library, "zmq_msg_init_data");
        find(init_size_, handle, library, "zmq_msg_init_size");
        find(data_, handle, library, "zmq_msg_data");
        find(send_, handle, library, "zmq_msg_send");
        find(close_, handle, library, "zmq_msg_close");
        find(error_, handle, library, "zmq_errno");
    }

    // Sends the first of these frames, as many as the socket has room for; returns how many, or minus an error number.
    // A frame in the memory of `allocate_frames` is sent from there, another one is copied.
    int send(std::uintptr_t socket, const nb::list& frames) const
    {
        int n_sent = 0;
        for (const nb::handle frame : frames) {
            Message message;
            if (!make(message, View(frame.ptr()))) return -error_();
            int result;
            do result = send_(&message, reinterpret_cast<void*>(socket), dont_wait);
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
    struct alignas(void*) Message {  // zmq_msg_t, whose size and alignment libzmq promises
        unsigned char bytes[64];
    };
    static constexpr int dont_wait = 1;
    // Below it the copy is cheaper than to keep track of the memory.
    static constexpr std::size_t least_shared = 1024;

    int (*init_data_)(Message*, void* data, std::size_t, void (*)(void*, void*), void*);
    int (*init_size_)(Message*, std::size_t);
    void* (*data_)(Message*);
    int (*send_)(Message*, void* socket, int flags);
    int (*close_)(Message*);
    int (*error_)();

    template <typename Function>
    static void find(Function& function, void* handle, const std::string& library, const char* name)
    {
        function = reinterpret_cast<Function>(dlsym(handle, name));
        if (!function)
            throw std::runtime_error(library + " and the libraries that it needs do not export " + name +
                                     ": a pyzmq with a shared libzmq is needed, as in its wheels for Linux");
    }

    bool make(Message& message, const View& frame) const
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
    module.def("allocate_frames", &allocate_frames, nb::arg("size"),
               "Memory that is used again when no array and no message refers to it");
    nb::class_<FrameSender>(module, "FrameSender", "Sends frames by the libzmq that pyzmq has loaded")
        .def(nb::init<const std::string&>(), nb::arg("library"))
        .def("send", &FrameSender::send, nb::arg("socket"), nb::arg("frames"),
             "Send the first of some frames, as many as there is room for; returns how many, or minus an error number");
}
