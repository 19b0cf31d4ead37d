/* A client and a server by the calls of weft_shim.h, the other end played by hand. Argument: the machine. */
#include "segment.h"
#include "weft_shim.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static weft_shim *shim;

static void arrives(struct segment segment)
{
    uint8_t packet[3000];
    CHECK(weft_shim_frame_in(shim, packet, build(&segment, packet)) == 0);
}

static struct segment leaves(int64_t *at)
{
    uint8_t packet[3000];
    int length = weft_shim_frame_out(shim, packet, sizeof packet, at);
    CHECK(length > 0);
    return parse(packet, (size_t)length);
}

static struct sockaddr_in address(const char *text, uint16_t port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    return address;
}

static void client(void)
{
    int fd = weft_shim_socket(shim, AF_INET, SOCK_STREAM, 0);
    CHECK(fd == 3);
    struct sockaddr_in there = address(THERE, 80);
    const struct sockaddr *to = (const struct sockaddr *)&there;

    /* The call waits: the other end must answer. Nobody does, and time passes until the SYN is sent again. */
    CHECK(weft_shim_connect(shim, fd, to, sizeof there) == WEFT_SHIM_WAITING);
    int64_t at = -1;
    struct segment syn = leaves(&at);
    CHECK(syn.flags == SYN && syn.to == 80 && at == weft_shim_now(shim));
    CHECK(weft_shim_connect(shim, fd, to, sizeof there) == WEFT_SHIM_WAITING);
    struct segment again = leaves(&at);
    CHECK(again.flags == SYN && again.sequence == syn.sequence && at == 1000000000);
    arrives((struct segment) { .from = 80, .to = syn.from, .sequence = 1000, .acknowledgment = syn.sequence + 1,
                               .flags = SYN | ACK });
    CHECK(weft_shim_connect(shim, fd, to, sizeof there) == 0);
    struct segment ack = leaves(NULL);
    CHECK(ack.flags == ACK && ack.acknowledgment == 1001);

    struct tcp_info info;
    socklen_t room = sizeof info;
    CHECK(weft_shim_getsockopt(shim, fd, IPPROTO_TCP, TCP_INFO, &info, &room) == 0);
    CHECK(info.tcpi_state == TCP_ESTABLISHED && info.tcpi_snd_mss == 536 && room <= sizeof info);

    CHECK(weft_shim_send(shim, fd, "hello", 5, 0) == 5);
    struct segment data = leaves(NULL);
    CHECK(data.length == 5 && memcmp(data.payload, "hello", 5) == 0);
    char answer[10];
    CHECK(weft_shim_recv(shim, fd, answer, sizeof answer, MSG_DONTWAIT) == -EAGAIN);
    struct segment reply = { .from = 80, .to = syn.from, .sequence = 1001, .acknowledgment = data.sequence + 5,
                             .flags = ACK | PSH, .length = 3, .payload = "you" };
    arrives(reply);
    CHECK(weft_shim_recv(shim, fd, answer, sizeof answer, 0) == 3 && memcmp(answer, "you", 3) == 0);
    CHECK(weft_shim_close(shim, fd) == 0);
    CHECK(weft_shim_close(shim, fd) == -EBADF);
    while ((ack = leaves(NULL)).flags == ACK)
        ;
    CHECK(ack.flags == (FIN | ACK));
}

static void server(void)
{
    int fd = weft_shim_socket(shim, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_TCP);
    struct sockaddr_in here = address(HERE, 7), from;
    socklen_t length = sizeof from;
    CHECK(weft_shim_bind(shim, fd, (struct sockaddr *)&here, sizeof here) == 0);
    CHECK(weft_shim_listen(shim, fd, 5) == 0);
    CHECK(weft_shim_accept(shim, fd, NULL, NULL) == -EAGAIN);

    arrives((struct segment) { .from = 4000, .to = 7, .sequence = 0, .flags = SYN });
    struct segment answer = leaves(NULL);
    CHECK(answer.flags == (SYN | ACK) && answer.acknowledgment == 1);
    arrives((struct segment) { .from = 4000, .to = 7, .sequence = 1, .acknowledgment = answer.sequence + 1, .flags = ACK });
    struct pollfd entry = { .fd = fd, .events = POLLIN };
    CHECK(weft_shim_poll(shim, &entry, 1, 0) == 1 && entry.revents == POLLIN);
    int connection = weft_shim_accept(shim, fd, (struct sockaddr *)&from, &length);
    CHECK(connection > fd && ntohs(from.sin_port) == 4000 && length == sizeof from);
    CHECK(weft_shim_getsockname(shim, connection, (struct sockaddr *)&from, &length) == 0 && ntohs(from.sin_port) == 7);

    int one = 1;
    CHECK(weft_shim_setsockopt(shim, connection, SOL_SOCKET, SO_BROADCAST, &one, sizeof one) == -ENOPROTOOPT);
    CHECK(weft_shim_setsockopt(shim, connection, SOL_SOCKET, SO_REUSEADDR, &one, 2) == -EINVAL);

    /* A call that waits and may let no time pass. */
    char byte;
    int64_t now = weft_shim_now(shim);
    CHECK(weft_shim_keep_time(shim, 1) == 0);
    CHECK(weft_shim_recv(shim, connection, &byte, 1, 0) == WEFT_SHIM_WAITING && weft_shim_now(shim) == now);
    arrives((struct segment) { .from = 4000, .to = 7, .sequence = 1, .acknowledgment = answer.sequence + 1,
                               .flags = ACK | RST });
    CHECK(weft_shim_recv(shim, connection, &byte, 1, 0) == -ECONNRESET);
    CHECK(weft_shim_recv(shim, connection, &byte, 1, 0) == 0);
    CHECK(weft_shim_advance(shim, now + 5000000000) == 0 && weft_shim_now(shim) == now + 5000000000);
}

static void errors(const char *machine)
{
    char message[200] = "";
    CHECK(weft_shim_new("no such file.xl", NULL, message, sizeof message) == NULL && strstr(message, "no such file.xl"));
    CHECK(weft_shim_new(machine, "offer_everything=1", message, 20) == NULL && strlen(message) == 19);
    CHECK(weft_shim_new_image("{}", 2, NULL, message, sizeof message) == NULL && *message);
    CHECK(weft_shim_socket(NULL, AF_INET, SOCK_STREAM, 0) == -ENODEV);
    CHECK(weft_shim_socket(shim, AF_UNIX, SOCK_STREAM, 0) == -EAFNOSUPPORT);
    CHECK(weft_shim_socket(shim, AF_INET, SOCK_DGRAM, 0) == -ESOCKTNOSUPPORT);
    CHECK(weft_shim_bind(shim, 99, NULL, 16) == -EFAULT);
    CHECK(weft_shim_set(shim, "offer_stamps", "maybe") == -EINVAL);
    weft_shim_message(shim, message, sizeof message);
    CHECK(strstr(message, "true or false"));
    CHECK(weft_shim_set(shim, "offer_stamps", "false") == 0);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    char message[500] = "";
    shim = weft_shim_new(arguments[1], "local=" HERE ",seed=7", message, sizeof message);
    if (!shim)
        fprintf(stderr, "%s\n", message);
    CHECK(shim);
    client();
    server();
    errors(arguments[1]);
    weft_shim_free(shim);
    weft_shim_free(NULL);
    puts("all is well");
    return 0;
}
