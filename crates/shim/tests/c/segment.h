/* TCP segments over IPv4, made and read by hand. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

struct segment {
    uint16_t from, to;
    uint32_t sequence, acknowledgment;
    int flags;
    size_t length;
    char payload[2000];
};

#define HERE "192.168.0.1"
#define THERE "192.0.2.1"

#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
            exit(1); \
        } \
    } while (0)

static uint32_t sum(const uint8_t *bytes, size_t length)
{
    uint32_t total = 0;
    for (size_t at = 0; at < length; at++)
        total += at % 2 ? bytes[at] : (uint32_t)bytes[at] << 8;
    return total;
}

static uint16_t folded(uint32_t total)
{
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return (uint16_t)~total;
}

static uint16_t checksum(const uint8_t *packet, size_t length)
{
    return folded(sum(packet + 12, 8) + 6 + (uint32_t)(length - 20) + sum(packet + 20, length - 20));
}

static void put16(uint8_t *to, uint16_t value)
{
    to[0] = value >> 8;
    to[1] = value & 0xff;
}

static void put32(uint8_t *to, uint32_t value)
{
    put16(to, value >> 16);
    put16(to + 2, value & 0xffff);
}

static uint32_t get32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* A packet from THERE to HERE; gives its length. */
static size_t build(const struct segment *segment, uint8_t *packet)
{
    size_t length = 40 + segment->length;
    memset(packet, 0, length);
    packet[0] = 0x45;
    put16(packet + 2, (uint16_t)length);
    packet[8] = 64;
    packet[9] = 6;
    CHECK(inet_pton(AF_INET, THERE, packet + 12) == 1 && inet_pton(AF_INET, HERE, packet + 16) == 1);
    put16(packet + 10, folded(sum(packet, 20)));
    put16(packet + 20, segment->from);
    put16(packet + 22, segment->to);
    put32(packet + 24, segment->sequence);
    put32(packet + 28, segment->acknowledgment);
    packet[32] = 0x50;
    packet[33] = (uint8_t)segment->flags;
    put16(packet + 34, 65535);
    memcpy(packet + 40, segment->payload, segment->length);
    put16(packet + 36, checksum(packet, length));
    return length;
}

/* Reads a packet, whose checksums must be right. */
static struct segment parse(const uint8_t *packet, size_t length)
{
    struct segment segment;
    memset(&segment, 0, sizeof segment);
    CHECK(length >= 40 && packet[0] == 0x45 && folded(sum(packet, 20)) == 0 && checksum(packet, length) == 0);
    size_t header = 20 + (packet[32] >> 4) * 4u;
    segment.from = (uint16_t)(packet[20] << 8 | packet[21]);
    segment.to = (uint16_t)(packet[22] << 8 | packet[23]);
    segment.sequence = get32(packet + 24);
    segment.acknowledgment = get32(packet + 28);
    segment.flags = packet[33];
    segment.length = length - header;
    memcpy(segment.payload, packet + header, segment.length);
    return segment;
}

#endif
