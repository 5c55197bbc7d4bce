//! Replies of Redis as values (RESP 2), never more of one than has been agreed to be enough.
//!
//! A length that is announced is held against the bounds before anything is read, and memory grows with what arrives. So a server that is
//! none, or is not ours, costs a connection and no memory.

use std::fmt;
use std::io::{self, ErrorKind, Read};

use redis::Value;

/// Bytes of all replies to one question: more than a thousand messages, or two of the longest reports.
pub(super) const MOST_BYTES: usize = 8 << 20;
/// Values in them: each costs memory of its own, and an empty one takes four bytes to send.
const MOST_VALUES: usize = 1 << 16;
const DEEPEST: usize = 8;
/// A line that says how long something is, or what is wrong.
const LONGEST_LINE: usize = 4_096;
/// Characters of the server's words that go into a log.
const SHOWN: usize = 200;
const CHUNK: usize = 16 << 10;

/// One reply: a value, or the server's error text.
pub(super) type Reply = Result<Value, String>;

/// Reason why there will be no further reply on this connection.
#[derive(Debug)]
pub(super) enum ReplyError {
    Io(io::Error),
    /// More than is read: this is what was announced or sent.
    TooLong(String),
    Nonsense(String),
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => f.write_str("no answer in time"),
                ErrorKind::ConnectionRefused => f.write_str("connection refused: is Redis running there?"),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    f.write_str("the connection was closed")
                }
                _ => error.fmt(f),
            },
            Self::TooLong(what) => write!(f, "its answer has {what}: not one of ours, the connection is closed"),
            Self::Nonsense(what) => write!(f, "not understood: {what}"),
        }
    }
}

impl From<io::Error> for ReplyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Bytes that have arrived and were not taken yet.
#[derive(Debug, Default)]
pub(super) struct ReplyBuffer {
    bytes: Vec<u8>,
    taken: usize,
}

/// The replies to one question.
pub(super) struct ReplyReader<'a, R> {
    from: R,
    buffer: &'a mut ReplyBuffer,
    bytes_left: usize,
    values_left: usize,
}

impl<'a, R: Read> ReplyReader<'a, R> {
    pub(super) fn new(from: R, buffer: &'a mut ReplyBuffer) -> Self {
        Self { from, buffer, bytes_left: MOST_BYTES, values_left: MOST_VALUES }
    }

    pub(super) fn next(&mut self) -> Result<Reply, ReplyError> {
        self.reply(0)
    }

    fn reply(&mut self, depth: usize) -> Result<Reply, ReplyError> {
        let line = self.line()?;
        let Some((kind, rest)) = line.split_first() else { return Err(nonsense(&line)) };
        Ok(match kind {
            b'+' if rest == b"OK" => Ok(Value::Okay),
            b'+' => Ok(Value::SimpleString(shown(rest))),
            b'-' => Err(shown(rest)),
            b':' => Ok(Value::Int(number(rest).ok_or_else(|| nonsense(&line))?)),
            b'$' => Ok(match length(rest).ok_or_else(|| nonsense(&line))? {
                Some(length) => Value::BulkString(self.text(length)?),
                None => Value::Nil,
            }),
            b'*' => Ok(match length(rest).ok_or_else(|| nonsense(&line))? {
                Some(length) => Value::Array(self.list(length, depth + 1)?),
                None => Value::Nil,
            }),
            _ => return Err(nonsense(&line)),
        })
    }

    fn list(&mut self, length: usize, depth: usize) -> Result<Vec<Value>, ReplyError> {
        if depth > DEEPEST {
            return Err(ReplyError::TooLong(format!("lists in lists, more than {DEEPEST}")));
        }
        let Some(left) = self.values_left.checked_sub(length) else {
            return Err(ReplyError::TooLong(format!("a list of {length}, and {MOST_VALUES} values are the most")));
        };
        self.values_left = left;
        let mut list = Vec::new();
        for _ in 0..length {
            // Our scripts return no error inside of a list.
            list.push(self.reply(depth)?.unwrap_or_else(Value::SimpleString));
        }
        Ok(list)
    }

    fn text(&mut self, length: usize) -> Result<Vec<u8>, ReplyError> {
        if length > self.bytes_left {
            return Err(ReplyError::TooLong(format!("a text of {length} bytes, and {MOST_BYTES} are the most")));
        }
        let mut text = Vec::new();
        while text.len() < length {
            let there = self.there()?;
            let part = there.len().min(length - text.len());
            text.extend_from_slice(&there[..part]);
            self.take(part)?;
        }
        for end in [b'\r', b'\n'] {
            if self.there()?[0] != end {
                return Err(ReplyError::Nonsense("a text that goes on behind its end".to_owned()));
            }
            self.take(1)?;
        }
        Ok(text)
    }

    /// Reads a line, without its end.
    fn line(&mut self) -> Result<Vec<u8>, ReplyError> {
        let mut line = Vec::new();
        loop {
            let there = self.there()?;
            let end = there.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(there.len(), |end| end + 1);
            line.extend_from_slice(&there[..part]);
            self.take(part)?;
            if line.len() > LONGEST_LINE {
                return Err(ReplyError::TooLong(format!("a line of more than {LONGEST_LINE} bytes")));
            }
            if end.is_some() {
                return if line.ends_with(b"\r\n") {
                    line.truncate(line.len() - 2);
                    Ok(line)
                } else {
                    Err(nonsense(&line))
                };
            }
        }
    }

    /// Bytes that have arrived, at least one.
    fn there(&mut self) -> Result<&[u8], ReplyError> {
        let buffer = &mut *self.buffer;
        if buffer.taken == buffer.bytes.len() {
            buffer.bytes.resize(CHUNK, 0);
            buffer.taken = CHUNK;
            let read = loop {
                match self.from.read(&mut buffer.bytes) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    result => break result?,
                }
            };
            if read == 0 {
                return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
            }
            buffer.bytes.truncate(read);
            buffer.taken = 0;
        }
        Ok(&buffer.bytes[buffer.taken..])
    }

    fn take(&mut self, bytes: usize) -> Result<(), ReplyError> {
        self.buffer.taken += bytes;
        self.bytes_left = self
            .bytes_left
            .checked_sub(bytes)
            .ok_or_else(|| ReplyError::TooLong(format!("more than {MOST_BYTES} bytes")))?;
        Ok(())
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// `None` inside for what is not there at all.
fn length(digits: &[u8]) -> Option<Option<usize>> {
    match number(digits)? {
        -1 => Some(None),
        length => usize::try_from(length).ok().map(Some),
    }
}

/// The words of a server go into logs: a short line without control characters.
fn shown(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let plain = text.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c });
    plain.take(SHOWN).collect()
}

fn nonsense(line: &[u8]) -> ReplyError {
    let end = line.len().min(SHOWN);
    ReplyError::Nonsense(format!("`{}`", line[..end].escape_ascii()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replies(bytes: &[u8], count: usize) -> Result<Vec<Reply>, ReplyError> {
        let mut buffer = ReplyBuffer::default();
        let mut reader = ReplyReader::new(bytes, &mut buffer);
        (0..count).map(|_| reader.next()).collect()
    }

    fn refused(bytes: &[u8]) -> String {
        replies(bytes, 1).unwrap_err().to_string()
    }

    #[test]
    fn every_kind_of_reply_is_read() {
        let said = b"+OK\r\n+PONG\r\n-ERR no\r\n:-7\r\n$5\r\nab\r\nc\r\n$-1\r\n*2\r\n*0\r\n$0\r\n\r\n*-1\r\n";
        let bulk = |text: &str| Value::BulkString(text.into());
        let list = Value::Array(vec![Value::Array(Vec::new()), bulk("")]);
        let all = replies(said, 8).unwrap();
        let expected = [
            Ok(Value::Okay),
            Ok(Value::SimpleString("PONG".into())),
            Err("ERR no".to_owned()),
            Ok(Value::Int(-7)),
            Ok(bulk("ab\r\nc")),
            Ok(Value::Nil),
            Ok(list),
            Ok(Value::Nil),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_is_announced_beyond_the_bounds_is_refused_before_it_is_read() {
        assert!(refused(b"$2000000000\r\nx").contains("a text of 2000000000 bytes"));
        assert!(refused(b"*2000000000\r\n").contains("a list of 2000000000"));
        assert!(refused(b"*9223372036854775807\r\n").contains("are the most"));
        assert!(refused(&b"*1\r\n".repeat(100)).contains("lists in lists"));
        assert!(refused(&[b'+'; 100_000]).contains("a line of more than 4096 bytes"));
        let many = [b"*65000\r\n".as_slice(), &b"*1\r\n:1\r\n".repeat(1_000)].concat();
        assert!(refused(&many).contains("65536 values are the most"));
    }

    #[test]
    fn many_texts_together_are_bounded_like_one() {
        let text = [format!("${}\r\n", 3 << 20).into_bytes(), vec![b'x'; 3 << 20], b"\r\n".to_vec()].concat();
        let all = [text.clone(), text.clone(), text].concat();
        assert!(matches!(replies(&all, 2), Ok(two) if two.len() == 2));
        assert!(replies(&all, 3).unwrap_err().to_string().contains("8388608 are the most"));
    }

    #[test]
    fn what_is_no_reply_is_said_so_without_control_characters() {
        assert!(refused(b"HTTP/1.1 400 Bad Request\r\n").contains("not understood: `HTTP/1.1 400"));
        assert!(refused(b"$1\r\nxyz\r\n").contains("goes on behind its end"));
        assert!(refused(b"$one\r\n").contains("not understood"));
        assert!(refused(b"+OK\n").contains("not understood"));
        assert_eq!(refused(b"+OK"), "the connection was closed");
        let said = replies(b"-ERR \x1b[2Jcleared\r\n", 1).unwrap().remove(0).unwrap_err();
        assert_eq!(said, "ERR  [2Jcleared");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_come_to_an_end(bytes in prop::collection::vec(prop_oneof![
            prop::sample::select(b"+-:$*0123456789\r\n".to_vec()), any::<u8>()], 0..300)) {
            let _ = replies(&bytes, 10);
        }
    }
}
