// Memory for frames that libzmq sends without a copy. It is reused when no array and no message refers to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

class FrameMemory {
  public:
    struct Block {
        uint8_t* data;
        std::size_t size;
        std::atomic<std::size_t> users;
    };

    // The instance of the process. It is never destroyed: threads of libzmq return blocks until the process ends.
    static FrameMemory& instance();

    // A block of at least `size` bytes with one reference. Throws std::bad_alloc.
    Block* take(std::size_t size);

    // The block that contains a frame, with one reference added; null if there is none.
    Block* share(const uint8_t* frame, std::size_t size);

    // Drops one reference; any thread may call it.
    void release(Block* block);

  private:
    std::mutex mutex_;
    std::map<const uint8_t*, Block*> used_;
    std::vector<Block*> free_;  // the most recently freed block is last
};
