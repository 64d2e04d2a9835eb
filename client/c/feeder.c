/* Feeds a node with made-up data of a timing board and one detector board.
 *
 *     cc feeder.c -lhltnode_client -o feeder && ./feeder tcp://127.0.0.1:5555 100
 */
#include <hltnode_client.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 7, EVENTS = 50, BOARD = 24 << 11, BOARD_TYPE = 192, BANK_BYTES = 64, PULSER = 0x0400, MFP_BYTES = 8192 };
static const uint16_t SOURCES[] = {HLTNODE_ODIN_SOURCE, BOARD};

/* The MFP of one source for the events of a MEP: this is where your DAQ comes in. */
static size_t read_out(uint8_t* mfp, int source, uint64_t first)
{
    static uint8_t banks[EVENTS][BANK_BYTES];
    uint8_t types[EVENTS];
    uint16_t sizes[EVENTS];
    const void* data[EVENTS];
    for (unsigned i = 0; i < EVENTS; ++i) {
        data[i] = banks[i];
        types[i] = source == BOARD ? BOARD_TYPE : HLTNODE_ODIN_TYPE;
        sizes[i] = source == BOARD ? BANK_BYTES : HLTNODE_ODIN_BYTES;
        memset(banks[i], (int)(first + i), BANK_BYTES);
        if (source != BOARD)
            hltnode_odin_write(banks[i], RUN, first + i, (first + i) % 25 ? 0 : PULSER, 25 * (first + i));
    }
    return hltnode_mfp_write(mfp, MFP_BYTES, (uint16_t)source, source == BOARD ? 1 : HLTNODE_ODIN_VERSION, first,
                             EVENTS, types, sizes, data);
}

int main(int n_words, char** words)
{
    static uint8_t timing[MFP_BYTES], board[MFP_BYTES];
    const void* const mfps[] = {timing, board};
    const uint64_t n_meps = n_words > 2 ? strtoull(words[2], NULL, 10) : 100;
    hltnode_feeder* feeder = hltnode_feeder_new("my-daq", RUN, SOURCES, 2, EVENTS, MFP_BYTES);
    hltnode_status status =
        hltnode_feeder_connect(feeder, n_words > 1 ? words[1] : "tcp://127.0.0.1:5555", n_words > 3 ? words[3] : NULL);
    for (uint64_t mep = 0; !status && mep < n_meps; ++mep) {
        const size_t sizes[] = {read_out(timing, HLTNODE_ODIN_SOURCE, mep * EVENTS),
                                read_out(board, BOARD, mep * EVENTS)};
        status = hltnode_feeder_offer(feeder, mep, mfps, sizes, -1); /* waits until the node has credit for it */
    }
    if (!status) status = hltnode_feeder_finish(feeder, -1); /* waits until everything is acknowledged */
    if (status)
        fprintf(stderr, "%s: %s\n", hltnode_status_name(status), hltnode_feeder_error(feeder));
    else
        printf("%llu MEPs acknowledged\n", (unsigned long long)hltnode_feeder_count(feeder, HLTNODE_MEPS_ACKNOWLEDGED));
    hltnode_feeder_free(feeder);
    return status;
}
