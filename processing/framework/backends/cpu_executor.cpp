// Python extension hltnode.processing.framework.backends._executor: runs a program of kernels on the CPU with the GIL
// released.
//
// A program is a list of steps: a kernel, its parameter block and its grid. Consecutive steps over events are fused: a
// thread runs all of them on one event before it takes the next, so the data of an event stay in its caches. Fusion is
// valid because such kernels access only the data of their event. The same holds for steps over equal parts of events:
// a thread takes one part, and several threads may share one event.
//
// Columns that only one fused stage uses are in thread memory, at the same place for each event or part. Kernels find
// the objects of a block by adding first(block) to a pointer. So each thread has copies of the parameter blocks. Before
// a block, it sets the pointers into its memory to
//     memory + offset - first(block) * stride.
// Each thread has its own copy of counters that accumulate over events.
//
// With several threads, events and parts run in the order of event_order.h.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "batch_tables.h"
#include "framework/backends/direct_batch.h"
#include "framework/backends/event_order.h"
#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"

namespace nb = nanobind;

namespace {

using KernelFunction = void (*)(const void* parameters, uint32_t block);

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;

// Processor time of this thread, without waits for a processor. A call takes 0.2 us: 1 to 2 % of an event that runs
// through fifty kernels.
uint64_t thread_nanoseconds()
{
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// The minimum time of a reading.
uint64_t clock_reading_nanoseconds()
{
    static const uint64_t least = [] {
        uint64_t of_readings = UINT64_MAX;
        for (uint32_t i = 0; i < 256; ++i) {
            const uint64_t before = thread_nanoseconds();
            of_readings = std::min(of_readings, thread_nanoseconds() - before);
        }
        return of_readings;
    }();
    return least;
}

// Time by the steady clock, which is that of Python's time.perf_counter_ns.
uint64_t steady_nanoseconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// What a thread did: RECORD in cpu.py.
struct Record {
    uint64_t begin, end, cpu;  // steady clock, and processor time between, ns
    uint32_t thread, stage, block;
    int32_t step;  // or one of the codes below
};
static_assert(sizeof(Record) == 40);
constexpr int32_t whole_stage = -1;    // the thread took blocks of a stage, `block` of them
constexpr int32_t whole_program = -2;  // from the start to the end of a program

// Measures one record.
class Recorder {
  public:
    Recorder(std::vector<Record>& records, uint32_t thread, std::size_t stage)
        : records_(records),
          record_{steady_nanoseconds(), 0, thread_nanoseconds(), thread, static_cast<uint32_t>(stage), 0, 0}
    {
    }
    // The end of one record is the beginning of the next one.
    void next(int32_t step, uint32_t block)
    {
        const uint64_t cpu = thread_nanoseconds();
        record_.end = steady_nanoseconds();
        record_.step = step;
        record_.block = block;
        const uint64_t cpu_before = std::exchange(record_.cpu, cpu - record_.cpu);
        records_.push_back(record_);
        record_.begin = record_.end;
        record_.cpu = cpu_before + record_.cpu;
    }

  private:
    std::vector<Record>& records_;
    Record record_;
};

struct Step {
    KernelFunction kernel;
    const void* parameters;
    hlt::grid grid;
    std::size_t copy;                      // start of the copy of its parameters, in cache lines
    uint32_t parts = 1;                    // of each event, for a grid over parts
    const uint32_t* part_sizes = nullptr;  // of each part of the batch; null: unknown
    bool after_all_parts = false;          // earlier steps must have computed all parts

    bool fuses() const { return grid == hlt::grid::events || grid == hlt::grid::parts; }
    // Whether a block may run this step directly after the earlier one.
    bool fuses_with(const Step& earlier) const
    {
        return fuses() && grid == earlier.grid && parts == earlier.parts && part_sizes == earlier.part_sizes &&
               !after_all_parts;
    }
};

// Placement.first in processing/framework/collections.py.
struct Placement {
    const uint32_t* offsets;  // null: none
    uint32_t divisor, per_event, times;

    // Of an event, or of a part of the batch.
    uint64_t first(uint32_t block) const
    {
        const uint64_t begin = offsets == nullptr ? 0 : offsets[block] / divisor;
        return (begin + uint64_t{block} * per_event) * times;
    }
};

// A pointer into the memory of the thread.
struct ThreadPointer {
    std::size_t stage;      // first step of the fused stage
    std::size_t placement;  // in Program::placements_
    std::size_t position;   // in the copies of parameters, in bytes
    uint64_t offset, stride;
};

// State of one thread for one program.
class ThreadState {
  public:
    ThreadState(uint64_t memory, std::size_t bytes, std::size_t parameter_lines)
        : memory_(reinterpret_cast<std::byte*>(memory)), bytes_(bytes), parameters_(parameter_lines)
    {
    }

    std::byte* memory() { return memory_; }
    std::byte* parameters() { return reinterpret_cast<std::byte*>(parameters_.data()); }

    // Pages belong to the NUMA node of the thread that touches them first.
    void touch()
    {
        if (touched_) return;
        touched_ = true;
        for (std::size_t at = 0; at < bytes_; at += page) {
            volatile std::byte& byte = memory_[at];
            byte = byte;
        }
    }

  private:
    struct alignas(cache_line) Line {
        std::byte bytes[cache_line];
    };

    std::byte* memory_;
    std::size_t bytes_;
    std::vector<Line> parameters_;
    bool touched_ = false;
};

using StepTuple = std::tuple<uint64_t, uint64_t, uint32_t, uint32_t>;
using PlacementTuple = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>;
using PointerTuple = std::tuple<std::size_t, std::size_t, std::size_t, uint64_t, uint64_t>;
using CopyTuple = std::tuple<std::size_t, std::size_t, uint64_t>;
using PartsTuple = std::tuple<std::size_t, uint32_t, uint64_t, bool>;
using TablesTuple = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>;

hlt::event_tables tables_of(const TablesTuple& addresses)
{
    const auto [events, meps, mfps, fragments] = addresses;
    if ((events == 0) != (meps == 0) || (meps == 0) != (mfps == 0) || (mfps == 0) != (fragments == 0))
        throw std::invalid_argument("tables of events that are not complete");
    return {reinterpret_cast<const hlt::event_row*>(events), reinterpret_cast<const hlt::row_range*>(meps),
            reinterpret_cast<const hlt::mfp_row*>(mfps), reinterpret_cast<const hlt::fragment_row*>(fragments)};
}

class Program {
  public:
    Program(const std::vector<StepTuple>& steps, uint64_t batch_header, const std::vector<PlacementTuple>& placements,
            const std::vector<PointerTuple>& thread_pointers, const std::vector<uint64_t>& thread_memory,
            std::size_t thread_bytes, const std::vector<CopyTuple>& thread_copies, std::size_t n_threads,
            const TablesTuple& tables, const std::vector<PartsTuple>& parts)
        : order_(tables_of(tables)),
          header_(reinterpret_cast<const hlt::batch_header*>(batch_header)),
          nanoseconds_(steps.size())
    {
        std::size_t lines = 0;
        std::vector<std::size_t> parameter_bytes;
        for (const auto& [address, parameters, grid, nbytes] : steps) {
            const auto kernel = reinterpret_cast<KernelFunction>(address);
            if (kernel == nullptr) throw std::invalid_argument("a step without a kernel");
            if (grid > static_cast<uint32_t>(hlt::grid::fragments)) throw std::invalid_argument("no such grid");
            const auto over = static_cast<hlt::grid>(grid);
            steps_.push_back({kernel, reinterpret_cast<const void*>(parameters), over, lines,
                              over == hlt::grid::parts ? 0u : 1u, nullptr});
            parameter_bytes.push_back(nbytes);
            lines += (nbytes + cache_line - 1) / cache_line;
        }
        for (const auto& [step, number, sizes, after_all_parts] : parts) {
            if (step >= steps_.size() || steps_[step].grid != hlt::grid::parts || number == 0)
                throw std::invalid_argument("parts that do not fit the steps");
            steps_[step].parts = number;
            steps_[step].part_sizes = reinterpret_cast<const uint32_t*>(sizes);
            steps_[step].after_all_parts = after_all_parts;
        }
        for (const Step& step : steps_)
            if (step.parts == 0) throw std::invalid_argument("a step over parts without their number");
        for (const auto& [offsets, divisor, per_event, times] : placements) {
            if (divisor == 0) throw std::invalid_argument("a placement that divides by zero");
            placements_.push_back({reinterpret_cast<const uint32_t*>(offsets), divisor, per_event, times});
        }
        for (const auto& [step, placement, position, offset, stride] : thread_pointers) {
            if (step >= steps_.size() || !steps_[step].fuses() || placement >= placements_.size() ||
                position + sizeof(void*) > parameter_bytes[step] || offset >= thread_bytes)
                throw std::invalid_argument("a pointer to memory of the thread that does not fit the steps");
            thread_pointers_.push_back(
                {begin_of_stage(step), placement, steps_[step].copy * cache_line + position, offset, stride});
        }
        std::sort(thread_pointers_.begin(), thread_pointers_.end(), [](const auto& one, const auto& other) {
            return std::tie(one.stage, one.placement, one.position) <
                   std::tie(other.stage, other.placement, other.position);
        });
        pointers_before_.reserve(steps_.size() + 1);
        for (std::size_t stage = 0; stage <= steps_.size(); ++stage) {
            const auto before = [](const ThreadPointer& pointer, std::size_t of) { return pointer.stage < of; };
            const auto end = std::lower_bound(thread_pointers_.begin(), thread_pointers_.end(), stage, before);
            pointers_before_.push_back(static_cast<std::size_t>(end - thread_pointers_.begin()));
        }
        for (const auto& [step, position, stride] : thread_copies)
            if (step >= steps_.size() || position + sizeof(void*) > parameter_bytes[step])
                throw std::invalid_argument("a pointer to copies of threads that does not fit the steps");
        has_own_parameters_ = !thread_pointers_.empty() || !thread_copies.empty();
        if (!has_own_parameters_) return;
        for (std::size_t thread = 0; thread < n_threads; ++thread) {
            if (!thread_pointers_.empty() && thread >= thread_memory.size()) break;
            const bool has_memory = !thread_pointers_.empty();
            threads_.emplace_back(has_memory ? thread_memory[thread] : 0, has_memory ? thread_bytes : 0, lines);
            for (std::size_t step = 0; step < steps_.size(); ++step)
                std::memcpy(own_parameters(thread, step), steps_[step].parameters, parameter_bytes[step]);
            for (const auto& [step, position, stride] : thread_copies) {
                uint64_t address = 0;
                std::memcpy(&address, own_parameters(thread, step) + position, sizeof address);
                address += thread * stride;
                std::memcpy(own_parameters(thread, step) + position, &address, sizeof address);
            }
        }
    }

    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    std::size_t size() const { return steps_.size(); }

    // Whether there is a state for each of a number of threads.
    bool serves(uint32_t threads) const { return !has_own_parameters_ || threads_.size() >= threads; }

    // The steps [first, last) that run as one pass over a grid.
    std::size_t end_of_stage(std::size_t first) const
    {
        std::size_t last = first + 1;
        while (last < steps_.size() && steps_[last].fuses_with(steps_[first])) ++last;
        return last;
    }

    uint32_t blocks(std::size_t step) const
    {
        switch (steps_[step].grid) {
        case hlt::grid::rows: return header_->n_rows;
        case hlt::grid::fragments: return header_->n_fragments;
        case hlt::grid::events: return header_->n_events;
        case hlt::grid::parts: return header_->n_events * steps_[step].parts;
        default: return 1;
        }
    }

    void begin() { is_order_made_ = false; }

    // Call it before a stage. Several threads take events in the order of their bytes, and parts in the order of their
    // sizes or in that of their events. The bytes are known after the placement of fragments, and their tables may be
    // overwritten after the first stage over events or parts. One thread takes blocks in their original order.
    void put_in_order(std::size_t first, bool by_several_threads)
    {
        const Step& step = steps_[first];
        ordered_by_ = Order::none;
        if (!by_several_threads || !step.fuses()) return;
        if (!is_order_made_) order_.make(header_->n_events);
        is_order_made_ = true;
        ordered_by_ = Order::events;
        parts_ = step.parts;
        if (step.part_sizes == nullptr) return;
        part_order_.make_from(step.part_sizes, header_->n_events * step.parts);
        ordered_by_ = Order::part_sizes;
    }

    // The block of a stage at position `number` of the order.
    uint32_t block_at(uint32_t number) const
    {
        switch (ordered_by_) {
        case Order::events: return parts_ == 1 ? order_[number] : order_[number / parts_] * parts_ + number % parts_;
        case Order::part_sizes: return part_order_[number];
        default: return number;
        }
    }

    // Called before the first block of a thread in a stage.
    void enter(uint32_t thread)
    {
        if (!threads_.empty()) threads_[thread].touch();
    }

    void run_block(std::size_t first, std::size_t last, uint32_t block, uint32_t thread)
    {
        place(first, block, thread);
        for (std::size_t step = first; step < last; ++step) steps_[step].kernel(parameters(step, thread), block);
        progress_.fetch_add(1, std::memory_order_relaxed);
    }

    void run_block_profiled(std::size_t first, std::size_t last, uint32_t block, uint32_t thread)
    {
        place(first, block, thread);
        uint64_t before = thread_nanoseconds();
        for (std::size_t step = first; step < last; ++step) {
            steps_[step].kernel(parameters(step, thread), block);
            const uint64_t after = thread_nanoseconds();
            add_nanoseconds(step, after - before);
            before = after;
        }
        progress_.fetch_add(1, std::memory_order_relaxed);
    }

    void run_block_recorded(std::size_t first, std::size_t last, uint32_t block, uint32_t thread,
                            std::vector<Record>& records)
    {
        place(first, block, thread);
        Recorder recorder(records, thread, first);
        for (std::size_t step = first; step < last; ++step) {
            steps_[step].kernel(parameters(step, thread), block);
            recorder.next(static_cast<int32_t>(step), block);
        }
        progress_.fetch_add(1, std::memory_order_relaxed);
    }

    // Adds the processor time between two clock readings, minus the time of one reading.
    void add_nanoseconds(std::size_t step, uint64_t between)
    {
        const uint64_t reading = clock_reading_nanoseconds();
        nanoseconds_[step].fetch_add(between - std::min(between, reading), std::memory_order_relaxed);
    }

    // Run one batch in the calling thread, beside the programs of an executor: with memory of its own, the program
    // shares nothing with them.
    void run_directly()
    {
        if (!serves(1)) throw std::invalid_argument("a program without memory for a thread");
        begin();
        for (std::size_t first = 0; first < size();) {
            const std::size_t last = end_of_stage(first);
            put_in_order(first, false);
            enter(0);
            const uint32_t n_blocks = blocks(first);
            for (uint32_t block = 0; block < n_blocks; ++block) run_block(first, last, block, 0);
            first = last;
        }
    }

    // Number of finished blocks of stages, over all runs. May be read while the program runs.
    uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

    std::vector<uint64_t> take_nanoseconds()
    {
        std::vector<uint64_t> taken;
        taken.reserve(nanoseconds_.size());
        for (auto& value : nanoseconds_) taken.push_back(value.exchange(0, std::memory_order_relaxed));
        return taken;
    }

  private:
    std::size_t begin_of_stage(std::size_t step) const
    {
        while (step > 0 && steps_[step].fuses_with(steps_[step - 1])) --step;
        return step;
    }

    const void* parameters(std::size_t step, uint32_t thread)
    {
        if (threads_.empty()) return steps_[step].parameters;
        return own_parameters(thread, step);
    }

    // The copy of a step's parameters of a thread.
    std::byte* own_parameters(std::size_t thread, std::size_t step)
    {
        return threads_[thread].parameters() + steps_[step].copy * cache_line;
    }

    // Set the pointers of a stage into the memory of the thread for one block.
    void place(std::size_t stage, uint32_t block, uint32_t thread)
    {
        if (pointers_before_[stage] == pointers_before_[stage + 1]) return;
        std::byte* const parameters = threads_[thread].parameters();
        const auto memory = reinterpret_cast<uint64_t>(threads_[thread].memory());
        std::size_t placement = placements_.size();
        uint64_t first = 0;
        for (std::size_t i = pointers_before_[stage]; i < pointers_before_[stage + 1]; ++i) {
            const ThreadPointer& pointer = thread_pointers_[i];
            if (pointer.placement != placement) {
                placement = pointer.placement;
                first = placements_[placement].first(block);
            }
            const uint64_t address = memory + pointer.offset - first * pointer.stride;
            std::memcpy(parameters + pointer.position, &address, sizeof address);
        }
    }

    std::vector<Step> steps_;
    std::vector<Placement> placements_;
    std::vector<ThreadPointer> thread_pointers_;  // in the order of stages
    std::vector<std::size_t> pointers_before_;    // pointers of the stages before each step; at the end all
    std::vector<ThreadState> threads_;
    bool has_own_parameters_ = false;
    enum class Order { none, events, part_sizes };

    Order ordered_by_ = Order::none;
    uint32_t parts_ = 1;
    bool is_order_made_ = false;
    hlt::EventOrder order_, part_order_{hlt::event_tables{}};
    const hlt::batch_header* header_;
    std::vector<std::atomic<uint64_t>> nanoseconds_;
    std::atomic<uint64_t> progress_{0};
};

// A fixed set of threads that share the blocks of one stage. The calling thread is one of them.
class Executor {
  public:
    explicit Executor(uint32_t threads)
    {
        if (threads == 0 || threads > 1024) throw std::invalid_argument("threads must be 1 to 1024");
        records_.resize(threads);
        for (uint32_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
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

    void run(Program& program, bool profile, bool record)
    {
        if (!program.serves(threads())) throw std::invalid_argument("a program made for fewer threads");
        const std::lock_guard one_program_at_a_time(running_);
        program.begin();
        std::vector<Record> of_program;
        std::optional<Recorder> recorder;
        if (record) recorder.emplace(of_program, 0, 0);
        for (std::size_t first = 0; first < program.size();) {
            const std::size_t last = program.end_of_stage(first);
            run_stage({&program, first, last, program.blocks(first), profile, record});
            first = last;
        }
        if (!record) return;
        recorder->next(whole_program, 0);
        records_[0].push_back(of_program.back());
    }

    // What the threads did in the programs that were run with `record` since the last call.
    nb::bytes take_records()
    {
        const std::lock_guard one_program_at_a_time(running_);
        std::vector<Record> all;
        for (std::vector<Record>& of_thread : records_) {
            all.insert(all.end(), of_thread.begin(), of_thread.end());
            of_thread.clear();
        }
        return nb::bytes(reinterpret_cast<const char*>(all.data()), all.size() * sizeof(Record));
    }

  private:
    struct Stage {
        Program* program = nullptr;
        std::size_t first = 0, last = 0;
        uint32_t blocks = 0;
        bool profile = false, record = false;
    };

    void run_stage(const Stage& stage)
    {
        if (workers_.empty() || stage.blocks == 1) {
            stage.program->put_in_order(stage.first, false);
            next_.store(0, std::memory_order_relaxed);
            take_blocks(stage, 0);
            return;
        }
        stage.program->put_in_order(stage.first, true);
        {
            const std::lock_guard lock(mutex_);
            stage_ = stage;
            next_.store(0, std::memory_order_relaxed);
            busy_ = static_cast<uint32_t>(workers_.size());
            ++generation_;
        }
        wake_.notify_all();
        take_blocks(stage, 0);
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return busy_ == 0; });
    }

    void take_blocks(const Stage& stage, uint32_t thread)
    {
        stage.program->enter(thread);
        // A stage of one step is measured as a whole: a block may be shorter than a clock reading.
        const bool is_one_step = stage.last - stage.first == 1;
        const uint64_t before = stage.profile && is_one_step ? thread_nanoseconds() : 0;
        std::vector<Record> of_stage;
        uint32_t taken = 0;
        std::optional<Recorder> recorder;
        if (stage.record) recorder.emplace(of_stage, thread, stage.first);
        for (;; ++taken) {
            const uint32_t number = next_.fetch_add(1, std::memory_order_relaxed);
            if (number >= stage.blocks) break;
            const uint32_t block = stage.program->block_at(number);
            if (stage.record)
                stage.program->run_block_recorded(stage.first, stage.last, block, thread, records_[thread]);
            else if (stage.profile && !is_one_step)
                stage.program->run_block_profiled(stage.first, stage.last, block, thread);
            else
                stage.program->run_block(stage.first, stage.last, block, thread);
        }
        if (stage.profile && is_one_step) stage.program->add_nanoseconds(stage.first, thread_nanoseconds() - before);
        if (!stage.record) return;
        recorder->next(whole_stage, taken);
        records_[thread].push_back(of_stage.back());
    }

    void work(uint32_t thread)
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
            take_blocks(stage, thread);
            {
                const std::lock_guard lock(mutex_);
                --busy_;
            }
            done_.notify_one();
        }
    }

    std::vector<std::thread> workers_;
    std::vector<std::vector<Record>> records_;  // of each thread
    std::mutex running_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::atomic<uint32_t> next_{0};
    Stage stage_;
    uint64_t generation_ = 0;
    uint32_t busy_ = 0;
    bool stopping_ = false;
};

// The tables and the programs of a direct workspace, for compiled code of other modules. Python keeps both alive.
class DirectBatch {
  public:
    DirectBatch(const nb::list& programs, TableWriter& tables,
                const nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& input)
        : tables_(tables), functions_{this, input.data(), input.shape(0), &write_tables, &compute}
    {
        for (const nb::handle each : programs) {
            programs_.push_back(&nb::cast<Program&>(each));
            if (!programs_.back()->serves(1)) throw std::invalid_argument("a program without memory for a thread");
        }
    }
    DirectBatch(const DirectBatch&) = delete;
    DirectBatch& operator=(const DirectBatch&) = delete;

    std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(&functions_); }

  private:
    static bool write_tables(void* self, uint32_t n_events, const hlt::mfp_place* places, std::size_t n_places)
    {
        auto& batch = *static_cast<DirectBatch*>(self);
        try {
            batch.tables_.fill({{n_events, 0, places, n_places}}, batch.functions_.input, batch.functions_.input_bytes);
        } catch (const nb::builtin_exception&) {
            return false;
        }
        return true;
    }

    static void compute(void* self)
    {
        for (Program* const program : static_cast<DirectBatch*>(self)->programs_) program->run_directly();
    }

    TableWriter& tables_;
    std::vector<Program*> programs_;
    hlt::direct_batch functions_;
};

}  // namespace

NB_MODULE(_executor, module)
{
    // nanobind would report objects that live until the process ends as leaks.
    nb::set_leak_warnings(false);
    module.doc() = "Runs kernels on the CPU";
    add_batch_tables(module);

    nb::class_<Program>(module, "Program", "Kernels with their parameters, in order")
        .def(nb::init<const std::vector<StepTuple>&, uint64_t, const std::vector<PlacementTuple>&,
                      const std::vector<PointerTuple>&, const std::vector<uint64_t>&, std::size_t,
                      const std::vector<CopyTuple>&, std::size_t, const TablesTuple&, const std::vector<PartsTuple>&>(),
             nb::arg("steps"), nb::arg("batch_header"), nb::arg("placements") = std::vector<PlacementTuple>{},
             nb::arg("thread_pointers") = std::vector<PointerTuple>{},
             nb::arg("thread_memory") = std::vector<uint64_t>{}, nb::arg("thread_bytes") = 0,
             nb::arg("thread_copies") = std::vector<CopyTuple>{}, nb::arg("threads") = 1,
             nb::arg("tables") = TablesTuple{}, nb::arg("parts") = std::vector<PartsTuple>{})
        .def_prop_ro("progress", &Program::progress,
                     "Blocks that have been through a stage, in all runs; may be read while the program runs")
        .def("run_directly", &Program::run_directly, nb::call_guard<nb::gil_scoped_release>(),
             "Run one batch in the calling thread")
        .def("take_nanoseconds", &Program::take_nanoseconds,
             "Processor time of each step since the last call, profiled runs only");

    nb::class_<DirectBatch>(module, "DirectBatch", "The batch of a direct workspace, for compiled code")
        .def(nb::init<const nb::list&, TableWriter&,
                      const nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>&>(),
             nb::arg("programs"), nb::arg("tables"), nb::arg("input"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             nb::keep_alive<1, 4>())
        .def_prop_ro("address", &DirectBatch::address, "Address of its hlt::direct_batch");

    module.def(
        "event_order",
        [](const TablesTuple& tables, uint32_t n_events) {
            hlt::EventOrder order(tables_of(tables));
            order.make(n_events);
            std::vector<uint32_t> events(n_events);
            for (uint32_t i = 0; i < n_events; ++i) events[i] = order[i];
            return events;
        },
        nb::arg("tables"), nb::arg("n_events"), "The order in which several threads take the events of a batch");

    nb::class_<Executor>(module, "Executor", "Threads that run programs")
        .def(nb::init<uint32_t>(), nb::arg("threads"))
        .def_prop_ro("threads", &Executor::threads)
        .def("run", &Executor::run, nb::arg("program"), nb::arg("profile") = false, nb::arg("record") = false,
             nb::call_guard<nb::gil_scoped_release>(), "Run one batch; returns when it is done")
        .def("take_records", &Executor::take_records, "What each thread did in the recorded runs since the last call");
}
