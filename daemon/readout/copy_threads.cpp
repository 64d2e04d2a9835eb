#include "copy_threads.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

CopyThreads::CopyThreads(std::size_t n_threads, crc32c::Copy copy) : copy_(copy)
{
    // Only the threads of Python handle signals.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        while (1 + others_.size() < n_threads) {
            others_.emplace_back(&CopyThreads::work, this);
            pthread_setname_np(others_.back().native_handle(), "copy");
        }
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        stop();
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CopyThreads::~CopyThreads() { stop(); }

void CopyThreads::stop()
{
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_over_ = true;
    }
    more_.notify_all();
    for (std::thread& other : others_) other.join();
}

void CopyThreads::run(std::vector<CopyJob>& jobs, bool is_shared)
{
    if (!is_shared || others_.empty() || jobs.size() < 2) {
        for (CopyJob& job : jobs) copy(job);
        return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    jobs_ = &jobs;
    next_ = n_done_ = 0;
    for (std::size_t n = std::min(others_.size(), jobs.size() - 1); n; --n) more_.notify_one();
    while (next_ < jobs.size()) {
        CopyJob& job = jobs[next_++];
        lock.unlock();
        copy(job);
        lock.lock();
        ++n_done_;
    }
    all_done_.wait(lock, [&] { return n_done_ == jobs.size(); });
    jobs_ = nullptr;
}

void CopyThreads::work()
{
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        more_.wait(lock, [&] { return is_over_ || (jobs_ && next_ < jobs_->size()); });
        if (is_over_) return;
        CopyJob& job = (*jobs_)[next_++];
        lock.unlock();
        copy(job);
        lock.lock();
        if (++n_done_ == jobs_->size()) all_done_.notify_one();
    }
}
