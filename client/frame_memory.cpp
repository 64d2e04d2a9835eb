#include "frame_memory.h"

#include <sys/mman.h>

#include <new>

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20, page = 4096;
// Number of blocks kept for reuse, and the allowed excess of their size: MEPs of a run have similar sizes.
constexpr std::size_t most_free = 4, largest_excess = 2;

FrameMemory::Block* map_block(std::size_t size)
{
    const std::size_t unit = size < huge_page ? page : huge_page;
    size = (size + unit - 1) / unit * unit;
    void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    // A kernel without huge pages refuses; small pages work too.
    if (unit == huge_page) madvise(data, size, MADV_HUGEPAGE);
#endif
    return new FrameMemory::Block{static_cast<uint8_t*>(data), size, {1}};
}

}  // namespace

FrameMemory& FrameMemory::instance()
{
    static FrameMemory* const memory = new FrameMemory;
    return *memory;
}

FrameMemory::Block* FrameMemory::take(std::size_t size)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    Block* block = nullptr;
    for (std::size_t i = free_.size(); i-- > 0 && !block;)
        if (free_[i]->size >= size && free_[i]->size / largest_excess <= size + huge_page) {
            block = free_[i];
            block->users = 1;
            free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    if (!block) block = map_block(size ? size : 1);
    used_.emplace(block->data, block);
    return block;
}

FrameMemory::Block* FrameMemory::share(const uint8_t* frame, std::size_t size)
{
    const std::lock_guard<std::mutex> lock(mutex_);
    auto after = used_.upper_bound(frame);
    if (after == used_.begin()) return nullptr;
    Block* block = (--after)->second;
    const std::size_t offset = static_cast<std::size_t>(frame - block->data);
    if (offset > block->size || size > block->size - offset) return nullptr;
    ++block->users;
    return block;
}

void FrameMemory::release(Block* block)
{
    if (--block->users) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    used_.erase(block->data);
    free_.push_back(block);
    if (free_.size() > most_free) {
        Block* oldest = free_.front();
        free_.erase(free_.begin());
        munmap(oldest->data, oldest->size);
        delete oldest;
    }
}
