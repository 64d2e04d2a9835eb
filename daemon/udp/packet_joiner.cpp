#include "packet_joiner.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "../../protocol/crc32c.h"
#include "../../protocol/transport_frame.h"

namespace {

constexpr std::size_t n_source_ids = std::size_t{1} << 16;
constexpr uint32_t most_events = 65'535;

Refused refusal_of(DatagramFault fault)
{
    switch (fault) {
    case DatagramFault::truncated: return Refused::truncated;
    case DatagramFault::bad_magic: return Refused::bad_magic;
    case DatagramFault::bad_version: return Refused::bad_version;
    case DatagramFault::bad_size: return Refused::bad_size;
    case DatagramFault::malformed: return Refused::malformed;
    default: return Refused::bad_mfp;
    }
}

constexpr Refused accepted = Refused::n_reasons;

}  // namespace

std::size_t PacketJoiner::Hash::operator()(const SenderAddress& address) const
{
    uint64_t low, high;
    std::memcpy(&low, address.data(), sizeof low);
    std::memcpy(&high, address.data() + 8, sizeof high);
    return std::hash<uint64_t>()(low * 31 + high);
}

PacketJoiner::PacketJoiner(const JoinLimits& limits, std::vector<uint16_t> sources)
    : missing(sources.size()),
      limits_(limits),
      sources_(std::move(sources)),
      columns_(n_source_ids, -1),
      ended_(sources_.size()),
      run_end_of_(sources_.size()),
      claims_(sources_.size())
{
    const uint64_t events = uint64_t{limits.packets_per_mep} * limits.events_per_packet;
    if (sources_.empty() || !events || !limits.open_meps || limits.datagram_bytes < datagram_header_size)
        throw std::invalid_argument("expected sources, packets, events, open MEPs and bytes of a datagram");
    if (events > most_events) throw std::invalid_argument("a MEP would have more than 65,535 events");
    for (std::size_t column = 0; column < sources_.size(); ++column)
        columns_[sources_[column]] = static_cast<int32_t>(column);
    head_size_ = frame_header_size + mfp_data_at(static_cast<std::size_t>(events));
    part_bytes_ = head_size_ + std::size_t{limits.packets_per_mep} * limits.datagram_bytes;
    meps_.resize(2 * std::size_t{limits.open_meps});
    for (JoinedMep& mep : meps_) {
        mep.parts.resize(sources_.size());
        for (JoinedPart& part : mep.parts) {
            // Not initialised: pages that no packet needs are never touched.
            part.bytes.reset(new uint8_t[part_bytes_]);
            part.packets.resize(limits.packets_per_mep);
        }
        free_.push_back(&mep);
    }
}

void PacketJoiner::allow(const SenderAddress& address, const std::vector<uint16_t>& sources)
{
    std::vector<bool>& allowed = senders_[address];
    allowed.resize(sources_.size());
    for (const uint16_t source : sources) {
        if (columns_[source] < 0) throw std::invalid_argument("a sender has a source that the joiner lacks");
        allowed[static_cast<std::size_t>(columns_[source])] = true;
    }
}

void PacketJoiner::refuse(Refused reason) { ++refused[static_cast<std::size_t>(reason)]; }

void PacketJoiner::take(const SenderAddress& address, const uint8_t* bytes, std::size_t size, int64_t now_ns)
{
    const auto sender = senders_.find(address);
    if (sender == senders_.end()) return refuse(Refused::unknown_sender);
    if (size > limits_.datagram_bytes) return refuse(Refused::bad_size);
    const Datagram datagram(bytes, size);
    if (datagram.fault != DatagramFault::none) return refuse(refusal_of(datagram.fault));
    std::size_t column = 0;
    if (const Refused reason = check(sender->second, datagram, now_ns, column); reason != accepted)
        return refuse(reason);
    Refused reason = accepted;
    claim_events(datagram, column);
    Entry* const entry = entry_of(datagram.sequence, column, now_ns, reason);
    if (!entry) return refuse(reason);
    reason = join(*entry, datagram, column, now_ns);
    if (reason != accepted) return refuse(reason);
    last_taken_ns_ = now_ns;
    Claim& claim = claims_[column];
    claim.seen = std::max(claim.seen, datagram.sequence + 1);
    claim.taken_ns = now_ns;
    ++packets;
    nbytes_taken += size;
    if (datagram.flags & end_of_burst) {
        note_end(datagram, column);
        // Later ranges that others have opened await nothing of this source.
        for (Entry& each : entries_) close_if_complete(each, column);
    } else {
        close_if_complete(*entry, column);
    }
    drop_closed();
    end_burst_if_over();
}

// Packets of a source in a range, by the end of the burst that it has told.
uint32_t PacketJoiner::expected(std::size_t column, uint32_t first, uint32_t end) const
{
    const uint32_t ended = ended_[column];
    return ended ? std::min(end, ended) - std::min(first, ended) : end - first;
}

void PacketJoiner::close_if_complete(Entry& entry, std::size_t column)
{
    if (!entry.mep) return;
    JoinedPart& part = entry.mep->parts[column];
    if (part.is_complete || part.n_packets < expected(column, entry.first, entry.end)) return;
    part.is_complete = true;
    if (++entry.mep->n_complete == sources_.size()) close(entry, true);
}

Refused PacketJoiner::check(const std::vector<bool>& allowed, const Datagram& datagram, int64_t now_ns,
                            std::size_t& column)
{
    const int32_t found = columns_[datagram.source];
    if (found < 0 || !allowed[static_cast<std::size_t>(found)]) return Refused::foreign_source;
    column = static_cast<std::size_t>(found);
    if (const Refused reason = check_run(datagram, now_ns); reason != accepted) return reason;
    // All packets but the last one of a burst have the same number of events: the place of a packet follows from it.
    const bool is_last = (datagram.flags & end_of_burst) != 0;
    if (datagram.n_events > limits_.events_per_packet || (!is_last && datagram.n_events < limits_.events_per_packet))
        return Refused::mismatch;
    if (!has_run_) accept_run(datagram.run);
    if (run_ended_) return Refused::late;
    if (!has_burst_ || datagram.burst != burst_) return admit_burst(datagram, column, now_ns);
    // A burst has one end: not two, and none before packets that the source has sent.
    const uint32_t end = ended_[column], next = datagram.sequence + 1;
    if (is_last && (end ? next != end : next < claims_[column].seen)) return Refused::mismatch;
    return end && next > end ? Refused::mismatch : accepted;
}

// Another run begins with a burst after a silence: the end of the current one was lost. Its MEPs are closed; datagrams
// of the new run are refused until the caller has ended the current one.
Refused PacketJoiner::check_run(const Datagram& datagram, int64_t now_ns)
{
    if (has_run_ && datagram.run == run_) return accepted;
    if (std::find(ended_runs_.begin(), ended_runs_.end(), datagram.run) != ended_runs_.end()) return Refused::late;
    if (!has_run_) return accepted;
    if (!run_ended_ && (datagram.flags & start_of_burst) != 0 && is_silent(now_ns)) {
        close_all(true);
        if (has_burst_) end_burst();
        run_ended_ = true;
        following_run_ = datagram.run;
    }
    return Refused::foreign_run;
}

Refused PacketJoiner::admit_burst(const Datagram& datagram, std::size_t column, int64_t now_ns)
{
    if (has_burst_) {
        // A source alone must not end the burst of the others by a wrong number: it needs the flag, or silence. A
        // number beyond the next one, with the flag, needs a second source that says the same, or silence.
        bool agrees = sources_.size() == 1, is_alone = sources_.size() > 1 && !claims_[column].seen;
        std::size_t n_seen = 0;
        for (std::size_t other = 0; other < claims_.size(); ++other) {
            const Claim& claim = claims_[other];
            n_seen += claim.seen != 0;
            agrees |= other != column && claim.has_burst && claim.burst == datagram.burst &&
                      now_ns - claim.burst_ns < limits_.flush_ns;
        }
        is_alone &= n_seen == 1;
        if (datagram.burst < burst_) {
            // Only another source has sent this burst, with a number far beyond: it may be wrong.
            if (!is_alone || burst_ - datagram.burst == 1 || int64_t{datagram.burst} <= burst_before_)
                return Refused::late;
        } else if (!is_silent(now_ns)) {
            const bool is_next = datagram.burst - burst_ == 1;
            const bool is_over = n_ended_ == sources_.size() || (datagram.flags & start_of_burst) != 0;
            if (!is_over || !(is_next || agrees)) {
                Claim& claim = claims_[column];
                if (is_over) claim.burst = datagram.burst, claim.burst_ns = now_ns, claim.has_burst = true;
                return Refused::other_burst;
            }
        }
        if (datagram.burst > burst_) burst_before_ = burst_;
        close_all(true);
        end_burst();
    }
    begin_burst(datagram);
    return accepted;
}

uint64_t PacketJoiner::event_of_packet_0(const Datagram& datagram) const
{
    return datagram.first_event - uint64_t{limits_.events_per_packet} * datagram.sequence;
}

// The events of a burst are those in which two sources agree.
void PacketJoiner::claim_events(const Datagram& datagram, std::size_t column)
{
    const uint64_t event = event_of_packet_0(datagram);
    claims_[column].first_event = event;
    claims_[column].has_event = true;
    if (has_first_event_ && first_event_ == event) return;
    for (std::size_t other = 0; other < claims_.size(); ++other)
        if (other != column && claims_[other].has_event && claims_[other].first_event == event) {
            has_first_event_ = true;
            first_event_ = event;
        }
}

// Whether a packet is more than half of the open MEPs ahead of all other sources that send, and none of them says the
// same.
bool PacketJoiner::leads_alone(uint32_t sequence, std::size_t column, int64_t now_ns)
{
    const uint64_t most = uint64_t{limits_.open_meps} / 2 * limits_.packets_per_mep;
    bool are_silent = true;
    for (std::size_t other = 0; other < claims_.size(); ++other) {
        const Claim& claim = claims_[other];
        if (other == column) continue;
        if (claim.seen && now_ns - claim.taken_ns < limits_.flush_ns) {
            are_silent = false;
            if (sequence < claim.seen + most) return false;
        }
        const uint64_t apart = std::max(claim.refused, sequence) - std::min(claim.refused, sequence);
        if (claim.has_refused && now_ns - claim.refused_ns < limits_.flush_ns && apart < most) return false;
    }
    if (are_silent) return false;
    claims_[column].refused = sequence;
    claims_[column].refused_ns = now_ns;
    claims_[column].has_refused = true;
    return true;
}

void PacketJoiner::begin_burst(const Datagram& datagram)
{
    has_burst_ = true;
    burst_ = datagram.burst;
    std::fill(ended_.begin(), ended_.end(), 0);
    n_ended_ = 0;
    std::fill(claims_.begin(), claims_.end(), Claim{});
    has_first_event_ = false;
    is_reported_ = false;
    const uint32_t step = limits_.packets_per_mep;
    // A burst that is received from its middle on begins there; its earlier packets were not sent to this session.
    const bool is_middle = datagram.sequence / step >= limits_.open_meps;
    next_packet_ = is_middle ? datagram.sequence - datagram.sequence % step : 0;
    packets_before_ = packets;
    missing_before_ = std::accumulate(missing.begin(), missing.end(), uint64_t{0});
    refused_before_ = std::accumulate(refused.begin(), refused.end(), uint64_t{0});
    closed_before_ = meps_closed;
}

void PacketJoiner::end_burst_if_over()
{
    if (has_burst_ && n_ended_ == sources_.size() && entries_.empty()) end_burst();
}

// Notes the counters of the burst; they begin anew with the next one. Its late datagrams are still refused.
void PacketJoiner::end_burst()
{
    if (is_reported_) return;
    is_reported_ = true;
    BurstCounts counts;
    counts.burst = burst_;
    counts.packets = packets - packets_before_;
    counts.missing = std::accumulate(missing.begin(), missing.end(), uint64_t{0}) - missing_before_;
    counts.refused = std::accumulate(refused.begin(), refused.end(), uint64_t{0}) - refused_before_;
    counts.meps = meps_closed - closed_before_;
    bursts.push_back(counts);
    if (bursts.size() > most_bursts) bursts.pop_front();
    if (n_run_ended_ == sources_.size()) run_ended_ = true;
}

PacketJoiner::Entry* PacketJoiner::entry_of(uint32_t sequence, std::size_t column, int64_t now_ns, Refused& reason)
{
    const uint32_t step = limits_.packets_per_mep;
    if (sequence >= next_packet_) {
        if (leads_alone(sequence, column, now_ns)) {
            reason = Refused::ahead;
            return nullptr;
        }
        if ((sequence - next_packet_) / step >= limits_.open_meps) {
            // A source alone must not close the MEPs of the others; after a silence all have lost these packets.
            if (!is_silent(now_ns)) {
                reason = Refused::ahead;
                return nullptr;
            }
            close_all(false);
            const uint32_t skipped = (sequence - next_packet_) / step;
            meps_lost += skipped;
            const uint32_t next = next_packet_ + skipped * step;
            for (std::size_t each = 0; each < sources_.size(); ++each)
                missing[each] += expected(each, next_packet_, next);
            next_packet_ = next;
        }
        while (sequence >= next_packet_) add_entry(next_packet_);
        return &entries_.back();
    }
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
        if (sequence >= entry->first) {
            if (!entry->is_closed) return &*entry;
            break;
        }
    reason = Refused::late;
    return nullptr;
}

void PacketJoiner::add_entry(uint32_t first)
{
    while (entries_.size() >= limits_.open_meps) {
        if (!entries_.front().is_closed) close(entries_.front(), false);
        drop_closed();
    }
    const uint32_t room = UINT32_MAX - first;
    next_packet_ = first + std::min(limits_.packets_per_mep, room);
    entries_.push_back({first, next_packet_, nullptr, false});
}

JoinedMep* PacketJoiner::new_mep(const Entry& entry, const Datagram& datagram, int64_t now_ns)
{
    if (free_.empty()) return nullptr;
    JoinedMep* const mep = free_.back();
    free_.pop_back();
    mep->run = run_;
    mep->burst = burst_;
    mep->first_packet = entry.first;
    mep->n_packets = mep->n_events = mep->n_complete = 0;
    mep->first_event = datagram.first_event - uint64_t{limits_.events_per_packet} * (datagram.sequence - entry.first);
    mep->first_ns = now_ns;
    for (JoinedPart& part : mep->parts) {
        part.n_packets = part.n_bank_bytes = part.highest = 0;
        part.is_in_order = true;
        part.is_laid_out = false;
        part.frame_size = 0;
        for (JoinedPart::Packet& packet : part.packets) packet.has_arrived = false;
    }
    // Sources whose burst has ended before this range send nothing of it.
    for (std::size_t column = 0; column < sources_.size(); ++column) {
        const bool is_complete = !expected(column, entry.first, entry.end);
        mep->parts[column].is_complete = is_complete;
        mep->n_complete += is_complete;
    }
    return mep;
}

Refused PacketJoiner::join(Entry& entry, const Datagram& datagram, std::size_t column, int64_t now_ns)
{
    const uint32_t place = datagram.sequence - entry.first;
    const std::size_t at = std::size_t{place} * limits_.events_per_packet;
    // A wrong source must not begin a MEP with other events than those in which two sources agree.
    if (!entry.mep && has_first_event_ && event_of_packet_0(datagram) != first_event_) return Refused::mismatch;
    if (!entry.mep && !(entry.mep = new_mep(entry, datagram, now_ns))) return Refused::no_room;
    JoinedMep& mep = *entry.mep;
    JoinedPart& part = mep.parts[column];
    JoinedPart::Packet& packet = part.packets[place];
    if (packet.has_arrived) return Refused::duplicate;
    if (datagram.first_event != mep.first_event + at) return Refused::mismatch;
    const uint8_t* const mfp = datagram.mfp;
    const std::size_t n = datagram.n_events;
    const std::size_t n_all = std::size_t{limits_.packets_per_mep} * limits_.events_per_packet;
    uint8_t* const types = part.bytes.get() + frame_header_size + mfp_header_size;
    uint8_t* const sizes = part.bytes.get() + frame_header_size + mfp_sizes_at(n_all);
    if (!part.n_packets) {
        part.align = mfp[18];
        part.version = mfp[19];
        std::memset(types, no_bank, n_all);
        std::memset(sizes, 0, 2 * n_all);
    } else if (part.align != mfp[18] || part.version != mfp[19]) {
        return Refused::mismatch;
    }
    packet.offset = part.n_bank_bytes;
    packet.size = static_cast<uint32_t>(datagram.mfp_size - mfp_data_at(n));
    packet.has_arrived = true;
    std::memcpy(types + at, mfp + mfp_header_size, n);
    std::memcpy(sizes + 2 * at, mfp + mfp_sizes_at(n), 2 * n);
    std::memcpy(part.bytes.get() + head_size_ + part.n_bank_bytes, mfp + mfp_data_at(n), packet.size);
    part.n_bank_bytes += packet.size;
    part.is_in_order &= !part.n_packets || place > part.highest;
    part.highest = std::max(part.highest, place);
    ++part.n_packets;
    mep.n_packets = std::max(mep.n_packets, place + 1);
    mep.n_events = std::max(mep.n_events, static_cast<uint32_t>(at + n));
    return accepted;
}

void PacketJoiner::note_end(const Datagram& datagram, std::size_t column)
{
    if (!ended_[column]) {
        ended_[column] = datagram.sequence + 1;
        ++n_ended_;
    }
    if ((datagram.flags & end_of_run) && !run_end_of_[column]) {
        run_end_of_[column] = true;
        ++n_run_ended_;
    }
}

void PacketJoiner::close_all(bool cuts)
{
    for (Entry& entry : entries_)
        if (!entry.is_closed) close(entry, cuts);
    entries_.clear();
}

// With `cuts` the youngest range ends behind its last packet, and the next one begins there: later packets of a slow
// source are not lost.
void PacketJoiner::close(Entry& entry, bool cuts)
{
    entry.is_closed = true;
    JoinedMep* const mep = std::exchange(entry.mep, nullptr);
    const bool is_cut = cuts && entry.end == next_packet_;
    if (!mep) {
        ++meps_lost;
        for (std::size_t column = 0; column < sources_.size(); ++column)
            missing[column] += expected(column, entry.first, entry.end);
        return;
    }
    if (!is_cut) {
        mep->n_packets = entry.end - entry.first;
        mep->n_events = mep->n_packets * limits_.events_per_packet;
    } else {
        entry.end = next_packet_ = entry.first + mep->n_packets;
    }
    for (std::size_t column = 0; column < sources_.size(); ++column)
        missing[column] += expected(column, entry.first, entry.first + mep->n_packets) - mep->parts[column].n_packets;
    ++meps_closed;
    ready_.push_back(mep);
}

void PacketJoiner::drop_closed()
{
    while (!entries_.empty() && entries_.front().is_closed) entries_.pop_front();
}

// When an open range is closed. The youngest one without a MEP has no deadline: its first packets had no room, or were
// refused, and the others may still come.
int64_t PacketJoiner::deadline_ns(const Entry& entry) const
{
    if (entry.mep) return entry.mep->first_ns + limits_.flush_ns;
    const bool is_youngest = entry.end == next_packet_;
    return is_youngest ? std::numeric_limits<int64_t>::max() : last_taken_ns_ + limits_.flush_ns;
}

void PacketJoiner::tick(int64_t now_ns)
{
    for (Entry& entry : entries_)
        if (!entry.is_closed && now_ns >= deadline_ns(entry)) close(entry, true);
    drop_closed();
    end_burst_if_over();
}

int64_t PacketJoiner::next_deadline_ns() const
{
    int64_t next = std::numeric_limits<int64_t>::max();
    for (const Entry& entry : entries_)
        if (!entry.is_closed) next = std::min(next, deadline_ns(entry));
    return next;
}

JoinedMep* PacketJoiner::next_ready()
{
    if (ready_.empty()) return nullptr;
    JoinedMep* const mep = ready_.front();
    ready_.pop_front();
    return mep;
}

void PacketJoiner::give_back(JoinedMep* mep) { free_.push_back(mep); }

void PacketJoiner::accept_run(uint32_t run)
{
    has_run_ = true;
    run_ = run;
    has_burst_ = run_ended_ = false;
    following_run_ = burst_before_ = -1;
    n_ended_ = n_run_ended_ = 0;
    std::fill(run_end_of_.begin(), run_end_of_.end(), false);
}

void PacketJoiner::leave_run()
{
    close_all(true);
    for (JoinedMep* const mep : ready_) {
        for (const JoinedPart& part : mep->parts) discarded += part.n_packets;
        free_.push_back(mep);
    }
    ready_.clear();
    has_run_ = has_burst_ = run_ended_ = false;
}

void PacketJoiner::end_run()
{
    if (!has_run_) return;
    const uint32_t run = run_;
    leave_run();
    ended_runs_.push_back(run);
    if (ended_runs_.size() > most_ended_runs) ended_runs_.pop_front();
}

void PacketJoiner::reopen_run(uint32_t run)
{
    if (!run) ended_runs_.clear();
    ended_runs_.erase(std::remove(ended_runs_.begin(), ended_runs_.end(), run), ended_runs_.end());
}

void PacketJoiner::order_banks(JoinedPart& part) const
{
    uint8_t* const banks = part.bytes.get() + head_size_;
    const std::vector<uint8_t> arrived(banks, banks + part.n_bank_bytes);
    uint8_t* to = banks;
    for (JoinedPart::Packet& packet : part.packets) {
        if (!packet.has_arrived) continue;
        std::memcpy(to, arrived.data() + packet.offset, packet.size);
        to += packet.size;
    }
}

void PacketJoiner::finish(JoinedMep& mep, uint64_t mep_id, uint64_t token) const
{
    const std::size_t n = mep.n_events;
    const std::size_t n_all = std::size_t{limits_.packets_per_mep} * limits_.events_per_packet;
    static const crc32c::Copy crc = crc32c::implementations()[0].copy;
    for (std::size_t column = 0; column < sources_.size(); ++column) {
        JoinedPart& part = mep.parts[column];
        if (!part.n_packets) continue;
        uint8_t* const base = part.bytes.get();
        part.frame_at = head_size_ - frame_header_size - mfp_data_at(n);
        uint8_t* const frame = base + part.frame_at;
        uint8_t* const mfp = frame + frame_header_size;
        if (!part.is_laid_out) {
            if (!part.is_in_order) order_banks(part);
            // Arrays of fewer events end where the banks begin; they move to the right, the last one first.
            std::memmove(mfp + mfp_sizes_at(n), base + frame_header_size + mfp_sizes_at(n_all), 2 * n);
            std::memmove(mfp + mfp_header_size, base + frame_header_size + mfp_header_size, n);
            std::memset(mfp + mfp_header_size + n, 0, mfp_sizes_at(n) - mfp_header_size - n);
            std::memset(mfp + mfp_sizes_at(n) + 2 * n, 0, mfp_data_at(n) - mfp_sizes_at(n) - 2 * n);
            part.is_laid_out = true;
        }
        const auto size = static_cast<uint32_t>(mfp_data_at(n) + part.n_bank_bytes);
        put_u16(mfp, mfp_magic);
        put_u16(mfp + 2, static_cast<uint16_t>(n));
        put_u32(mfp + 4, size);
        put_u64(mfp + 8, mep.first_event);
        put_u16(mfp + 16, sources_[column]);
        mfp[18] = part.align;
        mfp[19] = part.version;
        std::memset(frame, 0, frame_header_size);
        put_u32(frame, frame_magic);
        put_u16(frame + 4, frame_version);
        put_u32(frame + 8, mep.run);
        put_u32(frame + 12, size);
        put_u64(frame + 16, mep_id);
        put_u16(frame + 32, sources_[column]);
        put_u64(frame + token_at, token);
        put_u32(frame + crc_at, crc(crc(0, frame, nullptr, crc_at), mfp, nullptr, size));
        part.frame_size = frame_header_size + size;
    }
}
