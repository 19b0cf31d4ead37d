/*
 * The calls of sockets for machines written in XL, in virtual time and without threads.
 *
 * Link with -lweft_shim (libweft_shim.so). docs/conformance.md tells more.
 *
 * Results: calls give 0 or a number that is not negative. What goes wrong is -errno, with the numbers of <errno.h>; `errno` itself
 * is not touched. -ENODEV: `shim` is NULL. -EFAULT: memory that a call needs is NULL. WEFT_SHIM_WAITING: see below.
 *
 * Time: nanoseconds since the shim was made. It passes in weft_shim_advance, in weft_shim_run_to_frame, and while a call waits.
 *
 * Calls that wait (accept, connect, recv, send, poll on sockets that are not non-blocking) let time pass, and timers fire in the
 * order of their deadlines, until they are done, or until packets have left or no timer is set: then the other end must do
 * something, and they give WEFT_SHIM_WAITING. Take the packets by weft_shim_frame_out, answer by weft_shim_frame_in, and make the
 * call again with the same socket; it goes on where it was, with what it was given the first time. Closing the socket gives it up.
 *
 * Packets are IPv4 or IPv6 from the IP header on, with all checksums. A packet that is none, or for another address, is dropped.
 *
 * A shim is used by one thread at a time.
 */
#ifndef WEFT_SHIM_H
#define WEFT_SHIM_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call waits until the other end has done something. */
#define WEFT_SHIM_WAITING (-1000000)

typedef struct weft_shim weft_shim;

/*
 * Makes a shim with the machine of a file: an image (.json) or a source (.xl, .xtra). `parameters` may be NULL, or
 * "NAME=VALUE,NAME=VALUE":
 *   local=ADDRESS        an address of this host, and may come again; without any, every address is this host's
 *   seed=NUMBER          of random numbers; the same seed gives the same run
 *   protocol=NUMBER      the IP protocol number of connections (6)
 *   receive_buffer=BYTES what the machine's receive buffer has room for
 *   any other            the initial value of a register of the machine
 * NULL: it can't be made; why is in `message`, cut to `room` bytes, if that is not NULL.
 */
weft_shim *weft_shim_new(const char *path, const char *parameters, char *message, size_t room);

/* The same with the bytes of an image. */
weft_shim *weft_shim_new_image(const void *image, size_t length, const char *parameters, char *message, size_t room);

/* Frees a shim. NULL is nothing. */
void weft_shim_free(weft_shim *shim);

/* A socket: AF_INET or AF_INET6, SOCK_STREAM with SOCK_NONBLOCK or without. -EAFNOSUPPORT, -ESOCKTNOSUPPORT, -EPROTONOSUPPORT. */
int weft_shim_socket(weft_shim *shim, int domain, int type, int protocol);

/* -EINVAL: it is bound. -EADDRNOTAVAIL: no address of this host. -EADDRINUSE. -EAFNOSUPPORT. -EBADF. */
int weft_shim_bind(weft_shim *shim, int fd, const struct sockaddr *local, socklen_t length);

/* `backlog` connections and one more may wait for accept; where as many do, a SYN is dropped. -EINVAL, -EADDRINUSE, -EBADF. */
int weft_shim_listen(weft_shim *shim, int fd, int backlog);

/* The next connection's socket. `remote` may be NULL. Waits. -EINVAL: it does not listen. -EAGAIN, -EBADF. */
int weft_shim_accept(weft_shim *shim, int fd, struct sockaddr *remote, socklen_t *length);

/*
 * Waits; on a non-blocking socket -EINPROGRESS, and -EALREADY from then on; weft_shim_poll and SO_ERROR tell how it went.
 * -ECONNREFUSED, -ETIMEDOUT, -ECONNABORTED, -EISCONN, -EADDRNOTAVAIL, -EAFNOSUPPORT, -EBADF.
 */
int weft_shim_connect(weft_shim *shim, int fd, const struct sockaddr *remote, socklen_t length);

/*
 * How many bytes were read; 0 at the end. MSG_DONTWAIT, MSG_PEEK and MSG_WAITALL are known; others give -EOPNOTSUPP. Waits for
 * as long as SO_RCVTIMEO says. -EAGAIN, -ECONNRESET, -ETIMEDOUT, -ENOTCONN, -EBADF.
 */
int weft_shim_recv(weft_shim *shim, int fd, void *to, size_t room, int flags);

/*
 * How many bytes were taken. MSG_DONTWAIT and MSG_NOSIGNAL are known; there are no signals anyway. Waits until all were taken, for as
 * long as SO_SNDTIMEO says. -EAGAIN, -EPIPE, -ECONNRESET, -ETIMEDOUT, -EBADF.
 */
int weft_shim_send(weft_shim *shim, int fd, const void *from, size_t count, int flags);

/* SHUT_RD, SHUT_WR, SHUT_RDWR. -ENOTCONN, -EINVAL, -EBADF. */
int weft_shim_shutdown(weft_shim *shim, int fd, int how);

/* Closes the connection behind what was written; resets it if something was not read, or SO_LINGER says so. -EBADF. */
int weft_shim_close(weft_shim *shim, int fd);

/*
 * Options of SOL_SOCKET, IPPROTO_TCP and IPPROTO_IPV6, as Linux has them. -ENOPROTOOPT: the machine has no register for it, or it can't
 * be set. TCP_INFO gives `struct tcp_info` up to and with tcpi_total_retrans; what no register says is 0. -EINVAL, -EBADF.
 */
int weft_shim_getsockopt(weft_shim *shim, int fd, int level, int name, void *to, socklen_t *room);
int weft_shim_setsockopt(weft_shim *shim, int fd, int level, int name, const void *from, socklen_t length);

/* Both ends. -ENOTCONN, -EBADF. */
int weft_shim_getsockname(weft_shim *shim, int fd, struct sockaddr *local, socklen_t *length);
int weft_shim_getpeername(weft_shim *shim, int fd, struct sockaddr *remote, socklen_t *length);

/* Has calls of a socket wait (0) or not (1). -EBADF. */
int weft_shim_set_nonblocking(weft_shim *shim, int fd, int on);

/* How many of `count` sockets are ready. Waits for `timeout` milliseconds, for ever if that is negative. */
int weft_shim_poll(weft_shim *shim, struct pollfd *entries, nfds_t count, int timeout);

/* A packet arrives now. 0. */
int weft_shim_frame_in(weft_shim *shim, const void *packet, size_t length);

/*
 * The length of the next packet that has left, and when it did, if `at` is not NULL; 0: there is none. -EMSGSIZE: it is longer than
 * `room`, and stays.
 */
int weft_shim_frame_out(weft_shim *shim, void *to, size_t room, int64_t *at);

/* The present instant. */
int64_t weft_shim_now(const weft_shim *shim);

/* When something happens next without anybody's doing; -1: never. */
int64_t weft_shim_next_deadline(const weft_shim *shim);

/* Lets time pass until `until`. What is in the past changes nothing. 0. */
int weft_shim_advance(weft_shim *shim, int64_t until);

/* Lets time pass until a packet has left (1), or until `until` (0). */
int weft_shim_run_to_frame(weft_shim *shim, int64_t until);

/* From now on calls that wait let no time pass (1), or do (0). 0. */
int weft_shim_keep_time(weft_shim *shim, int on);

/* Gives a register another initial value, for connections that begin from now on, like a sysctl. -EINVAL; weft_shim_message says why. */
int weft_shim_set(weft_shim *shim, const char *name, const char *value);

/* Why the latest weft_shim_set failed, cut to `room` bytes. */
void weft_shim_message(const weft_shim *shim, char *to, size_t room);

#ifdef __cplusplus
}
#endif

#endif
