//! What the rules of the market's example say, by looking at every message.

/// The messages of a frame with a MoldUDP64 packet, whose count must be right.
pub fn messages(frame: &[u8]) -> Vec<Vec<u8>> {
    let (header, mut rest) = frame[42..].split_at(20);
    let mut found = Vec::new();
    while let [high, low, behind @ ..] = rest {
        let (message, next) = behind.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        found.push(message.to_vec());
        rest = next;
    }
    assert_eq!(usize::from(u16::from_be_bytes([header[18], header[19]])), found.len());
    found
}

/// The messages of each frame that a port of `examples/subscriptions/market-data.rules` is to get; frames without any are
/// left out.
pub fn wanted(frames: &[&[u8]], port: usize) -> Vec<Vec<Vec<u8>>> {
    let number = |bytes: &[u8]| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let is_wanted = |message: &Vec<u8>| match (message[0], port) {
        (b'A', 2) => &message[24..32] == b"GOOGL   " && number(&message[32..36]) > 500_000,
        (b'A', 3) => [&b"AAPL    "[..], b"MSFT    ", b"AMZN    ", b"NVDA    ", b"META    "].contains(&&message[24..32]),
        (b'P', 2 | 4) => number(&message[20..24]) >= 300,
        _ => false,
    };
    let of_frame = |frame: &&[u8]| messages(frame).into_iter().filter(is_wanted).collect::<Vec<_>>();
    frames.iter().map(of_frame).filter(|messages| !messages.is_empty()).collect()
}
