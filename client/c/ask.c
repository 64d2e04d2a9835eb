/* Asks a node what it would decide on made-up events of a timing board and one detector board.
 *
 *     cc ask.c -lhltnode_client -o ask && ./ask tcp://127.0.0.1:5562
 */
#include <hltnode_client.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS = 8, BOARD = 24 << 11, BOARD_TYPE = 192, BANK_BYTES = 64, MFP_BYTES = 2048 };

/* The MFP of one source for these events: this is where your DAQ comes in. */
static size_t read_out(uint8_t* mfp, int source)
{
    static uint8_t banks[EVENTS][BANK_BYTES];
    uint8_t types[EVENTS];
    uint16_t sizes[EVENTS];
    const void* data[EVENTS];
    for (unsigned i = 0; i < EVENTS; ++i) {
        data[i] = banks[i];
        types[i] = source == BOARD ? BOARD_TYPE : HLTNODE_ODIN_TYPE;
        sizes[i] = source == BOARD ? BANK_BYTES : HLTNODE_ODIN_BYTES;
        memset(banks[i], (int)i, BANK_BYTES);
        if (source != BOARD) hltnode_odin_write(banks[i], 7, i, 0, 25 * i);
    }
    return hltnode_mfp_write(mfp, MFP_BYTES, (uint16_t)source, source == BOARD ? 1 : HLTNODE_ODIN_VERSION, 0, EVENTS,
                             types, sizes, data);
}

int main(int n_words, char** words)
{
    static uint8_t timing[MFP_BYTES], board[MFP_BYTES], mep[2 * MFP_BYTES + 64];
    const void* const mfps[] = {timing, board}; /* sources ascend */
    const size_t sizes[] = {read_out(timing, HLTNODE_ODIN_SOURCE), read_out(board, BOARD)};
    const size_t size = hltnode_mep_write(mep, sizeof mep, 2, mfps, sizes);
    hltnode_requester* requester = hltnode_requester_new(n_words > 1 ? words[1] : "tcp://127.0.0.1:5562");
    hltnode_answer* answer;
    const hltnode_status status = hltnode_requester_ask(requester, mep, size, 5000, &answer);
    if (status) fprintf(stderr, "%s: %s\n", hltnode_status_name(status), hltnode_requester_error(requester));
    for (size_t event = 0; !status && event < hltnode_answer_n_events(answer); ++event) {
        printf("event %zu: %s", event, hltnode_answer_accepted(answer, event) ? "accepted" : "rejected");
        for (size_t i = 0; hltnode_answer_collection(answer, i); ++i)
            printf(", %u %s", (unsigned)hltnode_answer_count(answer, event, i), hltnode_answer_collection(answer, i));
        printf("\n");
    }
    if (!status) hltnode_answer_free(answer);
    hltnode_requester_free(requester);
    return status;
}
