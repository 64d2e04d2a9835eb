// A batch of one MEP that compiled code of another extension module writes and computes, without the interpreter.
// Modules share no classes, so they share this table of functions. DirectBatch of cpu_executor.cpp makes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hlt {

// A MFP in the input of a batch: its source id, byte offset and bytes.
struct mfp_place {
    int64_t source, offset, size;
};

struct direct_batch {
    void* self;
    uint8_t* input;
    std::size_t input_bytes;
    // Writes the tables of one MEP, whose MFPs are in the input. False if it exceeds a limit of the batch.
    bool (*write_tables)(void* self, uint32_t n_events, const mfp_place* places, std::size_t n_places);
    // Computes the batch in the calling thread.
    void (*compute)(void* self);
};

}  // namespace hlt
