#include "source_table.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "../../protocol/buffer_view.h"
#include "../../protocol/mfp.h"

namespace nb = nanobind;

void SourceTable::expect(const std::vector<uint16_t>& sources)
{
    for (const uint16_t source : sources) {
        if (find(source)) continue;
        at_[source] = static_cast<int32_t>(entries_.size());
        entries_.emplace_back();
        sources_.push_back(source);
    }
}

void SourceTable::set_error_types(const std::vector<uint8_t>& types)
{
    error_number_ = {};
    n_error_types_ = 0;
    for (const uint8_t type : types) error_number_[type] = static_cast<uint8_t>(++n_error_types_);
}

void SourceTable::count_error_banks(uint16_t source, const uint8_t* types, std::size_t n)
{
    // Nearly always all banks have the type of the first one, which is no error type. memcmp is fast.
    if (!n_error_types_ || !n || (!error_number_[types[0]] && std::memcmp(types, types + 1, n - 1) == 0)) return;
    SourceCounters* entry = find(source);
    if (!entry) return;
    for (std::size_t i = 0; i < n; ++i) {
        const uint8_t number = error_number_[types[i]];
        if (!number) continue;
        entry->error_banks.resize(n_error_types_);
        ++entry->error_banks[number - 1u];
    }
}

namespace {

nb::object entry_of(const nb::handle& self, SourceCounters* entry)
{
    return nb::cast(entry, nb::rv_policy::reference_internal, self);
}

nb::object item(const nb::handle& self, uint32_t source)
{
    SourceCounters* entry = nb::cast<SourceTable&>(self).find(source);
    if (!entry) throw nb::key_error("unexpected source");
    return entry_of(self, entry);
}

nb::list items(const nb::handle& self)
{
    SourceTable& table = nb::cast<SourceTable&>(self);
    nb::list found;
    for (const uint16_t source : table.sources())
        found.append(nb::make_tuple(source, entry_of(self, table.find(source))));
    return found;
}

}  // namespace

void add_source_table(nb::module_& module)
{
    nb::class_<SourceCounters>(module, "SourceCounters", "Counters of one readout source")
        .def(
            "__init__",
            [](SourceCounters* self, uint64_t fragments, uint64_t bytes, uint64_t missing,
               std::optional<int64_t> last_seen_ns) {
                new (self) SourceCounters{fragments, bytes, missing, 0, last_seen_ns, {}};
            },
            nb::kw_only(), nb::arg("fragments") = 0, nb::arg("bytes") = 0, nb::arg("missing") = 0,
            nb::arg("last_seen_ns") = nb::none())
        .def_rw("fragments", &SourceCounters::fragments)
        .def_rw("bytes", &SourceCounters::bytes)
        .def_rw("missing", &SourceCounters::missing)
        .def_rw("late", &SourceCounters::late)
        .def_ro("error_banks", &SourceCounters::error_banks)
        .def_rw("last_seen_ns", &SourceCounters::last_seen_ns, nb::arg().none());
    nb::class_<SourceTable>(module, "SourceTable", "Counters of the expected sources, by source id")
        .def(nb::init<>())
        .def("expect", &SourceTable::expect, nb::arg("sources"))
        .def("count", &SourceTable::count, nb::arg("source"), nb::arg("nbytes"), nb::arg("now_ns"))
        .def("set_error_types", &SourceTable::set_error_types, nb::arg("types"))
        .def(
            "count_error_banks",
            [](SourceTable& self, uint16_t source, const nb::handle& of) {
                const View mfp(of.ptr());
                if (mfp.size() < mfp_header_size) return;
                const std::size_t n = u16_at(mfp.bytes() + 2);
                if (mfp_header_size + n <= mfp.size()) self.count_error_banks(source, mfp.bytes() + mfp_header_size, n);
            },
            nb::arg("source"), nb::arg("mfp"))
        .def("copy", [](const SourceTable& self) { return SourceTable(self); })
        .def("items", [](const nb::handle& self) { return items(self); })
        .def("__getitem__", [](const nb::handle& self, uint32_t source) { return item(self, source); })
        .def("__contains__", [](SourceTable& self, uint32_t source) { return self.find(source) != nullptr; })
        .def("__len__", [](const SourceTable& self) { return self.sources().size(); });
}
