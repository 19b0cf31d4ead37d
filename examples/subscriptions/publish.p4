// Publish/subscribe over UDP: one message a datagram. Behind this header stand the key, the attributes and the payload.

@subscribe[after=udp, when=udp.destination_port == 26500]
header publish {
    bit<8>  version;
    // 1: has a key, 2: has a payload, 4: a heartbeat.
    bit<8>  flags;
    @subscribe[]
    bit<16> partition;
    @subscribe[]
    bit<64> publisher;
    // Counts the messages of one publisher, topic and partition.
    bit<64> sequence;
    // Milliseconds since 1970.
    bit<64> timestamp;
    // Whatever the publisher wants to be filtered by, such as a price.
    @subscribe[]
    bit<64> number;
    // The first 16 characters of the topic, and the next 16.
    @subscribe[text=" "]
    bit<128> topic;
    @subscribe[text=" "]
    bit<128> topic_rest;
    // The first 16 bytes of the key.
    @subscribe[text=" "]
    bit<128> key;
    bit<16> key_length;
    bit<16> attributes_length;
}
