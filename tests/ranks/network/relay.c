/* A cable between two network namespaces, for test_network.sh: relay PID_A PID_B ADDRESS_A ADDRESS_B DELAY_MS
 * LOSS_PERCENT BITS_PER_SECOND. The namespaces belong to two processes. Each gets a device tun0 with its
 * address; packets reach the other after a delay, no faster than the rate, and some are lost. (tc netem does
 * the same, but few test machines' kernels have it.) Prints "ready" once packets pass. Stopping the relay
 * (SIGSTOP) cuts the cable. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PACKET = 1600, MTU = 1500, SLOTS = 16384, QUEUE = 20000 };

typedef struct packet {
    double due;
    size_t size;
    unsigned char bytes[PACKET];
} packet;

/* Packets in flight in one direction, oldest first. */
typedef struct way {
    int from, to;
    double free_at; /* when the link has sent the last packet */
    size_t first, count;
    packet *slots; /* [SLOTS] */
} way;

typedef struct cable {
    double delay, loss, bytes_per_second;
} cable;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- devices -------------------------------------------------------------------------------------------------- */

static void set_address(int control, struct ifreq *request, unsigned long what, const char *address) {
    struct sockaddr_in in = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, address, &in.sin_addr) != 1) fail(address);
    memcpy(&request->ifr_addr, &in, sizeof in);
    if (ioctl(control, what, request) != 0) fail("an address of tun0");
}

/* Enters the namespace of `process` and creates tun0 there. */
static int open_end(const char *process, const char *address) {
    char path[64];
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    snprintf(path, sizeof path, "/proc/%s/ns/net", process);
    const int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) fail(path);
    close(space);
    const int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), control = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(request.ifr_name, IFNAMSIZ, "tun0");
    if (end < 0 || control < 0 || ioctl(end, TUNSETIFF, &request) != 0) fail("tun0");
    set_address(control, &request, SIOCSIFADDR, address);
    set_address(control, &request, SIOCSIFNETMASK, "255.255.255.0");
    request.ifr_mtu = MTU;
    if (ioctl(control, SIOCSIFMTU, &request) != 0) fail("the MTU of tun0");
    request.ifr_qlen = QUEUE; /* the relay may not be scheduled for a while */
    if (ioctl(control, SIOCSIFTXQLEN, &request) != 0) fail("the queue of tun0");
    static const char *const names[] = {"tun0", "lo"};
    for (int i = 0; i < 2; ++i) {
        snprintf(request.ifr_name, IFNAMSIZ, "%s", names[i]);
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        if (ioctl(control, SIOCSIFFLAGS, &request) != 0) fail(names[i]);
    }
    close(control);
    return end;
}

/* --- packets -------------------------------------------------------------------------------------------------- */

/* Losses are the same in every run with the same number of packets. */
static int is_lost(const cable *link) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) / (double)(UINT64_C(1) << 53) < link->loss;
}

/* Like a switch, a full queue drops packets. */
static void collect(way *w, const cable *link) {
    unsigned char dropped[PACKET];
    for (;;) {
        const int full = w->count == SLOTS;
        packet *slot = &w->slots[(w->first + w->count) % SLOTS];
        const ssize_t size = read(w->from, full ? dropped : slot->bytes, PACKET);
        if (size <= 0) return;
        if (full || is_lost(link)) continue;
        const double time = now();
        w->free_at = (w->free_at > time ? w->free_at : time) + (double)size / link->bytes_per_second;
        slot->due = w->free_at + link->delay;
        slot->size = (size_t)size;
        ++w->count;
    }
}

static void deliver(way *w) {
    for (; w->count && w->slots[w->first].due <= now(); --w->count) {
        const packet *slot = &w->slots[w->first];
        if (write(w->to, slot->bytes, slot->size) < 0 && errno != EIO) return;
        w->first = (w->first + 1) % SLOTS;
    }
}

/* Nanoseconds until the next packet is due; at most 50 ms. */
static long wait_of(const way *ways) {
    double wait = 0.05;
    for (int i = 0; i < 2; ++i)
        if (ways[i].count) {
            const double left = ways[i].slots[ways[i].first].due - now();
            if (left < wait) wait = left > 0 ? left : 0;
        }
    return (long)(wait * 1e9);
}

int main(int argc, char **argv) {
    if (argc != 8) return 2;
    const cable link = {atof(argv[5]) * 1e-3, atof(argv[6]) * 1e-2, atof(argv[7]) / 8};
    const int a = open_end(argv[1], argv[3]), b = open_end(argv[2], argv[4]);
    way ways[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
    for (int i = 0; i < 2; ++i)
        if (!(ways[i].slots = calloc(SLOTS, sizeof *ways[i].slots))) return 1;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd ends[2] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
        const struct timespec wait = {.tv_nsec = wait_of(ways)};
        if (ppoll(ends, 2, &wait, NULL) < 0 && errno != EINTR) fail("poll");
        for (int i = 0; i < 2; ++i) collect(&ways[i], &link);
        for (int i = 0; i < 2; ++i) deliver(&ways[i]);
    }
}
