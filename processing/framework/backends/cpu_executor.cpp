// Python extension hltnode.processing.framework.backends._kernels: runs a program of kernels on the CPU with the GIL
// released.
//
// A program is a list of steps, each a kernel, its block of parameters and its grid. Steps over the events that follow
// one another are fused: a thread takes an event through all of them before it takes the next one, so that the data of
// an event stay in its caches. This is allowed because such kernels touch nothing but the data of their event.
#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "framework/generated/batch_types.h"

namespace nb = nanobind;

namespace {

using KernelFunction = void (*)(const void* parameters, uint32_t block);

enum class Grid : uint32_t { one = 0, rows = 1, events = 2 };

struct Step {
    KernelFunction kernel;
    const void* parameters;
    Grid grid;
};

class Program {
  public:
    Program(const std::vector<std::tuple<uint64_t, uint64_t, uint32_t>>& steps, uint64_t batch_header)
        : header_(reinterpret_cast<const hlt::batch_header*>(batch_header)), nanoseconds_(steps.size())
    {
        for (const auto& [address, parameters, grid] : steps) {
            const auto kernel = reinterpret_cast<KernelFunction>(address);
            if (kernel == nullptr) throw std::invalid_argument("a step without a kernel");
            if (grid > static_cast<uint32_t>(Grid::events)) throw std::invalid_argument("no such grid");
            steps_.push_back({kernel, reinterpret_cast<const void*>(parameters), static_cast<Grid>(grid)});
        }
    }

    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    std::size_t size() const { return steps_.size(); }

    // The steps [first, last) that run as one pass over a grid.
    std::size_t end_of_stage(std::size_t first) const
    {
        std::size_t last = first + 1;
        while (steps_[first].grid == Grid::events && last < steps_.size() && steps_[last].grid == Grid::events) ++last;
        return last;
    }

    uint32_t blocks(std::size_t step) const
    {
        switch (steps_[step].grid) {
        case Grid::rows: return header_->n_rows;
        case Grid::events: return header_->n_events;
        default: return 1;
        }
    }

    void run_block(std::size_t first, std::size_t last, uint32_t block)
    {
        for (std::size_t step = first; step < last; ++step) steps_[step].kernel(steps_[step].parameters, block);
    }

    void run_block_profiled(std::size_t first, std::size_t last, uint32_t block)
    {
        using clock = std::chrono::steady_clock;
        auto before = clock::now();
        for (std::size_t step = first; step < last; ++step) {
            steps_[step].kernel(steps_[step].parameters, block);
            const auto after = clock::now();
            const auto elapsed = std::chrono::duration_cast<std::chrono::nanoseconds>(after - before).count();
            nanoseconds_[step].fetch_add(static_cast<uint64_t>(elapsed), std::memory_order_relaxed);
            before = after;
        }
    }

    std::vector<uint64_t> take_nanoseconds()
    {
        std::vector<uint64_t> taken;
        taken.reserve(nanoseconds_.size());
        for (auto& value : nanoseconds_) taken.push_back(value.exchange(0, std::memory_order_relaxed));
        return taken;
    }

  private:
    std::vector<Step> steps_;
    const hlt::batch_header* header_;
    std::vector<std::atomic<uint64_t>> nanoseconds_;
};

// A fixed set of threads that share the blocks of one stage at a time. The calling thread is one of them.
class Executor {
  public:
    explicit Executor(uint32_t threads)
    {
        if (threads == 0 || threads > 1024) throw std::invalid_argument("threads must be 1 to 1024");
        for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
    }

    ~Executor()
    {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    uint32_t threads() const { return static_cast<uint32_t>(workers_.size()) + 1; }

    void run(Program& program, bool profile)
    {
        const std::lock_guard one_program_at_a_time(running_);
        for (std::size_t first = 0; first < program.size();) {
            const std::size_t last = program.end_of_stage(first);
            run_stage({&program, first, last, program.blocks(first), profile});
            first = last;
        }
    }

  private:
    struct Stage {
        Program* program = nullptr;
        std::size_t first = 0, last = 0;
        uint32_t blocks = 0;
        bool profile = false;
    };

    void run_stage(const Stage& stage)
    {
        if (workers_.empty() || stage.blocks == 1) {
            next_.store(0, std::memory_order_relaxed);
            take_blocks(stage);
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            stage_ = stage;
            next_.store(0, std::memory_order_relaxed);
            busy_ = static_cast<uint32_t>(workers_.size());
            ++generation_;
        }
        wake_.notify_all();
        take_blocks(stage);
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
    }

    void take_blocks(const Stage& stage)
    {
        for (;;) {
            const uint32_t block = next_.fetch_add(1, std::memory_order_relaxed);
            if (block >= stage.blocks) return;
            if (stage.profile)
                stage.program->run_block_profiled(stage.first, stage.last, block);
            else
                stage.program->run_block(stage.first, stage.last, block);
        }
    }

    void work()
    {
        uint64_t seen = 0;
        for (;;) {
            Stage stage;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
                if (stopping_) return;
                seen = generation_;
                stage = stage_;
            }
            take_blocks(stage);
            {
                const std::lock_guard lock(mutex_);
                --busy_;
            }
            done_.notify_one();
        }
    }

    std::vector<std::thread> workers_;
    std::mutex running_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::atomic<uint32_t> next_{0};
    Stage stage_;
    uint64_t generation_ = 0;
    uint32_t busy_ = 0;
    bool stopping_ = false;
};

}  // namespace

NB_MODULE(_executor, module)
{
    module.doc() = "Runs kernels on the CPU";

    nb::class_<Program>(module, "Program", "Kernels with their parameters, in order")
        .def(nb::init<const std::vector<std::tuple<uint64_t, uint64_t, uint32_t>>&, uint64_t>(), nb::arg("steps"),
             nb::arg("batch_header"))
        .def("take_nanoseconds", &Program::take_nanoseconds,
             "Time of each step since the last call, profiled runs only");

    nb::class_<Executor>(module, "Executor", "Threads that run programs")
        .def(nb::init<uint32_t>(), nb::arg("threads"))
        .def_prop_ro("threads", &Executor::threads)
        .def("run", &Executor::run, nb::arg("program"), nb::arg("profile") = false,
             nb::call_guard<nb::gil_scoped_release>(), "Run one batch; returns when it is done");
}
