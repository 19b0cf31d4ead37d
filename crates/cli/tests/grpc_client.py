"""Asks a controller as programs in other languages do: with gRPC's C core. The messages are written and read by hand, so
that no generated code is needed.

    grpc_client.py unix:SOCKET HOST FILTER
    grpc_client.py HOST:PORT HOST FILTER CERTIFICATE KEY AUTHORITY

Subscribes, lists and watches, and prints what it got.
"""

import sys

import grpc


def text(number, value):
    """A field of a message: a text, or a message, of less than 128 bytes."""
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


def main(target, host, wanted, *files):
    if files:
        certificate, key, authority = (open(file, "rb").read() for file in files)
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(authority, key, certificate))
    else:
        channel = grpc.insecure_channel(target)
    service = "/weftwire.controller.v1.Controller/"
    subscription = text(1, host) + text(2, wanted)
    watch = channel.unary_stream(service + "Watch")(b"", timeout=20)
    print("watch", next(watch).hex())
    outcome = channel.unary_unary(service + "Subscribe")(text(1, subscription), timeout=20)
    print("subscribe", outcome.hex())
    print("watch", subscription[2:2 + len(host)] in next(watch))
    watch.cancel()
    page = channel.unary_unary(service + "List")(b"", timeout=20)
    print("list", wanted.encode() in page)


main(*sys.argv[1:])
