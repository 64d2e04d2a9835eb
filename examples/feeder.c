// A feeder in C that needs only libzmq, written from docs/reference/protocol.md.
//
//     cc -O2 -o feeder examples/feeder.c -lzmq
//     ./feeder tcp://127.0.0.1:5555 tcp://127.0.0.1:5556 --meps 100 --boards 3
//
// It sends artificial data of a timing board (ODIN) and of some detector boards. It keeps every MEP until the node
// acknowledges it, and repeats fragments that the node refused or lost by a restart. --corrupt N damages each Nth frame
// at its first sending, to show this. Exit code 0: all MEPs are acknowledged and no fragment is refused.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__has_include)
#if __has_include(<zmq.h>)
#include <zmq.h>
#define HAVE_ZMQ_H
#endif
#endif
#ifndef HAVE_ZMQ_H
// The used declarations of <zmq.h>, which is in libzmq's development package.
typedef struct {
    void* socket;
    int fd;
    short events, revents;
} zmq_pollitem_t;
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
int zmq_errno(void);
const char* zmq_strerror(int number);
enum { ZMQ_DEALER = 5, ZMQ_PUSH = 8, ZMQ_POLLIN = 1, ZMQ_POLLOUT = 2, ZMQ_DONTWAIT = 1 };
enum {
    ZMQ_LINGER = 17,
    ZMQ_RECONNECT_IVL = 18,
    ZMQ_RECONNECT_IVL_MAX = 21,
    ZMQ_SNDHWM = 23,
    ZMQ_IMMEDIATE = 39,
    ZMQ_IPV6 = 42
};
enum { ZMQ_TCP_KEEPALIVE = 34, ZMQ_TCP_KEEPALIVE_CNT, ZMQ_TCP_KEEPALIVE_IDLE, ZMQ_TCP_KEEPALIVE_INTVL };
enum { ZMQ_TCP_MAXRT = 80 };
#endif

enum { HEADER_BYTES = 48, TOKEN_AT = 40, MFP_HEADER_BYTES = 20, ALIGN = 3, ODIN_BYTES = 40, BOARD_BYTES = 64 };
enum { ODIN_TYPE = 16, ODIN_VERSION = 7, BOARD_TYPE = 192, BOARD_VERSION = 1, BOARD_SUBDETECTOR = 24 };
enum { MAX_SOURCES = 2049, MAX_RANGES = 1024, MAX_MESSAGE = 32 << 10, CONTROL_VERSION = 3, FRAME_VERSION = 2 };
enum { MAX_ATTEMPTS = 5, SILENT_HELLOS = 4 };
#define MS INT64_C(1000000)
#define HELLO_NS (1000 * MS)
#define RETRY_NS (50 * MS)
#define OVERTAKEN_NS (3000 * MS)
#define UNHEARD_NS (20000 * MS)
#define CONFIRM_NS (2000 * MS)
#define PATIENCE_NS (30000 * MS)

static int64_t now_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000 * MS + time.tv_nsec;
}

static void fail(const char* what, const char* why)
{
    fprintf(stderr, "error: %s: %s\n", what, why);
    exit(1);
}

static void* checked(void* memory)
{
    if (!memory) fail("memory", "not enough memory");
    return memory;
}

// ---- Numbers in frames are little-endian

static void put(uint8_t* to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; ++i) to[i] = (uint8_t)(value >> 8 * i);
}

static size_t padded(size_t size, unsigned bits)
{
    const size_t mask = ((size_t)1 << bits) - 1;
    return (size + mask) & ~mask;
}

static uint32_t crc32c(uint32_t crc, const uint8_t* data, size_t size)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78u : 0);
            table[i] = value;
        }
    crc = ~crc;
    while (size--) crc = crc >> 8 ^ table[(crc ^ *data++) & 0xFF];
    return ~crc;
}

// ---- Messages: msgpack maps with text keys

typedef struct {
    uint8_t bytes[MAX_MESSAGE];
    size_t size;
} Writer;

static void write_byte(Writer* to, uint8_t byte)
{
    if (to->size == MAX_MESSAGE) fail("message", "too large");
    to->bytes[to->size++] = byte;
}

static void write_big_endian(Writer* to, uint8_t tag, uint64_t value, int n_bytes)
{
    write_byte(to, tag);
    while (n_bytes--) write_byte(to, (uint8_t)(value >> 8 * n_bytes));
}

static void write_uint(Writer* to, uint64_t value)
{
    if (value < 0x80)
        write_byte(to, (uint8_t)value);
    else
        write_big_endian(to, 0xCF, value, 8);
}

static void write_text(Writer* to, const char* text)
{
    const size_t size = strlen(text);
    write_big_endian(to, 0xD9, size, 1);
    for (size_t i = 0; i < size; ++i) write_byte(to, (uint8_t)text[i]);
}

static void write_bool(Writer* to, bool value) { write_byte(to, value ? 0xC3 : 0xC2); }

static void begin_message(Writer* to, const char* type, int n_fields)
{
    to->size = 0;
    write_byte(to, (uint8_t)(0x80 | (n_fields + 2)));
    write_text(to, "v");
    write_uint(to, CONTROL_VERSION);
    write_text(to, "type");
    write_text(to, type);
}

typedef struct {
    const uint8_t *at, *end;
    bool failed;
} Reader;

static uint64_t read_big_endian(Reader* from, int n_bytes)
{
    uint64_t value = 0;
    if (from->end - from->at < n_bytes) {
        from->failed = true;
        from->at = from->end;
        return 0;
    }
    while (n_bytes--) value = value << 8 | *from->at++;
    return value;
}

// A value: a number or bool, a text, or a list or map of `number` items (pairs) that follow.
typedef struct {
    enum { NUMBER, TEXT, LIST, MAP, NOTHING } kind;
    uint64_t number;
    const uint8_t* text;
} Value;

static Value read_value(Reader* from)
{
    const uint8_t tag = (uint8_t)read_big_endian(from, 1);
    Value value = {NOTHING, 0, NULL};
    if (tag < 0x80)
        value.kind = NUMBER, value.number = tag;
    else if (tag < 0x90)
        value.kind = MAP, value.number = tag & 0xF;
    else if (tag < 0xA0)
        value.kind = LIST, value.number = tag & 0xF;
    else if (tag < 0xC0)
        value.kind = TEXT, value.number = tag & 0x1F;
    else if (tag == 0xC2 || tag == 0xC3)
        value.kind = NUMBER, value.number = tag & 1;
    else if (tag >= 0xCC && tag <= 0xCF)
        value.kind = NUMBER, value.number = read_big_endian(from, 1 << (tag - 0xCC));
    else if (tag >= 0xD9 && tag <= 0xDB)
        value.kind = TEXT, value.number = read_big_endian(from, 1 << (tag - 0xD9));
    else if (tag == 0xDC || tag == 0xDD)
        value.kind = LIST, value.number = read_big_endian(from, 2 << (tag - 0xDC));
    else if (tag == 0xDE || tag == 0xDF)
        value.kind = MAP, value.number = read_big_endian(from, 2 << (tag - 0xDE));
    else if (tag != 0xC0)
        from->failed = true;
    if (value.kind == TEXT) {
        if (value.number > (uint64_t)(from->end - from->at)) {
            from->failed = true;
            value.number = 0;
        }
        value.text = from->at;
        from->at += value.number;
    }
    return value;
}

static void copy_text(char* to, size_t room, const Value* value)
{
    const size_t size = value->kind == TEXT && value->number < room ? (size_t)value->number : 0;
    memcpy(to, size ? value->text : (const uint8_t*)"", size);
    to[size] = '\0';
}

// A message of the node, with the fields of all types that a feeder understands.
typedef struct {
    char type[32], session[65], reason[1001], text[1001];
    uint64_t version, run, source, mep, credit, max_fragment_bytes, token;
    bool resend;
    size_t n_ranges;
    uint64_t ranges[MAX_RANGES][2];
} Message;

static bool read_message(Message* to, const uint8_t* bytes, size_t size)
{
    Reader from = {bytes, bytes + size, false};
    memset(to, 0, sizeof *to);
    const Value map = read_value(&from);
    if (map.kind != MAP) return false;
    for (uint64_t i = 0; i < map.number && !from.failed; ++i) {
        char key[32];
        const Value name = read_value(&from);
        copy_text(key, sizeof key, &name);
        const Value value = read_value(&from);
        if (value.kind == LIST) {
            for (uint64_t j = 0; j < value.number && !from.failed; ++j) {
                const Value pair = read_value(&from);
                if (pair.kind != LIST || pair.number != 2 || to->n_ranges == MAX_RANGES) return false;
                to->ranges[to->n_ranges][0] = read_value(&from).number;
                to->ranges[to->n_ranges++][1] = read_value(&from).number;
            }
            continue;
        }
        if (!strcmp(key, "v")) to->version = value.number;
        if (!strcmp(key, "type")) copy_text(to->type, sizeof to->type, &value);
        if (!strcmp(key, "session")) copy_text(to->session, sizeof to->session, &value);
        if (!strcmp(key, "reason")) copy_text(to->reason, sizeof to->reason, &value);
        if (!strcmp(key, "text")) copy_text(to->text, sizeof to->text, &value);
        if (!strcmp(key, "run")) to->run = value.number;
        if (!strcmp(key, "source")) to->source = value.number;
        if (!strcmp(key, "mep")) to->mep = value.number;
        if (!strcmp(key, "meps")) to->credit = value.number;
        if (!strcmp(key, "max_fragment_bytes")) to->max_fragment_bytes = value.number;
        if (!strcmp(key, "token")) to->token = value.number;
        if (!strcmp(key, "resend")) to->resend = value.number != 0;
    }
    return !from.failed && to->version == CONTROL_VERSION;
}

// ---- The data: artificial frames of a MEP

typedef struct {
    const char *name, *data, *control;
    uint32_t run;
    unsigned n_meps, n_boards, events_per_mep, corrupt_each;
    double events_per_second;
} Options;

static uint16_t source_of(unsigned column)
{
    // The timing board is source 0 of sub-detector 0.
    return column == 0 ? 0 : (uint16_t)(BOARD_SUBDETECTOR << 11 | (column - 1));
}

// A transport header of 48 bytes, then an MFP. Its token is written before each sending.
static uint8_t* make_frame(const Options* options, uint64_t mep, unsigned column, size_t* size)
{
    const unsigned n = options->events_per_mep;
    const size_t fragment = column == 0 ? ODIN_BYTES : BOARD_BYTES;
    const size_t sizes_at = padded(MFP_HEADER_BYTES + n, 2), data_at = padded(sizes_at + 2 * n, 2);
    const size_t mfp_size = data_at + n * padded(fragment, ALIGN);
    uint8_t *frame = checked(calloc(1, HEADER_BYTES + mfp_size)), *mfp = frame + HEADER_BYTES;
    const uint64_t first_event = mep * n;
    put(mfp, 0x40CE, 2);
    put(mfp + 2, n, 2);
    put(mfp + 4, mfp_size, 4);
    put(mfp + 8, first_event, 8);
    put(mfp + 16, source_of(column), 2);
    mfp[18] = ALIGN;
    mfp[19] = column == 0 ? ODIN_VERSION : BOARD_VERSION;
    for (unsigned i = 0; i < n; ++i) {
        uint8_t* payload = mfp + data_at + i * padded(fragment, ALIGN);
        mfp[MFP_HEADER_BYTES + i] = column == 0 ? ODIN_TYPE : BOARD_TYPE;
        put(mfp + sizes_at + 2 * i, fragment, 2);
        if (column == 0) {
            put(payload, options->run, 4);
            put(payload + 8, (first_event + i) * 25 + 1, 8);  // time in us
            put(payload + 32, first_event + i, 8);
        } else
            memset(payload, (int)(first_event + i + column), fragment);
    }
    put(frame, 0x464E4C48, 4);
    put(frame + 4, FRAME_VERSION, 2);
    put(frame + 8, options->run, 4);
    put(frame + 12, mfp_size, 4);
    put(frame + 16, mep, 8);
    put(frame + 24, (uint64_t)now_ns(CLOCK_REALTIME), 8);
    put(frame + 32, source_of(column), 2);
    put(frame + 36, crc32c(crc32c(0, frame, 36), mfp, mfp_size), 4);
    *size = HEADER_BYTES + mfp_size;
    return frame;
}

// ---- MEPs, kept until they are acknowledged

typedef struct {
    uint8_t* frame;
    size_t size;
    int64_t due_ns;     // sending time; 0: now; -1: sent or given up
    unsigned attempts;  // damaged arrivals
    bool was_sent;
} Fragment;

typedef struct Mep {
    struct Mep* next;
    uint64_t id;
    bool has_begun, at_node, held;
    uint64_t turn;                  // number of sent frames, up to its last one
    int64_t sent_ns, overtaken_ns;  // time of that; time since which a later frame is known to have arrived
    Fragment fragments[];
} Mep;

typedef struct {
    Options options;
    unsigned n_sources;
    void *data, *control;
    char session[33], node_session[65];
    Mep *first, **end;  // ordered by id
    uint64_t next_mep, credit, n_begun, max_fragment_bytes;
    uint64_t token;    // permission of the node to send
    uint64_t arrived;  // the last turn that is known to have arrived
    bool is_welcome, has_ended;
    int64_t hello_ns, next_mep_ns, refused_since_ns;
    unsigned hellos_without_answer;
    uint64_t n_sent, n_again, n_refused, n_missed, n_acknowledged, n_welcomes;
} Feeder;

static void say(const Feeder* feeder, const char* what, const char* detail)
{
    fprintf(stderr, "%s: %s %s\n", feeder->options.name, what, detail);
}

static void set(void* socket, int option, int value)
{
    if (zmq_setsockopt(socket, option, &value, sizeof value)) fail("option", zmq_strerror(zmq_errno()));
}

static void* connected(void* context, int type, const char* endpoint, int give_up_ms)
{
    void* socket = checked(zmq_socket(context, type));
    set(socket, ZMQ_LINGER, 500);
    // An IPv6 address such as tcp://[::1]:5555; host names stay IPv4.
    set(socket, ZMQ_IPV6, strncmp(endpoint, "tcp://[", 7) == 0);
    set(socket, ZMQ_RECONNECT_IVL, 100);
    set(socket, ZMQ_RECONNECT_IVL_MAX, 1000);
    // Detects an unreachable machine after 5 s; this protocol has no ZMTP heartbeats.
    set(socket, ZMQ_TCP_KEEPALIVE, 1);
    set(socket, ZMQ_TCP_KEEPALIVE_IDLE, 2);
    set(socket, ZMQ_TCP_KEEPALIVE_INTVL, 1);
    set(socket, ZMQ_TCP_KEEPALIVE_CNT, 3);
    set(socket, ZMQ_TCP_MAXRT, give_up_ms);
    if (type == ZMQ_PUSH) {
        // Frames wait in this program, not in a queue to an absent node.
        set(socket, ZMQ_SNDHWM, 8);
        set(socket, ZMQ_IMMEDIATE, 1);
    }
    if (zmq_connect(socket, endpoint)) fail(endpoint, zmq_strerror(zmq_errno()));
    return socket;
}

static void send_message(const Feeder* feeder, const Writer* message)
{
    // A message that cannot be sent may be dropped: hellos repeat the information.
    zmq_send(feeder->control, message->bytes, message->size, ZMQ_DONTWAIT);
}

static void say_hello(Feeder* feeder)
{
    static Writer to;
    begin_message(&to, "hello", 8);
    write_text(&to, "feeder");
    write_text(&to, feeder->options.name);
    write_text(&to, "session");
    write_text(&to, feeder->session);
    write_text(&to, "run");
    write_uint(&to, feeder->options.run);
    write_text(&to, "sources");
    write_big_endian(&to, 0xDC, feeder->n_sources, 2);
    for (unsigned i = 0; i < feeder->n_sources; ++i) write_uint(&to, source_of(i));
    write_text(&to, "first_mep");
    write_uint(&to, feeder->first ? feeder->first->id : feeder->next_mep);
    write_text(&to, "events_per_mep");
    write_uint(&to, feeder->options.events_per_mep);
    write_text(&to, "max_fragment_bytes");
    write_uint(&to, feeder->max_fragment_bytes);
    write_text(&to, "supervises");
    write_bool(&to, false);
    send_message(feeder, &to);
    if (feeder->has_ended) {
        begin_message(&to, "end_of_run", 2);
        write_text(&to, "run");
        write_uint(&to, feeder->options.run);
        write_text(&to, "last_mep");
        write_uint(&to, feeder->next_mep - 1);
        send_message(feeder, &to);
    }
    feeder->hello_ns = now_ns(CLOCK_MONOTONIC) + HELLO_NS;
}

// Nothing is sent until the next welcome.
static void lose(Feeder* feeder)
{
    feeder->is_welcome = false;
    feeder->credit = 0;
}

static void reconnect(Feeder* feeder)
{
    say(feeder, "no answer, reconnects to", feeder->options.control);
    lose(feeder);
    zmq_disconnect(feeder->control, feeder->options.control);
    zmq_disconnect(feeder->data, feeder->options.data);
    zmq_connect(feeder->control, feeder->options.control);
    zmq_connect(feeder->data, feeder->options.data);
    feeder->hellos_without_answer = 0;
}

static void produce(Feeder* feeder)
{
    Mep* mep = checked(calloc(1, sizeof *mep + feeder->n_sources * sizeof mep->fragments[0]));
    mep->id = feeder->next_mep++;
    for (unsigned i = 0; i < feeder->n_sources; ++i)
        mep->fragments[i].frame = make_frame(&feeder->options, mep->id, i, &mep->fragments[i].size);
    *feeder->end = mep;
    feeder->end = &mep->next;
}

static bool is_sent(const Feeder* feeder, const Mep* mep)
{
    for (unsigned i = 0; i < feeder->n_sources; ++i)
        if (mep->fragments[i].frame && mep->fragments[i].due_ns >= 0) return false;
    return mep->has_begun;
}

// The node has a whole MEP, and so all frames sent before it.
static void note_arrival(Feeder* feeder, const Mep* mep)
{
    if (is_sent(feeder, mep) && mep->turn > feeder->arrived) feeder->arrived = mep->turn;
}

static void forget(Feeder* feeder, Mep** place)
{
    Mep* mep = *place;
    note_arrival(feeder, mep);
    *place = mep->next;
    if (feeder->end == &mep->next) feeder->end = place;
    feeder->n_begun -= mep->has_begun;
    for (unsigned i = 0; i < feeder->n_sources; ++i) free(mep->fragments[i].frame);
    free(mep);
    ++feeder->n_acknowledged;
}

static void send_all_again(Feeder* feeder, Mep* mep)
{
    for (unsigned i = 0; i < feeder->n_sources; ++i)
        if (mep->fragments[i].frame) mep->fragments[i].due_ns = 0;
}

// A connection keeps the order of frames. So a MEP is lost if the node neither has it nor refused it, but has a later
// frame. A frame that a busy node has not read yet is not lost.
static void repeat_lost(Feeder* feeder, int64_t now)
{
    Mep* last = NULL;
    bool is_any_lost = false;
    for (Mep* mep = feeder->first; mep; mep = mep->next) {
        if (mep->at_node || !is_sent(feeder, mep)) continue;
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
    // The node mentions no sent MEP: the last one is sent again; its answer shows whether the others have arrived.
    if (!is_any_lost && last && last->turn > feeder->arrived && now - last->sent_ns >= UNHEARD_NS)
        send_all_again(feeder, last);
}

// ---- Messages of the node

static void take_welcome(Feeder* feeder, const Message* message)
{
    ++feeder->n_welcomes;
    feeder->refused_since_ns = 0;
    const bool is_same = !strcmp(feeder->node_session, message->session);
    if (feeder->is_welcome && is_same && feeder->token == message->token) {
        repeat_lost(feeder, now_ns(CLOCK_MONOTONIC));
        return;
    }
    say(feeder, "welcome by session", message->session);
    if (feeder->max_fragment_bytes > message->max_fragment_bytes) fail("node", "it accepts only smaller fragments");
    strcpy(feeder->node_session, message->session);
    feeder->token = message->token;
    feeder->is_welcome = true;
    feeder->credit = feeder->n_begun = feeder->arrived = 0;
    for (Mep* mep = feeder->first; mep; mep = mep->next) {
        mep->held = mep->held && is_same;
        mep->has_begun = mep->at_node = mep->held;
        mep->overtaken_ns = 0;
        feeder->n_begun += mep->held;
        if (!mep->held) send_all_again(feeder, mep);
    }
}

static void take_held(Feeder* feeder, const Message* message)
{
    if (strcmp(feeder->node_session, message->session)) return;
    for (size_t i = 0; i < message->n_ranges; ++i)
        for (Mep* mep = feeder->first; mep; mep = mep->next) {
            if (!mep->has_begun || mep->id < message->ranges[i][0] || mep->id > message->ranges[i][1]) continue;
            note_arrival(feeder, mep);
            mep->held = mep->at_node = true;
            for (unsigned j = 0; j < feeder->n_sources; ++j) mep->fragments[j].due_ns = -1;
        }
}

static void take_nack(Feeder* feeder, const Message* message)
{
    if (!strcmp(message->reason, "foreign_run")) {
        lose(feeder);
        return;
    }
    Mep* mep = feeder->first;
    while (mep && mep->id != message->mep) mep = mep->next;
    Fragment* fragment = NULL;
    for (unsigned i = 0; mep && i < feeder->n_sources; ++i)
        if (source_of(i) == message->source && mep->fragments[i].frame) fragment = &mep->fragments[i];
    if (!strcmp(message->reason, "duplicate") || !strcmp(message->reason, "late")) {
        // The node has the MEP and will acknowledge it.
        if (mep) mep->at_node = true;
        if (!strcmp(message->reason, "late")) ++feeder->n_refused;
        return;
    }
    if (!fragment || fragment->due_ns >= 0) return;
    const bool passes = !strcmp(message->reason, "no_credit") || !strcmp(message->reason, "revoked");
    if (!message->resend || (!passes && ++fragment->attempts > MAX_ATTEMPTS)) {
        say(feeder, "a fragment is refused:", message->reason);
        free(fragment->frame);
        fragment->frame = NULL;
        ++feeder->n_refused;
        return;
    }
    if (!strcmp(message->reason, "no_credit") && mep->has_begun) {
        // The node has no slot for this MEP now: it starts again when there is credit.
        mep->has_begun = false;
        --feeder->n_begun;
    }
    fragment->due_ns = now_ns(CLOCK_MONOTONIC) + RETRY_NS;
}

static void take_error(Feeder* feeder, const Message* message)
{
    static const char* const hopeless[] = {"no_sources",  "events_per_mep", "foreign_run",
                                           "bad_version", "malformed",      "oversized"};
    if (!strcmp(message->reason, "unknown_feeder")) return;
    say(feeder, "the node refuses:", message->text);
    for (size_t i = 0; i < sizeof hopeless / sizeof hopeless[0]; ++i)
        if (!strcmp(message->reason, hopeless[i])) exit(1);
    if (!strcmp(message->reason, "name_taken")) lose(feeder);
    const int64_t now = now_ns(CLOCK_MONOTONIC);
    if (!feeder->refused_since_ns) feeder->refused_since_ns = now;
    if (now - feeder->refused_since_ns > PATIENCE_NS) exit(1);
}

static void take_message(Feeder* feeder, const Message* message)
{
    feeder->hellos_without_answer = 0;
    const bool is_ours = message->run == feeder->options.run;
    if (!strcmp(message->type, "welcome"))
        take_welcome(feeder, message);
    else if (!strcmp(message->type, "credit") && is_ours && feeder->is_welcome)
        feeder->credit = message->credit;
    else if (!strcmp(message->type, "ack") && is_ours) {
        for (size_t i = 0; i < message->n_ranges; ++i)
            for (Mep** place = &feeder->first; *place;)
                if ((*place)->id >= message->ranges[i][0] && (*place)->id <= message->ranges[i][1])
                    forget(feeder, place);
                else
                    place = &(*place)->next;
    } else if (!strcmp(message->type, "held") && is_ours)
        take_held(feeder, message);
    else if (!strcmp(message->type, "nack"))
        take_nack(feeder, message);
    else if (!strcmp(message->type, "missed") && is_ours)
        feeder->n_missed += message->n_ranges;
    else if (!strcmp(message->type, "goodbye")) {
        say(feeder, "the node leaves:", message->reason);
        lose(feeder);
    } else if (!strcmp(message->type, "error"))
        take_error(feeder, message);
    else if (!strcmp(message->type, "run_closed") && is_ours)
        fail("run", "an operator closed it");
}

static void read_control(Feeder* feeder)
{
    static uint8_t bytes[MAX_MESSAGE];
    static Message message;
    int size;
    while ((size = zmq_recv(feeder->control, bytes, sizeof bytes, ZMQ_DONTWAIT)) >= 0) {
        if (size <= (int)sizeof bytes && read_message(&message, bytes, (size_t)size))
            take_message(feeder, &message);
        else if (message.version && message.version != CONTROL_VERSION) {
            char why[120];
            snprintf(why, sizeof why, "its messages have version %llu, this feeder knows version %d",
                     (unsigned long long)message.version, CONTROL_VERSION);
            fail("node", why);
        } else
            say(feeder, "cannot read", "a message of the node");
    }
}

// ---- Sending

// The next fragment to send, in the order of MEPs; a MEP that needs a credit counts only if there is one.
static Fragment* next_fragment(Feeder* feeder, int64_t now, Mep** of_mep)
{
    if (!feeder->is_welcome) return NULL;
    for (Mep* mep = feeder->first; mep; mep = mep->next) {
        if (!mep->has_begun && feeder->n_begun >= feeder->credit) continue;
        for (unsigned i = 0; i < feeder->n_sources; ++i) {
            Fragment* fragment = &mep->fragments[i];
            if (fragment->frame && fragment->due_ns >= 0 && fragment->due_ns <= now) {
                *of_mep = mep;
                return fragment;
            }
        }
    }
    return NULL;
}

static bool send_fragment(Feeder* feeder, Mep* mep, Fragment* fragment, int64_t now)
{
    const Options* options = &feeder->options;
    const bool damage =
        options->corrupt_each && !fragment->was_sent && (feeder->n_sent + 1) % options->corrupt_each == 0;
    uint8_t* last = &fragment->frame[fragment->size - 1];
    *last ^= damage;
    put(fragment->frame + TOKEN_AT, feeder->token, 8);
    const int sent = zmq_send(feeder->data, fragment->frame, fragment->size, ZMQ_DONTWAIT);
    *last ^= damage;
    if (sent < 0) return false;
    feeder->n_begun += !mep->has_begun;
    mep->has_begun = true;
    ++feeder->n_sent;
    feeder->n_again += fragment->was_sent;
    fragment->was_sent = true;
    fragment->due_ns = -1;
    mep->sent_ns = now;
    mep->turn = feeder->n_sent;
    return true;
}

static void turn(Feeder* feeder)
{
    int64_t now = now_ns(CLOCK_MONOTONIC);
    if (now >= feeder->hello_ns) {
        if (feeder->hellos_without_answer++ >= SILENT_HELLOS) reconnect(feeder);
        say_hello(feeder);
    }
    uint64_t n_kept = 0;
    for (const Mep* mep = feeder->first; mep; mep = mep->next) ++n_kept;
    if (n_kept < feeder->credit && feeder->next_mep < feeder->options.n_meps && now >= feeder->next_mep_ns) {
        produce(feeder);
        if (feeder->options.events_per_second > 0)
            feeder->next_mep_ns =
                now + (int64_t)(feeder->options.events_per_mep / feeder->options.events_per_second * 1e9);
    }
    Mep* mep = NULL;
    Fragment* fragment = next_fragment(feeder, now, &mep);
    const bool is_full = fragment && !send_fragment(feeder, mep, fragment, now);
    zmq_pollitem_t items[] = {{feeder->control, 0, ZMQ_POLLIN, 0}, {feeder->data, 0, ZMQ_POLLOUT, 0}};
    zmq_poll(items, is_full ? 2 : 1, fragment && !is_full ? 0 : 5);
    if (items[0].revents) read_control(feeder);
}

static void finish(Feeder* feeder)
{
    feeder->has_ended = true;
    say_hello(feeder);
    while (feeder->first) turn(feeder);
    // The last hello confirms all MEPs; its welcome shows that the node received it.
    const uint64_t awaited = feeder->n_welcomes + 1;
    const int64_t end = now_ns(CLOCK_MONOTONIC) + CONFIRM_NS;
    say_hello(feeder);
    while (feeder->n_welcomes < awaited && now_ns(CLOCK_MONOTONIC) < end) turn(feeder);
    static Writer to;
    begin_message(&to, "goodbye", 1);
    write_text(&to, "reason");
    write_text(&to, "feeder ends");
    send_message(feeder, &to);
}

static Options read_options(int n, char** words)
{
    Options options = {.name = "feeder-in-c", .run = 7, .n_meps = 100, .n_boards = 3, .events_per_mep = 50};
    if (n < 3)
        fail("usage",
             "feeder DATA CONTROL [--meps N] [--boards N] [--events-per-mep N] [--run N] [--rate N] "
             "[--corrupt N] [--name NAME]");
    options.data = words[1];
    options.control = words[2];
    for (int i = 3; i + 1 < n; i += 2) {
        const char *word = words[i], *value = words[i + 1];
        if (!strcmp(word, "--meps"))
            options.n_meps = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(word, "--boards"))
            options.n_boards = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(word, "--events-per-mep"))
            options.events_per_mep = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(word, "--run"))
            options.run = (uint32_t)strtoul(value, NULL, 10);
        else if (!strcmp(word, "--rate"))
            options.events_per_second = strtod(value, NULL);
        else if (!strcmp(word, "--corrupt"))
            options.corrupt_each = (unsigned)strtoul(value, NULL, 10);
        else if (!strcmp(word, "--name"))
            options.name = value;
        else
            fail(word, "unknown option");
    }
    if (!options.n_meps || options.n_boards >= MAX_SOURCES || !options.events_per_mep || options.events_per_mep > 65535)
        fail("options", "at least one MEP, at most 2048 boards, 1 to 65535 events per MEP");
    return options;
}

int main(int n, char** words)
{
    static Feeder feeder;
    feeder.options = read_options(n, words);
    feeder.n_sources = feeder.options.n_boards + 1;
    feeder.end = &feeder.first;
    size_t size;
    free(make_frame(&feeder.options, 0, feeder.options.n_boards ? 1 : 0, &size));
    feeder.max_fragment_bytes = size - HEADER_BYTES;
    // New for each start of the program.
    snprintf(feeder.session, sizeof feeder.session, "%016" PRIx64 "%08x", (uint64_t)now_ns(CLOCK_REALTIME),
             (unsigned)getpid());
    void* context = checked(zmq_ctx_new());
    feeder.control = connected(context, ZMQ_DEALER, feeder.options.control, 4000);
    feeder.data = connected(context, ZMQ_PUSH, feeder.options.data, 15000);
    while (feeder.next_mep < feeder.options.n_meps) turn(&feeder);
    finish(&feeder);
    zmq_close(feeder.data);
    zmq_close(feeder.control);
    zmq_ctx_term(context);
    printf("%" PRIu64 " MEPs acknowledged, %" PRIu64 " fragments sent (%" PRIu64 " again), %" PRIu64
           " refused, %" PRIu64 " ranges of MEPs closed without a fragment\n",
           feeder.n_acknowledged, feeder.n_sent, feeder.n_again, feeder.n_refused, feeder.n_missed);
    return feeder.n_refused || feeder.n_missed ? 1 : 0;
}
