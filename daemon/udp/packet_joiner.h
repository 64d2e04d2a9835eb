// Joins the packets of each source into one MFP of a MEP. No sockets, no clock, no threads: the caller has a lock.
//
// The packets of a burst are numbered by source from 0 on; packet i of each source has the same events. The numbers are
// cut into ranges of `packets_per_mep`, and each range becomes one MEP. The banks of a packet are copied once, to the
// end of the banks of its source; types and sizes go to their places in the arrays. All memory is allocated at the
// start: `open_meps` MEPs that are being joined, and as many that wait for the event builder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "../../protocol/udp_datagram.h"

struct JoinLimits {
    uint32_t packets_per_mep, events_per_packet, open_meps, datagram_bytes;
    int64_t flush_ns;  // from the first packet of a MEP until it is closed with what has arrived
};

// An IPv6 address, or an IPv4 address mapped into IPv6.
using SenderAddress = std::array<uint8_t, 16>;

// Why a datagram is refused. The order is that of UdpRefusal in vocabulary.py.
enum class Refused : uint8_t {
    unknown_sender,
    truncated,
    bad_magic,
    bad_version,
    bad_size,
    malformed,
    bad_mfp,
    foreign_source,
    foreign_run,
    other_burst,
    late,
    duplicate,
    ahead,
    mismatch,
    no_room,
    n_reasons,
};

// The packets of one source in a MEP, and the frame that they become.
struct JoinedPart {
    struct Packet {
        uint32_t offset = 0, size = 0;  // of its banks
        bool has_arrived = false;
    };

    std::unique_ptr<uint8_t[]> bytes;  // space of the headers and arrays, then the banks
    std::vector<Packet> packets;
    uint32_t n_packets = 0, n_bank_bytes = 0;
    uint32_t highest = 0;  // highest place of an arrived packet
    bool is_in_order = true, is_complete = false;
    bool is_laid_out = false;  // by `finish`
    uint8_t version = 0, align = 0;
    std::size_t frame_at = 0, frame_size = 0;  // set by `finish`
};

struct JoinedMep {
    std::vector<JoinedPart> parts;  // by column of the sources
    uint32_t run = 0, burst = 0, first_packet = 0, n_packets = 0, n_events = 0;
    uint64_t first_event = 0;
    int64_t first_ns = 0;
    uint32_t n_complete = 0;  // parts
};

struct BurstCounts {
    uint32_t burst = 0;
    uint64_t packets = 0, missing = 0, refused = 0, meps = 0;
};

class PacketJoiner {
  public:
    // Throws std::invalid_argument: no sources, or a limit is 0, or a MEP would have more than 65,535 events.
    PacketJoiner(const JoinLimits& limits, std::vector<uint16_t> sources);

    // Allows a sender to send these sources. Throws std::invalid_argument for another source than those of the joiner.
    void allow(const SenderAddress& address, const std::vector<uint16_t>& sources);

    // Takes a datagram, or counts why it is refused.
    void take(const SenderAddress& address, const uint8_t* bytes, std::size_t size, int64_t now_ns);

    // Closes the MEPs whose time is over.
    void tick(int64_t now_ns);

    // Time of the next deadline; INT64_MAX without open MEPs.
    int64_t next_deadline_ns() const;

    // The next MEP that is closed, or null. The caller has its memory until `give_back`.
    JoinedMep* next_ready();
    void give_back(JoinedMep* mep);
    bool has_ready() const { return !ready_.empty(); }
    JoinedMep& first_ready() { return *ready_.front(); }

    // Writes the headers and puts reordered banks in order. `parts` without a packet stay without a frame. It may be
    // called again, for another id or token. Needs no lock.
    void finish(JoinedMep& mep, uint64_t mep_id, uint64_t token) const;

    // Accepts only this run. Without a run, that of the next datagram of a sender is accepted, unless it has ended.
    void accept_run(uint32_t run);
    // Drops all that is left of the run, and counts it as `discarded`.
    void leave_run();
    // The same at the end of a run: its datagrams are `late` until `reopen_run`.
    void end_run();
    // Accepts a run that has ended; 0: all of them.
    void reopen_run(uint32_t run);
    bool has_run() const { return has_run_; }
    uint32_t run() const { return run_; }

    // The run whose first packet ended the current one after a silence; -1: none has.
    int64_t following_run() const { return following_run_; }

    // True if all sources have announced the end of the run, or another run has begun, and no MEP is open or ready.
    bool is_run_over() const { return run_ended_ && ready_.empty() && entries_.empty(); }

    const std::vector<uint16_t>& sources() const { return sources_; }
    std::size_t nbytes() const { return meps_.size() * sources_.size() * part_bytes_; }

    // Counters since the start. Datagrams that were taken are in a MEP that was closed or is open, or `discarded`.
    std::array<uint64_t, static_cast<std::size_t>(Refused::n_reasons)> refused{};
    uint64_t packets = 0, nbytes_taken = 0, meps_closed = 0, meps_lost = 0, discarded = 0;
    std::vector<uint64_t> missing;   // packets by column
    std::deque<BurstCounts> bursts;  // that have ended, at most `most_bursts`
    uint32_t burst() const { return burst_; }

  private:
    static constexpr std::size_t most_bursts = 16, most_ended_runs = 16;

    // A range of packets; `mep` is null before its first packet, and after it was closed.
    struct Entry {
        uint32_t first, end;
        JoinedMep* mep;
        bool is_closed;
    };

    void refuse(Refused reason);
    Refused check(const std::vector<bool>& allowed, const Datagram& datagram, int64_t now_ns, std::size_t& column);
    Refused check_run(const Datagram& datagram, int64_t now_ns);
    Refused admit_burst(const Datagram& datagram, std::size_t column, int64_t now_ns);
    bool is_silent(int64_t now_ns) const { return now_ns - last_taken_ns_ >= limits_.flush_ns; }
    bool leads_alone(uint32_t sequence, std::size_t column, int64_t now_ns);
    void claim_events(const Datagram& datagram, std::size_t column);
    uint64_t event_of_packet_0(const Datagram& datagram) const;
    uint32_t expected(std::size_t column, uint32_t first, uint32_t end) const;
    void begin_burst(const Datagram& datagram);
    void end_burst();
    void end_burst_if_over();
    Entry* entry_of(uint32_t sequence, std::size_t column, int64_t now_ns, Refused& reason);
    void add_entry(uint32_t first);
    Refused join(Entry& entry, const Datagram& datagram, std::size_t column, int64_t now_ns);
    JoinedMep* new_mep(const Entry& entry, const Datagram& datagram, int64_t now_ns);
    void note_end(const Datagram& datagram, std::size_t column);
    void close_if_complete(Entry& entry, std::size_t column);
    void close(Entry& entry, bool cuts);
    void close_all(bool cuts);
    void drop_closed();
    int64_t deadline_ns(const Entry& entry) const;
    void order_banks(JoinedPart& part) const;

    JoinLimits limits_;
    std::vector<uint16_t> sources_;
    std::vector<int32_t> columns_;  // by source id; -1 for another source
    struct Hash {
        std::size_t operator()(const SenderAddress& address) const;
    };
    std::unordered_map<SenderAddress, std::vector<bool>, Hash> senders_;
    std::size_t head_size_, part_bytes_;
    std::vector<JoinedMep> meps_;
    std::vector<JoinedMep*> free_;
    std::deque<JoinedMep*> ready_;
    std::deque<Entry> entries_;    // open ranges and closed ones between them, ascending and without gaps
    uint32_t next_packet_ = 0;     // where the next range begins
    std::vector<uint32_t> ended_;  // by column: number of packets of the burst; 0: not told
    std::size_t n_ended_ = 0, n_run_ended_ = 0;
    std::vector<bool> run_end_of_;
    // What a source says of the burst. One source alone must not push out the others.
    struct Claim {
        uint32_t seen = 0;         // the packet after its youngest one that was taken
        int64_t taken_ns = 0;      // when its last packet was taken
        uint64_t first_event = 0;  // of packet 0, by its last packet
        bool has_event = false;
        uint32_t refused = 0;  // its last packet that was `ahead`, and when it came
        int64_t refused_ns = 0;
        bool has_refused = false;
        uint32_t burst = 0;  // that it wants to begin, and since when
        int64_t burst_ns = 0;
        bool has_burst = false;
    };
    std::vector<Claim> claims_;     // by column
    bool has_first_event_ = false;  // two sources agree in `first_event_`
    uint64_t first_event_ = 0;      // of packet 0
    std::deque<uint32_t> ended_runs_;
    int64_t following_run_ = -1, burst_before_ = -1;
    bool has_run_ = false, has_burst_ = false, run_ended_ = false, is_reported_ = false;
    uint32_t run_ = 0, burst_ = 0;
    int64_t last_taken_ns_ = 0;
    uint64_t refused_before_ = 0, missing_before_ = 0, packets_before_ = 0, closed_before_ = 0;
};
