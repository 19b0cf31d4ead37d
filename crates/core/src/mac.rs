//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

/// An Ethernet address: six bytes as they go on the wire, written `02:00:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All zeros: of links whose frames have no Ethernet header, and of nobody.
    pub const UNSPECIFIED: MacAddress = MacAddress([0; 6]);

    /// The bytes, as they go on the wire.
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// The address as a number, the first byte on top.
    pub const fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }

    /// The address of a number's lower 48 bits.
    pub const fn from_bits(bits: u64) -> MacAddress {
        let [_, _, bytes @ ..] = bits.to_be_bytes();
        MacAddress(bytes)
    }

    /// Whether it stands for a group, or for everybody.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl From<[u8; 6]> for MacAddress {
    fn from(bytes: [u8; 6]) -> MacAddress {
        MacAddress(bytes)
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is no [`MacAddress`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write six hexadecimal bytes, e.g. 02:00:00:00:00:01")]
pub struct NoMacAddress;

impl FromStr for MacAddress {
    type Err = NoMacAddress;

    /// Reads six bytes of one or two hexadecimal digits, with colons between.
    fn from_str(text: &str) -> Result<MacAddress, NoMacAddress> {
        let is_byte = |part: &&str| part.len() <= 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        let mut address = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut address {
            let part = parts.next().filter(is_byte).ok_or(NoMacAddress)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| NoMacAddress)?;
        }
        if parts.next().is_none() { Ok(MacAddress(address)) } else { Err(NoMacAddress) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_come_back() {
        let address = MacAddress([2, 0, 0x5e, 0, 255, 1]);
        assert_eq!("02:00:5e:0:fF:1".parse(), Ok(address));
        assert_eq!(address.to_string(), "02:00:5e:00:ff:01");
        assert_eq!(address.to_bits(), 0x0200_5e00_ff01);
        assert_eq!(MacAddress::from_bits(0xffff_0200_5e00_ff01), address);
        assert!(MacAddress([1, 0, 0x5e, 0, 0, 1]).is_group() && !address.is_group());
    }

    #[test]
    fn other_texts_are_refused() {
        let bad =
            ["", "02:00:5e:00:ff", "02:00:5e:00:ff:01:02", "02:00:5e:00:ff:001", "x2:00:5e:00:ff:01", "+2::0:0:0:0"];
        for text in bad {
            assert_eq!(text.parse::<MacAddress>(), Err(NoMacAddress), "{text}");
        }
    }
}
