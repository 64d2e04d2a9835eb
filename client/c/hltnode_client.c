/* SPDX-License-Identifier: Apache-2.0
 *
 * The feeder and the requester of hltnode_client.h, after docs/reference/protocol.md and
 * docs/formats/request-messages.md. C11, and C++ for programs that compile it in.
 *
 * One mutex guards a feeder. Its thread sends hellos, reads the messages of the node and sends frames; the functions of
 * the caller change the kept MEPs and wake it. Only the thread uses the sockets.
 * A requester has no thread: its functions use its socket themselves.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hltnode_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <nmmintrin.h>
#define HAVE_CRC_INSTRUCTION
#endif

#if defined(__has_include)
#if __has_include(<zmq.h>)
#include <zmq.h>
#define HAVE_ZMQ_H
#endif
#endif
#ifndef HAVE_ZMQ_H
/* The used declarations of <zmq.h>, for machines that have libzmq without its development package. */
#ifdef __cplusplus
extern "C" {
#endif
typedef struct zmq_pollitem_t {
    void* socket;
    int fd;
    short events;
    short revents;
} zmq_pollitem_t;
typedef struct zmq_msg_t {
    void* opaque[64 / sizeof(void*)];
} zmq_msg_t;
int zmq_msg_init(zmq_msg_t* message);
int zmq_msg_recv(zmq_msg_t* message, void* socket, int flags);
int zmq_msg_close(zmq_msg_t* message);
int zmq_msg_more(const zmq_msg_t* message);
void* zmq_msg_data(zmq_msg_t* message);
size_t zmq_msg_size(const zmq_msg_t* message);
void* zmq_ctx_new(void);
int zmq_ctx_term(void* context);
void* zmq_socket(void* context, int type);
int zmq_close(void* socket);
int zmq_setsockopt(void* socket, int option, const void* value, size_t size);
int zmq_connect(void* socket, const char* endpoint);
int zmq_disconnect(void* socket, const char* endpoint);
int zmq_send(void* socket, const void* data, size_t size, int flags);
int zmq_recv(void* socket, void* data, size_t size, int flags);
int zmq_poll(zmq_pollitem_t* items, int n, long timeout_ms);
int zmq_socket_monitor(void* socket, const char* endpoint, int events);
int zmq_curve_public(char* public_key, const char* secret_key);
int zmq_errno(void);
const char* zmq_strerror(int number);
#ifdef __cplusplus
}
#endif
enum { ZMQ_PAIR = 0, ZMQ_DEALER = 5, ZMQ_PUSH = 8, ZMQ_POLLIN = 1, ZMQ_POLLOUT = 2, ZMQ_DONTWAIT = 1 };
enum { ZMQ_SNDMORE = 2 };
enum { ZMQ_LINGER = 17, ZMQ_RECONNECT_IVL = 18, ZMQ_RECONNECT_IVL_MAX = 21, ZMQ_MAXMSGSIZE = 22, ZMQ_SNDHWM = 23 };
enum { ZMQ_IMMEDIATE = 39, ZMQ_IPV6 = 42, ZMQ_CURVE_PUBLICKEY = 48, ZMQ_CURVE_SECRETKEY, ZMQ_CURVE_SERVERKEY };
enum { ZMQ_TCP_KEEPALIVE = 34, ZMQ_TCP_KEEPALIVE_CNT, ZMQ_TCP_KEEPALIVE_IDLE, ZMQ_TCP_KEEPALIVE_INTVL };
enum { ZMQ_TCP_MAXRT = 80, ZMQ_EVENT_DISCONNECTED = 0x200, ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL = 0x800 };
enum { ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL = 0x2000, ZMQ_EVENT_HANDSHAKE_FAILED_AUTH = 0x4000 };
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { CONTROL_VERSION = 3, FRAME_VERSION = 2, MEMORY_VERSION = 1, REQUEST_VERSION = 1 };
enum { FRAME_HEADER_BYTES = 48, TOKEN_AT = 40, MFP_HEADER_BYTES = 20, MFP_ALIGN = 3, FRAME_ALIGNMENT = 64 };
enum { MAX_CONTROL_BYTES = 32 << 10, MAX_MEMORY_BYTES = 16 << 10, MAX_RANGES = 1024, MAX_PLACES = 1000 };
enum { MAX_SOURCES = 4096, MAX_NAME = 64, MAX_TEXT = 1000, MAX_ENDPOINT = 255, KEY_LETTERS = 40 };
enum { MAX_COLLECTIONS = 4096, MAX_ANSWER_BYTES = 64 << 20, MEP_HEADER_BYTES = 8, MEP_ALIGNMENT = 8 };
enum { ERROR_BYTES = MAX_TEXT + 300 };
enum { MAX_KEY_FILE = 65536, MAX_ACKED_AHEAD = 4096, MAX_MISSED_AHEAD = 1024, MAX_REFUSED = 65536 };
/* A fragment that arrives damaged more often is damaged in this process, not on the way. */
enum { MAX_DAMAGED = 5 };
/* The limit counts hellos, not seconds: a paused program has received nothing either. */
enum { SILENT_HELLOS = 4 };
/* Frames in the queue of libzmq, which holds copies, and frames sent before messages are read again. */
enum { DATA_HWM = 64, FRAMES_OF_A_TURN = 256, MESSAGES_OF_A_TURN = 256 };
enum { CONTROL_MAXRT_MS = 4000, DATA_MAXRT_MS = 15000, LINGER_MS = 500 };
#define DEFAULT_MEMORY_BYTES ((size_t)256 << 20)
#define MAX_MEP_ID (UINT64_MAX - 1)
#define MS INT64_C(1000000)
#define FOREVER INT64_MAX
#define HELLO_NS (1000 * MS)
#define RETRY_NS (50 * MS)
#define OVERTAKEN_NS (3000 * MS)
#define UNHEARD_NS (20000 * MS)
#define CONFIRM_NS (2000 * MS)
#define PATIENCE_NS (30000 * MS)
#define HEARD_NS (3000 * MS)
#define MEMORY_RETRY_NS (200 * MS)

/* Reasons of refused fragments. The last entry counts those that this version does not know. */
static const char* const REASONS[] = {
    "bad_magic",      "bad_version",   "bad_size",       "bad_crc",       "bad_checksum",   "truncated", "oversized",
    "unknown_source", "foreign_run",   "duplicate",      "late",          "revoked",        "no_credit", "malformed",
    "mismatch",       "reserved_type", "bank_too_large", "unknown_token", "foreign_source", "other"};
enum { N_REASONS = (int)(sizeof REASONS / sizeof REASONS[0]) };

/* Errors that the same hello gets again and again. */
static const char* const HOPELESS[] = {"foreign_chain", "foreign_input", "no_sources",  "events_per_mep", "foreign_run",
                                       "sources_fixed", "shadow",        "bad_version", "malformed",      "oversized"};
/* Refusals of the memory that end: the hello is still on its way, or an earlier segment is not closed yet. */
static const char* const PASSING_OF_MEMORY[] = {"unknown_feeder", "too_many", "late"};

static bool is_one_of(const char* text, const char* const* list, size_t n)
{
    for (size_t i = 0; i < n; ++i)
        if (!strcmp(text, list[i])) return true;
    return false;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000 * MS + time.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* ---- Numbers in frames are little-endian */

static void put(uint8_t* to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; ++i) to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t* from, int n_bytes)
{
    uint64_t value = 0;
    for (int i = n_bytes; i-- > 0;) value = value << 8 | from[i];
    return value;
}

static size_t padded(size_t size, size_t to) { return (size + to - 1) / to * to; }

/* CRC32C of eight bytes a step: tables[k][b] is the CRC of byte b followed by k zero bytes. */
typedef struct CrcTables {
    uint32_t of[8][256];
} CrcTables;

static void make_crc_tables(CrcTables* tables)
{
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78U : 0U);
        tables->of[0][i] = value;
    }
    for (int k = 1; k < 8; ++k)
        for (int i = 0; i < 256; ++i) {
            const uint32_t before = tables->of[k - 1][i];
            tables->of[k][i] = before >> 8 ^ tables->of[0][before & 0xFF];
        }
}

static uint32_t crc32c_by_tables(const CrcTables* tables, uint32_t crc, const uint8_t* data, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        const uint64_t word = get(data, 8) ^ crc;
        crc = 0;
        for (int k = 0; k < 8; ++k) crc ^= tables->of[7 - k][(word >> (8 * k)) & 0xFF];
    }
    while (size--) crc = crc >> 8 ^ tables->of[0][(crc ^ *data++) & 0xFF];
    return ~crc;
}

#ifdef HAVE_CRC_INSTRUCTION
__attribute__((target("sse4.2"))) static uint32_t crc32c_by_instruction(uint32_t crc, const uint8_t* data, size_t size)
{
    uint64_t value = ~crc;
    for (; size >= 8; size -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, 8);
        value = _mm_crc32_u64(value, word);
    }
    crc = (uint32_t)value;
    while (size--) crc = _mm_crc32_u8(crc, *data++);
    return ~crc;
}
#endif

static uint32_t crc32c(const CrcTables* tables, uint32_t crc, const uint8_t* data, size_t size)
{
#ifdef HAVE_CRC_INSTRUCTION
    if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(crc, data, size);
#endif
    return crc32c_by_tables(tables, crc, data, size);
}

/* ---- Writing messages: msgpack maps with text keys */

typedef struct Writer {
    size_t size;
    bool is_full;
    uint8_t bytes[MAX_CONTROL_BYTES];
} Writer;

static void write_number(Writer* to, uint8_t tag, uint64_t value, int n_bytes)
{
    if (to->size + 1 + (size_t)n_bytes > sizeof to->bytes) {
        to->is_full = true;
        return;
    }
    to->bytes[to->size++] = tag;
    for (int i = n_bytes; i-- > 0;) to->bytes[to->size++] = (uint8_t)(value >> (8 * i));
}

static void write_uint(Writer* to, uint64_t value)
{
    if (value < 0x80)
        write_number(to, (uint8_t)value, 0, 0);
    else if (value <= UINT16_MAX)
        write_number(to, 0xCD, value, 2);
    else if (value <= UINT32_MAX)
        write_number(to, 0xCE, value, 4);
    else
        write_number(to, 0xCF, value, 8);
}

/* Names, keys and remarks of this library have fewer than 256 bytes. */
static void write_text(Writer* to, const char* text)
{
    const size_t size = strlen(text);
    write_number(to, 0xD9, size, 1);
    if (to->size + size > sizeof to->bytes) to->is_full = true;
    if (to->is_full) return;
    memcpy(to->bytes + to->size, text, size);
    to->size += size;
}

static void write_field(Writer* to, const char* key, uint64_t value)
{
    write_text(to, key);
    write_uint(to, value);
}

static void write_text_field(Writer* to, const char* key, const char* value)
{
    write_text(to, key);
    write_text(to, value);
}

static void begin_message(Writer* to, uint64_t version, const char* type, size_t n_fields)
{
    to->size = 0;
    to->is_full = false;
    write_number(to, (uint8_t)(0x80 | (n_fields + 2)), 0, 0);
    write_field(to, "v", version);
    write_text_field(to, "type", type);
}

/* ---- Reading messages. They come from the network: nothing is allocated, nothing recurses, each read is bounded */

typedef struct Reader {
    const uint8_t* at;
    const uint8_t* end;
    bool failed;
} Reader;

/* A number (uint, bool), the bytes of a text or of binary data, or a list or map of `number` items or pairs that
 * follow. */
enum { KIND_OTHER, KIND_UINT, KIND_BOOL, KIND_TEXT, KIND_BYTES, KIND_LIST, KIND_MAP };
typedef struct Value {
    int kind;
    uint64_t number;
    const uint8_t* bytes;
} Value;

static uint64_t read_big_endian(Reader* from, int n_bytes)
{
    uint64_t value = 0;
    if (from->end - from->at < n_bytes) {
        from->failed = true;
        from->at = from->end;
        return 0;
    }
    while (n_bytes-- > 0) value = value << 8 | *from->at++;
    return value;
}

static Value sized(Reader* from, int kind, uint64_t number)
{
    Value value = {kind, number, NULL};
    if (kind == KIND_TEXT || kind == KIND_BYTES || kind == KIND_OTHER) {
        if (number > (uint64_t)(from->end - from->at)) {
            from->failed = true;
            value.number = 0;
        }
        value.bytes = from->at;
        from->at += value.number;
    }
    return value;
}

static Value read_value(Reader* from)
{
    const unsigned tag = (unsigned)read_big_endian(from, 1);
    if (tag < 0x80) return sized(from, KIND_UINT, tag);
    if (tag < 0x90) return sized(from, KIND_MAP, tag & 0xF);
    if (tag < 0xA0) return sized(from, KIND_LIST, tag & 0xF);
    if (tag < 0xC0) return sized(from, KIND_TEXT, tag & 0x1F);
    if (tag >= 0xE0) return sized(from, KIND_OTHER, 0); /* a small negative number */
    switch (tag) {
    case 0xC0: return sized(from, KIND_OTHER, 0);
    case 0xC2: return sized(from, KIND_BOOL, 0);
    case 0xC3: return sized(from, KIND_BOOL, 1);
    case 0xC4: return sized(from, KIND_BYTES, read_big_endian(from, 1));
    case 0xC5: return sized(from, KIND_BYTES, read_big_endian(from, 2));
    case 0xC6: return sized(from, KIND_BYTES, read_big_endian(from, 4));
    case 0xCA: return sized(from, KIND_OTHER, 4);
    case 0xCB: return sized(from, KIND_OTHER, 8);
    case 0xCC: return sized(from, KIND_UINT, read_big_endian(from, 1));
    case 0xCD: return sized(from, KIND_UINT, read_big_endian(from, 2));
    case 0xCE: return sized(from, KIND_UINT, read_big_endian(from, 4));
    case 0xCF: return sized(from, KIND_UINT, read_big_endian(from, 8));
    case 0xD0: return sized(from, KIND_OTHER, 1);
    case 0xD1: return sized(from, KIND_OTHER, 2);
    case 0xD2: return sized(from, KIND_OTHER, 4);
    case 0xD3: return sized(from, KIND_OTHER, 8);
    case 0xD9: return sized(from, KIND_TEXT, read_big_endian(from, 1));
    case 0xDA: return sized(from, KIND_TEXT, read_big_endian(from, 2));
    case 0xDB: return sized(from, KIND_TEXT, read_big_endian(from, 4));
    case 0xDC: return sized(from, KIND_LIST, read_big_endian(from, 2));
    case 0xDD: return sized(from, KIND_LIST, read_big_endian(from, 4));
    case 0xDE: return sized(from, KIND_MAP, read_big_endian(from, 2));
    case 0xDF: return sized(from, KIND_MAP, read_big_endian(from, 4));
    default: break; /* extension types, and a byte that msgpack does not use */
    }
    from->failed = true;
    return sized(from, KIND_UINT, 0);
}

/* Passes over the items of a list or map of an unknown field. */
static void skip_items(Reader* from, Value value)
{
    uint64_t n = 0;
    for (;;) {
        if (value.kind == KIND_LIST) n += value.number;
        if (value.kind == KIND_MAP) n += 2 * value.number;
        if (!n || from->failed) return;
        --n;
        value = read_value(from);
    }
}

/* The types and fields that a feeder understands. */
enum {
    FIELD_VERSION = 1 << 0,
    FIELD_TYPE = 1 << 1,
    FIELD_NODE = 1 << 2,
    FIELD_SESSION = 1 << 3,
    FIELD_REASON = 1 << 4,
    FIELD_TEXT = 1 << 5,
    FIELD_RUN = 1 << 6,
    FIELD_SOURCE = 1 << 7,
    FIELD_MEP = 1 << 8,
    FIELD_CREDIT = 1 << 9,
    FIELD_RANGES = 1 << 10,
    FIELD_MAX_BYTES = 1 << 11,
    FIELD_TOKEN = 1 << 12,
    FIELD_RESEND = 1 << 13
};
enum {
    WELCOME,
    CREDIT,
    ACK,
    HELD,
    NACK,
    MISSED,
    GOODBYE,
    ERROR_MESSAGE,
    RUN_CLOSED,
    ATTACHED,
    REFUSED_MEMORY,
    N_TYPES
};
typedef struct MessageType {
    const char* name;
    unsigned fields;
} MessageType;
static const MessageType TYPES[N_TYPES] = {
    {"welcome", FIELD_NODE | FIELD_SESSION | FIELD_RUN | FIELD_MAX_BYTES | FIELD_TOKEN},
    {"credit", FIELD_RUN | FIELD_CREDIT},
    {"ack", FIELD_RUN | FIELD_RANGES},
    {"held", FIELD_SESSION | FIELD_RUN | FIELD_RANGES},
    {"nack", FIELD_RUN | FIELD_SOURCE | FIELD_MEP | FIELD_REASON | FIELD_RESEND},
    {"missed", FIELD_RUN | FIELD_SOURCE | FIELD_RANGES},
    {"goodbye", FIELD_REASON},
    {"error", FIELD_REASON | FIELD_TEXT},
    {"run_closed", FIELD_RUN},
    {"attached", 0},
    {"refused", FIELD_REASON | FIELD_TEXT},
};

typedef struct Message {
    int type;
    unsigned fields;
    uint64_t version, run, source, mep, credit, max_bytes, token, resend;
    char type_name[MAX_NAME + 1], node[MAX_NAME + 1], session[MAX_NAME + 1];
    char reason[MAX_TEXT + 1], text[MAX_TEXT + 1];
    size_t n_ranges;
    uint64_t ranges[MAX_RANGES][2];
} Message;

enum { MESSAGE_READ, MESSAGE_OF_UNKNOWN_TYPE, MESSAGE_OF_OTHER_VERSION, MESSAGE_MALFORMED };

static bool is_name(const char* text)
{
    const size_t size = strlen(text);
    return size > 0 && size <= MAX_NAME &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-") == size;
}

/* Copies a text for people: cut to the room, control characters replaced. */
static bool copy_text(char* to, size_t room, const Value* value)
{
    if (value->kind != KIND_TEXT) return false;
    const size_t size = value->number < room ? (size_t)value->number : room - 1;
    for (size_t i = 0; i < size; ++i) to[i] = (char)(value->bytes[i] < 0x20 ? '?' : value->bytes[i]);
    to[size] = '\0';
    return true;
}

static bool copy_name(char* to, const Value* value)
{
    return value->number <= MAX_NAME && copy_text(to, MAX_NAME + 1, value) && is_name(to);
}

static bool copy_uint(uint64_t* to, const Value* value, uint64_t max)
{
    *to = value->number;
    return value->kind == KIND_UINT && value->number <= max;
}

static bool read_ranges(Reader* from, Message* to, uint64_t n)
{
    if (n > MAX_RANGES) return false;
    to->n_ranges = 0;
    for (; n > 0; --n) {
        const Value pair = read_value(from);
        if (pair.kind != KIND_LIST || pair.number != 2) return false;
        const Value first = read_value(from), last = read_value(from);
        if (first.kind != KIND_UINT || last.kind != KIND_UINT || first.number > last.number) return false;
        to->ranges[to->n_ranges][0] = first.number;
        to->ranges[to->n_ranges++][1] = last.number;
    }
    return true;
}

/* Reads the value of one field into `to`; false if it has another type or is out of range. */
static bool read_field(Reader* from, Message* to, const char* key)
{
    unsigned field = 0;
    bool is_good = true;
    const Value value = read_value(from);
    if (!strcmp(key, "v")) {
        field = FIELD_VERSION;
        is_good = copy_uint(&to->version, &value, UINT64_MAX);
    } else if (!strcmp(key, "type")) {
        field = FIELD_TYPE;
        is_good = copy_name(to->type_name, &value);
    } else if (!strcmp(key, "node")) {
        field = FIELD_NODE;
        is_good = copy_name(to->node, &value);
    } else if (!strcmp(key, "session")) {
        field = FIELD_SESSION;
        is_good = copy_name(to->session, &value);
    } else if (!strcmp(key, "reason")) {
        field = FIELD_REASON;
        is_good = copy_text(to->reason, sizeof to->reason, &value);
    } else if (!strcmp(key, "text")) {
        field = FIELD_TEXT;
        is_good = copy_text(to->text, sizeof to->text, &value);
    } else if (!strcmp(key, "run")) {
        field = FIELD_RUN;
        is_good = copy_uint(&to->run, &value, UINT32_MAX);
    } else if (!strcmp(key, "source")) {
        field = FIELD_SOURCE;
        is_good = copy_uint(&to->source, &value, UINT16_MAX);
    } else if (!strcmp(key, "mep")) {
        field = FIELD_MEP;
        is_good = copy_uint(&to->mep, &value, UINT64_MAX);
    } else if (!strcmp(key, "max_fragment_bytes")) {
        field = FIELD_MAX_BYTES;
        is_good = copy_uint(&to->max_bytes, &value, UINT32_MAX);
    } else if (!strcmp(key, "token")) {
        field = FIELD_TOKEN;
        is_good = copy_uint(&to->token, &value, UINT64_MAX);
    } else if (!strcmp(key, "resend")) {
        field = FIELD_RESEND;
        is_good = value.kind == KIND_BOOL;
        to->resend = value.number;
    } else if (!strcmp(key, "meps") && value.kind == KIND_LIST) {
        field = FIELD_RANGES;
        is_good = read_ranges(from, to, value.number);
    } else if (!strcmp(key, "meps")) {
        field = FIELD_CREDIT;
        is_good = copy_uint(&to->credit, &value, UINT32_MAX);
    } else
        skip_items(from, value);
    to->fields |= field;
    return is_good;
}

/* Reads a message of this version; `to` is valid only after MESSAGE_READ. */
static int read_message(Message* to, const uint8_t* bytes, size_t size, uint64_t version)
{
    Reader from = {bytes, bytes + size, false};
    const Value map = read_value(&from);
    bool is_good = map.kind == KIND_MAP;
    to->fields = 0;
    to->version = to->n_ranges = 0;
    to->type_name[0] = '\0';
    for (uint64_t i = 0; is_good && i < map.number && !from.failed; ++i) {
        char key[MAX_NAME + 1];
        const Value name = read_value(&from);
        is_good = copy_text(key, sizeof key, &name) && read_field(&from, to, key);
    }
    if ((to->fields & FIELD_VERSION) && to->version != version) return MESSAGE_OF_OTHER_VERSION;
    if (!is_good || from.failed || from.at != from.end) return MESSAGE_MALFORMED;
    if (!(to->fields & FIELD_VERSION) || !(to->fields & FIELD_TYPE)) return MESSAGE_MALFORMED;
    for (to->type = 0; to->type < N_TYPES; ++to->type)
        if (!strcmp(to->type_name, TYPES[to->type].name)) {
            const unsigned needed = TYPES[to->type].fields;
            return (to->fields & needed) == needed ? MESSAGE_READ : MESSAGE_MALFORMED;
        }
    return MESSAGE_OF_UNKNOWN_TYPE;
}

/* ---- MEPs, kept until they are acknowledged */

typedef struct Fragment {
    uint8_t* frame;
    size_t size;
    int64_t due_ns;   /* sending time; 0: now; -1: sent */
    int nacked;       /* reason of a refusal that is not repeated yet; -1: none */
    unsigned damaged; /* arrivals with a wrong CRC */
    bool was_sent;
    bool is_given_up;
} Fragment;

typedef struct Mep {
    uint64_t id;
    bool has_begun; /* counts against the credit */
    bool at_node;   /* the node mentioned it: it is not lost on the way */
    bool held;      /* the node reported that it has all fragments */
    unsigned turns; /* how often the node had no slot for it */
    size_t n_due;
    size_t n_given_up;
    int64_t due_ns; /* of its first due fragment */
    uint64_t turn;  /* number of sent frames, up to its last one */
    int64_t sent_ns;
    int64_t overtaken_ns; /* time since which a later frame is known to have arrived */
    uint8_t* block;       /* the frames, each at a multiple of FRAME_ALIGNMENT */
    size_t size;
    Fragment* fragments;
} Mep;

typedef struct Range {
    uint64_t first, last;
    uint16_t source;
} Range;

typedef struct RefusedFragment {
    uint64_t mep;
    uint16_t source;
} RefusedFragment;

enum { MEMORY_APART, MEMORY_ATTACHING, MEMORY_ATTACHED };

/* CURVE keys; `of_server` is empty without them. */
typedef struct Keys {
    char own[KEY_LETTERS + 1], secret[KEY_LETTERS + 1], of_server[KEY_LETTERS + 1];
} Keys;

struct hltnode_feeder {
    /* Settings; they do not change after hltnode_feeder_connect(). */
    char name[MAX_NAME + 1], chain[MAX_NAME + 1], input[MAX_NAME + 1], session[MAX_NAME + 1];
    char data_endpoint[MAX_ENDPOINT + 1], control_endpoint[MAX_ENDPOINT + 1];
    Keys keys;
    bool encrypts_data;
    uint32_t run, max_mfp_bytes;
    uint16_t events_per_mep, n_feeders;
    uint16_t* sources;
    size_t n_sources;
    size_t memory_bytes;
    const char* memory_path; /* within data_endpoint; NULL for tcp */
    hltnode_log log;
    void* log_context;
    const char* invalid; /* what is wrong with the arguments of hltnode_feeder_new() */
    CrcTables crc_tables;
    bool is_connected;
    char error[ERROR_BYTES]; /* of the last call */

    /* The mutex guards everything below. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    int wake; /* eventfd */
    bool is_leaving;
    hltnode_status fatal;
    char fatal_text[ERROR_BYTES];
    bool has_ended, is_confirmed;

    Mep** kept; /* by id */
    size_t n_kept, kept_room;
    uint64_t next_mep; /* ids below were offered */
    bool has_meps;
    Range acked_ahead[MAX_ACKED_AHEAD]; /* acknowledged ids that were not offered yet */
    size_t n_acked_ahead;
    Range missed_ahead[MAX_MISSED_AHEAD];
    size_t n_missed_ahead;
    RefusedFragment* refused; /* by MEP and source, so that each fragment counts once */
    size_t n_refused, refused_room;
    uint64_t refused_by[N_REASONS];
    uint64_t n_acknowledged, n_acknowledged_before, n_sent, n_repeated, n_welcomes, n_unreadable;

    /* The conversation with the node. */
    char node_session[MAX_NAME + 1];
    uint64_t token;          /* permission of the node to send */
    uint64_t max_node_bytes; /* largest MFP of the node; 0 before the first welcome */
    uint64_t credit, n_begun, arrived, floor_of_session;
    bool is_welcome;
    int64_t hello_ns, refused_since_ns, heard_ns;
    unsigned hellos_without_answer, hellos_without_welcome;
    char refusal[MAX_TEXT + 1];

    /* Sockets, of the thread. */
    void *context, *data, *control, *data_monitor, *control_monitor;
    bool is_full; /* the data connection has no room */
    int64_t next_due_ns;
    Writer writer;
    Message message;
    uint8_t received[MAX_CONTROL_BYTES];

    /* Shared memory. */
    int memory_file, memory_socket, memory_state;
    uint8_t* memory;
    size_t memory_next;
    int64_t memory_try_ns, memory_end_ns, memory_overdue_ns;
    uint8_t places[8 + 16 * MAX_PLACES];
};

/* ---- Errors and the log */

__attribute__((format(printf, 2, 3))) static void say(hltnode_feeder* feeder, const char* format, ...)
{
    if (!feeder->log) return;
    char text[ERROR_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    feeder->log(feeder->log_context, text);
}

/* Records the error of a call in ERROR_BYTES. */
__attribute__((format(printf, 3, 4))) static hltnode_status fail_in(char* error, hltnode_status status,
                                                                    const char* format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(error, ERROR_BYTES, format, values);
    va_end(values);
    return status;
}

__attribute__((format(printf, 3, 4))) static hltnode_status fail(hltnode_feeder* feeder, hltnode_status status,
                                                                 const char* format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(feeder->error, sizeof feeder->error, format, values);
    va_end(values);
    return status;
}

/* Ends the conversation; the callers get the status. */
__attribute__((format(printf, 3, 4))) static void end_with(hltnode_feeder* feeder, hltnode_status status,
                                                           const char* format, ...)
{
    if (feeder->fatal) return;
    feeder->fatal = status;
    va_list values;
    va_start(values, format);
    vsnprintf(feeder->fatal_text, sizeof feeder->fatal_text, format, values);
    va_end(values);
    say(feeder, "the feeder ends: %s", feeder->fatal_text);
}

static hltnode_status fatal_status(hltnode_feeder* feeder)
{
    return fail(feeder, feeder->fatal, "%s", feeder->fatal_text);
}

static void wake(hltnode_feeder* feeder)
{
    const uint64_t one = 1;
    /* A full counter wakes as well. */
    if (write(feeder->wake, &one, sizeof one) < 0) return;
}

/* ---- Fragments that no event contains */

static int reason_of(const char* text)
{
    int i = 0;
    while (i < N_REASONS - 1 && strcmp(text, REASONS[i]) != 0) ++i;
    return i;
}

static size_t place_of_refused(const hltnode_feeder* feeder, uint64_t mep, uint16_t source)
{
    size_t low = 0, high = feeder->n_refused;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const RefusedFragment* at = &feeder->refused[middle];
        if (at->mep < mep || (at->mep == mep && at->source < source))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Counts each fragment once, under its first reason. The record is bounded: of more than MAX_REFUSED, the oldest may be
 * counted again if the node repeats the refusal. */
static void count_refused(hltnode_feeder* feeder, int reason, uint16_t source, uint64_t mep)
{
    size_t at = place_of_refused(feeder, mep, source);
    if (at < feeder->n_refused && feeder->refused[at].mep == mep && feeder->refused[at].source == source) return;
    ++feeder->refused_by[reason];
    if (feeder->n_refused == MAX_REFUSED) {
        const size_t half = MAX_REFUSED / 2;
        memmove(feeder->refused, feeder->refused + half, (feeder->n_refused - half) * sizeof feeder->refused[0]);
        feeder->n_refused -= half;
        at = place_of_refused(feeder, mep, source);
    }
    if (feeder->n_refused == feeder->refused_room) {
        const size_t room = feeder->refused_room ? 2 * feeder->refused_room : 64;
        void* more = realloc(feeder->refused, room * sizeof feeder->refused[0]);
        if (!more) return;
        feeder->refused = (RefusedFragment*)more;
        feeder->refused_room = room;
    }
    memmove(feeder->refused + at + 1, feeder->refused + at, (feeder->n_refused - at) * sizeof feeder->refused[0]);
    feeder->refused[at].mep = mep;
    feeder->refused[at].source = source;
    ++feeder->n_refused;
}

static uint64_t total_refused(const hltnode_feeder* feeder)
{
    uint64_t n = 0;
    for (int i = 0; i < N_REASONS; ++i) n += feeder->refused_by[i];
    return n;
}

/* ---- Ids that the node names before they are offered: a restarted program offers its MEPs from the first one */

static bool is_in(const Range* ranges, size_t n, uint64_t mep)
{
    for (size_t i = 0; i < n; ++i)
        if (mep >= ranges[i].first && mep <= ranges[i].last) return true;
    return false;
}

/* Adds a range; extends one that it touches. A full list drops it: the node then refuses what is sent (`duplicate`,
 * `late`), and acknowledges it again. */
static void add_ahead(const hltnode_feeder* feeder, Range* ranges, size_t* n, size_t room, Range range)
{
    if (feeder->has_meps && range.last < feeder->next_mep) return;
    for (size_t i = 0; i < *n; ++i) {
        Range* at = &ranges[i];
        const bool touches =
            range.first <= at->last + (at->last != UINT64_MAX) && at->first <= range.last + (range.last != UINT64_MAX);
        if (at->source != range.source || !touches) continue;
        if (range.first < at->first) at->first = range.first;
        if (range.last > at->last) at->last = range.last;
        return;
    }
    if (*n == room) {
        size_t n_left = 0;
        for (size_t i = 0; i < *n; ++i)
            if (ranges[i].last >= feeder->next_mep) ranges[n_left++] = ranges[i];
        *n = n_left;
    }
    if (*n < room) ranges[(*n)++] = range;
}

/* ---- Kept MEPs */

/* The first kept MEP with at least this id. */
static size_t place_of(const hltnode_feeder* feeder, uint64_t mep)
{
    size_t low = 0, high = feeder->n_kept;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (feeder->kept[middle]->id < mep)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void free_mep(hltnode_feeder* feeder, Mep* mep)
{
    if (!feeder->memory) free(mep->block);
    free(mep);
}

static bool is_sent(const Mep* mep) { return mep->has_begun && mep->n_due == 0; }

/* The node has a whole MEP, and so all frames sent before it. */
static void note_arrival(hltnode_feeder* feeder, const Mep* mep)
{
    if (is_sent(mep) && mep->turn > feeder->arrived) feeder->arrived = mep->turn;
}

static void send_at(Mep* mep, Fragment* fragment, int64_t due_ns)
{
    if (fragment->is_given_up) return;
    if (fragment->due_ns < 0) ++mep->n_due;
    if (mep->n_due == 1 || due_ns < mep->due_ns) mep->due_ns = due_ns;
    fragment->due_ns = due_ns;
}

static void do_not_send(Mep* mep, Fragment* fragment)
{
    if (fragment->due_ns >= 0) --mep->n_due;
    fragment->due_ns = -1;
    fragment->nacked = -1;
}

static void send_all_again(const hltnode_feeder* feeder, Mep* mep)
{
    for (size_t i = 0; i < feeder->n_sources; ++i) send_at(mep, &mep->fragments[i], 0);
}

static void end_mep(hltnode_feeder* feeder, Mep* mep)
{
    if (mep->has_begun) --feeder->n_begun;
    free_mep(feeder, mep);
}

static void acknowledge(hltnode_feeder* feeder, uint64_t first, uint64_t last)
{
    const size_t begin = place_of(feeder, first);
    size_t end = begin;
    for (; end < feeder->n_kept && feeder->kept[end]->id <= last; ++end) {
        Mep* mep = feeder->kept[end];
        /* The node closed the MEP before these fragments were repeated. */
        for (size_t i = 0; i < feeder->n_sources; ++i)
            if (mep->fragments[i].nacked >= 0)
                count_refused(feeder, mep->fragments[i].nacked, feeder->sources[i], mep->id);
        note_arrival(feeder, mep);
        end_mep(feeder, mep);
        ++feeder->n_acknowledged;
    }
    if (end > begin) memmove(feeder->kept + begin, feeder->kept + end, (feeder->n_kept - end) * sizeof feeder->kept[0]);
    feeder->n_kept -= end - begin;
    const Range range = {first, last, 0};
    add_ahead(feeder, feeder->acked_ahead, &feeder->n_acked_ahead, MAX_ACKED_AHEAD, range);
}

static void hold(hltnode_feeder* feeder, uint64_t first, uint64_t last)
{
    for (size_t at = place_of(feeder, first); at < feeder->n_kept && feeder->kept[at]->id <= last; ++at) {
        Mep* mep = feeder->kept[at];
        if (!mep->has_begun) continue;
        note_arrival(feeder, mep);
        mep->held = mep->at_node = true;
        for (size_t i = 0; i < feeder->n_sources; ++i) do_not_send(mep, &mep->fragments[i]);
    }
}

static void miss(hltnode_feeder* feeder, uint16_t source, uint64_t first, uint64_t last)
{
    const int late = reason_of("late");
    for (size_t at = place_of(feeder, first); at < feeder->n_kept && feeder->kept[at]->id <= last; ++at)
        count_refused(feeder, late, source, feeder->kept[at]->id);
    const Range range = {first, last, source};
    add_ahead(feeder, feeder->missed_ahead, &feeder->n_missed_ahead, MAX_MISSED_AHEAD, range);
}

/* A connection keeps the order of frames. So a MEP is lost if the node has a later frame, and neither has this MEP nor
 * refused it. A frame that a busy node has not read yet is not lost. */
static void repeat_lost(hltnode_feeder* feeder)
{
    const int64_t now = now_ns();
    Mep* last = NULL;
    bool is_any_lost = false;
    for (size_t at = 0; at < feeder->n_kept; ++at) {
        Mep* mep = feeder->kept[at];
        if (mep->at_node || !is_sent(mep)) continue;
        if (!last || mep->turn > last->turn) last = mep;
        if (mep->turn >= feeder->arrived)
            mep->overtaken_ns = 0;
        else if (!mep->overtaken_ns)
            mep->overtaken_ns = now;
        else if (now - mep->overtaken_ns >= OVERTAKEN_NS) {
            is_any_lost = true;
            mep->overtaken_ns = 0;
            send_all_again(feeder, mep);
        }
    }
    /* The node mentions no sent MEP: its answer to the last one shows whether the others have arrived. */
    if (!is_any_lost && last && last->turn > feeder->arrived && now - last->sent_ns >= UNHEARD_NS)
        send_all_again(feeder, last);
}

/* ---- Messages of the node */

/* Nothing is sent until the next welcome. */
static void lose(hltnode_feeder* feeder)
{
    feeder->is_welcome = false;
    feeder->credit = 0;
}

static void take_welcome(hltnode_feeder* feeder, const Message* message)
{
    ++feeder->n_welcomes;
    if (feeder->hellos_without_welcome) --feeder->hellos_without_welcome;
    feeder->refused_since_ns = 0;
    const bool is_same = !strcmp(feeder->node_session, message->session);
    if (feeder->is_welcome && is_same && feeder->token == message->token) {
        repeat_lost(feeder);
        return;
    }
    say(feeder, "welcome by node %s, session %s, %zu MEPs are not acknowledged", message->node, message->session,
        feeder->n_kept);
    memcpy(feeder->node_session, message->session, sizeof feeder->node_session);
    feeder->token = message->token;
    feeder->max_node_bytes = message->max_bytes;
    feeder->is_welcome = true;
    feeder->credit = feeder->n_begun = feeder->arrived = 0;
    feeder->floor_of_session = feeder->n_kept ? feeder->kept[0]->id : feeder->next_mep;
    for (size_t at = 0; at < feeder->n_kept; ++at) {
        Mep* mep = feeder->kept[at];
        mep->held = mep->held && is_same;
        mep->has_begun = mep->at_node = mep->held;
        mep->overtaken_ns = 0;
        mep->turns = 0;
        if (mep->held) ++feeder->n_begun;
        for (size_t i = 0; i < feeder->n_sources; ++i) {
            Fragment* fragment = &mep->fragments[i];
            fragment->nacked = -1;
            if (!mep->held) send_at(mep, fragment, 0);
            if (fragment->size - FRAME_HEADER_BYTES > message->max_bytes)
                end_with(feeder, HLTNODE_REFUSED, "MEP %" PRIu64 ": a kept MFP of %zu bytes, the node allows %" PRIu64,
                         mep->id, fragment->size - FRAME_HEADER_BYTES, message->max_bytes);
        }
    }
}

static void give_up(hltnode_feeder* feeder, size_t at, size_t column, int reason)
{
    Mep* mep = feeder->kept[at];
    Fragment* fragment = &mep->fragments[column];
    count_refused(feeder, reason, feeder->sources[column], mep->id);
    if (fragment->is_given_up) return;
    do_not_send(mep, fragment);
    fragment->is_given_up = true;
    if (++mep->n_given_up < feeder->n_sources) return;
    /* The node knows nothing of this MEP, and will not acknowledge it. */
    end_mep(feeder, mep);
    memmove(feeder->kept + at, feeder->kept + at + 1, (feeder->n_kept - at - 1) * sizeof feeder->kept[0]);
    --feeder->n_kept;
}

/* The node has no slot for a MEP: it lets others go first. */
static void give_way(hltnode_feeder* feeder, Mep* mep, int64_t due_ns)
{
    if (!mep->has_begun) return;
    mep->has_begun = false;
    --feeder->n_begun;
    ++mep->turns;
    mep->due_ns = due_ns;
    for (size_t i = 0; i < feeder->n_sources; ++i)
        if (mep->fragments[i].due_ns >= 0) mep->fragments[i].due_ns = due_ns;
}

static void take_nack(hltnode_feeder* feeder, const Message* message)
{
    const char* reason = message->reason;
    say(feeder, "the node refuses a fragment: %s, source %" PRIu64 ", MEP %" PRIu64 "%s", reason, message->source,
        message->mep, message->resend ? ", to be sent again" : "");
    if (!strcmp(reason, "foreign_run")) {
        /* The node switched to another run; its answers to the hellos decide. */
        lose(feeder);
        return;
    }
    const uint16_t source = (uint16_t)message->source;
    const size_t at = place_of(feeder, message->mep);
    Mep* mep = at < feeder->n_kept && feeder->kept[at]->id == message->mep ? feeder->kept[at] : NULL;
    if (!strcmp(reason, "duplicate") || !strcmp(reason, "late")) {
        /* Below the floor of a session each fragment is late, also of MEPs that an earlier session built. */
        if (reason[0] == 'l' && message->mep >= feeder->floor_of_session)
            count_refused(feeder, reason_of(reason), source, message->mep);
        if (mep) mep->at_node = true;
        return;
    }
    size_t column = 0;
    while (column < feeder->n_sources && feeder->sources[column] != source) ++column;
    if (!mep || column == feeder->n_sources) return;
    Fragment* fragment = &mep->fragments[column];
    if (!message->resend) {
        give_up(feeder, at, column, reason_of(reason));
        return;
    }
    if (fragment->due_ns >= 0 || fragment->is_given_up) return;
    const bool passes = !strcmp(reason, "no_credit") || !strcmp(reason, "revoked");
    if (!passes && ++fragment->damaged > MAX_DAMAGED) {
        give_up(feeder, at, column, reason_of(reason));
        return;
    }
    const int64_t due_ns = now_ns() + RETRY_NS;
    if (!strcmp(reason, "no_credit")) give_way(feeder, mep, due_ns);
    send_at(mep, fragment, due_ns);
    fragment->nacked = reason_of(reason);
}

static void take_error(hltnode_feeder* feeder, const Message* message)
{
    if (!strcmp(message->reason, "unknown_feeder")) return; /* the next hello repairs it */
    say(feeder, "the node refuses: %s: %s", message->reason, message->text);
    if (is_one_of(message->reason, HOPELESS, sizeof HOPELESS / sizeof HOPELESS[0])) {
        end_with(feeder, HLTNODE_REFUSED, "%s: %s", message->reason, message->text);
        return;
    }
    /* Only one of two processes of a name may send. */
    if (!strcmp(message->reason, "name_taken")) lose(feeder);
    memcpy(feeder->refusal, message->text, sizeof feeder->refusal);
    if (!feeder->refused_since_ns) feeder->refused_since_ns = now_ns();
}

static void take_message(hltnode_feeder* feeder, const Message* message)
{
    const bool is_ours = message->run == feeder->run;
    switch (message->type) {
    case WELCOME: take_welcome(feeder, message); break;
    case CREDIT:
        if (is_ours && feeder->is_welcome) feeder->credit = message->credit;
        break;
    case ACK:
        for (size_t i = 0; is_ours && i < message->n_ranges; ++i)
            acknowledge(feeder, message->ranges[i][0], message->ranges[i][1]);
        break;
    case HELD:
        if (strcmp(feeder->node_session, message->session) != 0) break;
        for (size_t i = 0; is_ours && i < message->n_ranges; ++i)
            hold(feeder, message->ranges[i][0], message->ranges[i][1]);
        break;
    case NACK: take_nack(feeder, message); break;
    case MISSED:
        for (size_t i = 0; is_ours && i < message->n_ranges; ++i)
            miss(feeder, (uint16_t)message->source, message->ranges[i][0], message->ranges[i][1]);
        break;
    case GOODBYE:
        say(feeder, "the node leaves: %s", message->reason);
        lose(feeder);
        break;
    case ERROR_MESSAGE: take_error(feeder, message); break;
    case RUN_CLOSED:
        if (is_ours) end_with(feeder, HLTNODE_RUN_CLOSED, "run %" PRIu32 " was closed by an operator", feeder->run);
        break;
    default: break; /* a message of the memory socket */
    }
}

static void read_control(hltnode_feeder* feeder)
{
    for (int i = 0; i < MESSAGES_OF_A_TURN && !feeder->fatal; ++i) {
        const int size = zmq_recv(feeder->control, feeder->received, sizeof feeder->received, ZMQ_DONTWAIT);
        if (size < 0) return;
        feeder->hellos_without_answer = 0;
        feeder->heard_ns = now_ns();
        const int result = size > MAX_CONTROL_BYTES
                               ? MESSAGE_MALFORMED
                               : read_message(&feeder->message, feeder->received, (size_t)size, CONTROL_VERSION);
        if (result == MESSAGE_READ)
            take_message(feeder, &feeder->message);
        else if (result != MESSAGE_OF_UNKNOWN_TYPE) {
            ++feeder->n_unreadable;
            say(feeder, "cannot read a message of the node: %s",
                result == MESSAGE_MALFORMED ? "malformed" : "of another version");
        }
    }
}

/* ---- Sockets */

static bool set_option(void* socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool use_keys(void* socket, const Keys* keys)
{
    return !keys->of_server[0] || (zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->own, KEY_LETTERS + 1) == 0 &&
                                   zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->secret, KEY_LETTERS + 1) == 0 &&
                                   zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->of_server, KEY_LETTERS + 1) == 0);
}

static const int MONITORED = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

static bool open_socket(hltnode_feeder* feeder, void** socket, void** monitor, int type, const char* endpoint)
{
    const bool is_data = type == ZMQ_PUSH;
    *socket = zmq_socket(feeder->context, type);
    if (!*socket) return false;
    bool is_good = set_option(*socket, ZMQ_LINGER, LINGER_MS) &&
                   set_option(*socket, ZMQ_IPV6, strncmp(endpoint, "tcp://[", 7) == 0) &&
                   set_option(*socket, ZMQ_RECONNECT_IVL, 100) && set_option(*socket, ZMQ_RECONNECT_IVL_MAX, 1000) &&
                   set_option(*socket, ZMQ_TCP_KEEPALIVE, 1) && set_option(*socket, ZMQ_TCP_KEEPALIVE_IDLE, 2) &&
                   set_option(*socket, ZMQ_TCP_KEEPALIVE_INTVL, 1) && set_option(*socket, ZMQ_TCP_KEEPALIVE_CNT, 3) &&
                   set_option(*socket, ZMQ_TCP_MAXRT, is_data ? DATA_MAXRT_MS : CONTROL_MAXRT_MS);
    if (is_data) {
        /* Frames wait in the feeder, not in a queue to an absent node. */
        is_good = is_good && set_option(*socket, ZMQ_SNDHWM, DATA_HWM) && set_option(*socket, ZMQ_IMMEDIATE, 1);
    } else {
        const int64_t most = MAX_CONTROL_BYTES;
        is_good = is_good && zmq_setsockopt(*socket, ZMQ_MAXMSGSIZE, &most, sizeof most) == 0;
    }
    if (!is_data || feeder->encrypts_data) is_good = is_good && use_keys(*socket, &feeder->keys);
    const char* events = is_data ? "inproc://data-events" : "inproc://control-events";
    is_good = is_good && zmq_socket_monitor(*socket, events, MONITORED) == 0;
    *monitor = is_good ? zmq_socket(feeder->context, ZMQ_PAIR) : NULL;
    return *monitor && set_option(*monitor, ZMQ_LINGER, 0) && zmq_connect(*monitor, events) == 0 &&
           zmq_connect(*socket, endpoint) == 0;
}

static void close_socket(void** socket, void** monitor)
{
    if (*socket) {
        zmq_socket_monitor(*socket, NULL, 0);
        zmq_close(*socket);
    }
    if (*monitor) zmq_close(*monitor);
    *socket = *monitor = NULL;
}

static void read_monitor(hltnode_feeder* feeder, void* monitor)
{
    uint8_t event[8];
    char endpoint[MAX_ENDPOINT + 1];
    while (monitor && zmq_recv(monitor, event, sizeof event, ZMQ_DONTWAIT) >= 2) {
        uint16_t kind;
        memcpy(&kind, event, sizeof kind); /* in the order of the machine */
        zmq_recv(monitor, endpoint, sizeof endpoint, 0);
        if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
            end_with(feeder, HLTNODE_REFUSED, "the node does not know this key: it is not in security.feeders");
        else if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
            end_with(feeder, HLTNODE_REFUSED,
                     "the node and this feeder do not agree on CURVE, or on the key of the node");
        else if (kind == ZMQ_EVENT_DISCONNECTED) {
            say(feeder, "the connection is lost");
            lose(feeder);
        } else
            say(feeder, "the handshake failed: do both sides use CURVE, or none, and is the server key right?");
    }
}

static void send_message(hltnode_feeder* feeder)
{
    /* A message without room may be dropped: hellos repeat the information. */
    if (!feeder->writer.is_full) zmq_send(feeder->control, feeder->writer.bytes, feeder->writer.size, ZMQ_DONTWAIT);
}

static void say_hello(hltnode_feeder* feeder)
{
    Writer* to = &feeder->writer;
    const size_t n_optional =
        (size_t)(feeder->n_feeders > 1) + (size_t)(feeder->chain[0] != 0) + (size_t)(feeder->input[0] != 0);
    begin_message(to, CONTROL_VERSION, "hello", 8 + n_optional);
    write_text_field(to, "feeder", feeder->name);
    write_text_field(to, "session", feeder->session);
    write_field(to, "run", feeder->run);
    write_text(to, "sources");
    write_number(to, 0xDC, feeder->n_sources, 2);
    for (size_t i = 0; i < feeder->n_sources; ++i) write_uint(to, feeder->sources[i]);
    write_field(to, "first_mep", feeder->n_kept ? feeder->kept[0]->id : feeder->next_mep);
    write_field(to, "events_per_mep", feeder->events_per_mep);
    write_field(to, "max_fragment_bytes", feeder->max_mfp_bytes);
    write_text(to, "supervises");
    write_number(to, 0xC2, 0, 0);
    if (feeder->n_feeders > 1) write_field(to, "feeders", feeder->n_feeders);
    if (feeder->chain[0]) write_text_field(to, "chain", feeder->chain);
    if (feeder->input[0]) write_text_field(to, "input", feeder->input);
    send_message(feeder);
    if (feeder->has_ended) {
        begin_message(to, CONTROL_VERSION, "end_of_run", 2);
        write_field(to, "run", feeder->run);
        write_text(to, "last_mep");
        if (feeder->has_meps)
            write_uint(to, feeder->next_mep - 1);
        else
            write_number(to, 0xC0, 0, 0);
        send_message(feeder);
    }
    ++feeder->hellos_without_answer;
    ++feeder->hellos_without_welcome;
    feeder->hello_ns = now_ns() + HELLO_NS;
}

/* ---- Shared memory: the node reads the frames in it, only their places are sent */

static void leave_memory_socket(hltnode_feeder* feeder)
{
    if (feeder->memory_socket >= 0) close(feeder->memory_socket);
    feeder->memory_socket = -1;
    feeder->memory_state = MEMORY_APART;
    feeder->memory_try_ns = now_ns() + MEMORY_RETRY_NS;
}

static void memory_fails(hltnode_feeder* feeder, const char* why)
{
    const int64_t now = now_ns();
    leave_memory_socket(feeder);
    if (!feeder->memory_overdue_ns) feeder->memory_overdue_ns = now + PATIENCE_NS;
    /* An absent node is awaited without limit; one that answers hellos without a memory socket has none. */
    if (now >= feeder->memory_overdue_ns && now - feeder->heard_ns < HEARD_NS)
        end_with(feeder, HLTNODE_REFUSED, "%s: %s: is it the shared_memory.socket of the node?", feeder->memory_path,
                 why);
}

static void attach_memory(hltnode_feeder* feeder)
{
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, feeder->memory_path, strlen(feeder->memory_path));
    feeder->memory_socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (feeder->memory_socket < 0 ||
        connect(feeder->memory_socket, (const struct sockaddr*)&address, sizeof address) != 0) {
        memory_fails(feeder, strerror(errno));
        return;
    }
    Writer* to = &feeder->writer;
    begin_message(to, MEMORY_VERSION, "attach", 3);
    write_text_field(to, "feeder", feeder->name);
    write_text_field(to, "session", feeder->session);
    write_field(to, "nbytes", feeder->memory_bytes);
    struct iovec part = {to->bytes, to->size};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr header;
    memset(&rights, 0, sizeof rights);
    memset(&header, 0, sizeof header);
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = rights.bytes;
    header.msg_controllen = sizeof rights.bytes;
    struct cmsghdr* right = CMSG_FIRSTHDR(&header);
    right->cmsg_level = SOL_SOCKET;
    right->cmsg_type = SCM_RIGHTS;
    right->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(right), &feeder->memory_file, sizeof(int));
    if (sendmsg(feeder->memory_socket, &header, MSG_NOSIGNAL) < 0) {
        memory_fails(feeder, strerror(errno));
        return;
    }
    feeder->memory_state = MEMORY_ATTACHING;
    feeder->memory_end_ns = now_ns() + PATIENCE_NS;
}

static void read_memory_socket(hltnode_feeder* feeder)
{
    const ssize_t size = recv(feeder->memory_socket, feeder->received, MAX_MEMORY_BYTES, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const Message* message = &feeder->message;
    const bool is_read =
        size > 0 && read_message(&feeder->message, feeder->received, (size_t)size, MEMORY_VERSION) == MESSAGE_READ;
    if (is_read && message->type == ATTACHED) {
        feeder->memory_state = MEMORY_ATTACHED;
        feeder->memory_overdue_ns = 0;
        return;
    }
    const bool was_attached = feeder->memory_state == MEMORY_ATTACHED;
    const bool is_refused = is_read && message->type == REFUSED_MEMORY;
    if (is_refused) say(feeder, "the node refuses the memory: %s: %s", message->reason, message->text);
    if (was_attached) {
        say(feeder, "the connection to the memory socket is lost");
        leave_memory_socket(feeder);
        lose(feeder);
        return;
    }
    if (is_refused &&
        !is_one_of(message->reason, PASSING_OF_MEMORY, sizeof PASSING_OF_MEMORY / sizeof PASSING_OF_MEMORY[0])) {
        leave_memory_socket(feeder);
        end_with(feeder, HLTNODE_REFUSED, "the node refuses the memory: %s: %s", message->reason, message->text);
        return;
    }
    memory_fails(feeder, is_refused ? message->text : "the node ended the connection");
}

static void keep_memory_attached(hltnode_feeder* feeder)
{
    const int64_t now = now_ns();
    if (!feeder->memory_path || feeder->fatal) return;
    if (feeder->memory_state == MEMORY_APART && feeder->is_welcome && now >= feeder->memory_try_ns)
        attach_memory(feeder);
    else if (feeder->memory_state == MEMORY_ATTACHING && now >= feeder->memory_end_ns)
        memory_fails(feeder, "the node does not answer");
}

/* Allocates and seals the memory file. */
static hltnode_status make_memory(hltnode_feeder* feeder)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    feeder->memory_bytes = padded(feeder->memory_bytes, page);
    const size_t available = (size_t)sysconf(_SC_AVPHYS_PAGES) * page;
    if (feeder->memory_bytes > available)
        return fail(feeder, HLTNODE_SYSTEM, "%zu bytes of shared memory requested: %zu are free on this machine",
                    feeder->memory_bytes, available);
    feeder->memory_file = memfd_create("hltnode-feeder", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (feeder->memory_file < 0) return fail(feeder, HLTNODE_SYSTEM, "shared memory: %s", strerror(errno));
    const int error = posix_fallocate(feeder->memory_file, 0, (off_t)feeder->memory_bytes);
    if (error) return fail(feeder, HLTNODE_SYSTEM, "shared memory: %s", strerror(error));
    void* memory = mmap(NULL, feeder->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, feeder->memory_file, 0);
    if (memory == MAP_FAILED) return fail(feeder, HLTNODE_SYSTEM, "shared memory: %s", strerror(errno));
    feeder->memory = (uint8_t*)memory;
    if (fcntl(feeder->memory_file, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) != 0)
        return fail(feeder, HLTNODE_SYSTEM, "seals of the shared memory: %s", strerror(errno));
    return HLTNODE_OK;
}

/* A free place in the memory, after the last one; NULL if there is none now. */
static uint8_t* place_in_memory(hltnode_feeder* feeder, size_t size)
{
    size_t at = feeder->memory_next;
    for (bool is_again = false;;) {
        if (size > feeder->memory_bytes || at > feeder->memory_bytes - size) {
            if (is_again) return NULL;
            is_again = true;
            at = 0;
            continue;
        }
        size_t end_of_other = 0;
        for (size_t i = 0; i < feeder->n_kept && !end_of_other; ++i) {
            const size_t begin = (size_t)(feeder->kept[i]->block - feeder->memory);
            const size_t end = begin + feeder->kept[i]->size;
            if (begin < at + size && at < end) end_of_other = end;
        }
        if (!end_of_other) {
            feeder->memory_next = at + size;
            return feeder->memory + at;
        }
        at = end_of_other;
    }
}

/* ---- Sending */

/* The next MEP to send frames of: those that have begun, then others while there is credit. */
static Mep* next_mep(hltnode_feeder* feeder, int64_t now)
{
    Mep* other = NULL;
    feeder->next_due_ns = FOREVER;
    for (size_t at = 0; at < feeder->n_kept; ++at) {
        Mep* mep = feeder->kept[at];
        if (!mep->n_due) continue;
        if (mep->due_ns > now) {
            if (mep->due_ns < feeder->next_due_ns) feeder->next_due_ns = mep->due_ns;
        } else if (mep->has_begun)
            return mep;
        else if (feeder->n_begun < feeder->credit && (!other || mep->turns < other->turns))
            other = mep;
    }
    return other;
}

static void note_sent(hltnode_feeder* feeder, Mep* mep, Fragment* fragment, int64_t now)
{
    do_not_send(mep, fragment);
    ++feeder->n_sent;
    if (fragment->was_sent) ++feeder->n_repeated;
    fragment->was_sent = true;
    mep->sent_ns = now;
    mep->turn = feeder->n_sent;
}

static bool is_due(const Fragment* fragment, int64_t now) { return fragment->due_ns >= 0 && fragment->due_ns <= now; }

static void set_next_due(const hltnode_feeder* feeder, Mep* mep)
{
    mep->due_ns = FOREVER;
    for (size_t i = 0; i < feeder->n_sources; ++i) {
        const int64_t due_ns = mep->fragments[i].due_ns;
        if (due_ns >= 0 && due_ns < mep->due_ns) mep->due_ns = due_ns;
    }
}

/* Sends the due frames of a MEP over the data connection; returns their number. */
static int send_frames(hltnode_feeder* feeder, Mep* mep, int64_t now)
{
    int n = 0;
    for (size_t i = 0; i < feeder->n_sources && n < FRAMES_OF_A_TURN; ++i) {
        Fragment* fragment = &mep->fragments[i];
        if (!is_due(fragment, now)) continue;
        put(fragment->frame + TOKEN_AT, feeder->token, 8);
        if (zmq_send(feeder->data, fragment->frame, fragment->size, ZMQ_DONTWAIT) < 0) {
            feeder->is_full = true;
            break;
        }
        note_sent(feeder, mep, fragment, now);
        ++n;
    }
    set_next_due(feeder, mep);
    return n;
}

/* Names the places of the due frames of a MEP to the node: adjacent frames are one range. */
static int send_places(hltnode_feeder* feeder, Mep* mep, int64_t now)
{
    uint8_t* to = feeder->places;
    size_t n_ranges = 0, end = 0, next = 0;
    for (; next < feeder->n_sources; ++next) {
        const Fragment* fragment = &mep->fragments[next];
        if (!is_due(fragment, now)) continue;
        const size_t begin = (size_t)(fragment->frame - feeder->memory);
        if (n_ranges && begin == padded(end, FRAME_ALIGNMENT)) {
            uint8_t* last = to + 8 + 16 * (n_ranges - 1);
            put(last + 8, begin + fragment->size - get(last, 8), 8);
        } else if (n_ranges == MAX_PLACES)
            break;
        else {
            put(to + 8 + 16 * n_ranges, begin, 8);
            put(to + 16 + 16 * n_ranges, fragment->size, 8);
            ++n_ranges;
        }
        end = begin + fragment->size;
        put(fragment->frame + TOKEN_AT, feeder->token, 8);
    }
    if (!n_ranges) {
        set_next_due(feeder, mep);
        return 0;
    }
    put(to, 0x524E4C48, 4);
    put(to + 4, MEMORY_VERSION, 2);
    put(to + 6, n_ranges, 2);
    if (send(feeder->memory_socket, to, 8 + 16 * n_ranges, MSG_NOSIGNAL) < 0) {
        /* No room; or the end of the connection, which its reader finds. */
        feeder->is_full = true;
        return 0;
    }
    int n = 0;
    for (size_t i = 0; i < next; ++i)
        if (is_due(&mep->fragments[i], now)) {
            note_sent(feeder, mep, &mep->fragments[i], now);
            ++n;
        }
    set_next_due(feeder, mep);
    return n;
}

/* Sends what the credit allows, at most one turn of frames; true if more may be sent. */
static bool send_due(hltnode_feeder* feeder)
{
    const int64_t now = now_ns();
    feeder->is_full = false;
    feeder->next_due_ns = FOREVER;
    if (!feeder->is_welcome || (feeder->memory_path && feeder->memory_state != MEMORY_ATTACHED)) return false;
    for (int n = 0; n < FRAMES_OF_A_TURN && !feeder->is_full;) {
        Mep* mep = next_mep(feeder, now);
        if (!mep) return false;
        if (!mep->has_begun) {
            mep->has_begun = true;
            ++feeder->n_begun;
        }
        n += feeder->memory_path ? send_places(feeder, mep, now) : send_frames(feeder, mep, now);
    }
    return !feeder->is_full;
}

/* ---- The thread */

static void reconnect(hltnode_feeder* feeder)
{
    say(feeder, "no answer to %d hellos: connecting again", (int)SILENT_HELLOS);
    lose(feeder);
    feeder->hellos_without_answer = feeder->hellos_without_welcome = 0;
    zmq_disconnect(feeder->control, feeder->control_endpoint);
    zmq_connect(feeder->control, feeder->control_endpoint);
    if (feeder->memory_path)
        leave_memory_socket(feeder);
    else {
        zmq_disconnect(feeder->data, feeder->data_endpoint);
        zmq_connect(feeder->data, feeder->data_endpoint);
    }
}

static void greet(hltnode_feeder* feeder)
{
    const int64_t now = now_ns();
    if (feeder->is_confirmed || now < feeder->hello_ns) return;
    if (feeder->refused_since_ns && now - feeder->refused_since_ns > PATIENCE_NS) {
        end_with(feeder, HLTNODE_REFUSED, "%s: refused for %d s", feeder->refusal, (int)(PATIENCE_NS / (1000 * MS)));
        return;
    }
    if (feeder->hellos_without_answer >= SILENT_HELLOS) reconnect(feeder);
    say_hello(feeder);
}

static int milliseconds_until(int64_t due_ns)
{
    const int64_t left = due_ns - now_ns();
    if (left <= 0) return 0;
    return left > HELLO_NS ? 1000 : (int)(left / MS) + 1;
}

static void wait_for_work(hltnode_feeder* feeder, bool has_more)
{
    enum { WAKE, CONTROL, CONTROL_EVENTS, DATA, DATA_EVENTS, N_ITEMS };
    zmq_pollitem_t items[N_ITEMS];
    memset(items, 0, sizeof items);
    int n = CONTROL_EVENTS + 1;
    items[WAKE].fd = feeder->wake;
    items[WAKE].events = ZMQ_POLLIN;
    items[CONTROL].socket = feeder->control;
    items[CONTROL].events = ZMQ_POLLIN;
    items[CONTROL_EVENTS].socket = feeder->control_monitor;
    items[CONTROL_EVENTS].events = ZMQ_POLLIN;
    const short when_writable = feeder->is_full ? ZMQ_POLLOUT : 0;
    if (feeder->memory_socket >= 0) {
        items[DATA].fd = feeder->memory_socket;
        items[DATA].events = (short)(ZMQ_POLLIN | when_writable);
        n = DATA + 1;
    } else if (feeder->data) {
        items[DATA].socket = feeder->data;
        items[DATA].events = when_writable;
        items[DATA_EVENTS].socket = feeder->data_monitor;
        items[DATA_EVENTS].events = ZMQ_POLLIN;
        n = N_ITEMS;
    }
    int64_t due_ns = feeder->fatal || feeder->is_confirmed ? FOREVER : feeder->hello_ns;
    if (feeder->next_due_ns < due_ns) due_ns = feeder->next_due_ns;
    if (feeder->memory_path && feeder->is_welcome && feeder->memory_state == MEMORY_APART &&
        feeder->memory_try_ns < due_ns)
        due_ns = feeder->memory_try_ns;
    /* After its end a feeder waits for hltnode_feeder_free() only. */
    const int n_polled = feeder->fatal ? 1 : n;
    pthread_mutex_unlock(&feeder->mutex);
    zmq_poll(items, n_polled, has_more ? 0 : milliseconds_until(due_ns));
    pthread_mutex_lock(&feeder->mutex);
    uint64_t count;
    if (items[WAKE].revents && read(feeder->wake, &count, sizeof count) < 0) return;
    if (feeder->memory_socket >= 0 && n_polled > DATA && items[DATA].fd == feeder->memory_socket &&
        (items[DATA].revents & ~ZMQ_POLLOUT))
        read_memory_socket(feeder);
}

static void leave_node(hltnode_feeder* feeder)
{
    if (feeder->memory_state == MEMORY_ATTACHED) {
        begin_message(&feeder->writer, MEMORY_VERSION, "detach", 0);
        if (send(feeder->memory_socket, feeder->writer.bytes, feeder->writer.size, MSG_NOSIGNAL) < 0)
            say(feeder, "the memory socket takes no goodbye: %s", strerror(errno));
    }
    if (feeder->memory_socket >= 0) close(feeder->memory_socket);
    feeder->memory_socket = -1;
    begin_message(&feeder->writer, CONTROL_VERSION, "goodbye", 1);
    write_text_field(&feeder->writer, "reason", "feeder ends");
    send_message(feeder);
}

static void* converse(void* of_feeder)
{
    hltnode_feeder* feeder = (hltnode_feeder*)of_feeder;
    pthread_mutex_lock(&feeder->mutex);
    while (!feeder->is_leaving) {
        bool has_more = false;
        if (!feeder->fatal) {
            read_control(feeder);
            read_monitor(feeder, feeder->control_monitor);
            read_monitor(feeder, feeder->data_monitor);
        }
        if (!feeder->fatal) greet(feeder);
        keep_memory_attached(feeder);
        if (!feeder->fatal) has_more = send_due(feeder);
        pthread_cond_broadcast(&feeder->changed);
        wait_for_work(feeder, has_more);
    }
    leave_node(feeder);
    pthread_mutex_unlock(&feeder->mutex);
    return NULL;
}

/* Waits for a change of the feeder; false after the deadline. */
static bool wait_for_change(hltnode_feeder* feeder, int64_t deadline_ns)
{
    if (deadline_ns == FOREVER) return pthread_cond_wait(&feeder->changed, &feeder->mutex) == 0;
    if (now_ns() >= deadline_ns) return false;
    struct timespec time;
    time.tv_sec = (time_t)(deadline_ns / (1000 * MS));
    time.tv_nsec = (long)(deadline_ns % (1000 * MS));
    pthread_cond_timedwait(&feeder->changed, &feeder->mutex, &time);
    return true;
}

static int64_t deadline_of(int timeout_ms) { return timeout_ms < 0 ? FOREVER : now_ns() + timeout_ms * MS; }

/* ---- The functions of the header */

const char* hltnode_client_version(void) { return HLTNODE_CLIENT_VERSION; }

const char* hltnode_status_name(hltnode_status status)
{
    switch (status) {
    case HLTNODE_OK: return "HLTNODE_OK";
    case HLTNODE_TIMEOUT: return "HLTNODE_TIMEOUT";
    case HLTNODE_INVALID: return "HLTNODE_INVALID";
    case HLTNODE_NO_MEMORY: return "HLTNODE_NO_MEMORY";
    case HLTNODE_SYSTEM: return "HLTNODE_SYSTEM";
    case HLTNODE_TOO_LARGE: return "HLTNODE_TOO_LARGE";
    case HLTNODE_FRAGMENTS_REFUSED: return "HLTNODE_FRAGMENTS_REFUSED";
    case HLTNODE_REFUSED: return "HLTNODE_REFUSED";
    case HLTNODE_RUN_CLOSED: return "HLTNODE_RUN_CLOSED";
    case HLTNODE_REQUEST_REFUSED: return "HLTNODE_REQUEST_REFUSED";
    case HLTNODE_UNREADABLE: return "HLTNODE_UNREADABLE";
    default: return "unknown";
    }
}

static bool set_name(char* to, const char* name)
{
    if (!name || !is_name(name)) return false;
    memcpy(to, name, strlen(name) + 1);
    return true;
}

/* A new name for each start, from random numbers. */
static bool make_session(char* to)
{
    uint8_t random[8];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    snprintf(to, MAX_NAME + 1, "%016" PRIx64, get(random, 8));
    return true;
}

hltnode_feeder* hltnode_feeder_new(const char* name, uint32_t run, const uint16_t* sources, size_t n_sources,
                                   uint16_t events_per_mep, uint32_t max_mfp_bytes)
{
    hltnode_feeder* feeder = (hltnode_feeder*)calloc(1, sizeof *feeder);
    if (!feeder) return NULL;
    feeder->sources = (uint16_t*)calloc(n_sources > MAX_SOURCES ? 1 : n_sources + 1, sizeof feeder->sources[0]);
    pthread_condattr_t attributes;
    if (!feeder->sources || pthread_condattr_init(&attributes) != 0) {
        free(feeder->sources);
        free(feeder);
        return NULL;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&feeder->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&feeder->mutex, NULL);
    make_crc_tables(&feeder->crc_tables);
    feeder->wake = feeder->memory_file = feeder->memory_socket = -1;
    feeder->memory_bytes = DEFAULT_MEMORY_BYTES;
    feeder->n_feeders = 1;
    feeder->run = run;
    feeder->events_per_mep = events_per_mep;
    feeder->max_mfp_bytes = max_mfp_bytes;
    if (!set_name(feeder->name, name)) feeder->invalid = "name: 1 to 64 characters A-Z a-z 0-9 . _ : / - expected";
    if (!sources || !n_sources || n_sources > MAX_SOURCES)
        feeder->invalid = "sources: 1 to 4096 expected";
    else {
        memcpy(feeder->sources, sources, n_sources * sizeof sources[0]);
        feeder->n_sources = n_sources;
        for (size_t i = 0; i < n_sources; ++i)
            for (size_t j = 0; j < i; ++j)
                if (sources[i] == sources[j]) feeder->invalid = "sources: one of them occurs twice";
    }
    if (!events_per_mep) feeder->invalid = "events_per_mep: at least 1 expected";
    if (max_mfp_bytes < MFP_HEADER_BYTES) feeder->invalid = "max_mfp_bytes: at least the 20 bytes of a header expected";
    return feeder;
}

static hltnode_status check_setting(hltnode_feeder* feeder)
{
    if (!feeder) return HLTNODE_NO_MEMORY;
    if (feeder->is_connected) return fail(feeder, HLTNODE_INVALID, "settings are made before connect");
    return HLTNODE_OK;
}

hltnode_status hltnode_feeder_set_feeders(hltnode_feeder* feeder, uint16_t n)
{
    const hltnode_status state = check_setting(feeder);
    if (state) return state;
    if (!n) return fail(feeder, HLTNODE_INVALID, "number of feeders: at least 1 expected");
    feeder->n_feeders = n;
    return HLTNODE_OK;
}

hltnode_status hltnode_feeder_set_chain(hltnode_feeder* feeder, const char* chain)
{
    const hltnode_status state = check_setting(feeder);
    if (state) return state;
    if (!set_name(feeder->chain, chain)) return fail(feeder, HLTNODE_INVALID, "chain: a name expected");
    return HLTNODE_OK;
}

hltnode_status hltnode_feeder_set_input(hltnode_feeder* feeder, const char* input)
{
    const hltnode_status state = check_setting(feeder);
    if (state) return state;
    if (!set_name(feeder->input, input)) return fail(feeder, HLTNODE_INVALID, "input: a name expected");
    return HLTNODE_OK;
}

hltnode_status hltnode_feeder_set_memory(hltnode_feeder* feeder, size_t bytes)
{
    const hltnode_status state = check_setting(feeder);
    if (state) return state;
    if (!bytes || bytes > SIZE_MAX / 4) return fail(feeder, HLTNODE_INVALID, "shared memory: a size expected");
    feeder->memory_bytes = bytes;
    return HLTNODE_OK;
}

hltnode_status hltnode_feeder_set_log(hltnode_feeder* feeder, hltnode_log log, void* context)
{
    const hltnode_status state = check_setting(feeder);
    if (state) return state;
    feeder->log = log;
    feeder->log_context = context;
    return HLTNODE_OK;
}

static void wipe(void* secret, size_t size)
{
    volatile uint8_t* at = (volatile uint8_t*)secret;
    while (size--) *at++ = 0;
}

/* The value of `NAME = "..."` in a key file; false if there is none of the length of a key. */
static bool find_key(const char* text, const char* name, char* to)
{
    for (const char* at = strstr(text, name); at; at = strstr(at + 1, name)) {
        const char* value = at + strlen(name);
        value += strspn(value, " \t");
        if (*value++ != '=') continue;
        value += strspn(value, " \t");
        if (*value++ != '"' || strcspn(value, "\"\r\n") != KEY_LETTERS || value[KEY_LETTERS] != '"') continue;
        memcpy(to, value, KEY_LETTERS);
        to[KEY_LETTERS] = '\0';
        return true;
    }
    return false;
}

/* The text of a key file in new memory of MAX_KEY_FILE + 2 bytes. Messages name the file, never its content. */
static char* read_key_file(char* error, const char* path, bool is_secret)
{
    FILE* file = fopen(path, "rbe");
    struct stat state;
    if (!file || fstat(fileno(file), &state) != 0) {
        fail_in(error, HLTNODE_SYSTEM, "%s: cannot be read: %s", path, strerror(errno));
        if (file) fclose(file);
        return NULL;
    }
    char* text = NULL;
    if (is_secret && (state.st_mode & (S_IROTH | S_IWOTH)))
        fail_in(error, HLTNODE_SYSTEM, "%s: it is readable or writable by all users; expected mode 0600", path);
    else if (!(text = (char*)calloc(1, MAX_KEY_FILE + 2)))
        fail_in(error, HLTNODE_NO_MEMORY, "not enough memory");
    else if (fread(text, 1, MAX_KEY_FILE + 1, file) > MAX_KEY_FILE) {
        fail_in(error, HLTNODE_SYSTEM, "%s: larger than any key file", path);
        wipe(text, MAX_KEY_FILE + 2);
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Reads both files into `keys`, which stay as they are after an error. */
static hltnode_status read_keys(char* error, Keys* keys, const char* key_file, const char* server_key_file)
{
    if (!key_file || !server_key_file) return fail_in(error, HLTNODE_INVALID, "keys: two files expected");
    Keys found = {"", "", ""};
    char derived[KEY_LETTERS + 1] = "";
    char* own = read_key_file(error, key_file, true);
    char* of_server = own ? read_key_file(error, server_key_file, false) : NULL;
    hltnode_status status = HLTNODE_SYSTEM;
    if (own && of_server) {
        if (!find_key(own, "public-key", found.own) || !find_key(own, "secret-key", found.secret))
            fail_in(error, status, "%s: expected a secret key file (.key_secret)", key_file);
        else if (!find_key(of_server, "public-key", found.of_server))
            fail_in(error, status, "%s: not a key file: no public key", server_key_file);
        else if (zmq_curve_public(derived, found.secret) != 0 || strcmp(derived, found.own) != 0)
            fail_in(error, status, "%s: public and secret key do not match", key_file);
        else {
            *keys = found;
            status = HLTNODE_OK;
        }
    }
    if (own) wipe(own, MAX_KEY_FILE + 2);
    wipe(&found, sizeof found);
    free(own);
    free(of_server);
    return status;
}

hltnode_status hltnode_feeder_set_keys(hltnode_feeder* feeder, const char* key_file, const char* server_key_file,
                                       int encrypt_data)
{
    hltnode_status status = check_setting(feeder);
    if (!status) status = read_keys(feeder->error, &feeder->keys, key_file, server_key_file);
    if (!status) feeder->encrypts_data = encrypt_data != 0;
    return status;
}

/* The endpoint with the next port. */
static bool next_port(char* to, const char* endpoint)
{
    const char* colon = strrchr(endpoint, ':');
    if (strncmp(endpoint, "tcp://", 6) != 0 || colon < endpoint + 6 || strspn(colon + 1, "0123456789") == 0 ||
        colon[1 + strspn(colon + 1, "0123456789")] != '\0')
        return false;
    const long port = strtol(colon + 1, NULL, 10);
    if (port < 1 || port >= 65535) return false;
    snprintf(to, MAX_ENDPOINT + 1, "%.*s:%ld", (int)(colon - endpoint), endpoint, port + 1);
    return true;
}

static void close_all(hltnode_feeder* feeder)
{
    close_socket(&feeder->data, &feeder->data_monitor);
    close_socket(&feeder->control, &feeder->control_monitor);
    if (feeder->context) zmq_ctx_term(feeder->context);
    feeder->context = NULL;
    if (feeder->wake >= 0) close(feeder->wake);
    if (feeder->memory) munmap(feeder->memory, feeder->memory_bytes);
    if (feeder->memory_file >= 0) close(feeder->memory_file);
    feeder->wake = feeder->memory_file = -1;
    feeder->memory = NULL;
}

static hltnode_status open_all(hltnode_feeder* feeder)
{
    if (!make_session(feeder->session)) return fail(feeder, HLTNODE_SYSTEM, "no random numbers: %s", strerror(errno));
    if (feeder->memory_path) {
        const hltnode_status status = make_memory(feeder);
        if (status) return status;
    }
    feeder->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    feeder->context = zmq_ctx_new();
    if (feeder->wake < 0 || !feeder->context) return fail(feeder, HLTNODE_SYSTEM, "%s", strerror(errno));
    if (!open_socket(feeder, &feeder->control, &feeder->control_monitor, ZMQ_DEALER, feeder->control_endpoint))
        return fail(feeder, HLTNODE_SYSTEM, "%s: %s", feeder->control_endpoint, zmq_strerror(zmq_errno()));
    if (!feeder->memory_path &&
        !open_socket(feeder, &feeder->data, &feeder->data_monitor, ZMQ_PUSH, feeder->data_endpoint))
        return fail(feeder, HLTNODE_SYSTEM, "%s: %s", feeder->data_endpoint, zmq_strerror(zmq_errno()));
    /* Signals are for the threads of the program. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&feeder->thread, NULL, converse, feeder);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? fail(feeder, HLTNODE_SYSTEM, "thread: %s", strerror(error)) : HLTNODE_OK;
}

hltnode_status hltnode_feeder_connect(hltnode_feeder* feeder, const char* data, const char* control)
{
    struct sockaddr_un address;
    if (!feeder) return HLTNODE_NO_MEMORY;
    if (feeder->is_connected) return fail(feeder, HLTNODE_INVALID, "the feeder is connected already");
    if (feeder->invalid) return fail(feeder, HLTNODE_INVALID, "%s", feeder->invalid);
    if (!data || strlen(data) > MAX_ENDPOINT || (control && strlen(control) > MAX_ENDPOINT))
        return fail(feeder, HLTNODE_INVALID, "endpoints: at most %d bytes expected", (int)MAX_ENDPOINT);
    memcpy(feeder->data_endpoint, data, strlen(data) + 1);
    feeder->memory_path = strncmp(data, "shm://", 6) == 0 ? feeder->data_endpoint + 6 : NULL;
    if (feeder->memory_path && strlen(feeder->memory_path) >= sizeof address.sun_path)
        return fail(feeder, HLTNODE_INVALID, "%s: longer than the path of a socket", data);
    if (control)
        memcpy(feeder->control_endpoint, control, strlen(control) + 1);
    else if (!next_port(feeder->control_endpoint, data))
        return fail(feeder, HLTNODE_INVALID, "%s: give the control endpoint: there is no next port", data);
    const hltnode_status status = open_all(feeder);
    if (status)
        close_all(feeder);
    else
        feeder->is_connected = true;
    return status;
}

/* Writes header and CRC of a frame whose MFP is in place. The token is written before each sending. */
static void seal_frame(const hltnode_feeder* feeder, uint8_t* frame, uint64_t mep, uint16_t source, size_t mfp_size)
{
    memset(frame, 0, FRAME_HEADER_BYTES);
    put(frame, 0x464E4C48, 4);
    put(frame + 4, FRAME_VERSION, 2);
    put(frame + 8, feeder->run, 4);
    put(frame + 12, mfp_size, 4);
    put(frame + 16, mep, 8);
    put(frame + 24, (uint64_t)clock_ns(CLOCK_REALTIME), 8);
    put(frame + 32, source, 2);
    const uint32_t crc = crc32c(&feeder->crc_tables, 0, frame, 36);
    put(frame + 36, crc32c(&feeder->crc_tables, crc, frame + FRAME_HEADER_BYTES, mfp_size), 4);
}

/* Checks the MFPs of a MEP, as far as that finds swapped arguments; gives the bytes of all frames. */
static hltnode_status check_mep(hltnode_feeder* feeder, uint64_t mep, const void* const* mfps, const size_t* sizes,
                                size_t* total)
{
    *total = 0;
    if (!mfps || !sizes) return fail(feeder, HLTNODE_INVALID, "MFPs and their sizes expected");
    if (mep > MAX_MEP_ID || (feeder->has_meps && mep < feeder->next_mep))
        return fail(feeder, HLTNODE_INVALID, "MEP %" PRIu64 ": ids increase, the next one is at least %" PRIu64, mep,
                    feeder->next_mep);
    for (size_t i = 0; i < feeder->n_sources; ++i) {
        const uint8_t* mfp = (const uint8_t*)mfps[i];
        if (!mfp || sizes[i] < MFP_HEADER_BYTES || get(mfp, 2) != 0x40CE || get(mfp + 4, 4) != sizes[i] ||
            get(mfp + 16, 2) != feeder->sources[i])
            return fail(feeder, HLTNODE_INVALID, "MEP %" PRIu64 ": not an MFP of source %d and of %zu bytes", mep,
                        (int)feeder->sources[i], sizes[i]);
        if (sizes[i] > feeder->max_mfp_bytes || get(mfp + 2, 2) > feeder->events_per_mep)
            return fail(feeder, HLTNODE_INVALID,
                        "MEP %" PRIu64 ", source %d: more events or bytes than hltnode_feeder_new() announced", mep,
                        (int)feeder->sources[i]);
        *total += padded(FRAME_HEADER_BYTES + sizes[i], FRAME_ALIGNMENT);
    }
    return HLTNODE_OK;
}

static Mep* make_mep(hltnode_feeder* feeder, uint64_t id, size_t total)
{
    Mep* mep = (Mep*)calloc(1, sizeof(Mep) + feeder->n_sources * sizeof(Fragment));
    uint8_t* block = mep && !feeder->memory ? (uint8_t*)aligned_alloc(FRAME_ALIGNMENT, total) : NULL;
    if (!mep || (!feeder->memory && !block)) {
        free(mep);
        return NULL;
    }
    mep->id = id;
    mep->size = total;
    mep->block = block;
    mep->fragments = (Fragment*)(mep + 1);
    return mep;
}

static void fill_mep(const hltnode_feeder* feeder, Mep* mep, const void* const* mfps, const size_t* sizes)
{
    uint8_t* frame = mep->block;
    for (size_t i = 0; i < feeder->n_sources; ++i) {
        memcpy(frame + FRAME_HEADER_BYTES, mfps[i], sizes[i]);
        seal_frame(feeder, frame, mep->id, feeder->sources[i], sizes[i]);
        Fragment* fragment = &mep->fragments[i];
        fragment->frame = frame;
        fragment->size = FRAME_HEADER_BYTES + sizes[i];
        fragment->nacked = -1;
        frame += padded(fragment->size, FRAME_ALIGNMENT);
    }
    mep->n_due = feeder->n_sources;
}

static bool make_room_for_one(hltnode_feeder* feeder)
{
    if (feeder->n_kept < feeder->kept_room) return true;
    const size_t room = feeder->kept_room ? 2 * feeder->kept_room : 64;
    void* more = realloc(feeder->kept, room * sizeof feeder->kept[0]);
    if (!more) return false;
    feeder->kept = (Mep**)more;
    feeder->kept_room = room;
    return true;
}

static void note_offered(hltnode_feeder* feeder, uint64_t mep)
{
    feeder->next_mep = mep + 1;
    feeder->has_meps = true;
    for (size_t i = 0; i < feeder->n_missed_ahead; ++i) {
        const Range* missed = &feeder->missed_ahead[i];
        if (mep >= missed->first && mep <= missed->last) count_refused(feeder, reason_of("late"), missed->source, mep);
    }
}

/* Waits for credit, and for a place in the shared memory; the mutex is held. */
static hltnode_status wait_for_room(hltnode_feeder* feeder, Mep* mep, const size_t* sizes, int64_t deadline_ns)
{
    for (;;) {
        if (feeder->fatal) return fatal_status(feeder);
        if (is_in(feeder->acked_ahead, feeder->n_acked_ahead, mep->id)) return HLTNODE_OK;
        if (feeder->is_welcome && feeder->n_kept < feeder->credit) {
            for (size_t i = 0; i < feeder->n_sources; ++i)
                if (sizes[i] > feeder->max_node_bytes)
                    return fail(feeder, HLTNODE_TOO_LARGE,
                                "MEP %" PRIu64 ": an MFP of %zu bytes, the node allows %" PRIu64
                                ": feed fewer events per MEP, or raise network.max_frame_bytes",
                                mep->id, sizes[i], feeder->max_node_bytes);
            if (feeder->memory) mep->block = place_in_memory(feeder, mep->size);
            if (mep->block) return HLTNODE_OK;
        }
        if (!wait_for_change(feeder, deadline_ns))
            return fail(feeder, HLTNODE_TIMEOUT, "MEP %" PRIu64 ": %s", mep->id,
                        !feeder->is_welcome               ? "no welcome of the node"
                        : feeder->n_kept < feeder->credit ? "the shared memory is full"
                                                          : "no credit of the node");
    }
}

hltnode_status hltnode_feeder_offer(hltnode_feeder* feeder, uint64_t id, const void* const* mfps, const size_t* sizes,
                                    int timeout_ms)
{
    const int64_t deadline_ns = deadline_of(timeout_ms);
    size_t total;
    if (!feeder) return HLTNODE_NO_MEMORY;
    if (!feeder->is_connected) return fail(feeder, HLTNODE_INVALID, "the feeder is not connected");
    if (feeder->has_ended) return fail(feeder, HLTNODE_INVALID, "MEP %" PRIu64 ": the run was ended", id);
    hltnode_status status = check_mep(feeder, id, mfps, sizes, &total);
    if (status) return status;
    if (feeder->memory && total > feeder->memory_bytes)
        return fail(feeder, HLTNODE_TOO_LARGE, "MEP %" PRIu64 ": %zu bytes, the shared memory has %zu", id, total,
                    feeder->memory_bytes);
    Mep* mep = make_mep(feeder, id, total);
    if (!mep) return fail(feeder, HLTNODE_NO_MEMORY, "MEP %" PRIu64 ": not enough memory", id);
    pthread_mutex_lock(&feeder->mutex);
    status = wait_for_room(feeder, mep, sizes, deadline_ns);
    if (!status && !make_room_for_one(feeder)) status = fail(feeder, HLTNODE_NO_MEMORY, "not enough memory");
    bool is_kept = !status && !is_in(feeder->acked_ahead, feeder->n_acked_ahead, id);
    if (is_kept) {
        /* Only this function adds MEPs, so the place stays free while the thread goes on. */
        pthread_mutex_unlock(&feeder->mutex);
        fill_mep(feeder, mep, mfps, sizes);
        pthread_mutex_lock(&feeder->mutex);
        is_kept = !is_in(feeder->acked_ahead, feeder->n_acked_ahead, id);
    }
    if (!status) note_offered(feeder, id);
    if (is_kept) {
        feeder->kept[feeder->n_kept++] = mep;
        wake(feeder);
    } else {
        if (!status) ++feeder->n_acknowledged_before;
        free_mep(feeder, mep);
    }
    pthread_mutex_unlock(&feeder->mutex);
    return status;
}

hltnode_status hltnode_feeder_finish(hltnode_feeder* feeder, int timeout_ms)
{
    const int64_t deadline_ns = deadline_of(timeout_ms);
    if (!feeder) return HLTNODE_NO_MEMORY;
    if (!feeder->is_connected) return fail(feeder, HLTNODE_INVALID, "the feeder is not connected");
    pthread_mutex_lock(&feeder->mutex);
    hltnode_status status = HLTNODE_OK;
    if (!feeder->has_ended) feeder->hello_ns = 0;
    feeder->has_ended = true;
    wake(feeder);
    while (!feeder->fatal && feeder->n_kept && !status)
        if (!wait_for_change(feeder, deadline_ns))
            status = fail(feeder, HLTNODE_TIMEOUT, "%zu MEPs are not acknowledged", feeder->n_kept);
    if (!status && !feeder->fatal && !feeder->is_confirmed) {
        /* The last hello confirms all MEPs; its welcome shows that the node received it. */
        const uint64_t awaited = feeder->n_welcomes + feeder->hellos_without_welcome + 1;
        const int64_t end_ns = now_ns() + CONFIRM_NS;
        feeder->hello_ns = 0;
        wake(feeder);
        while (!feeder->fatal && feeder->n_welcomes < awaited)
            if (!wait_for_change(feeder, end_ns < deadline_ns ? end_ns : deadline_ns)) break;
        feeder->is_confirmed = feeder->n_welcomes >= awaited;
        if (!feeder->is_confirmed) say(feeder, "the node has not answered the last hello");
    }
    if (!status && feeder->fatal) status = fatal_status(feeder);
    const uint64_t n_refused = total_refused(feeder);
    if (!status && n_refused)
        status = fail(feeder, HLTNODE_FRAGMENTS_REFUSED, "the node refused %" PRIu64 " fragments", n_refused);
    pthread_mutex_unlock(&feeder->mutex);
    return status;
}

void hltnode_feeder_free(hltnode_feeder* feeder)
{
    if (!feeder) return;
    if (feeder->is_connected) {
        pthread_mutex_lock(&feeder->mutex);
        feeder->is_leaving = true;
        wake(feeder);
        pthread_mutex_unlock(&feeder->mutex);
        pthread_join(feeder->thread, NULL);
    }
    for (size_t i = 0; i < feeder->n_kept; ++i) free_mep(feeder, feeder->kept[i]);
    close_all(feeder);
    pthread_cond_destroy(&feeder->changed);
    pthread_mutex_destroy(&feeder->mutex);
    wipe(&feeder->keys, sizeof feeder->keys);
    free(feeder->kept);
    free(feeder->refused);
    free(feeder->sources);
    free(feeder);
}

const char* hltnode_feeder_error(const hltnode_feeder* feeder) { return feeder ? feeder->error : "not enough memory"; }

uint64_t hltnode_feeder_count(hltnode_feeder* feeder, hltnode_count which)
{
    uint64_t n = 0;
    pthread_mutex_lock(&feeder->mutex);
    switch (which) {
    case HLTNODE_MEPS_ACKNOWLEDGED: n = feeder->n_acknowledged; break;
    case HLTNODE_MEPS_ACKNOWLEDGED_BEFORE: n = feeder->n_acknowledged_before; break;
    case HLTNODE_MEPS_KEPT: n = feeder->n_kept; break;
    case HLTNODE_FRAGMENTS_SENT: n = feeder->n_sent; break;
    case HLTNODE_FRAGMENTS_REPEATED: n = feeder->n_repeated; break;
    case HLTNODE_FRAGMENTS_REFUSED_FOR_GOOD: n = total_refused(feeder); break;
    case HLTNODE_WELCOMES: n = feeder->n_welcomes; break;
    case HLTNODE_UNREADABLE_MESSAGES: n = feeder->n_unreadable; break;
    default: break;
    }
    pthread_mutex_unlock(&feeder->mutex);
    return n;
}

const char* hltnode_feeder_refusal(hltnode_feeder* feeder, size_t index, uint64_t* fragments)
{
    const char* reason = NULL;
    pthread_mutex_lock(&feeder->mutex);
    for (int i = 0; i < N_REASONS && !reason; ++i) {
        if (!feeder->refused_by[i] || index-- > 0) continue;
        reason = REASONS[i];
        if (fragments) *fragments = feeder->refused_by[i];
    }
    pthread_mutex_unlock(&feeder->mutex);
    return reason;
}

size_t hltnode_mfp_bytes(uint16_t n, const uint16_t* sizes)
{
    size_t bytes = padded(padded(MFP_HEADER_BYTES + (size_t)n, 4) + 2 * (size_t)n, 4);
    for (size_t i = 0; i < n; ++i) bytes += padded(sizes[i], (size_t)1 << MFP_ALIGN);
    return bytes;
}

size_t hltnode_mfp_write(void* to, size_t room, uint16_t source, uint8_t version, uint64_t first_event, uint16_t n,
                         const uint8_t* types, const uint16_t* sizes, const void* const* banks)
{
    const size_t bytes = hltnode_mfp_bytes(n, sizes);
    if (!n || bytes > room || bytes > UINT32_MAX) return 0;
    uint8_t* mfp = (uint8_t*)to;
    const size_t sizes_at = padded(MFP_HEADER_BYTES + (size_t)n, 4);
    uint8_t* bank = mfp + padded(sizes_at + 2 * (size_t)n, 4);
    memset(mfp, 0, (size_t)(bank - mfp));
    put(mfp, 0x40CE, 2);
    put(mfp + 2, n, 2);
    put(mfp + 4, bytes, 4);
    put(mfp + 8, first_event, 8);
    put(mfp + 16, source, 2);
    mfp[18] = MFP_ALIGN;
    mfp[19] = version;
    memcpy(mfp + MFP_HEADER_BYTES, types, n);
    for (size_t i = 0; i < n; ++i) {
        const size_t size = padded(sizes[i], (size_t)1 << MFP_ALIGN);
        put(mfp + sizes_at + 2 * i, sizes[i], 2);
        if (sizes[i]) memcpy(bank, banks[i], sizes[i]);
        memset(bank + sizes[i], 0, size - sizes[i]);
        bank += size;
    }
    return bytes;
}

void hltnode_odin_write(uint8_t to[HLTNODE_ODIN_BYTES], uint32_t run, uint64_t event, uint16_t event_type,
                        uint64_t time_us)
{
    memset(to, 0, HLTNODE_ODIN_BYTES);
    put(to, run, 4);
    put(to + 4, event_type, 2);
    put(to + 8, time_us, 8);
    put(to + 32, event, 8);
}

size_t hltnode_mep_bytes(size_t n_sources, const size_t* sizes)
{
    size_t bytes = padded(MEP_HEADER_BYTES + 2 * n_sources, 4) + 4 * n_sources;
    for (size_t i = 0; i < n_sources; ++i) {
        if (sizes[i] > UINT32_MAX) return SIZE_MAX;
        bytes = padded(bytes, MEP_ALIGNMENT) + sizes[i];
    }
    return padded(bytes, 4);
}

/* An MFP of this size, and of the same events as the first one. Sources ascend; only the first one may be of ODIN. */
static bool is_good_mfp(const void* const* mfps, const size_t* sizes, size_t i)
{
    const uint8_t *mfp = (const uint8_t*)mfps[i], *first = (const uint8_t*)mfps[0];
    if (!mfp || sizes[i] < MFP_HEADER_BYTES || get(mfp, 2) != 0x40CE || get(mfp + 4, 4) != sizes[i]) return false;
    if (i == 0) return true;
    const uint64_t source = get(mfp + 16, 2), before = get((const uint8_t*)mfps[i - 1] + 16, 2);
    return source > before && source >> 11 != HLTNODE_ODIN_SOURCE >> 11 && get(mfp + 2, 2) == get(first + 2, 2) &&
           get(mfp + 8, 8) == get(first + 8, 8);
}

size_t hltnode_mep_write(void* to, size_t room, size_t n_sources, const void* const* mfps, const size_t* sizes)
{
    if (!n_sources || n_sources > UINT16_MAX) return 0;
    const size_t bytes = hltnode_mep_bytes(n_sources, sizes);
    if (bytes > room || bytes / 4 > UINT32_MAX) return 0;
    for (size_t i = 0; i < n_sources; ++i)
        if (!is_good_mfp(mfps, sizes, i)) return 0;
    uint8_t* mep = (uint8_t*)to;
    const size_t offsets_at = padded(MEP_HEADER_BYTES + 2 * n_sources, 4);
    size_t end = offsets_at + 4 * n_sources;
    memset(mep, 0, end);
    put(mep, 0xCEFA, 2);
    put(mep + 2, n_sources, 2);
    put(mep + 4, bytes / 4, 4);
    for (size_t i = 0; i < n_sources; ++i) {
        const size_t begin = padded(end, MEP_ALIGNMENT);
        memset(mep + end, 0, begin - end);
        memcpy(mep + begin, mfps[i], sizes[i]);
        memcpy(mep + MEP_HEADER_BYTES + 2 * i, (const uint8_t*)mfps[i] + 16, 2);
        put(mep + offsets_at + 4 * i, begin / 4, 4);
        end = begin + sizes[i];
    }
    memset(mep + end, 0, bytes - end);
    return bytes;
}

/* ---- Answers to requests. They come from the network: the sizes of all parts are checked before one is used */

typedef struct Part {
    const uint8_t* bytes;
    size_t size;
} Part;

struct hltnode_answer {
    zmq_msg_t message; /* the parts lie in it */
    uint64_t id;
    uint32_t tck;
    uint16_t n_events, n_lines;
    char node[MAX_NAME + 1], chain[MAX_NAME + 1];
    Part accepted, lines, flags, counts, lists;
    size_t n_collections, line_bytes;
    char* names[MAX_COLLECTIONS]; /* within one allocation */
};

/* The fields of both messages of a node. */
enum {
    ANSWER_VERSION = 1 << 0,
    ANSWER_TYPE = 1 << 1,
    ANSWER_ID = 1 << 2,
    ANSWER_NODE = 1 << 3,
    ANSWER_CHAIN = 1 << 4,
    ANSWER_TCK = 1 << 5,
    ANSWER_EVENTS = 1 << 6,
    ANSWER_LINES = 1 << 7,
    ANSWER_ACCEPTED = 1 << 8,
    ANSWER_FIRED = 1 << 9,
    ANSWER_FLAGS = 1 << 10,
    ANSWER_COLLECTIONS = 1 << 11,
    ANSWER_COUNTS = 1 << 12,
    ANSWER_LISTS = 1 << 13,
    ANSWER_REASON = 1 << 14,
    ANSWER_TEXT = 1 << 15,
    FIELDS_OF_REFUSAL = ANSWER_VERSION | ANSWER_TYPE | ANSWER_ID | ANSWER_REASON | ANSWER_TEXT,
    FIELDS_OF_ANSWER = (1 << 14) - 1
};

typedef struct Refusal {
    uint64_t id;
    char reason[MAX_NAME + 1], text[MAX_TEXT + 1];
} Refusal;

static bool copy_part(Part* to, const Value* value)
{
    to->bytes = value->bytes;
    to->size = (size_t)value->number;
    return value->kind == KIND_BYTES;
}

/* Reads the names twice: first for their bytes, then into one allocation. False with `is_full` without memory. */
static bool read_names(Reader* from, hltnode_answer* to, uint64_t n, bool* is_full)
{
    if (n > MAX_COLLECTIONS) return false;
    const Reader begin = *from;
    size_t bytes = 1;
    for (uint64_t i = 0; i < n; ++i) {
        const Value name = read_value(from);
        if (name.kind != KIND_TEXT || from->failed) return false;
        bytes += (size_t)name.number + 1;
    }
    char* at = (char*)malloc(bytes);
    *is_full = !at;
    if (!at) return false;
    free(to->names[0]);
    to->names[0] = at;
    *from = begin;
    to->n_collections = (size_t)n;
    for (uint64_t i = 0; i < n; ++i) {
        const Value name = read_value(from);
        copy_text(at, (size_t)name.number + 1, &name);
        to->names[i] = at;
        at += name.number + 1;
    }
    return true;
}

/* Whether the parts have the sizes that the numbers of events, lines and collections demand. */
static bool has_good_sizes(hltnode_answer* answer)
{
    const uint64_t n = answer->n_events;
    answer->line_bytes = padded(answer->n_lines, 32) / 8;
    return answer->accepted.size == (n + 7) / 8 && answer->lines.size == n * answer->line_bytes &&
           answer->flags.size == 4 * n && answer->counts.size == 4 * n * answer->n_collections;
}

/* Reads an answer, or a refusal (HLTNODE_REQUEST_REFUSED). The parts of `to` point into `bytes`. */
static hltnode_status read_answer(hltnode_answer* to, Refusal* refusal, const uint8_t* bytes, size_t size, char* error)
{
    Reader from = {bytes, bytes + size, false};
    const Value map = read_value(&from);
    bool is_good = map.kind == KIND_MAP, is_full = false;
    unsigned fields = 0;
    uint64_t version = 0, tck = 0, n_events = 0, n_lines = 0;
    char type[MAX_NAME + 1] = "";
    for (uint64_t i = 0; is_good && i < map.number && !from.failed; ++i) {
        char key[MAX_NAME + 1];
        const Value name = read_value(&from);
        const Value value = read_value(&from);
        unsigned field = 0;
        is_good = copy_text(key, sizeof key, &name);
        if (!is_good || from.failed) break;
        if (!strcmp(key, "v"))
            field = copy_uint(&version, &value, UINT64_MAX) ? ANSWER_VERSION : 0;
        else if (!strcmp(key, "type"))
            field = copy_name(type, &value) ? ANSWER_TYPE : 0;
        else if (!strcmp(key, "id"))
            field = copy_uint(&to->id, &value, UINT64_MAX) ? ANSWER_ID : 0;
        else if (!strcmp(key, "node"))
            field = copy_text(to->node, sizeof to->node, &value) ? ANSWER_NODE : 0;
        else if (!strcmp(key, "chain"))
            field = copy_name(to->chain, &value) ? ANSWER_CHAIN : 0;
        else if (!strcmp(key, "tck"))
            field = copy_uint(&tck, &value, UINT32_MAX) ? ANSWER_TCK : 0;
        else if (!strcmp(key, "n_events"))
            field = copy_uint(&n_events, &value, UINT16_MAX) ? ANSWER_EVENTS : 0;
        else if (!strcmp(key, "n_lines"))
            field = copy_uint(&n_lines, &value, UINT16_MAX) ? ANSWER_LINES : 0;
        else if (!strcmp(key, "accepted"))
            field = copy_part(&to->accepted, &value) ? ANSWER_ACCEPTED : 0;
        else if (!strcmp(key, "lines"))
            field = copy_part(&to->lines, &value) ? ANSWER_FIRED : 0;
        else if (!strcmp(key, "flags"))
            field = copy_part(&to->flags, &value) ? ANSWER_FLAGS : 0;
        else if (!strcmp(key, "counts"))
            field = copy_part(&to->counts, &value) ? ANSWER_COUNTS : 0;
        else if (!strcmp(key, "lists"))
            field = copy_part(&to->lists, &value) ? ANSWER_LISTS : 0;
        else if (!strcmp(key, "collections"))
            field = value.kind == KIND_LIST && read_names(&from, to, value.number, &is_full) ? ANSWER_COLLECTIONS : 0;
        else if (!strcmp(key, "reason"))
            field = copy_name(refusal->reason, &value) ? ANSWER_REASON : 0;
        else if (!strcmp(key, "text"))
            field = copy_text(refusal->text, sizeof refusal->text, &value) ? ANSWER_TEXT : 0;
        /* A message of this version has no other field, and each one once. */
        is_good = field && !(fields & field);
        fields |= field;
    }
    if (is_full) return fail_in(error, HLTNODE_NO_MEMORY, "not enough memory for an answer");
    if ((fields & ANSWER_VERSION) && version != REQUEST_VERSION)
        return fail_in(error, HLTNODE_UNREADABLE, "a message of version %" PRIu64 ", this library reads %d", version,
                       (int)REQUEST_VERSION);
    to->tck = (uint32_t)tck;
    to->n_events = (uint16_t)n_events;
    to->n_lines = (uint16_t)n_lines;
    refusal->id = to->id;
    is_good = is_good && !from.failed && from.at == from.end;
    if (is_good && fields == FIELDS_OF_REFUSAL && !strcmp(type, "refusal"))
        return fail_in(error, HLTNODE_REQUEST_REFUSED, "request %" PRIu64 " was refused: %s: %s", refusal->id,
                       refusal->reason, refusal->text);
    if (is_good && fields == FIELDS_OF_ANSWER && !strcmp(type, "answer")) {
        if (has_good_sizes(to)) return HLTNODE_OK;
        return fail_in(error, HLTNODE_UNREADABLE, "an answer whose sizes do not fit to %d events and %d lines",
                       (int)to->n_events, (int)to->n_lines);
    }
    return fail_in(error, HLTNODE_UNREADABLE, "a malformed message of %zu bytes", size);
}

void hltnode_answer_free(hltnode_answer* answer)
{
    if (!answer) return;
    zmq_msg_close(&answer->message);
    free(answer->names[0]);
    free(answer);
}

uint64_t hltnode_answer_id(const hltnode_answer* answer) { return answer->id; }
const char* hltnode_answer_node(const hltnode_answer* answer) { return answer->node; }
const char* hltnode_answer_chain(const hltnode_answer* answer) { return answer->chain; }
uint32_t hltnode_answer_tck(const hltnode_answer* answer) { return answer->tck; }
uint16_t hltnode_answer_n_events(const hltnode_answer* answer) { return answer->n_events; }
uint16_t hltnode_answer_n_lines(const hltnode_answer* answer) { return answer->n_lines; }

int hltnode_answer_accepted(const hltnode_answer* answer, size_t event)
{
    return event < answer->n_events && (answer->accepted.bytes[event / 8] >> (event % 8) & 1);
}

int hltnode_answer_fired(const hltnode_answer* answer, size_t event, size_t line)
{
    return event < answer->n_events && line < answer->n_lines &&
           (answer->lines.bytes[event * answer->line_bytes + line / 8] >> (line % 8) & 1);
}

uint32_t hltnode_answer_flags(const hltnode_answer* answer, size_t event)
{
    return event < answer->n_events ? (uint32_t)get(answer->flags.bytes + 4 * event, 4) : 0;
}

const char* hltnode_answer_collection(const hltnode_answer* answer, size_t index)
{
    return index < answer->n_collections ? answer->names[index] : NULL;
}

uint32_t hltnode_answer_count(const hltnode_answer* answer, size_t event, size_t collection)
{
    if (event >= answer->n_events || collection >= answer->n_collections) return 0;
    return (uint32_t)get(answer->counts.bytes + 4 * (event * answer->n_collections + collection), 4);
}

const void* hltnode_answer_lists(const hltnode_answer* answer, size_t* size)
{
    if (size) *size = answer->lists.size;
    return answer->lists.bytes;
}

/* ---- The requester */

struct hltnode_requester {
    char endpoint[MAX_ENDPOINT + 1];
    Keys keys;
    void *context, *socket, *monitor; /* from the first request on */
    uint64_t last_id;
    uint64_t on_way, most; /* requests on their way, and how many may leave without a pause */
    int64_t next_ns;       /* when one more may leave */
    Refusal refusal;
    char error[ERROR_BYTES];
    Writer writer;
};

/* A node answers 512 refusals `busy` of a client at once and 64 a second, and ends the connection of one that goes on
 * faster. */
enum { MOST_AT_ONCE = 64, BUSY_PAUSE_MS = 20 };

hltnode_requester* hltnode_requester_new(const char* endpoint)
{
    hltnode_requester* requester = (hltnode_requester*)calloc(1, sizeof *requester);
    /* One that is too long is refused as one that is empty: by the first request. */
    if (requester && endpoint && strlen(endpoint) <= MAX_ENDPOINT)
        memcpy(requester->endpoint, endpoint, strlen(endpoint) + 1);
    if (requester) requester->most = MOST_AT_ONCE;
    return requester;
}

hltnode_status hltnode_requester_set_keys(hltnode_requester* requester, const char* key_file,
                                          const char* server_key_file)
{
    if (!requester) return HLTNODE_NO_MEMORY;
    if (requester->socket) return fail_in(requester->error, HLTNODE_INVALID, "keys are set before the first request");
    return read_keys(requester->error, &requester->keys, key_file, server_key_file);
}

static void close_requester(hltnode_requester* requester)
{
    close_socket(&requester->socket, &requester->monitor);
    if (requester->context) zmq_ctx_term(requester->context);
    requester->context = NULL;
}

static hltnode_status open_requester(hltnode_requester* requester)
{
    static const char events[] = "inproc://request-events";
    const int64_t most = MAX_ANSWER_BYTES;
    if (requester->socket) return HLTNODE_OK;
    if (!requester->endpoint[0])
        return fail_in(requester->error, HLTNODE_INVALID, "endpoint: 1 to %d bytes expected", (int)MAX_ENDPOINT);
    requester->context = zmq_ctx_new();
    requester->socket = requester->context ? zmq_socket(requester->context, ZMQ_DEALER) : NULL;
    requester->monitor = requester->socket ? zmq_socket(requester->context, ZMQ_PAIR) : NULL;
    void* socket = requester->socket;
    /* Without IMMEDIATE requests would wait in a queue to an absent node, and reach it after their time. */
    if (requester->monitor && set_option(socket, ZMQ_LINGER, 0) && set_option(socket, ZMQ_IMMEDIATE, 1) &&
        set_option(socket, ZMQ_IPV6, strncmp(requester->endpoint, "tcp://[", 7) == 0) &&
        set_option(socket, ZMQ_RECONNECT_IVL, 100) && set_option(socket, ZMQ_RECONNECT_IVL_MAX, 1000) &&
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof most) == 0 && use_keys(socket, &requester->keys) &&
        zmq_socket_monitor(socket, events, MONITORED) == 0 && set_option(requester->monitor, ZMQ_LINGER, 0) &&
        zmq_connect(requester->monitor, events) == 0 && zmq_connect(socket, requester->endpoint) == 0)
        return HLTNODE_OK;
    fail_in(requester->error, HLTNODE_SYSTEM, "%s: %s", requester->endpoint, zmq_strerror(zmq_errno()));
    close_requester(requester);
    return HLTNODE_SYSTEM;
}

/* Reads the events of the connection: HLTNODE_REFUSED if the node does not accept the keys. */
static hltnode_status check_handshakes(hltnode_requester* requester)
{
    uint8_t event[8];
    char endpoint[MAX_ENDPOINT + 1];
    hltnode_status status = HLTNODE_OK;
    while (zmq_recv(requester->monitor, event, sizeof event, ZMQ_DONTWAIT) >= 2) {
        uint16_t kind;
        memcpy(&kind, event, sizeof kind); /* in the order of the machine */
        zmq_recv(requester->monitor, endpoint, sizeof endpoint, 0);
        if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
            status = fail_in(requester->error, HLTNODE_REFUSED,
                             "the node does not know this key: consumers and operators may ask");
        else if (kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
            status = fail_in(requester->error, HLTNODE_REFUSED,
                             "the node and this requester do not agree on CURVE, or on the key of the node");
    }
    return status;
}

/* Waits until the socket is ready. A signal that the program handles does not end the wait. */
static hltnode_status wait_for_socket(hltnode_requester* requester, short what, int64_t deadline_ns)
{
    for (;;) {
        zmq_pollitem_t items[2];
        memset(items, 0, sizeof items);
        items[0].socket = requester->socket;
        items[0].events = what;
        items[1].socket = requester->monitor;
        items[1].events = ZMQ_POLLIN;
        const int64_t left_ns = deadline_ns == FOREVER ? 0 : deadline_ns - now_ns();
        const int64_t left_ms = left_ns > 0 ? (left_ns + MS - 1) / MS : 0;
        const int n = zmq_poll(items, 2, deadline_ns == FOREVER ? -1 : (long)left_ms);
        if (n < 0 && zmq_errno() != EINTR)
            return fail_in(requester->error, HLTNODE_SYSTEM, "%s: %s", requester->endpoint, zmq_strerror(zmq_errno()));
        if (n > 0 && (items[0].revents & what)) return HLTNODE_OK;
        const hltnode_status status = check_handshakes(requester);
        if (status) return status;
        if (n == 0 && left_ms == 0 && deadline_ns != FOREVER)
            return fail_in(requester->error, HLTNODE_TIMEOUT, "%s: %s", requester->endpoint,
                           what == ZMQ_POLLOUT ? "no connection to a node" : "no answer of the node");
    }
}

/* A second part that a signal interrupts is sent again, not the first one. */
static bool send_part(void* socket, const void* bytes, size_t size, int flags)
{
    int result;
    do result = zmq_send(socket, bytes, size, ZMQ_DONTWAIT | flags);
    while (result < 0 && zmq_errno() == EINTR);
    return result >= 0;
}

/* Waits until one more request may leave. A signal does not end the wait. */
static hltnode_status wait_for_pause(hltnode_requester* requester, int64_t deadline_ns)
{
    if (requester->on_way < requester->most) return HLTNODE_OK;
    const bool is_short = deadline_ns != FOREVER && deadline_ns < requester->next_ns;
    const int64_t until_ns = is_short ? deadline_ns : requester->next_ns;
    for (int64_t left_ns = until_ns - now_ns(); left_ns > 0; left_ns = until_ns - now_ns()) {
        const struct timespec left = {(time_t)(left_ns / (1000 * MS)), (long)(left_ns % (1000 * MS))};
        nanosleep(&left, NULL);
    }
    return is_short ? fail_in(requester->error, HLTNODE_TIMEOUT, "the node is busy: no request leaves in this time")
                    : HLTNODE_OK;
}

/* A request has left. */
static void count_sent(hltnode_requester* requester)
{
    if (requester->on_way >= requester->most) {
        requester->most = requester->on_way + 1;
        requester->next_ns = now_ns() + BUSY_PAUSE_MS * MS;
    }
    ++requester->on_way;
}

/* A request has its answer, was refused or was given up. */
static void count_ended(hltnode_requester* requester, bool is_busy)
{
    if (requester->on_way) --requester->on_way;
    if (!is_busy) return;
    if (requester->most > requester->on_way) requester->most = requester->on_way;
    requester->next_ns = now_ns() + BUSY_PAUSE_MS * MS;
}

static hltnode_status send_request(hltnode_requester* requester, const void* mep, size_t size, uint32_t node_ms,
                                   int64_t deadline_ns, uint64_t* id)
{
    if (!mep || !size) return fail_in(requester->error, HLTNODE_INVALID, "a MEP expected");
    hltnode_status status = open_requester(requester);
    if (!status) status = wait_for_pause(requester, deadline_ns);
    if (status) return status;
    Writer* to = &requester->writer;
    begin_message(to, REQUEST_VERSION, "request", 2);
    write_field(to, "id", requester->last_id + 1);
    write_field(to, "timeout_ms", node_ms);
    for (;;) {
        status = wait_for_socket(requester, ZMQ_POLLOUT, deadline_ns);
        if (status) return status;
        if (send_part(requester->socket, to->bytes, to->size, ZMQ_SNDMORE) &&
            send_part(requester->socket, mep, size, 0))
            break;
        /* The connection was lost in between: libzmq has dropped the first part. */
        if (zmq_errno() != EAGAIN)
            return fail_in(requester->error, HLTNODE_SYSTEM, "%s: %s", requester->endpoint, zmq_strerror(zmq_errno()));
    }
    *id = ++requester->last_id;
    count_sent(requester);
    return HLTNODE_OK;
}

static hltnode_status receive_answer(hltnode_requester* requester, int64_t deadline_ns, hltnode_answer** answer)
{
    hltnode_answer* found = (hltnode_answer*)calloc(1, sizeof *found);
    if (!found) return fail_in(requester->error, HLTNODE_NO_MEMORY, "not enough memory for an answer");
    zmq_msg_init(&found->message);
    bool is_alone = true;
    int size;
    hltnode_status status;
    do {
        status = wait_for_socket(requester, ZMQ_POLLIN, deadline_ns);
        size = status ? -1 : zmq_msg_recv(&found->message, requester->socket, ZMQ_DONTWAIT);
    } while (!status && size < 0 && (zmq_errno() == EAGAIN || zmq_errno() == EINTR));
    /* The parts of a message arrive together. */
    while (size >= 0 && zmq_msg_more(&found->message)) {
        is_alone = false;
        size = zmq_msg_recv(&found->message, requester->socket, ZMQ_DONTWAIT);
    }
    if (status) {
        hltnode_answer_free(found);
        return status;
    }
    if (size < 0)
        status = fail_in(requester->error, HLTNODE_SYSTEM, "%s: %s", requester->endpoint, zmq_strerror(zmq_errno()));
    else if (!is_alone)
        status = fail_in(requester->error, HLTNODE_UNREADABLE, "a message of several parts");
    else
        status = read_answer(found, &requester->refusal, (const uint8_t*)zmq_msg_data(&found->message), (size_t)size,
                             requester->error);
    count_ended(requester, status == HLTNODE_REQUEST_REFUSED && strcmp(requester->refusal.reason, "busy") == 0);
    if (status)
        hltnode_answer_free(found);
    else
        *answer = found;
    return status;
}

hltnode_status hltnode_requester_send(hltnode_requester* requester, const void* mep, size_t size, uint32_t node_ms,
                                      int timeout_ms, uint64_t* id)
{
    if (!requester) return HLTNODE_NO_MEMORY;
    if (!id) return fail_in(requester->error, HLTNODE_INVALID, "a place for the id expected");
    return send_request(requester, mep, size, node_ms, deadline_of(timeout_ms), id);
}

hltnode_status hltnode_requester_receive(hltnode_requester* requester, int timeout_ms, hltnode_answer** answer)
{
    if (!requester) return HLTNODE_NO_MEMORY;
    if (!answer) return fail_in(requester->error, HLTNODE_INVALID, "a place for the answer expected");
    *answer = NULL;
    if (!requester->socket) return fail_in(requester->error, HLTNODE_INVALID, "no request was sent");
    return receive_answer(requester, deadline_of(timeout_ms), answer);
}

hltnode_status hltnode_requester_cancel(hltnode_requester* requester, uint64_t id)
{
    if (!requester) return HLTNODE_NO_MEMORY;
    if (!requester->socket) return fail_in(requester->error, HLTNODE_INVALID, "no request was sent");
    Writer* to = &requester->writer;
    begin_message(to, REQUEST_VERSION, "cancel", 1);
    write_field(to, "id", id);
    count_ended(requester, false);
    /* Without a connection the node has dropped the request already. */
    zmq_send(requester->socket, to->bytes, to->size, ZMQ_DONTWAIT);
    return HLTNODE_OK;
}

hltnode_status hltnode_requester_ask(hltnode_requester* requester, const void* mep, size_t size, int timeout_ms,
                                     hltnode_answer** answer)
{
    const int64_t deadline_ns = deadline_of(timeout_ms);
    uint64_t id;
    if (!requester) return HLTNODE_NO_MEMORY;
    if (!answer) return fail_in(requester->error, HLTNODE_INVALID, "a place for the answer expected");
    *answer = NULL;
    const uint32_t node_ms = timeout_ms < 0 ? 0 : timeout_ms ? (uint32_t)timeout_ms : 1;
    hltnode_status status = send_request(requester, mep, size, node_ms, deadline_ns, &id);
    while (!status) {
        status = receive_answer(requester, deadline_ns, answer);
        if (!status && (*answer)->id == id) return HLTNODE_OK;
        /* What is left of earlier requests. A refusal without an id may be of this one. */
        if (status == HLTNODE_REQUEST_REFUSED && requester->refusal.id && requester->refusal.id != id)
            status = HLTNODE_OK;
        hltnode_answer_free(*answer);
        *answer = NULL;
        if (status == HLTNODE_TIMEOUT) hltnode_requester_cancel(requester, id);
    }
    return status;
}

const char* hltnode_requester_refusal(const hltnode_requester* requester, uint64_t* id)
{
    if (id) *id = requester ? requester->refusal.id : 0;
    return requester ? requester->refusal.reason : "";
}

const char* hltnode_requester_error(const hltnode_requester* requester)
{
    return requester ? requester->error : "not enough memory";
}

void hltnode_requester_free(hltnode_requester* requester)
{
    if (!requester) return;
    close_requester(requester);
    wipe(&requester->keys, sizeof requester->keys);
    free(requester);
}
