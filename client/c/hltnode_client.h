/* SPDX-License-Identifier: Apache-2.0
 *
 * hltnode_client: a feeder and a requester of hltnode in C.
 *
 *     cc feeder.c -lhltnode_client
 *
 * A feeder sends the fragments of some readout sources to a node. It keeps every MEP until the node has acknowledged
 * it, repeats what the node refused or lost, and reconnects when the node was away. Page: how-to/feed-from-your-daq.md.
 *
 * A requester asks a node what it would decide on some events, which belong to no run. Page: how-to/ask-a-node.md.
 *
 * Threads. Each connected feeder has a thread of its own, which talks to the node. The functions of one feeder may be
 * called from any thread, but by one thread at a time; a requester has no thread, and the same rule. Feeders and
 * requesters are independent of each other: the library has no global state, never ends the process, writes to no
 * stream, and handles no signal. After fork() the child must not use the feeders and requesters of its parent.
 *
 * Time-outs are milliseconds; a negative one waits without limit.
 */
#ifndef HLTNODE_CLIENT_H
#define HLTNODE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HLTNODE_API __attribute__((visibility("default")))
#else
#define HLTNODE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define HLTNODE_CLIENT_VERSION "0.5.0"

/* What a function returns. hltnode_feeder_error() and hltnode_requester_error() give the text. */
typedef enum hltnode_status {
    HLTNODE_OK = 0,
    HLTNODE_TIMEOUT = 1,           /* nothing was changed, the call may be repeated */
    HLTNODE_INVALID = 2,           /* an argument or the order of calls is wrong; nothing was changed */
    HLTNODE_NO_MEMORY = 3,         /* nothing was changed */
    HLTNODE_SYSTEM = 4,            /* libzmq, a file, or the operating system reports an error */
    HLTNODE_TOO_LARGE = 5,         /* the MEP exceeds a limit of the node or of the shared memory; it was not sent */
    HLTNODE_FRAGMENTS_REFUSED = 6, /* the run has ended, but the node refused fragments: no event contains them */
    /* With these a feeder has ended: every later call returns the same. A requester may go on. */
    HLTNODE_REFUSED = 7,    /* the node refuses this feeder, its key or its memory; or the key of a requester */
    HLTNODE_RUN_CLOSED = 8, /* an operator closed the run: unacknowledged MEPs will not be acknowledged */
    /* Only of requesters. */
    HLTNODE_REQUEST_REFUSED = 9, /* the node refused a request; hltnode_requester_refusal() gives the reason */
    HLTNODE_UNREADABLE = 10      /* a message of the node is malformed or of another version */
} hltnode_status;

/* The name of a status, for example "HLTNODE_TIMEOUT". */
HLTNODE_API const char* hltnode_status_name(hltnode_status status);

/* The version of the library in use. HLTNODE_CLIENT_VERSION is that of this header. */
HLTNODE_API const char* hltnode_client_version(void);

/* ---- A feeder: new, settings, connect, offer, finish, free */

typedef struct hltnode_feeder hltnode_feeder;

/* A feeder that is not connected. `name` is unique among the feeders of a node: 1 to 64 characters A-Z a-z 0-9 . _ : /
 * -. `sources` are its source ids, at most 4096. A MEP has at most `events_per_mep` events, an MFP at most
 * `max_mfp_bytes` bytes. hltnode_feeder_connect() reports invalid arguments. NULL if there is no memory: the functions
 * below, except counts and refusals, then return HLTNODE_NO_MEMORY. */
HLTNODE_API hltnode_feeder* hltnode_feeder_new(const char* name, uint32_t run, const uint16_t* sources,
                                               size_t n_sources, uint16_t events_per_mep, uint32_t max_mfp_bytes);

/* Settings, before hltnode_feeder_connect(). */

/* Number of feeders that share the sources of the run, this one included: the run starts when all are connected. */
HLTNODE_API hltnode_status hltnode_feeder_set_feeders(hltnode_feeder* feeder, uint16_t n);
/* The chain that the data are for: a node of another chain refuses them. */
HLTNODE_API hltnode_status hltnode_feeder_set_chain(hltnode_feeder* feeder, const char* chain);
/* Identifies an input that can be sent again: a node refuses another one for an unfinished run. */
HLTNODE_API hltnode_status hltnode_feeder_set_input(hltnode_feeder* feeder, const char* input);
/* CURVE keys, from the files of `hltnode keys create`: the own secret key (NAME.key_secret, not readable by all) and
 * the public key of the node. With `encrypt_data` the fragments are encrypted too (security.encrypt_data). */
HLTNODE_API hltnode_status hltnode_feeder_set_keys(hltnode_feeder* feeder, const char* key_file,
                                                   const char* server_key_file, int encrypt_data);
/* Size of the shared memory for a data endpoint shm:///PATH, 256 MiB by default. hltnode_feeder_connect() allocates all
 * of it. hltnode_feeder_offer() waits while unacknowledged MEPs fill it. */
HLTNODE_API hltnode_status hltnode_feeder_set_memory(hltnode_feeder* feeder, size_t bytes);
/* Called with each event between feeder and node, usually in the thread of the feeder. It must not call the feeder. */
typedef void (*hltnode_log)(void* context, const char* text);
HLTNODE_API hltnode_status hltnode_feeder_set_log(hltnode_feeder* feeder, hltnode_log log, void* context);

/* Starts to connect; returns at once, also if the node is absent. `data` is tcp://HOST:PORT, or shm:///PATH of the
 * memory socket of a node on this machine. `control` is NULL for the port after that of `data`. */
HLTNODE_API hltnode_status hltnode_feeder_connect(hltnode_feeder* feeder, const char* data, const char* control);

/* Sends one MEP: an MFP for each source, in the order of `sources`. The MFPs are copied. Waits until the node gives
 * credit for another MEP. The ids of MEPs increase. A restarted program offers its MEPs again from the first one:
 * those that the node has acknowledged are not sent. */
HLTNODE_API hltnode_status hltnode_feeder_offer(hltnode_feeder* feeder, uint64_t mep, const void* const* mfps,
                                                const size_t* sizes, int timeout_ms);

/* Ends the run: waits until every MEP is acknowledged, and confirms this to the node. */
HLTNODE_API hltnode_status hltnode_feeder_finish(hltnode_feeder* feeder, int timeout_ms);

/* Leaves the node and frees the feeder, within about a second; NULL is allowed. MEPs that are not acknowledged are lost
 * unless the next process of this name offers them again. */
HLTNODE_API void hltnode_feeder_free(hltnode_feeder* feeder);

/* The text for the last status other than HLTNODE_OK; valid until the next call. Never NULL. */
HLTNODE_API const char* hltnode_feeder_error(const hltnode_feeder* feeder);

typedef enum hltnode_count {
    HLTNODE_MEPS_ACKNOWLEDGED = 0,    /* MEPs that were kept, and that the node acknowledged */
    HLTNODE_MEPS_ACKNOWLEDGED_BEFORE, /* MEPs that were not sent: acknowledged to an earlier process */
    HLTNODE_MEPS_KEPT,                /* MEPs that are not acknowledged yet */
    HLTNODE_FRAGMENTS_SENT,           /* repeated ones included */
    HLTNODE_FRAGMENTS_REPEATED,
    HLTNODE_FRAGMENTS_REFUSED_FOR_GOOD, /* fragments that no event contains */
    HLTNODE_WELCOMES,                   /* answers of the node to the hellos of each second */
    HLTNODE_UNREADABLE_MESSAGES         /* messages that were ignored */
} hltnode_count;

HLTNODE_API uint64_t hltnode_feeder_count(hltnode_feeder* feeder, hltnode_count which);

/* Fragments that no event contains, by reason of the node ("late", "mismatch", ...): the entry `index` from 0 on.
 * Returns the reason, or NULL behind the last entry. The text is never freed. */
HLTNODE_API const char* hltnode_feeder_refusal(hltnode_feeder* feeder, size_t index, uint64_t* fragments);

/* ---- Data of a source (pages formats/mfp.md and formats/odin.md) */

#define HLTNODE_ODIN_BYTES 40
#define HLTNODE_ODIN_TYPE 16
#define HLTNODE_ODIN_VERSION 7
#define HLTNODE_ODIN_SOURCE 0
/* Type of an event for which the source has no bank; its size is 0. */
#define HLTNODE_NO_BANK 255

/* Bytes of the MFP of `n` events with banks of these sizes. */
HLTNODE_API size_t hltnode_mfp_bytes(uint16_t n, const uint16_t* sizes);

/* Writes the MFP of `n` consecutive events of one source to `to`: event i has a bank of types[i], sizes[i] bytes at
 * banks[i]. Returns its size, 0 if `room` bytes are too few or `n` is 0. */
HLTNODE_API size_t hltnode_mfp_write(void* to, size_t room, uint16_t source, uint8_t version, uint64_t first_event,
                                     uint16_t n, const uint8_t* types, const uint16_t* sizes, const void* const* banks);

/* Writes the ODIN bank of an event, of version 7; `time_us` is GPS time. */
HLTNODE_API void hltnode_odin_write(uint8_t to[HLTNODE_ODIN_BYTES], uint32_t run, uint64_t event, uint16_t event_type,
                                    uint64_t time_us);

/* ---- A requester: new, keys, ask, free (page formats/request-messages.md) */

typedef struct hltnode_requester hltnode_requester;
typedef struct hltnode_answer hltnode_answer;

/* A requester of the request socket of a node (`requests.endpoint`): tcp://HOST:PORT or ipc:///PATH. It connects with
 * the first request. NULL if there is no memory: the functions below then return HLTNODE_NO_MEMORY. */
HLTNODE_API hltnode_requester* hltnode_requester_new(const char* endpoint);
/* CURVE keys of a consumer or operator, before the first request; files as of hltnode_feeder_set_keys(). A node that
 * does not know the key, or wants one, gives HLTNODE_REFUSED; the public key of another node gives HLTNODE_TIMEOUT. */
HLTNODE_API hltnode_status hltnode_requester_set_keys(hltnode_requester* requester, const char* key_file,
                                                      const char* server_key_file);

/* Sends a MEP and waits for its answer, which the caller frees. Answers to earlier requests that come before it are
 * dropped. `*answer` is NULL after every error. After HLTNODE_TIMEOUT the node drops the request if it still waits; an
 * absent node gets nothing later. After the refusal `busy` the next request waits for a moment. */
HLTNODE_API hltnode_status hltnode_requester_ask(hltnode_requester* requester, const void* mep, size_t size,
                                                 int timeout_ms, hltnode_answer** answer);

/* Several requests at once: send, then receive answers, which come in any order. */

/* Sends a MEP, and gives the id of the request. Waits for a connection for at most `timeout_ms`, 0 not at all, and for
 * 20 ms if 64 requests are on their way, after the refusal `busy` if as many as then: receive answers first. The node
 * refuses the request (`expired`) if it waits there for more than `node_ms`; 0: as long as the node allows. */
HLTNODE_API hltnode_status hltnode_requester_send(hltnode_requester* requester, const void* mep, size_t size,
                                                  uint32_t node_ms, int timeout_ms, uint64_t* id);
/* The next answer to any request. After HLTNODE_TIMEOUT the requests still wait. Requests have no answer if the
 * connection was lost. */
HLTNODE_API hltnode_status hltnode_requester_receive(hltnode_requester* requester, int timeout_ms,
                                                     hltnode_answer** answer);
/* Drops a request that may still wait; a dropped request has no answer. */
HLTNODE_API hltnode_status hltnode_requester_cancel(hltnode_requester* requester, uint64_t id);

/* After HLTNODE_REQUEST_REFUSED: the reason ("bad_mep", "too_large", "busy", ...), and the id of the request, which is
 * 0 if the node could not read it. Valid until the next call. */
HLTNODE_API const char* hltnode_requester_refusal(const hltnode_requester* requester, uint64_t* id);
/* The text for the last status other than HLTNODE_OK; valid until the next call. Never NULL. */
HLTNODE_API const char* hltnode_requester_error(const hltnode_requester* requester);
/* Closes the connection; the node drops the waiting requests. NULL is allowed. */
HLTNODE_API void hltnode_requester_free(hltnode_requester* requester);

/* An answer. Its texts and bytes are valid until it is freed. An event, line or collection behind the last one gives 0.
 */

HLTNODE_API uint64_t hltnode_answer_id(const hltnode_answer* answer);
HLTNODE_API const char* hltnode_answer_node(const hltnode_answer* answer);
HLTNODE_API const char* hltnode_answer_chain(const hltnode_answer* answer);
/* Key of the trigger configuration. */
HLTNODE_API uint32_t hltnode_answer_tck(const hltnode_answer* answer);
HLTNODE_API uint16_t hltnode_answer_n_events(const hltnode_answer* answer);
HLTNODE_API uint16_t hltnode_answer_n_lines(const hltnode_answer* answer);
/* 1 if the event is accepted. */
HLTNODE_API int hltnode_answer_accepted(const hltnode_answer* answer, size_t event);
/* 1 if the line selects the event. */
HLTNODE_API int hltnode_answer_fired(const hltnode_answer* answer, size_t event, size_t line);
HLTNODE_API uint32_t hltnode_answer_flags(const hltnode_answer* answer, size_t event);
/* The name of a collection of objects, from `index` 0 on; NULL behind the last one. */
HLTNODE_API const char* hltnode_answer_collection(const hltnode_answer* answer, size_t index);
/* The number of objects of a collection in an event. */
HLTNODE_API uint32_t hltnode_answer_count(const hltnode_answer* answer, size_t event, size_t collection);
/* The output lists of all events (page formats/decision-message.md, `lists`), and their bytes. */
HLTNODE_API const void* hltnode_answer_lists(const hltnode_answer* answer, size_t* size);
HLTNODE_API void hltnode_answer_free(hltnode_answer* answer);

/* ---- Data of a request (page formats/mep.md) */

/* Bytes of the MEP of MFPs of these sizes. */
HLTNODE_API size_t hltnode_mep_bytes(size_t n_sources, const size_t* sizes);

/* Writes the MEP of MFPs of the same events to `to`, each at a multiple of 8 bytes. Sources ascend; at most one is of
 * ODIN. Returns its size, 0 if `room` bytes are too few or the MFPs are not so. */
HLTNODE_API size_t hltnode_mep_write(void* to, size_t room, size_t n_sources, const void* const* mfps,
                                     const size_t* sizes);

#ifdef __cplusplus
}
#endif

#endif
