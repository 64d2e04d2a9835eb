// Memory for frames that libzmq sends from where they are: it is used again when no array and no message refers to it.
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

    // That of the process, which has no end: threads of libzmq give blocks back until the very end.
    static FrameMemory& instance();

    // A block of at least `size` bytes with one user. Throws std::bad_alloc.
    Block* take(std::size_t size);

    // The block in which a frame lies, with one more user; null if it lies in none.
    Block* share(const uint8_t* frame, std::size_t size);

    // One user less; may be called by any thread.
    void release(Block* block);

  private:
    std::mutex mutex_;
    std::map<const uint8_t*, Block*> used_;
    std::vector<Block*> free_;  // the one that became free last is the last one
};
