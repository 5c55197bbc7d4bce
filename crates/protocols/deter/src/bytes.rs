//! Whole numbers as bytes: seven bits each, the lowest first, and a bit that says whether more follow.

use crate::log::LogFault;

/// The latest time of a log and the longest span in picoseconds, more than any simulation lasts: sums of a few of them are times too.
pub(crate) const LATEST: u64 = 1 << 62;
/// Bytes that the largest number takes.
const LONGEST: u32 = 10;

pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Numbers near zero of either sign are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, (value << 1 ^ value >> 63) as u64);
}

/// Reads what was put, in the same order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogReader<'a> {
    left: &'a [u8],
}

impl<'a> LogReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.left.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, LogFault> {
        let (first, rest) = self.left.split_first().ok_or(LogFault::Short)?;
        self.left = rest;
        Ok(*first)
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], LogFault> {
        let (taken, rest) = self.left.split_at_checked(len).ok_or(LogFault::Short)?;
        self.left = rest;
        Ok(taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, LogFault> {
        let mut value = 0;
        for at in 0..LONGEST {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if at == LONGEST - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * at);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(LogFault::Value("number"))
    }

    pub(crate) fn signed(&mut self) -> Result<i64, LogFault> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that fits; `what` it is, for the error.
    pub(crate) fn small<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, LogFault> {
        self.number()?.try_into().map_err(|_| LogFault::Value(what))
    }

    /// A time or a span, in picoseconds.
    pub(crate) fn picoseconds(&mut self) -> Result<u64, LogFault> {
        Some(self.number()?).filter(|value| *value <= LATEST).ok_or(LogFault::Value("time"))
    }

    pub(crate) fn word(&mut self) -> Result<u64, LogFault> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| LogFault::Short)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        let values = [0, 1, 127, 128, 16_383, 16_384, u64::MAX / 2, u64::MAX];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| put(&mut bytes, *value));
        [0, -1, 1, i64::MIN, i64::MAX].iter().for_each(|value| put_signed(&mut bytes, *value));
        let mut reader = LogReader::new(&bytes);
        values.iter().for_each(|value| assert_eq!(reader.number().unwrap(), *value));
        [0, -1, 1, i64::MIN, i64::MAX].iter().for_each(|value| assert_eq!(reader.signed().unwrap(), *value));
        assert!(reader.is_empty() && reader.number().is_err());
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        assert!(LogReader::new(&[0xff; 10]).number().is_err());
        assert!(LogReader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]).number().is_err());
    }
}
