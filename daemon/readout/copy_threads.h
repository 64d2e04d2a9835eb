// Threads that copy fragments to their places and compute their CRC, together with the receiving thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "../../protocol/crc32c.h"

// A part of a fragment. `crc` is the CRC of the bytes before it, and after the copy includes this part.
struct CopyJob {
    const uint8_t* from;
    uint8_t* to;
    std::size_t size;
    uint32_t crc;
};

class CopyThreads {
  public:
    // `n_threads` is at least one: it includes the thread that calls `run`. Throws std::system_error.
    CopyThreads(std::size_t n_threads, crc32c::Copy copy);
    CopyThreads(const CopyThreads&) = delete;
    CopyThreads& operator=(const CopyThreads&) = delete;
    ~CopyThreads();

    std::size_t n_threads() const { return 1 + others_.size(); }

    // Runs all jobs: in this thread, or with `is_shared` in all threads. One call at a time.
    void run(std::vector<CopyJob>& jobs, bool is_shared);

  private:
    void work();
    void stop();
    void copy(CopyJob& job) const { job.crc = copy_(job.crc, job.from, job.to, job.size); }

    crc32c::Copy copy_;
    std::mutex mutex_;
    std::condition_variable more_, all_done_;
    std::vector<CopyJob>* jobs_ = nullptr;
    std::size_t next_ = 0, n_done_ = 0;
    bool is_over_ = false;
    std::vector<std::thread> others_;
};
