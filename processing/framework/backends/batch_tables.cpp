#include "batch_tables.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

// Places of MFPs: source id, byte offset in the input, bytes.
using Places = nb::ndarray<const int64_t, nb::shape<-1, 3>, nb::c_contig, nb::device::cpu>;
using Input = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The version is the last byte of the header of a MFP.
constexpr int64_t version_at = 19;
constexpr int64_t numbers_of_subdetector = 2048;

// Writes the tables of (events, flags, places) of each MEP.
std::size_t fill(TableWriter& writer, const nb::list& meps, const Input& data)
{
    std::vector<Places> places;
    std::vector<TableWriter::Mep> all;
    all.reserve(meps.size());
    for (const nb::handle each : meps) {
        const auto mep = nb::borrow<nb::tuple>(each);
        places.push_back(nb::cast<Places>(mep[2]));
        static_assert(sizeof(hlt::mfp_place) == 3 * sizeof(int64_t));
        all.push_back({nb::cast<uint32_t>(mep[0]), nb::cast<uint32_t>(mep[1]),
                       reinterpret_cast<const hlt::mfp_place*>(places.back().data()), places.back().shape(0)});
    }
    return writer.fill(all, data.data(), data.shape(0));
}

}  // namespace

TableWriter::TableWriter(uint64_t header, uint64_t mfp_rows, uint64_t mep_rows, uint64_t event_rows,
                         uint64_t event_flags, std::size_t rows, std::size_t meps, std::size_t events,
                         uint32_t max_events_per_mep)
    : header_(reinterpret_cast<hlt::batch_header*>(header)),
      mfp_rows_(reinterpret_cast<hlt::mfp_row*>(mfp_rows)),
      mep_rows_(reinterpret_cast<hlt::row_range*>(mep_rows)),
      event_rows_(reinterpret_cast<hlt::event_row*>(event_rows)),
      event_flags_(reinterpret_cast<uint32_t*>(event_flags)),
      max_rows_(rows),
      max_meps_(meps),
      max_events_(events),
      max_events_per_mep_(max_events_per_mep)
{
}

std::size_t TableWriter::fill(const std::vector<Mep>& meps, const uint8_t* data, std::size_t data_bytes)
{
    check(meps);
    uint32_t event = 0, row = 0, fragment = 0;
    std::size_t end = 0;
    for (uint32_t index = 0; index < meps.size(); ++index) {
        const Mep& mep = meps[index];
        sort_places(mep, data_bytes);
        write_rows(index, mep.n_events, row, fragment, event, data);
        for (const hlt::mfp_place& place : places_)
            end = std::max(end, static_cast<std::size_t>(place.offset + place.size));
        row += static_cast<uint32_t>(places_.size());
        fragment += static_cast<uint32_t>(places_.size()) * mep.n_events;
        for (uint32_t i = 0; i < mep.n_events; ++i, ++event) {
            event_rows_[event] = {index, i};
            event_flags_[event] = mep.flags;
        }
    }
    *header_ = {event, row, static_cast<uint32_t>(meps.size()), fragment};
    return end;
}

void TableWriter::check(const std::vector<Mep>& meps) const
{
    using std::to_string;
    std::size_t n_events = 0, n_rows = 0;
    for (const Mep& mep : meps) {
        n_events += mep.n_events;
        n_rows += mep.n_places;
    }
    if (n_events > max_events_ || n_rows > max_rows_ || meps.size() > max_meps_)
        throw nb::value_error(("a batch of " + to_string(n_events) + " events, " + to_string(n_rows) + " MFPs and " +
                               to_string(meps.size()) + " MEPs exceeds the limits of " + to_string(max_events_) + ", " +
                               to_string(max_rows_) + " and " + to_string(max_meps_))
                                  .c_str());
    for (const Mep& mep : meps)
        if (mep.n_events > max_events_per_mep_)
            throw nb::value_error(("a MEP of " + to_string(mep.n_events) + " events exceeds the limit of " +
                                   to_string(max_events_per_mep_))
                                      .c_str());
}

void TableWriter::sort_places(const Mep& mep, std::size_t data_bytes)
{
    places_.assign(mep.places, mep.places + mep.n_places);
    const auto is_earlier = [](const hlt::mfp_place& one, const hlt::mfp_place& two) {
        return one.source < two.source;
    };
    if (!std::is_sorted(places_.begin(), places_.end(), is_earlier))
        std::stable_sort(places_.begin(), places_.end(), is_earlier);
    for (const hlt::mfp_place& place : places_) {
        if (place.source < 0 || place.source >= numbers_of_subdetector * hlt::n_subdetectors)
            throw nb::value_error(
                ("source id " + std::to_string(place.source) + " of a MFP has more than 16 bits").c_str());
        if (place.offset < 0 || place.size < 0 ||
            place.offset + std::max(place.size, version_at + 1) > static_cast<int64_t>(data_bytes))
            throw nb::value_error(("a MFP of " + std::to_string(place.size) + " bytes at " +
                                   std::to_string(place.offset) + " is outside of an input of " +
                                   std::to_string(data_bytes) + " bytes")
                                      .c_str());
    }
}

void TableWriter::write_rows(uint32_t mep, uint32_t n_events, uint32_t row, uint32_t fragment, uint32_t first_event,
                             const uint8_t* data)
{
    hlt::row_range* const ranges = mep_rows_ + std::size_t{mep} * hlt::n_subdetectors;
    std::fill_n(ranges, hlt::n_subdetectors, hlt::row_range{0, 0});
    if (places_.empty()) return;
    for (const hlt::mfp_place& place : places_) {
        ++ranges[place.source / numbers_of_subdetector].count;
        mfp_rows_[row++] = {
            static_cast<uint32_t>(place.offset), static_cast<uint32_t>(place.source), fragment,   n_events,
            data[place.offset + version_at],     static_cast<uint32_t>(place.size),   first_event};
        fragment += n_events;
    }
    row -= static_cast<uint32_t>(places_.size());
    for (uint32_t detector = 0; detector < hlt::n_subdetectors; ++detector) {
        ranges[detector].first = row;
        row += ranges[detector].count;
    }
}

void add_batch_tables(nb::module_& module)
{
    nb::class_<TableWriter>(module, "TableWriter", "Writes the tables of a batch")
        .def(nb::init<uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, std::size_t, std::size_t, std::size_t,
                      uint32_t>(),
             nb::arg("header"), nb::arg("mfp_rows"), nb::arg("mep_rows"), nb::arg("event_rows"), nb::arg("event_flags"),
             nb::arg("rows"), nb::arg("meps"), nb::arg("events"), nb::arg("max_events_per_mep"))
        .def("fill", &fill, nb::arg("meps"), nb::arg("data"),
             "Write the tables of (events, flags, places) of each MEP; returns the bytes of the input that they use");
}
