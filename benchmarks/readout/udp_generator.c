/* Sends the packets of a file as UDP datagrams at a given rate: a test tool.
 *
 * udp_generator FILE ADDRESS PORT RATE COUNT [FROM [TOGETHER [BURST]]]
 *
 * FILE has u32 size and bytes of each datagram (little-endian), all of one burst. The file is sent again and again until
 * COUNT datagrams are sent; each repetition is a new burst, whose number is written into the header. RATE is in
 * datagrams per second; 0: as fast as the kernel takes them. FROM is the local address of the socket. TOGETHER datagrams
 * leave in one system call, 32 by default. BURST is the number of the first burst, 1 by default. Prints the number of
 * sent datagrams, the seconds that it took, and the datagrams that the kernel refused.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { usual_batch = 32, burst_at = 12 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int fail(const char* what)
{
    fprintf(stderr, "udp_generator: %s: %s\n", what, strerror(errno));
    return 1;
}

int main(int argc, char** argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: %s FILE ADDRESS PORT RATE COUNT [FROM [TOGETHER [BURST]]]\n", argv[0]);
        return 2;
    }
    FILE* file = fopen(argv[1], "rb");
    if (!file) return fail(argv[1]);
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    uint8_t* bytes = malloc(size > 0 ? (size_t)size : 1);
    if (!bytes || size < 4 || fread(bytes, 1, (size_t)size, file) != (size_t)size) return fail("no datagrams");
    fclose(file);
    size_t n = 0;
    for (long at = 0; at + 4 <= size; ++n) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        at += 4 + (long)length;
        if (at > size) return fail("the last datagram is not complete");
    }
    struct iovec* vectors = calloc(n, sizeof *vectors);
    struct mmsghdr* messages = calloc(n, sizeof *messages);
    if (!vectors || !messages) return fail("memory");
    long at = 0;
    for (size_t i = 0; i < n; ++i) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        vectors[i].iov_base = bytes + at + 4;
        vectors[i].iov_len = length;
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        at += 4 + (long)length;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[3]))};
    struct sockaddr_in from = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, argv[2], &to.sin_addr) != 1) return fail(argv[2]);
    const int out = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc > 6 && inet_pton(AF_INET, argv[6], &from.sin_addr) != 1) return fail(argv[6]);
    if (out < 0 || bind(out, (struct sockaddr*)&from, sizeof from) < 0) return fail("bind");
    if (connect(out, (struct sockaddr*)&to, sizeof to) < 0) return fail("connect");
    const long batch = argc > 7 ? atol(argv[7]) : usual_batch;
    if (batch < 1) return 2;
    const double rate = atof(argv[4]);
    const uint64_t count = strtoull(argv[5], NULL, 10);
    uint64_t sent = 0, refused = 0;
    uint32_t burst = argc > 8 ? (uint32_t)atol(argv[8]) : 1;
    size_t next = 0;
    const int64_t start_ns = now_ns();
    while (sent < count) {
        uint64_t n_now = count - sent < (uint64_t)batch ? count - sent : (uint64_t)batch;
        if (n_now > n - next) n_now = n - next;
        if (rate > 0) {
            const int64_t due_ns = start_ns + (int64_t)((double)sent / rate * 1e9);
            const int64_t wait_ns = due_ns - now_ns();
            if (wait_ns > 0) {
                const struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
                nanosleep(&wait, NULL);
            }
        }
        for (uint64_t i = 0; i < n_now; ++i) memcpy((uint8_t*)vectors[next + i].iov_base + burst_at, &burst, 4);
        const int n_sent = sendmmsg(out, messages + next, (unsigned)n_now, 0);
        if (n_sent < 0) {
            if (errno != ENOBUFS && errno != ECONNREFUSED && errno != EAGAIN) return fail("send");
            ++refused;
            continue;
        }
        sent += (uint64_t)n_sent;
        next += (size_t)n_sent;
        if (next == n) {
            next = 0;
            ++burst;
        }
    }
    printf("%llu %.6f %llu\n", (unsigned long long)sent, (double)(now_ns() - start_ns) * 1e-9,
           (unsigned long long)refused);
    close(out);
    return 0;
}
