// A view of the bytes of a Python object; the bytes are valid during the lifetime of the view.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

class View {
  public:
    explicit View(PyObject* object, int flags = PyBUF_SIMPLE)
    {
        if (PyObject_GetBuffer(object, &buffer_, flags) != 0) throw nanobind::python_error();
    }
    View(View&& other) noexcept : buffer_(other.buffer_) { other.buffer_.obj = nullptr; }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    View& operator=(View&&) = delete;
    ~View() { PyBuffer_Release(&buffer_); }
    void* data() const { return buffer_.buf; }
    const uint8_t* bytes() const { return static_cast<const uint8_t*>(buffer_.buf); }
    std::size_t size() const { return static_cast<std::size_t>(buffer_.len); }

  private:
    Py_buffer buffer_;
};
