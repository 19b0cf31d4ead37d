/*
 * What packetdrill does with a shared object: calls that wait on a thread of their own, packets and time on another. Its table is
 * declared here once more, as its documentation lays it out. Arguments: the shared object, and the machine.
 */
#define _GNU_SOURCE
#include "segment.h"

#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <fcntl.h>
#include <unistd.h>

struct table {
    void *userdata;
    void (*free)(void *);
    int (*socket)(void *, int, int, int);
    int (*bind)(void *, int, const struct sockaddr *, socklen_t);
    int (*listen)(void *, int, int);
    int (*accept)(void *, int, struct sockaddr *, socklen_t *);
    int (*connect)(void *, int, const struct sockaddr *, socklen_t);
    ssize_t (*read)(void *, int, void *, size_t);
    ssize_t (*readv)(void *, int, const struct iovec *, int);
    ssize_t (*recv)(void *, int, void *, size_t, int);
    ssize_t (*recvfrom)(void *, int, void *, size_t, int, struct sockaddr *, socklen_t *);
    ssize_t (*recvmsg)(void *, int, struct msghdr *, int);
    ssize_t (*write)(void *, int, const void *, size_t);
    ssize_t (*writev)(void *, int, const struct iovec *, int);
    ssize_t (*send)(void *, int, const void *, size_t, int);
    ssize_t (*sendto)(void *, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    ssize_t (*sendmsg)(void *, int, const struct msghdr *, int);
    int (*fcntl)(void *, int, int, ...);
    int (*ioctl)(void *, int, unsigned long, ...);
    int (*close)(void *, int);
    int (*shutdown)(void *, int, int);
    int (*getsockopt)(void *, int, int, int, void *, socklen_t *);
    int (*setsockopt)(void *, int, int, int, const void *, socklen_t);
    int (*poll)(void *, struct pollfd *, nfds_t, int);
    int (*netdev_send)(void *, const void *, size_t);
    int (*netdev_receive)(void *, void *, size_t *, long long *);
    int (*usleep)(void *, useconds_t);
    int (*gettimeofday)(void *, struct timeval *, struct timezone *);
    int (*epoll_create)(void *, int);
    int (*epoll_ctl)(void *, int, int, int, struct epoll_event *);
    int (*epoll_wait)(void *, int, struct epoll_event *, int, int);
    int (*pipe)(void *, int[2]);
    int (*splice)(void *, int, loff_t *, int, loff_t *, size_t, unsigned);
};

static struct table table;
#define DO(call, ...) table.call(table.userdata, __VA_ARGS__)

static long long now(void)
{
    struct timeval time;
    CHECK(DO(gettimeofday, &time, NULL) == 0);
    return time.tv_sec * 1000000LL + time.tv_usec;
}

static void arrives(struct segment segment)
{
    uint8_t packet[3000];
    CHECK(DO(netdev_send, packet, build(&segment, packet)) == 0);
}

static struct segment leaves(long long *at)
{
    uint8_t packet[3000];
    size_t count = sizeof packet;
    CHECK(DO(netdev_receive, packet, &count, at) == 0);
    return parse(packet, count);
}

/* A call on the other thread: its result, and when it was over. */
static int listening;
static volatile pid_t caller;
static int accepted;
static long long accept_over;
static char got[10];
static ssize_t read_result;
static long long read_over;

static void *calls(void *nothing)
{
    (void)nothing;
    caller = (pid_t)syscall(SYS_gettid);
    accepted = DO(accept, listening, NULL, NULL);
    accept_over = now();
    read_result = DO(read, accepted, got, sizeof got);
    read_over = now();
    return NULL;
}

/* packetdrill looks whether a thread sleeps in the same way. */
static void until_asleep(void)
{
    for (;;) {
        char path[100], state = 0;
        if (!caller)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%d/stat", getpid(), caller);
        FILE *file = fopen(path, "r");
        CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        fclose(file);
        if (state == 'S')
            return;
    }
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    void *object = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!object)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(object);
    void (*init)(const char *, struct table *);
    *(void **)&init = dlsym(object, "packetdrill_interface_init");
    CHECK(init);

    /* Without a machine every call fails. */
    init("seed=1", &table);
    CHECK(DO(socket, AF_INET, SOCK_STREAM, 0) == -1 && errno == ENODEV);
    table.free(table.userdata);

    char flags[1000];
    snprintf(flags, sizeof flags, "machine=%s,offer_stamps=false", arguments[2]);
    init(flags, &table);
    long long start = now();
    CHECK(now() == start + 1);

    listening = DO(socket, AF_INET, SOCK_STREAM, IPPROTO_TCP);
    struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(8080) };
    CHECK(inet_pton(AF_INET, HERE, &here.sin_addr) == 1);
    CHECK(DO(bind, listening, (struct sockaddr *)&here, sizeof here) == 0);
    CHECK(DO(bind, listening, (struct sockaddr *)&here, sizeof here) == -1 && errno == EINVAL);
    CHECK(DO(listen, listening, 1) == 0);

    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, calls, NULL) == 0);
    until_asleep();
    arrives((struct segment) { .from = 4000, .to = 8080, .sequence = 0, .flags = SYN });
    long long at = 0;
    struct segment answer = leaves(&at);
    CHECK(answer.flags == (SYN | ACK) && answer.acknowledgment == 1 && at >= start && at <= now());
    struct segment next = { .from = 4000, .to = 8080, .sequence = 1, .acknowledgment = answer.sequence + 1, .flags = ACK };
    arrives(next);
    long long connected = now();
    /* The call was over when the segment arrived, however late its thread finds out. */
    CHECK(DO(usleep, 1000000) == 0);
    while (!accept_over)
        sched_yield();
    CHECK(accepted > listening && accept_over <= connected && accept_over > connected - 10);
    until_asleep();
    next.flags = ACK | PSH;
    next.length = 5;
    memcpy(next.payload, "hello", 5);
    long long sent = now();
    arrives(next);
    CHECK(DO(usleep, 1000000) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(read_result == 5 && memcmp(got, "hello", 5) == 0 && read_over >= sent && read_over <= sent + 2);

    /* The acknowledgment left while time passed. */
    struct segment ack = leaves(&at);
    CHECK(ack.flags == ACK && ack.acknowledgment == 6 && at > sent && at < sent + 500000);

    /* Pieces, numbers, readiness. */
    struct iovec pieces[2] = { { "ab", 2 }, { "cde", 3 } };
    CHECK(DO(writev, accepted, pieces, 2) == 5);
    struct segment data = leaves(&at);
    CHECK(data.length == 5 && memcmp(data.payload, "abcde", 5) == 0);
    int number = -1;
    CHECK(DO(ioctl, accepted, TIOCOUTQ, &number) == 0 && number == 5);
    CHECK(DO(fcntl, accepted, F_GETFL) == O_RDWR);
    CHECK(DO(fcntl, accepted, F_SETFL, O_RDWR | O_NONBLOCK) == 0);
    CHECK(DO(fcntl, accepted, F_GETFL) == (O_RDWR | O_NONBLOCK));
    CHECK(DO(read, accepted, got, sizeof got) == -1 && errno == EAGAIN);
    int watcher = DO(epoll_create, 1);
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 };
    CHECK(DO(epoll_ctl, watcher, EPOLL_CTL_ADD, accepted, &event) == 0);
    CHECK(DO(epoll_ctl, watcher, EPOLL_CTL_ADD, accepted, &event) == -1 && errno == EEXIST);
    CHECK(DO(epoll_wait, watcher, &event, 1, 0) == 0);
    next.sequence = 6;
    next.acknowledgment = data.sequence + 5;
    arrives(next);
    CHECK(DO(epoll_wait, watcher, &event, 1, 0) == 1 && event.data.u64 == 77 && event.events == EPOLLIN);
    char two[2], three[3];
    struct iovec room[2] = { { two, 2 }, { three, 3 } };
    struct msghdr message = { .msg_iov = room, .msg_iovlen = 2 };
    CHECK(DO(recvmsg, accepted, &message, 0) == 5 && memcmp(two, "he", 2) == 0 && memcmp(three, "llo", 3) == 0);

    /* An error sets errno, on this thread. */
    next.sequence = 11;
    next.length = 0;
    next.flags = RST;
    arrives(next);
    CHECK(DO(read, accepted, got, sizeof got) == -1 && errno == ECONNRESET);
    CHECK(DO(close, accepted) == 0 && DO(close, accepted) == -1 && errno == EBADF);
    CHECK(DO(pipe, (int[2]) { 0, 0 }) == -1 && errno == ENOSYS);
    table.free(table.userdata);
    puts("all is well");
    return 0;
}
