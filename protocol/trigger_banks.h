// The banks that the trigger adds to an event (docs/formats/trigger-banks.md): HltDecReports, HltRoutingBits,
// HltSelReports, HltLumiSummary.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trigger_banks {

enum BankType : uint8_t {
    odin_type = 16,
    dec_reports = 17,
    routing_bits = 53,
    sel_reports = 54,
    lumi_summary = 56,
    time_window = 250
};

// Types of the output lists of a chain (docs/formats/list-banks.md).
constexpr uint8_t first_list = 242, max_lists = 8;
static_assert(time_window == first_list + max_lists);  // one range for is_trigger_bank

inline bool is_trigger_bank(uint8_t type)
{
    // Without branches, for loops over many types.
    return (type == dec_reports) | (type == routing_bits) | (type == sel_reports) | (type == lumi_summary) |
           (static_cast<uint8_t>(type - first_list) <= max_lists);
}

// ODIN fields of an event; not readable if the bank is missing or damaged.
struct Odin {
    bool readable = false;
    uint32_t orbit = 0, bunch_id = 0, crossing_type = 0;
    uint64_t gps_time_us = 0;

    static Odin of_bank(uint8_t type, uint8_t version, const uint8_t* payload, std::size_t size);
};

// Content of a counter of the luminosity summary; from `first_count` on, the columns of Event::counts.
enum LumiSource : uint32_t { encoding_key, t0_low, t0_high, bcid_low, bcid_high, crossing, passed_cut, first_count };

struct LumiCounter {
    uint32_t source, offset, bits;  // offset in bits from the start of the bank
};

// The constants of a trigger configuration.
struct Format {
    uint32_t key = 0, tck = 0, task_id = 0, n_lines = 0;
    uint16_t source_id = 0;
    uint32_t not_run = 0;                          // flags of events whose lines did not run
    uint32_t unreadable = 0;                       // flags of unreadable events
    uint32_t cut = 0;                              // flags of events rejected by the global event cut
    uint32_t error_bit = 0;                        // bit of the first routing word of unreadable events
    uint32_t lumi_bit = 0;                         // bit of the first routing word of events with a luminosity summary
    std::vector<std::array<uint32_t, 3>> routing;  // words that each line sets
    uint32_t lumi_key = 0, lumi_words = 0;
    std::vector<LumiCounter> lumi_counters;
};

// The selected objects of an event, written by the kernel of the lines (processing/selection/reports/selected.py):
// numbers of candidates and objects, number of omitted candidates, the objects; the candidates, ascending by line,
// start at the end.
struct Selected {
    const uint32_t* words = nullptr;
    std::size_t size = 0;  // 0: no data
};

struct Event {
    Selected selected;      // read only if a line selects the event
    const uint32_t* lines;  // bit i % 32 of word i / 32
    uint32_t flags;
    const uint32_t* counts;
    Odin odin;
};

// Writes the banks of the events in order.
class Writer {
  public:
    explicit Writer(const Format& format);

    // Append the banks of an event, headers included; returns its routing words. Throws std::invalid_argument if the
    // words of selected objects are inconsistent.
    std::array<uint32_t, 3> append(const Event& event, std::vector<uint32_t>& out);

    uint64_t left_out = 0;  // candidates and selections that did not fit in their bank

  private:
    // The numbers that determine the size of HltSelReports.
    struct Size {
        std::size_t objects = 0, info = 0, shorts = 0, sequences = 0, ids = 0, classes = 0;
        std::size_t objtyp() const { return 1 + classes; }
        std::size_t substr() const { return 1 + (shorts + 1) / 2; }
        std::size_t extra_info() const { return 1 + (objects + 3) / 4; }
        std::size_t std_info() const { return extra_info() + info; }
        std::size_t hits() const { return 1 + sequences / 2 + ids; }
        std::size_t words() const;
    };
    struct Selection {
        uint32_t line, n_candidates;
        std::size_t first_pointer, n_pointers;
    };
    // `n` values from `data`.
    struct Range {
        const uint32_t* data;
        uint32_t n;
    };
    struct Object {
        uint32_t class_id;
        Range info, ids, parts;
    };

    void find_selections(const Event& event);
    void select(const Selected& selected);
    uint32_t find_objects(const Selected& selected);
    void add_candidate(uint32_t object, Selection& selection);
    bool include(uint32_t object, Size& size);
    void number_objects();
    const Object& object(uint32_t number) const;
    void append_dec_reports(const Event& event, std::vector<uint32_t>& out);
    void append_sel_reports(std::vector<uint32_t>& out);
    void append_lumi_summary(const Event& event, std::vector<uint32_t>& out);
    std::size_t append_header(std::size_t words, BankType type, uint8_t version, std::vector<uint32_t>& out) const;

    const Format& format_;
    std::vector<uint32_t> dec_reports_;     // words of an event that no line selects
    std::vector<Selection> selections_;     // one for each line that selects the event
    std::size_t n_written_ = 0;             // number of selections that fit
    std::vector<Object> objects_;           // of the event
    std::vector<uint32_t> pointers_;        // objects of the selections
    std::vector<uint32_t> included_;        // objects in the order of discovery, later in writing order
    std::vector<uint32_t> place_;           // place of each object of the event among the included ones, or `absent`
    std::vector<uint32_t> classes_, ends_;  // class ids, and the end of the objects of each class
    std::vector<uint32_t> stack_;
    Size size_;
};

}  // namespace trigger_banks
