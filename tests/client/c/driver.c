/* A feeder and a requester for tests of the C library. The feeder's behaviour follows from options. It contains the
 * source of the library, so that one compilation with sanitizers checks both, and tests reach the parser.
 *
 *     driver DATA CONTROL [--meps N] [--first N] [--boards N] [--events N] [--rate EVENTS_PER_S] [--keys OWN SERVER]
 *            [--memory BYTES] [--timeout MS] [--bank BYTES] [--linger MS]
 *     driver parse < MESSAGES      each with its size as u32; prints what the parser reads of each
 *     driver crc                   compares the ways to compute a CRC32C
 *     driver answers < MESSAGES    as parse, for the messages of a request socket
 *     driver mep ROOM < MFPS       each with its size as u32; prints the MEP of them in ROOM bytes
 *     driver corners               compares what wrong arguments give
 *     driver ask ENDPOINT TIMEOUT [OWN SERVER] < COMMANDS      a requester; prints a line for each command
 */
#include "hltnode_client.c"

enum { DRIVER_RUN = 7, BOARD_SUBDETECTOR = 24, BOARD_TYPE = 192, MAX_BOARDS = 200, MAX_MFP = 1 << 16 };

static void print_message(const Message* message)
{
    printf("%s run=%" PRIu64 " source=%" PRIu64 " mep=%" PRIu64 " credit=%" PRIu64 " max=%" PRIu64 " token=%" PRIu64
           " resend=%" PRIu64 " node=%s session=%s ranges=",
           message->type_name, message->run, message->source, message->mep, message->credit, message->max_bytes,
           message->token, message->resend, message->node, message->session);
    for (size_t i = 0; i < message->n_ranges; ++i)
        printf("%" PRIu64 "-%" PRIu64 ",", message->ranges[i][0], message->ranges[i][1]);
    printf(" reason=%s text=%s\n", message->reason, message->text);
}

static int parse(void)
{
    static const char* const results[] = {"read", "unknown", "version", "malformed"};
    static Message message;
    uint8_t size_bytes[4];
    while (fread(size_bytes, 1, 4, stdin) == 4) {
        const size_t size = get(size_bytes, 4);
        /* Of the exact size, so that the sanitizer finds each read behind the end. */
        uint8_t* bytes = (uint8_t*)malloc(size ? size : 1);
        if (fread(bytes, 1, size, stdin) != size) return 2;
        memset(&message, 0, sizeof message);
        const int result = read_message(&message, bytes, size, CONTROL_VERSION);
        if (result == MESSAGE_READ)
            print_message(&message);
        else
            puts(results[result]);
        free(bytes);
    }
    return 0;
}

static int check_crc(void)
{
    static CrcTables tables;
    uint8_t bytes[300];
    make_crc_tables(&tables);
    for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t size = 0; size < sizeof bytes; ++size)
        if (crc32c_by_tables(&tables, 5, bytes, size) != crc32c(&tables, 5, bytes, size)) return 1;
    printf("%08" PRIX32 " %08" PRIX32 "\n", crc32c_by_tables(&tables, 0, (const uint8_t*)"123456789", 9),
           crc32c(&tables, 0, (const uint8_t*)"123456789", 9));
    return 0;
}

/* ---- Requests */

/* The next bytes of the standard input after their size, in memory of this size; NULL at its end. */
static uint8_t* read_sized(size_t* size)
{
    uint8_t size_bytes[4];
    if (fread(size_bytes, 1, 4, stdin) != 4) return NULL;
    *size = get(size_bytes, 4);
    uint8_t* bytes = (uint8_t*)malloc(*size ? *size : 1);
    return fread(bytes, 1, *size, stdin) == *size ? bytes : NULL;
}

static void print_bytes(const uint8_t* bytes, size_t size)
{
    for (size_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
}

static void print_answer(const hltnode_answer* answer)
{
    size_t n_bytes;
    const uint8_t* lists = (const uint8_t*)hltnode_answer_lists(answer, &n_bytes);
    const size_t n_events = hltnode_answer_n_events(answer), n_lines = hltnode_answer_n_lines(answer);
    printf("id=%" PRIu64 " node=%s chain=%s tck=%" PRIu32 " lists=", hltnode_answer_id(answer),
           hltnode_answer_node(answer), hltnode_answer_chain(answer), hltnode_answer_tck(answer));
    print_bytes(lists, n_bytes);
    for (size_t event = 0; event < n_events; ++event) {
        printf(" [%d ", hltnode_answer_accepted(answer, event));
        for (size_t line = 0; line < n_lines; ++line) putchar(hltnode_answer_fired(answer, event, line) ? '1' : '0');
        printf(" %" PRIu32, hltnode_answer_flags(answer, event));
        for (size_t i = 0; hltnode_answer_collection(answer, i); ++i)
            printf(" %s:%" PRIu32, hltnode_answer_collection(answer, i), hltnode_answer_count(answer, event, i));
        printf("]");
    }
    /* Nothing is read behind the last one. */
    if (hltnode_answer_accepted(answer, n_events) || hltnode_answer_fired(answer, n_events, 0) ||
        hltnode_answer_fired(answer, 0, n_lines) || hltnode_answer_flags(answer, n_events) ||
        hltnode_answer_count(answer, n_events, 0) || hltnode_answer_count(answer, 0, MAX_COLLECTIONS))
        printf(" behind the end");
    printf("\n");
}

static int parse_answers(void)
{
    static char error[ERROR_BYTES];
    static Refusal refusal;
    size_t size;
    for (uint8_t* bytes; (bytes = read_sized(&size)) != NULL; free(bytes)) {
        hltnode_answer* answer = (hltnode_answer*)calloc(1, sizeof *answer);
        zmq_msg_init(&answer->message);
        const hltnode_status status = read_answer(answer, &refusal, bytes, size, error);
        if (status)
            printf("%s: %s\n", hltnode_status_name(status), error);
        else
            print_answer(answer);
        hltnode_answer_free(answer);
    }
    return 0;
}

static int write_mep(size_t room)
{
    const void* mfps[8];
    size_t sizes[8], n = 0;
    while (n < 8 && (mfps[n] = read_sized(&sizes[n])) != NULL) ++n;
    uint8_t* mep = (uint8_t*)malloc(room ? room : 1);
    const size_t size = hltnode_mep_write(mep, room, n, mfps, sizes);
    printf("%zu ", hltnode_mep_bytes(n, sizes));
    print_bytes(mep, size);
    printf("\n");
    while (n) free((void*)(uintptr_t)mfps[--n]);
    free(mep);
    return 0;
}

static int check_corners(void)
{
    const size_t large = (size_t)1 << 33, sizes[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    const size_t small = 64;
    const void* const none[] = {NULL};
    uint8_t mep[256];
    uint64_t id;
    hltnode_answer* answer;
    if (hltnode_mep_bytes(1, &large) != SIZE_MAX || hltnode_mep_write(NULL, SIZE_MAX, 1, NULL, &large)) return 1;
    if (hltnode_mep_write(NULL, SIZE_MAX, 5, NULL, sizes) || hltnode_mep_write(mep, sizeof mep, 1, none, &small))
        return 2;
    if (hltnode_mep_write(NULL, SIZE_MAX, UINT16_MAX + 1, NULL, NULL)) return 3;
    if (hltnode_requester_ask(NULL, mep, 1, 0, &answer) != HLTNODE_NO_MEMORY ||
        hltnode_requester_send(NULL, mep, 1, 0, 0, &id) != HLTNODE_NO_MEMORY ||
        hltnode_requester_receive(NULL, 0, &answer) != HLTNODE_NO_MEMORY ||
        hltnode_requester_cancel(NULL, 1) != HLTNODE_NO_MEMORY ||
        hltnode_requester_set_keys(NULL, "", "") != HLTNODE_NO_MEMORY)
        return 4;
    if (strcmp(hltnode_requester_error(NULL), "not enough memory") != 0) return 5;
    hltnode_requester_free(NULL);
    hltnode_answer_free(NULL);
    hltnode_requester* requester = hltnode_requester_new(NULL);
    if (hltnode_requester_ask(requester, mep, 1, 0, NULL) != HLTNODE_INVALID ||
        hltnode_requester_send(requester, mep, 1, 0, 0, NULL) != HLTNODE_INVALID ||
        hltnode_requester_receive(requester, 0, NULL) != HLTNODE_INVALID ||
        hltnode_requester_ask(requester, NULL, 1, 0, &answer) != HLTNODE_INVALID || answer ||
        hltnode_requester_ask(requester, mep, 1, 0, &answer) != HLTNODE_INVALID)
        return 6;
    hltnode_requester_free(requester);
    return 0;
}

/* Commands: `a` ask, `w` ask and wait long, and `s` send, with the size and bytes of a MEP; `r` receive; `c` cancel,
 * with an id as u32; `k` set keys of files that do not exist. */
static int ask(int n_words, char** words)
{
    hltnode_requester* requester = hltnode_requester_new(words[2]);
    enum { LONG_MS = 60000 };
    const int timeout_ms = atoi(words[3]);
    hltnode_status status = HLTNODE_OK;
    if (n_words > 5) status = hltnode_requester_set_keys(requester, words[4], words[5]);
    for (int command; !status && (command = getchar()) != EOF; status = HLTNODE_OK) {
        hltnode_answer* answer = NULL;
        uint64_t id = 0;
        size_t size = 0;
        uint8_t* mep = strchr("aws", command) ? read_sized(&size) : NULL;
        uint8_t id_bytes[4];
        if (command == 'a') status = hltnode_requester_ask(requester, mep, size, timeout_ms, &answer);
        if (command == 'w') status = hltnode_requester_ask(requester, mep, size, LONG_MS, &answer);
        if (command == 's') status = hltnode_requester_send(requester, mep, size, 0, LONG_MS, &id);
        if (command == 'k') status = hltnode_requester_set_keys(requester, "own", "server");
        if (command == 'r') status = hltnode_requester_receive(requester, timeout_ms, &answer);
        if (command == 'c' && fread(id_bytes, 1, 4, stdin) == 4)
            status = hltnode_requester_cancel(requester, id = get(id_bytes, 4));
        const char* reason = status == HLTNODE_REQUEST_REFUSED ? hltnode_requester_refusal(requester, &id) : "";
        if (status)
            printf("%s %s %" PRIu64 ": %s\n", hltnode_status_name(status), reason, id,
                   hltnode_requester_error(requester));
        else if (answer)
            print_answer(answer);
        else
            printf("%c %" PRIu64 "\n", command, id);
        fflush(stdout);
        hltnode_answer_free(answer);
        free(mep);
    }
    if (status) printf("%s: %s\n", hltnode_status_name(status), hltnode_requester_error(requester));
    hltnode_requester_free(requester);
    return 0;
}

static void log_to_stderr(void* context, const char* text) { fprintf((FILE*)context, "%s\n", text); }

typedef struct Options {
    const char *data, *control, *own_key, *server_key;
    uint64_t meps, first;
    unsigned boards, events, bank;
    double rate;
    size_t memory;
    int timeout_ms, linger_ms;
} Options;

static Options read_options(int n, char** words)
{
    Options options = {words[1], words[2], NULL, NULL, 20, 0, 1, 50, 64, 0, 0, -1, 0};
    if (!strcmp(options.control, "-")) options.control = NULL;
    for (int i = 3; i + 1 < n; i += 2) {
        const char *word = words[i], *value = words[i + 1];
        if (!strcmp(word, "--meps")) options.meps = strtoull(value, NULL, 10);
        if (!strcmp(word, "--first")) options.first = strtoull(value, NULL, 10);
        if (!strcmp(word, "--boards")) options.boards = (unsigned)strtoul(value, NULL, 10);
        if (!strcmp(word, "--events")) options.events = (unsigned)strtoul(value, NULL, 10);
        if (!strcmp(word, "--bank")) options.bank = (unsigned)strtoul(value, NULL, 10);
        if (!strcmp(word, "--rate")) options.rate = strtod(value, NULL);
        if (!strcmp(word, "--memory")) options.memory = strtoul(value, NULL, 10);
        if (!strcmp(word, "--timeout")) options.timeout_ms = atoi(value);
        if (!strcmp(word, "--linger")) options.linger_ms = atoi(value);
        if (!strcmp(word, "--keys")) {
            options.own_key = value;
            options.server_key = words[++i + 1];
        }
    }
    return options;
}

static uint16_t source_of(unsigned column)
{
    return column == 0 ? HLTNODE_ODIN_SOURCE : (uint16_t)(BOARD_SUBDETECTOR << 11 | (column - 1));
}

static size_t make_mfp(const Options* options, uint8_t* to, unsigned column, uint64_t mep)
{
    uint8_t types[256];
    static uint8_t banks[256][1024];
    uint16_t sizes[256];
    const void* data[256];
    for (unsigned i = 0; i < options->events; ++i) {
        const uint64_t event = mep * options->events + i;
        types[i] = column == 0 ? HLTNODE_ODIN_TYPE : BOARD_TYPE;
        sizes[i] = column == 0 ? HLTNODE_ODIN_BYTES : (uint16_t)(options->bank + (event + column) % 3);
        data[i] = banks[i];
        memset(banks[i], (int)(event + column), sizeof banks[i]);
        if (column == 0) hltnode_odin_write(banks[i], DRIVER_RUN, event, 0, event * 25 + 1);
    }
    return hltnode_mfp_write(to, MAX_MFP, source_of(column), column == 0 ? HLTNODE_ODIN_VERSION : 1,
                             mep * options->events, (uint16_t)options->events, types, sizes, data);
}

static hltnode_status feed(hltnode_feeder* feeder, const Options* options, unsigned n_sources)
{
    static uint8_t mfps[MAX_BOARDS + 1][MAX_MFP];
    const void* pointers[MAX_BOARDS + 1];
    size_t sizes[MAX_BOARDS + 1];
    for (uint64_t mep = options->first; mep < options->first + options->meps; ++mep) {
        for (unsigned i = 0; i < n_sources; ++i) {
            sizes[i] = make_mfp(options, mfps[i], i, mep);
            pointers[i] = mfps[i];
        }
        const hltnode_status status = hltnode_feeder_offer(feeder, mep, pointers, sizes, options->timeout_ms);
        if (status) return status;
        if (options->rate > 0) usleep((useconds_t)(options->events / options->rate * 1e6));
    }
    return hltnode_feeder_finish(feeder, options->timeout_ms);
}

int main(int n, char** words)
{
    if (n > 1 && !strcmp(words[1], "parse")) return parse();
    if (n > 1 && !strcmp(words[1], "crc")) return check_crc();
    if (n > 1 && !strcmp(words[1], "answers")) return parse_answers();
    if (n > 2 && !strcmp(words[1], "mep")) return write_mep(strtoul(words[2], NULL, 10));
    if (n > 1 && !strcmp(words[1], "corners")) return check_corners();
    if (n > 3 && !strcmp(words[1], "ask")) return ask(n, words);
    const Options options = read_options(n, words);
    uint16_t sources[MAX_BOARDS + 1];
    for (unsigned i = 0; i <= options.boards; ++i) sources[i] = source_of(i);
    hltnode_feeder* feeder = hltnode_feeder_new("feeder-in-c", DRIVER_RUN, sources, options.boards + 1,
                                                (uint16_t)options.events, MAX_MFP / 2);
    hltnode_feeder_set_log(feeder, log_to_stderr, stderr);
    hltnode_status status = HLTNODE_OK;
    if (options.own_key) status = hltnode_feeder_set_keys(feeder, options.own_key, options.server_key, 1);
    if (!status && options.memory) status = hltnode_feeder_set_memory(feeder, options.memory);
    if (!status) status = hltnode_feeder_connect(feeder, options.data, options.control);
    if (!status) status = feed(feeder, &options, options.boards + 1);
    if (status) printf("%s: %s\n", hltnode_status_name(status), hltnode_feeder_error(feeder));
    if (options.linger_ms) usleep((useconds_t)options.linger_ms * 1000);
    printf("%" PRIu64 " MEPs acknowledged, %" PRIu64 " before, %" PRIu64 " kept, %" PRIu64 " fragments sent, %" PRIu64
           " again, %" PRIu64 " unreadable\n",
           hltnode_feeder_count(feeder, HLTNODE_MEPS_ACKNOWLEDGED),
           hltnode_feeder_count(feeder, HLTNODE_MEPS_ACKNOWLEDGED_BEFORE),
           hltnode_feeder_count(feeder, HLTNODE_MEPS_KEPT), hltnode_feeder_count(feeder, HLTNODE_FRAGMENTS_SENT),
           hltnode_feeder_count(feeder, HLTNODE_FRAGMENTS_REPEATED),
           hltnode_feeder_count(feeder, HLTNODE_UNREADABLE_MESSAGES));
    uint64_t fragments;
    const char* reason;
    for (size_t i = 0; (reason = hltnode_feeder_refusal(feeder, i, &fragments)) != NULL; ++i)
        printf("refused %s %" PRIu64 "\n", reason, fragments);
    hltnode_feeder_free(feeder);
    return (int)status;
}
