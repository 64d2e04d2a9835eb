// Executes kernels in PTX: the warps of a block in turn, each until the next barrier, its lanes in lockstep.
//
// The lanes of a warp diverge at a branch and meet again where all its paths meet (the immediate post-dominator), as on
// GPUs and in their simulators. Other lanes do not wait for lanes that leave several loops at once (control_flow.py).
// The order of warps, of the sides of a branch, and of the lanes of an atomic access is unspecified; `backward`
// reverses all three. machine.py translates a kernel to instructions and calls the functions at the end.
#include <array>
#include <memory>

#include "arithmetic.h"
#include "conflicts.h"
#include "lanes.h"
#include "memory.h"
#include "warp.h"

namespace ptx {

enum class Special : uint32_t { tid, ntid, ctaid, nctaid, laneid, warpid, mask_lt, mask_le, mask_eq, mask_ge, mask_gt };
constexpr uint32_t n_specials = 11;

/// A kernel and the parameters of its launch (LAUNCH in machine.py).
struct Launch {
    const Instruction* instructions;
    uint64_t n_instructions;
    const Meeting* meetings;       // of each instruction
    const uint64_t* first_values;  // of the slots
    uint64_t n_slots;
    const int32_t* special_slots;  // by Special, -1 for those that the kernel does not read
    const Variable* shared_variables;
    uint64_t n_shared_variables, shared_bytes;
    const Variable* local_variables;
    uint64_t n_local_variables, local_bytes;
    const std::byte* parameters;
    uint64_t parameter_bytes;
    uint64_t blocks, threads, backward;
    uint64_t max_instructions;  // of a block
    Counts* counts;             // by instruction
    uint64_t* block_instructions;
    uint64_t* block_barriers;
    uint64_t* block_paths;  // between two barriers the warp that executes most counts
    uint64_t traced_block;  // no block if there is none of this number
};

/// A word of the trace: a barrier of the block, or the number of a warp above the lanes that execute an instruction.
constexpr uint64_t traced_barrier = ~uint64_t{0};

enum class Flow : uint8_t { handler, load, store, atomic, branch, exit, block_barrier, warp_barrier };

struct Operation {
    std::string name;
    Flow flow;
    Handler handler = nullptr;
    AtomicFunction atomic = nullptr;
};

const std::vector<Operation>& operations()
{
    static const std::vector<Operation> all = [] {
        std::vector<Operation> list{{"ld", Flow::load},
                                    {"st", Flow::store},
                                    {"bra", Flow::branch},
                                    {"ret", Flow::exit},
                                    {"bar.sync", Flow::block_barrier},
                                    {"bar.warp.sync", Flow::warp_barrier}};
        Handlers handlers;
        add_arithmetic(handlers);
        add_lane_operations(handlers);
        for (const auto& [name, handler] : handlers) list.push_back({name, Flow::handler, handler});
        AtomicFunctions functions;
        add_atomics(functions);
        for (const auto& [name, function] : functions) list.push_back({name, Flow::atomic, nullptr, function});
        return list;
    }();
    return all;
}

class Machine {
  public:
    Memory memory;
    std::string fault;
    int32_t fault_pc = -1;
    uint32_t fault_block = 0, fault_warp = 0;
    std::vector<Conflict> found;
    std::vector<uint64_t> trace;

    bool run(const Launch& launch)
    {
        launch_ = &launch;
        fault_pc = -1;
        trace.clear();
        memory.prepare({launch.shared_variables, launch.shared_variables + launch.n_shared_variables},
                       launch.shared_bytes, {launch.local_variables, launch.local_variables + launch.n_local_variables},
                       launch.parameters, launch.parameter_bytes);
        memory.conflicts.begin_launch();
        bool done = true;
        try {
            for (block_ = 0; block_ < launch.blocks; ++block_) run_block();
        } catch (const Fault& error) {
            fault = error.what();
            fault_block = static_cast<uint32_t>(block_);
            done = false;
        }
        found = memory.conflicts.found();
        return done;
    }

  private:
    void run_block()
    {
        const uint64_t n_warps = (launch_->threads + warp_size - 1) / warp_size;
        warps_.resize(n_warps);
        memory.begin_block();
        memory.conflicts.begin_block(static_cast<uint32_t>(block_));
        executed_ = 0;
        for (uint64_t i = 0; i < n_warps; ++i) begin(warps_[i], static_cast<uint32_t>(i));
        for (;;) {
            uint64_t longest = 0;
            for (uint64_t i = 0; i < n_warps; ++i) {
                Warp& warp = warps_[launch_->backward != 0 ? n_warps - 1 - i : i];
                fault_warp = warp.index;
                warp.barrier = -1;
                const uint64_t before = executed_;
                run_warp(warp);
                longest = std::max(longest, executed_ - before);
            }
            launch_->block_paths[block_] += longest;
            if (!pass_barrier()) break;
        }
        launch_->block_instructions[block_] = executed_;
    }

    void begin(Warp& warp, uint32_t index)
    {
        warp.index = index;
        const uint64_t threads = std::min<uint64_t>(launch_->threads - index * warp_size, warp_size);
        warp.alive = threads == warp_size ? all_lanes : (1u << threads) - 1u;
        warp.phase = 0;
        warp.paths.assign(1, {0, -1, warp.alive});
        warp.registers.resize(launch_->n_slots * warp_size);
        warp.local.assign(launch_->local_bytes * warp_size, std::byte{poison});
        for (uint64_t slot = 0; slot < launch_->n_slots; ++slot)
            std::fill_n(warp.slot(static_cast<int32_t>(slot)), warp_size, launch_->first_values[slot]);
        for (uint32_t lane = 0; lane < warp_size; ++lane) {
            const uint32_t bit = 1u << lane, below = bit - 1u;
            const std::array<uint64_t, n_specials> values{index * warp_size + lane,
                                                          launch_->threads,
                                                          block_,
                                                          launch_->blocks,
                                                          lane,
                                                          index,
                                                          below,
                                                          below | bit,
                                                          bit,
                                                          ~below & all_lanes,
                                                          ~(below | bit)};
            for (uint32_t special = 0; special < n_specials; ++special)
                if (launch_->special_slots[special] >= 0)
                    warp.slot(launch_->special_slots[special])[lane] = values[special];
        }
    }

    // Releases the warps of the block if all wait; false if all have ended.
    bool pass_barrier()
    {
        uint64_t waiting = 0;
        for (const Warp& warp : warps_) waiting += warp.barrier >= 0;
        if (waiting == 0) return false;
        for (const Warp& warp : warps_) {
            fault_pc = warp.barrier;
            fault_warp = warp.index;
            if (warp.barrier < 0) throw Fault("a warp has ended while others wait at a barrier of the block");
            if (warp.barrier != warps_[0].barrier) throw Fault("warps wait at different barriers of the block");
        }
        memory.conflicts.pass_barrier();
        ++launch_->block_barriers[block_];
        if (block_ == launch_->traced_block) trace.push_back(traced_barrier);
        return true;
    }

    void run_warp(Warp& warp)
    {
        while (!warp.paths.empty()) {
            Path& path = warp.paths.back();
            if (path.mask == 0 || path.pc == path.reconvergence) {
                warp.paths.pop_back();
                continue;
            }
            fault_pc = path.pc;
            const Instruction& instruction = launch_->instructions[path.pc];
            const uint32_t mask = path.mask & guard(warp, instruction);
            Counts& counts = launch_->counts[path.pc];
            ++counts.executions;
            counts.lanes += static_cast<uint64_t>(__builtin_popcount(mask));
            if (block_ == launch_->traced_block) trace.push_back(uint64_t{warp.index} << 32 | mask);
            if (++executed_ > launch_->max_instructions) throw Fault("the block does not end");
            const Operation& operation = operations()[instruction.operation];
            if (operation.flow == Flow::branch) {
                branch(warp, instruction, mask);
                continue;
            }
            ++path.pc;
            switch (operation.flow) {
            case Flow::handler: operation.handler(warp, instruction, mask); break;
            case Flow::load: load(warp, instruction, mask); break;
            case Flow::store: store(warp, instruction, mask); break;
            case Flow::atomic: change(warp, instruction, mask, operation.atomic); break;
            case Flow::exit:
                warp.alive &= ~mask;
                for (Path& other : warp.paths) other.mask &= ~mask;
                break;
            case Flow::warp_barrier:
                check_members(warp, instruction.operands[0], mask);
                if (mask == warp.alive) ++warp.phase;
                break;
            case Flow::block_barrier:
                if (mask != warp.alive) throw Fault("a barrier of the block that not all lanes of the warp come to");
                warp.barrier = path.pc - 1;
                return;
            case Flow::branch: break;
            }
        }
    }

    static uint32_t guard(Warp& warp, const Instruction& instruction)
    {
        if (instruction.guard < 0) return all_lanes;
        const uint64_t* const predicate = warp.slot(instruction.guard);
        uint32_t mask = 0;
        for (uint32_t lane = 0; lane < warp_size; ++lane)
            mask |= static_cast<uint32_t>((predicate[lane] != 0) != (instruction.guard_negated != 0)) << lane;
        return mask;
    }

    void branch(Warp& warp, const Instruction& instruction, uint32_t taken)
    {
        const int32_t pc = warp.paths.back().pc;
        uint32_t others = warp.paths.back().mask & ~taken;
        const uint32_t leaving = launch_->meetings[pc].leaving;
        if ((leaving & jump_leaves) != 0 && taken != 0) {
            leave(warp, instruction.target, taken);
            taken = 0;
        }
        if ((leaving & fall_leaves) != 0 && others != 0) {
            leave(warp, pc + 1, others);
            others = 0;
        }
        Path& path = warp.paths.back();
        if (taken == 0 || others == 0) {
            path.pc = taken == 0 ? pc + 1 : instruction.target;
            return;
        }
        const Path falling{pc + 1, instruction.reconvergence, others};
        const Path jumping{instruction.target, instruction.reconvergence, taken};
        if (instruction.reconvergence < 0)
            path.mask = 0;
        else
            path.pc = instruction.reconvergence;
        warp.paths.push_back(launch_->backward != 0 ? falling : jumping);
        warp.paths.push_back(launch_->backward != 0 ? jumping : falling);
    }

    // Moves lanes to `target`, out of all paths that do not lead there; the other lanes do not wait for them.
    void leave(Warp& warp, int32_t target, uint32_t lanes)
    {
        std::size_t i = warp.paths.size();
        for (;;) {
            Path& path = warp.paths[--i];
            path.mask &= ~lanes;
            if (i == 0 || path.reconvergence < 0 || comes_to(target, path.reconvergence)) break;
        }
        const int32_t meeting = warp.paths[i].reconvergence;
        // If the path below waits at the target, the lanes have arrived.
        if (meeting != target || meeting < 0)
            warp.paths.insert(warp.paths.begin() + static_cast<std::ptrdiff_t>(i), {target, meeting, lanes});
    }

    // Whether lanes at `pc`, the start of a block, reach a meeting point if they leave no loops.
    bool comes_to(int32_t pc, int32_t place) const
    {
        while (pc >= 0 && pc != place) pc = launch_->meetings[pc].next;
        return pc == place;
    }

    // ---- memory

    void load(Warp& warp, const Instruction& instruction, uint32_t mask)
    {
        begin_access();
        uint64_t words[4];
        for_lanes(mask, [&](uint32_t lane) {
            const Place place = access(warp, lane, instruction, Kind::read, nullptr);
            std::memset(words, 0, sizeof words);
            for (uint32_t i = 0; i < instruction.count; ++i) {
                std::memcpy(&words[i], place.bytes + i * instruction.bytes, instruction.bytes);
                const uint32_t unused = 64u - 8u * instruction.bytes;
                if (instruction.is_signed)
                    words[i] = static_cast<uint64_t>(static_cast<int64_t>(words[i] << unused) >> unused);
                if (instruction.results[i] >= 0) warp.slot(instruction.results[i])[lane] = words[i];
            }
        });
        end_access();
    }

    void store(Warp& warp, const Instruction& instruction, uint32_t mask)
    {
        begin_access();
        std::byte bytes[32];
        const auto value = [&](uint32_t lane) {
            for (uint32_t i = 0; i < instruction.count; ++i)
                std::memcpy(bytes + i * instruction.bytes, warp.slot(instruction.operands[1 + i]) + lane,
                            instruction.bytes);
        };
        for_lanes(mask, [&](uint32_t lane) {
            value(lane);
            const Place place = access(warp, lane, instruction, Kind::write, bytes);
            if (place.space == Space::param) throw Fault("a write to the parameters");
            std::memcpy(place.bytes, bytes, static_cast<std::size_t>(instruction.bytes) * instruction.count);
        });
        end_access();
    }

    void change(Warp& warp, const Instruction& instruction, uint32_t mask, AtomicFunction function)
    {
        begin_access();
        for (uint32_t i = 0; i < warp_size; ++i) {
            const uint32_t lane = launch_->backward != 0 ? warp_size - 1u - i : i;
            if (!(mask >> lane & 1u)) continue;
            const Place place = access(warp, lane, instruction, Kind::atomic, nullptr);
            if (place.histories == nullptr) throw Fault("an atomic access to memory that no other thread sees");
            uint64_t old = 0;
            std::memcpy(&old, place.bytes, instruction.bytes);
            const auto operand = [&](uint32_t number) {
                return instruction.operands[number] < 0 ? 0 : warp.slot(instruction.operands[number])[lane];
            };
            const uint64_t changed = function(old, operand(1), operand(2));
            std::memcpy(place.bytes, &changed, instruction.bytes);
            if (instruction.results[0] >= 0) warp.slot(instruction.results[0])[lane] = old;
        }
        end_access();
    }

    Place access(Warp& warp, uint32_t lane, const Instruction& instruction, Kind kind, const std::byte* written)
    {
        const uint64_t address = warp.slot(instruction.operands[0])[lane] + static_cast<uint64_t>(instruction.offset);
        const Place place = memory.place_of(warp, lane, instruction, narrowed(instruction.space, address));
        const uint32_t bytes = static_cast<uint32_t>(instruction.bytes) * instruction.count;
        if (place.space == Space::local) launch_->counts[fault_pc].local_bytes += bytes;
        if (place.histories == nullptr) return place;
        const bool equal = written != nullptr && std::memcmp(place.bytes, written, bytes) == 0;
        for (uint32_t i = 0; i < bytes; ++i)
            memory.conflicts.record(place.histories->of(place.offset + i), kind, place.space, warp, lane, fault_pc,
                                    place.offset + i, equal, instruction.non_coherent != 0);
        if (place.space == Space::global) {
            place.region->touch(reinterpret_cast<uint64_t>(place.bytes), kind != Kind::write, kind != Kind::read);
            sectors_[n_sectors_++] = reinterpret_cast<uint64_t>(place.bytes) / sector_bytes;
            launch_->counts[fault_pc].bytes += bytes;
        }
        return place;
    }

    // Addresses in shared memory may be in 32-bit registers.
    static uint64_t narrowed(Space space, uint64_t address)
    {
        return space == Space::shared ? address & 0xffffffffu : address;
    }

    void begin_access() { n_sectors_ = 0; }
    void end_access()
    {
        std::sort(sectors_.begin(), sectors_.begin() + n_sectors_);
        launch_->counts[fault_pc].sectors +=
            static_cast<uint64_t>(std::unique(sectors_.begin(), sectors_.begin() + n_sectors_) - sectors_.begin());
    }

    const Launch* launch_ = nullptr;
    uint64_t block_ = 0, executed_ = 0;
    std::vector<Warp> warps_;
    std::array<uint64_t, warp_size> sectors_{};
    std::ptrdiff_t n_sectors_ = 0;
};

}  // namespace ptx

extern "C" {

/// The number of an operation, -1 if there is no operation of this name.
int32_t ptx_operation(const char* name)
{
    const std::vector<ptx::Operation>& all = ptx::operations();
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].name == name) return static_cast<int32_t>(i);
    return -1;
}

ptx::Machine* ptx_create() { return new ptx::Machine; }
void ptx_destroy(ptx::Machine* machine) { delete machine; }
void ptx_add_region(ptx::Machine* machine, uint64_t begin, uint64_t bytes) { machine->memory.add_region(begin, bytes); }
int ptx_launch(ptx::Machine* machine, const ptx::Launch* launch) { return machine->run(*launch) ? 0 : 1; }
void ptx_touched(ptx::Machine* machine, uint64_t begin, ptx::Touched* sectors)
{
    *sectors = machine->memory.touched(begin);
}
const char* ptx_fault(ptx::Machine* machine) { return machine->fault.c_str(); }
int32_t ptx_fault_pc(ptx::Machine* machine) { return machine->fault_pc; }
uint32_t ptx_fault_block(ptx::Machine* machine) { return machine->fault_block; }
uint32_t ptx_fault_warp(ptx::Machine* machine) { return machine->fault_warp; }
uint64_t ptx_conflicts(ptx::Machine* machine) { return machine->found.size(); }
uint64_t ptx_trace_size(ptx::Machine* machine) { return machine->trace.size(); }
const uint64_t* ptx_trace(ptx::Machine* machine) { return machine->trace.data(); }
const ptx::Conflict* ptx_conflict(ptx::Machine* machine) { return machine->found.data(); }

}  // extern "C"
