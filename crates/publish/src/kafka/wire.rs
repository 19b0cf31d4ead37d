//! Numbers, texts and lists as the protocol has them.

use std::str;

/// Why bytes from a client are not understood. Its connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Malformed {
    /// It ends too early, or lengths in it say so.
    #[error("a request ends too early")]
    Short,
    /// Bytes are left behind its end.
    #[error("a request has bytes behind its end")]
    Long,
    /// A length is negative where it must not be.
    #[error("a length is negative")]
    NegativeLength,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    Text,
    /// A number of variable length does not end.
    #[error("a number is too long")]
    Number,
    /// The request's length is beyond what is allowed.
    #[error("a request is too large")]
    TooLarge,
    /// A kind of request that was not offered.
    #[error("a request of an unknown kind")]
    Kind,
    /// Lists in it have more members than anybody needs.
    #[error("a request has too many parts")]
    Many,
    /// A version of a request that was not offered.
    #[error("a request of a version that was not offered")]
    Version,
}

/// Most members of all lists of a request together: what is made of each takes more memory than it has bytes.
const MOST_MEMBERS: usize = 4_096;

/// What is left to read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    members: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, members: MOST_MEMBERS }
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// So many bytes.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// A number of 8 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`], as of all numbers.
    pub fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// A number of 16 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// A number of 32 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// A number of 64 bits.
    ///
    /// # Errors
    /// [`Malformed::Short`].
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A number of 1 to 10 bytes, of which small ones of either sign are short.
    ///
    /// # Errors
    /// [`Malformed::Short`], [`Malformed::Number`].
    pub fn variable(&mut self) -> Result<i64, Malformed> {
        let mut bits = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            bits |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((bits >> 1) as i64 ^ -((bits & 1) as i64));
            }
        }
        Err(Malformed::Number)
    }

    /// Bytes behind a length of variable length, which is -1 of none.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn variable_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.variable()? {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| Malformed::NegativeLength)?).map(Some),
        }
    }

    /// A text, or none.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn optional_text(&mut self) -> Result<Option<&'a str>, Malformed> {
        match self.i16()? {
            -1 => Ok(None),
            length => {
                let bytes = self.take(usize::try_from(length).map_err(|_| Malformed::NegativeLength)?)?;
                str::from_utf8(bytes).map(Some).map_err(|_| Malformed::Text)
            }
        }
    }

    /// A text.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn text(&mut self) -> Result<&'a str, Malformed> {
        self.optional_text()?.ok_or(Malformed::NegativeLength)
    }

    /// Bytes, or none.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn optional_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| Malformed::NegativeLength)?).map(Some),
        }
    }

    /// Bytes.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        self.optional_bytes()?.ok_or(Malformed::NegativeLength)
    }

    /// A list, or none, each member of which `read` reads.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn optional_list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let length = self.i32()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed::NegativeLength)?;
        // It grows by what is there, not by what its length promises.
        let mut list = Vec::new();
        for _ in 0..length {
            let before = self.bytes.len();
            self.members = self.members.checked_sub(1).ok_or(Malformed::Many)?;
            list.push(read(self)?);
            debug_assert!(self.bytes.len() < before, "members have bytes");
        }
        Ok(Some(list))
    }

    /// A list, each member of which `read` reads.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn list<T>(&mut self, read: impl FnMut(&mut Self) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        self.optional_list(read)?.ok_or(Malformed::NegativeLength)
    }
}

/// Appends what the protocol has to bytes.
pub trait Write {
    /// A number of 8 bits.
    fn i8(&mut self, number: i8);
    /// A number of 16 bits.
    fn i16(&mut self, number: i16);
    /// A number of 32 bits.
    fn i32(&mut self, number: i32);
    /// A number of 64 bits.
    fn i64(&mut self, number: i64);
    /// A number of which small ones of either sign are short.
    fn variable(&mut self, number: i64);
    /// Bytes behind a length of variable length.
    fn variable_bytes(&mut self, bytes: Option<&[u8]>);
    /// A text of at most 32,767 bytes; of a longer one, none.
    fn optional_text(&mut self, text: Option<&str>);
    /// As [`Write::optional_text`].
    fn text(&mut self, text: &str) {
        self.optional_text(Some(text));
    }
    /// Bytes, at most 2 GiB.
    fn bytes(&mut self, bytes: &[u8]);
    /// A list, each member of which `write` writes.
    fn list<T>(&mut self, list: impl ExactSizeIterator<Item = T>, write: impl FnMut(&mut Self, T));
}

impl Write for Vec<u8> {
    fn i8(&mut self, number: i8) {
        self.extend(number.to_be_bytes());
    }

    fn i16(&mut self, number: i16) {
        self.extend(number.to_be_bytes());
    }

    fn i32(&mut self, number: i32) {
        self.extend(number.to_be_bytes());
    }

    fn i64(&mut self, number: i64) {
        self.extend(number.to_be_bytes());
    }

    fn variable(&mut self, number: i64) {
        let mut bits = zigzag(number);
        while bits >= 0x80 {
            self.push(bits as u8 | 0x80);
            bits >>= 7;
        }
        self.push(bits as u8);
    }

    fn variable_bytes(&mut self, bytes: Option<&[u8]>) {
        self.variable(bytes.map_or(-1, |bytes| bytes.len() as i64));
        self.extend(bytes.unwrap_or_default());
    }

    fn optional_text(&mut self, text: Option<&str>) {
        match text.and_then(|text| Some((i16::try_from(text.len()).ok()?, text))) {
            Some((length, text)) => {
                self.i16(length);
                self.extend(text.as_bytes());
            }
            None => self.i16(-1),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.i32(bytes.len() as i32);
        self.extend(bytes);
    }

    fn list<T>(&mut self, list: impl ExactSizeIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.i32(list.len() as i32);
        for member in list {
            write(self, member);
        }
    }
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// How many bytes [`Write::variable`] makes of a number.
pub fn variable_length(number: i64) -> usize {
    let bits = 64 - (zigzag(number) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_of_variable_length(number in any::<i64>(), shift in 0..64) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            bytes.variable(number);
            prop_assert_eq!(bytes.len(), variable_length(number));
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.variable(), Ok(number));
            prop_assert!(reader.rest().is_empty());
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        let huge = i32::MAX.to_be_bytes();
        assert_eq!(Reader::new(&huge).list(Reader::i64), Err(Malformed::Short));
        assert_eq!(Reader::new(&huge).bytes(), Err(Malformed::Short));
        let negative = (-2_i32).to_be_bytes();
        assert_eq!(Reader::new(&negative).list(Reader::i8), Err(Malformed::NegativeLength));
        assert_eq!(Reader::new(&negative).bytes(), Err(Malformed::NegativeLength));
        assert_eq!(Reader::new(&[0xff; 11]).variable(), Err(Malformed::Number));
        assert_eq!(Reader::new(&[0, 1, 0xff]).text(), Err(Malformed::Text));
    }
}
