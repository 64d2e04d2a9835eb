#include "open_meps.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

namespace nb = nanobind;

MepFragments::MepFragments(const MepFragments& other)
    : bytes(other.bytes),
      last_ns(other.last_ns),
      capacity_(other.capacity_),
      n_(other.n_),
      seen_(other.seen_),
      rows_(new PlacedFragment[other.capacity_])
{
    std::copy_n(other.rows_.get(), n_, rows_.get());
}

void OpenMeps::start_run(uint32_t run, const std::vector<uint16_t>& sources)
{
    run_ = run;
    n_sources_ = sources.size();
    open_.clear();
    n_refused_ = 0;
    std::fill(columns_.begin(), columns_.end(), -1);
    for (std::size_t i = 0; i < sources.size(); ++i) columns_[sources[i]] = static_cast<int32_t>(i);
}

void OpenMeps::open(uint64_t mep, uint32_t slot, uint64_t first_event, uint16_t n_events,
                    std::shared_ptr<MepFragments> fragments)
{
    if (slot >= cursors_.size() || fragments->capacity() != n_sources_)
        throw nb::value_error("expected an existing slot, and room for one fragment of each source");
    n_refused_ = 0;
    open_.insert_or_assign(mep, Entry{slot, first_event, n_events, std::move(fragments)});
}

void OpenMeps::note_refused(uint16_t source, uint64_t mep, bool is_late, bool is_sound)
{
    for (std::size_t i = 0; i < n_refused_; ++i) {
        if (refused_[i].source == source && refused_[i].mep == mep) {
            refused_[i].is_sound |= is_sound;
            return;
        }
    }
    if (n_refused_ == max_refused) n_refused_ = 0;
    refused_[n_refused_++] = {source, mep, is_late, is_sound};
}

const char* OpenMeps::refusal(uint32_t run, uint16_t source, uint64_t mep, bool is_sound) const
{
    for (std::size_t i = 0; run == run_ && i < n_refused_; ++i) {
        const RefusedFragment& refused = refused_[i];
        if (refused.source == source && refused.mep == mep && (refused.is_sound || !is_sound))
            return refused.is_late ? "late" : "duplicate";
    }
    return nullptr;
}

OpenMeps::Place OpenMeps::find(const Fragment& fragment)
{
    const Place none{nullptr, 0, 0};
    const int32_t of_source = columns_[fragment.source];
    if (of_source < 0 || fragment.run != run_) return none;
    const auto found = open_.find(fragment.mep);
    if (found == open_.end()) return none;
    Entry& mep = found->second;
    const auto column = static_cast<std::size_t>(of_source);
    if (mep.fragments->has(column)) return none;
    if (mep.n_events != fragment.n_events || mep.first_event != fragment.first_event) return none;
    if (mep.fragments->bytes + padded_fragment(fragment.size) > mep_bytes_) return none;
    return {&mep, column, cursors_[mep.slot]};
}

bool OpenMeps::add(uint64_t mep, uint16_t source, int64_t offset, uint32_t size, int64_t now_ns)
{
    const auto found = open_.find(mep);
    const int32_t column = columns_[source];
    if (found == open_.end() || column < 0 || found->second.fragments->has(static_cast<std::size_t>(column)))
        throw nb::value_error("expected an open MEP that lacks a fragment of this source");
    const Fragment fragment{run_, source, mep, size, found->second.first_event, found->second.n_events};
    return add({&found->second, static_cast<std::size_t>(column), offset}, fragment, now_ns);
}

namespace {

using Rows = nb::ndarray<nb::numpy, int64_t, nb::shape<-1, 3>>;

Rows rows_of(const nb::handle& self)
{
    MepFragments& mep = nb::cast<MepFragments&>(self);
    static_assert(sizeof(PlacedFragment) == 3 * sizeof(int64_t));
    return Rows(mep.rows(), {mep.size(), 3}, self);
}

// The bit mask of the columns, as a Python int.
nb::object sources_of(const MepFragments& mep)
{
    const auto& words = mep.seen();
    const nb::bytes raw(words.data(), words.size() * sizeof(uint64_t));
    return nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type)).attr("from_bytes")(raw, "little");
}

bool has_checked(const MepFragments& mep, std::size_t column)
{
    if (column >= mep.capacity()) throw nb::index_error("no such column");
    return mep.has(column);
}

}  // namespace

void add_open_meps(nb::module_& module)
{
    nb::class_<MepFragments>(module, "MepFragments", "The fragments of one MEP that have arrived")
        .def(nb::init<std::size_t>(), nb::arg("n_sources"))
        .def("has", &has_checked, nb::arg("column"))
        .def("__len__", &MepFragments::size)
        .def("__deepcopy__", [](const MepFragments& self, const nb::handle&) { return MepFragments(self); })
        .def_prop_ro("sources", &sources_of)
        .def_prop_ro("rows", [](const nb::handle& self) { return rows_of(self); })
        .def_rw("bytes", &MepFragments::bytes)
        .def_rw("last_ns", &MepFragments::last_ns);
    nb::class_<OpenMeps>(module, "OpenMeps", "The open MEPs as the compiled code sees them")
        .def(nb::init<std::size_t, int64_t>(), nb::arg("n_slots"), nb::arg("mep_bytes"))
        .def("start_run", &OpenMeps::start_run, nb::arg("run"), nb::arg("sources"))
        .def("open", &OpenMeps::open, nb::arg("mep"), nb::arg("slot"), nb::arg("first_event"), nb::arg("n_events"),
             nb::arg("fragments"))
        .def("add", nb::overload_cast<uint64_t, uint16_t, int64_t, uint32_t, int64_t>(&OpenMeps::add), nb::arg("mep"),
             nb::arg("source"), nb::arg("offset"), nb::arg("size"), nb::arg("now_ns"))
        .def("close", &OpenMeps::close, nb::arg("mep"))
        .def("note_refused", &OpenMeps::note_refused, nb::arg("source"), nb::arg("mep"), nb::kw_only(),
             nb::arg("is_late"), nb::arg("is_sound"))
        .def("forget_refused", &OpenMeps::forget_refused)
        .def(
            "cursor", [](OpenMeps& self, std::size_t slot) { return self.cursor(slot); }, nb::arg("slot"))
        .def(
            "set_cursor", [](OpenMeps& self, std::size_t slot, int64_t at) { self.cursor(slot) = at; }, nb::arg("slot"),
            nb::arg("at"));
}
