// The joiner without sockets and with sanitizers, for tests. Reads steps from the standard input, as in joiner.py, and
// writes the frames of the closed MEPs and the counters at the end.
#include <cstdio>
#include <cstring>
#include <vector>

#include "../../../daemon/udp/packet_joiner.h"

namespace {

template <class T>
bool get(T& value)
{
    return std::fread(&value, sizeof value, 1, stdin) == 1;
}

template <class T>
void put(const T& value)
{
    std::fwrite(&value, sizeof value, 1, stdout);
}

void hand_over(PacketJoiner& joiner, uint64_t& mep_id)
{
    while (JoinedMep* const mep = joiner.next_ready()) {
        // A MEP that was computed before may get another id and token.
        joiner.finish(*mep, mep_id + 1000, 1);
        joiner.finish(*mep, mep_id++, 77);
        for (const JoinedPart& part : mep->parts) {
            if (!part.frame_size) continue;
            put(static_cast<uint32_t>(part.frame_size));
            std::fwrite(part.bytes.get() + part.frame_at, part.frame_size, 1, stdout);
        }
        joiner.give_back(mep);
    }
}

}  // namespace

int main()
{
    uint32_t packets_per_mep, events_per_packet, open_meps, datagram_bytes, n_sources;
    int64_t flush_ns;
    get(packets_per_mep), get(events_per_packet), get(open_meps), get(datagram_bytes), get(flush_ns), get(n_sources);
    std::vector<uint16_t> sources(n_sources);
    for (uint16_t& source : sources) get(source);
    PacketJoiner joiner({packets_per_mep, events_per_packet, open_meps, datagram_bytes, flush_ns}, sources);
    // The sender 127.0.0.1 + i has the source i.
    for (uint32_t i = 0; i < n_sources; ++i) {
        SenderAddress address{};
        address[15] = static_cast<uint8_t>(i + 1);
        joiner.allow(address, {sources[i]});
    }
    uint64_t mep_id = 0;
    // A step: kind (0: datagram, 1: tick, 2: hand over, 3: leave the run, 4: end it, 5: reopen all runs), time, sender,
    // size, bytes.
    uint8_t kind;
    while (get(kind)) {
        int64_t now_ns;
        uint8_t sender;
        uint32_t size;
        get(now_ns), get(sender), get(size);
        // Allocated with its exact size, so that a sanitizer finds a read beyond its end.
        std::vector<uint8_t> bytes(size);
        bytes.shrink_to_fit();
        if (size && std::fread(bytes.data(), size, 1, stdin) != 1) return 2;
        SenderAddress address{};
        address[15] = sender;
        if (kind == 0) joiner.take(address, bytes.data(), size, now_ns);
        if (kind == 1) joiner.tick(now_ns);
        if (kind == 2) hand_over(joiner, mep_id);
        if (kind == 3) joiner.leave_run();
        if (kind == 4 && joiner.is_run_over()) joiner.end_run();
        if (kind == 5) joiner.reopen_run(0);
    }
    hand_over(joiner, mep_id);
    put(uint32_t{0});
    for (const uint64_t n : joiner.refused) put(n);
    for (const uint64_t n : joiner.missing) put(n);
    put(joiner.packets), put(joiner.meps_closed), put(joiner.meps_lost), put(joiner.discarded);
    put(static_cast<uint32_t>(joiner.bursts.size()));
    for (const BurstCounts& each : joiner.bursts)
        put(uint64_t{each.burst}), put(each.packets), put(each.missing), put(each.refused), put(each.meps);
}
