/* A bare recvmmsg loop, the baseline of udp.py: udp_bare_receiver BYTES RECEIVE_BYTES
 *
 * Binds a free port of the loopback and prints it. Receives until its standard input is closed and no datagram has
 * come for 0.2 s. Prints the number of datagrams and the processor time of the process in seconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { batch = 64 };

int main(int argc, char** argv)
{
    if (argc < 3) return 2;
    const size_t size = (size_t)atol(argv[1]);
    const int receive_bytes = atoi(argv[2]);
    struct sockaddr_in bound = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bound_size = sizeof bound;
    const int in = socket(AF_INET, SOCK_DGRAM, 0);
    if (setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &receive_bytes, sizeof receive_bytes) < 0)
        setsockopt(in, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    if (bind(in, (struct sockaddr*)&bound, sizeof bound) < 0) return 1;
    getsockname(in, (struct sockaddr*)&bound, &bound_size);
    printf("%d\n", ntohs(bound.sin_port));
    fflush(stdout);
    char* bytes = malloc(batch * size);
    struct iovec vectors[batch];
    struct mmsghdr messages[batch];
    memset(messages, 0, sizeof messages);
    for (size_t i = 0; i < batch; ++i) {
        vectors[i].iov_base = bytes + i * size;
        vectors[i].iov_len = size;
        messages[i].msg_hdr.msg_iov = &vectors[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    unsigned long long n_received = 0;
    struct pollfd waiting[2] = {{in, POLLIN, 0}, {0, POLLIN, 0}};
    while (1) {
        const int n_ready = poll(waiting, 2, 200);
        if (n_ready == 0 && waiting[1].fd < 0) break;
        if (waiting[1].revents) waiting[1].fd = -1;
        waiting[1].revents = 0;
        int n;
        while ((n = recvmmsg(in, messages, batch, MSG_DONTWAIT, NULL)) > 0) {
            n_received += (unsigned)n;
            if (n < batch) break;
        }
    }
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%llu %.6f\n", n_received, (double)used.tv_sec + (double)used.tv_nsec * 1e-9);
    return 0;
}
