//! Reads little-endian fields off the front of bytes that may come from anywhere: each is `None` where the bytes end too early.

/// What is left to read.
#[derive(Clone, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// All of these bytes.
    pub fn new(bytes: &'a [u8]) -> Fields<'a> {
        Fields(bytes)
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many bytes.
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(front)
    }

    /// `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// A number of 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// A number of 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A number of 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes with their number in front, 4 bytes.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_end_where_the_bytes_do() {
        let mut fields = Fields::new(&[1, 2, 0, 3, 0, 0, 0, 2, 0, 0, 0, 8, 9, 7]);
        assert_eq!((fields.u8(), fields.u16(), fields.u32()), (Some(1), Some(2), Some(3)));
        assert_eq!((fields.bytes(), fields.u64(), fields.is_empty()), (Some(&[8, 9][..]), None, false));
        assert_eq!((fields.take(1), fields.u8(), fields.is_empty()), (Some(&[7][..]), None, true));
    }
}
