#include "source_table.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

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
                new (self) SourceCounters{fragments, bytes, missing, last_seen_ns};
            },
            nb::kw_only(), nb::arg("fragments") = 0, nb::arg("bytes") = 0, nb::arg("missing") = 0,
            nb::arg("last_seen_ns") = nb::none())
        .def_rw("fragments", &SourceCounters::fragments)
        .def_rw("bytes", &SourceCounters::bytes)
        .def_rw("missing", &SourceCounters::missing)
        .def_rw("last_seen_ns", &SourceCounters::last_seen_ns, nb::arg().none());
    nb::class_<SourceTable>(module, "SourceTable", "Counters of the expected sources, by source id")
        .def(nb::init<>())
        .def("expect", &SourceTable::expect, nb::arg("sources"))
        .def("count", &SourceTable::count, nb::arg("source"), nb::arg("nbytes"), nb::arg("now_ns"))
        .def("copy", [](const SourceTable& self) { return SourceTable(self); })
        .def("items", [](const nb::handle& self) { return items(self); })
        .def("__getitem__", [](const nb::handle& self, uint32_t source) { return item(self, source); })
        .def("__contains__", [](SourceTable& self, uint32_t source) { return self.find(source) != nullptr; })
        .def("__len__", [](const SourceTable& self) { return self.sources().size(); });
}
