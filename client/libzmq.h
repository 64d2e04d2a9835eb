// The libzmq that pyzmq loaded: two copies of the library in one process cannot share a socket.
#pragma once

#include <dlfcn.h>

#include <stdexcept>
#include <string>

// A zmq_msg_t; libzmq guarantees its size and alignment.
struct alignas(void*) ZmqMessage {
    unsigned char bytes[64];
};

constexpr int zmq_dont_wait = 1;

class LibZmq {
  public:
    // `library` is the file of pyzmq's extension module. Throws std::runtime_error.
    explicit LibZmq(const std::string& library)
        // The library is already loaded and never unloaded, so the handle is not closed.
        : library_(library), handle_(dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD))
    {
        if (!handle_) throw std::runtime_error(library + " is not loaded");
    }

    // Throws std::runtime_error if there is no function of this name.
    template <typename Function>
    void find(Function& function, const char* name) const
    {
        function = reinterpret_cast<Function>(dlsym(handle_, name));
        if (!function)
            throw std::runtime_error(library_ + " and the libraries that it needs do not export " + name +
                                     ": a pyzmq with a shared libzmq is needed, as in its wheels for Linux");
    }

  private:
    std::string library_;
    void* handle_;
};
