// The bare loop, the baseline of rich_latency.py: one thread that receives datagrams, runs the kernels of a chain on
// them and sends the results as one datagram.
//
// A library: rich_bare_loop.py makes the memory of a batch and the parameters of the kernels, and calls `bare_loop`. A
// packet is received straight into the input of the batch, behind its header. The loop writes the tables of a batch
// with one source, each packet a MEP of its own. It checks nothing, promises nothing and keeps nothing.
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "framework/generated/batch_types.h"
#include "framework/generated/launch_types.h"
#include "little_endian.h"
#include "udp_datagram.h"

namespace {

// Longest wait for a packet of a batch: the sender has ended.
constexpr int longest_wait_ms = 3000;

int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1'000'000'000) + now.tv_nsec;
}

}  // namespace

extern "C" {

struct BareStep {
    void (*kernel)(const void* parameters, uint32_t block);
    const void* parameters;
    hlt::grid grid;
};

// A pointer in the parameters of a step to memory that one fused stage uses (cpu_executor.cpp).
struct BarePointer {
    uint8_t* place;
    const uint32_t* offsets;  // of the events; null: none
    uint32_t step, divisor, per_event, times;
    uint64_t memory, stride;
};

struct BareBatch {
    const BareStep* steps;
    const BarePointer* pointers;  // by step
    hlt::batch_header* header;
    hlt::mfp_row* mfp_rows;
    hlt::row_range* mep_rows;
    hlt::event_row* event_rows;
    uint32_t* event_flags;
    uint8_t* input;
    const uint8_t* accepted;
    const uint32_t* lines;
    uint32_t n_steps, n_pointers, n_packets, packet_bytes, line_words;
};
}

namespace {

// The events of all packets in the input.
void write_tables(const BareBatch& batch)
{
    uint32_t event = 0;
    for (uint32_t i = 0; i < batch.n_packets; ++i) {
        const uint8_t* mfp = batch.input + i * batch.packet_bytes;
        const uint32_t n_events = u16_at(mfp + 2), source = u16_at(mfp + 16);
        batch.mfp_rows[i] = {i * batch.packet_bytes, source, event, n_events, mfp[19], u32_at(mfp + 4), event};
        const uint32_t of_source = source >> 11;
        hlt::row_range* const ranges = batch.mep_rows + i * hlt::n_subdetectors;
        for (uint32_t detector = 0; detector < hlt::n_subdetectors; ++detector)
            ranges[detector] = {i + (detector > of_source), detector == of_source};
        for (uint32_t index = 0; index < n_events; ++index, ++event) {
            batch.event_rows[event] = {i, index};
            batch.event_flags[event] = 0;
        }
    }
    *batch.header = {event, batch.n_packets, batch.n_packets, event};
}

uint32_t n_blocks(const BareBatch& batch, hlt::grid grid)
{
    if (grid == hlt::grid::one) return 1;
    if (grid == hlt::grid::rows) return batch.header->n_rows;
    return grid == hlt::grid::events ? batch.header->n_events : batch.header->n_fragments;
}

void compute(const BareBatch& batch)
{
    const BarePointer* pointer = batch.pointers;
    const BarePointer* const end = pointer + batch.n_pointers;
    for (uint32_t first = 0; first < batch.n_steps;) {
        uint32_t last = first + 1;
        if (batch.steps[first].grid == hlt::grid::events)
            while (last < batch.n_steps && batch.steps[last].grid == hlt::grid::events) ++last;
        const BarePointer* of_stage = pointer;
        while (pointer < end && pointer->step < last) ++pointer;
        const uint32_t blocks = n_blocks(batch, batch.steps[first].grid);
        for (uint32_t block = 0; block < blocks; ++block) {
            for (const BarePointer* each = of_stage; each < pointer; ++each) {
                const uint64_t begin = each->offsets ? each->offsets[block] / each->divisor : 0;
                const uint64_t place = (begin + uint64_t{block} * each->per_event) * each->times;
                const uint64_t address = each->memory - place * each->stride;
                std::memcpy(each->place, &address, sizeof address);
            }
            for (uint32_t step = first; step < last; ++step)
                batch.steps[step].kernel(batch.steps[step].parameters, block);
        }
        first = last;
    }
}

}  // namespace

// Computes `n_batches` batches of the datagrams of socket `in`, and sends each result on `out`, which is connected.
// `latencies` gets the nanoseconds from the first packet of each batch to the end of its send. Returns the number of
// batches: fewer if no packet comes for `longest_wait_ms`.
extern "C" uint64_t bare_loop(const BareBatch* of, int in, int out, uint64_t n_batches, int64_t* latencies)
{
    const BareBatch& batch = *of;
    const uint32_t n_packets = batch.n_packets;
    std::vector<uint8_t> heads(n_packets * datagram_header_size);
    std::vector<iovec> vectors(2 * n_packets);
    std::vector<mmsghdr> messages(n_packets);
    for (uint32_t i = 0; i < n_packets; ++i) {
        vectors[2 * i] = {heads.data() + i * datagram_header_size, datagram_header_size};
        vectors[2 * i + 1] = {batch.input + i * batch.packet_bytes, batch.packet_bytes};
        messages[i] = {};
        messages[i].msg_hdr.msg_iov = &vectors[2 * i];
        messages[i].msg_hdr.msg_iovlen = 2;
    }
    pollfd waiting{in, POLLIN, 0};
    for (uint64_t number = 0; number < n_batches; ++number) {
        int64_t first_ns = 0;
        for (uint32_t n = 0; n < n_packets;) {
            if (poll(&waiting, 1, longest_wait_ms) <= 0) return number;
            const int received = recvmmsg(in, &messages[n], n_packets - n, MSG_DONTWAIT, nullptr);
            if (received <= 0) continue;
            if (n == 0) first_ns = now_ns();
            n += static_cast<uint32_t>(received);
        }
        write_tables(batch);
        compute(batch);
        const uint32_t n_events = batch.header->n_events;
        iovec results[3] = {{const_cast<uint8_t*>(batch.accepted), n_events},
                            {const_cast<uint32_t*>(batch.lines), n_events * batch.line_words * sizeof(uint32_t)},
                            {batch.event_flags, n_events * sizeof(uint32_t)}};
        msghdr message{};
        message.msg_iov = results;
        message.msg_iovlen = 3;
        sendmsg(out, &message, MSG_NOSIGNAL);
        latencies[number] = now_ns() - first_ns;
    }
    return n_batches;
}
