// Writes the tables of a batch (framework/batch.py), for the module _executor.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/backends/direct_batch.h"
#include "framework/generated/batch_types.h"

// The tables in the pinned input of a workspace; the caller keeps their memory alive.
class TableWriter {
  public:
    struct Mep {
        uint32_t n_events, flags;
        const hlt::mfp_place* places;
        std::size_t n_places;
    };

    // Addresses of the tables, and how many rows they have.
    TableWriter(uint64_t header, uint64_t mfp_rows, uint64_t mep_rows, uint64_t event_rows, uint64_t event_flags,
                std::size_t rows, std::size_t meps, std::size_t events, uint32_t max_events_per_mep);

    // Writes the tables of MEPs, whose MFPs are in `data`. Returns the bytes of `data` that the MFPs use. Throws
    // nanobind::value_error above a limit.
    std::size_t fill(const std::vector<Mep>& meps, const uint8_t* data, std::size_t data_bytes);

  private:
    void check(const std::vector<Mep>& meps) const;
    // The MFPs of a MEP by source id, in `places_`.
    void sort_places(const Mep& mep, std::size_t data_bytes);
    void write_rows(uint32_t mep, uint32_t n_events, uint32_t row, uint32_t fragment, uint32_t first_event,
                    const uint8_t* data);

    hlt::batch_header* header_;
    hlt::mfp_row* mfp_rows_;
    hlt::row_range* mep_rows_;
    hlt::event_row* event_rows_;
    uint32_t* event_flags_;
    std::size_t max_rows_, max_meps_, max_events_;
    uint32_t max_events_per_mep_;
    std::vector<hlt::mfp_place> places_;  // of the MEP that is being written
};

void add_batch_tables(nanobind::module_& module);
