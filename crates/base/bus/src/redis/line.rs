//! A connection that is there when it is needed.

use std::io::Write;
use std::time::Duration;

use redis::{Cmd, Pipeline, Value, cmd};

use super::address::RedisAddress;
use super::reply::{Reply, ReplyBuffer, ReplyError, ReplyReader};
use super::stream::RedisStream;
use crate::BusError;

/// Time to wait for a connection, and for an answer that does not wait for others, unless said otherwise.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects when first asked something, and again after every error: an answer that comes too late would otherwise be
/// taken for that of the next question.
pub struct RedisConnection {
    address: RedisAddress,
    patience: Duration,
    connection: Option<BufferedStream>,
    /// The last question failed because its answer was longer than any that is read.
    was_too_long: bool,
}

struct BufferedStream {
    stream: RedisStream,
    buffer: ReplyBuffer,
}

impl std::fmt::Debug for RedisConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line")
            .field("address", &self.address)
            .field("connected", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

impl RedisConnection {
    pub fn new(address: RedisAddress) -> Self {
        Self { address, patience: PATIENCE, connection: None, was_too_long: false }
    }

    /// A second connection to the same server, which is not open yet.
    pub fn another(&self) -> Self {
        Self { patience: self.patience, ..Self::new(self.address.clone()) }
    }

    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
        self.connection = None;
    }

    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    pub(crate) fn was_too_long(&self) -> bool {
        self.was_too_long
    }

    /// `doing` is for people, should it fail. Redis itself may take `patience` before it answers.
    pub fn ask(&mut self, doing: &str, command: &Cmd, patience: Duration) -> Result<Value, BusError> {
        let limit = self.patience.saturating_add(patience);
        let mut replies = self.exchange(doing, &command.get_packed_command(), 1, limit)?;
        replies.remove(0).map_err(|said| self.down(doing, &said))
    }

    /// Asks many questions in one go, each about one key. `None` for a key whose value is of another type.
    pub(crate) fn ask_all(&mut self, doing: &str, questions: &Pipeline) -> Result<Vec<Option<Value>>, BusError> {
        let replies = self.exchange(doing, &questions.get_packed_pipeline(), questions.len(), self.patience)?;
        let of_key = |reply: Reply| match reply {
            Err(said) if said.starts_with("WRONGTYPE") => Ok(None),
            Err(said) => Err(said),
            Ok(value) => Ok(Some(value)),
        };
        let values: Result<_, String> = replies.into_iter().map(of_key).collect();
        values.map_err(|said| self.down(doing, &said))
    }

    /// An answer that makes no sense.
    pub fn nonsense(&mut self, doing: &str, answer: &Value) -> BusError {
        let mut answer = format!("{answer:?}");
        if let Some((end, _)) = answer.char_indices().nth(100) {
            answer.replace_range(end.., "…");
        }
        self.down(doing, &format!("not understood: {answer}"))
    }

    fn down(&mut self, doing: &str, why: &str) -> BusError {
        self.connection = None;
        BusError::Down(format!("{}: {doing}: {why}", self.address))
    }

    fn exchange(
        &mut self,
        doing: &str,
        questions: &[u8],
        count: usize,
        limit: Duration,
    ) -> Result<Vec<Reply>, BusError> {
        self.was_too_long = false;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BufferedStream::open(&self.address, self.patience).map_err(|why| self.down(doing, &why))?,
        };
        match connection.exchange(questions, count, limit) {
            Ok(replies) => {
                self.connection = Some(connection);
                Ok(replies)
            }
            Err(error) => {
                self.was_too_long = matches!(error, ReplyError::TooLong(_));
                Err(self.down(doing, &error.to_string()))
            }
        }
    }
}

impl BufferedStream {
    fn open(address: &RedisAddress, patience: Duration) -> Result<Self, String> {
        let stream = RedisStream::connect(address, patience).map_err(|error| ReplyError::Io(error).to_string())?;
        let mut connection = Self { stream, buffer: ReplyBuffer::default() };
        let settings = address.info.redis_settings();
        if let Some(password) = settings.password() {
            let mut login = cmd("AUTH");
            if let Some(user) = settings.username() {
                login.arg(user);
            }
            login.arg(password);
            connection.settle(&login, patience).map_err(|why| format!("authentication failed: {why}"))?;
        }
        if settings.db() != 0 {
            let mut select = cmd("SELECT");
            select.arg(settings.db());
            connection.settle(&select, patience)?;
        }
        Ok(connection)
    }

    /// A question that is answered with `OK`.
    fn settle(&mut self, command: &Cmd, patience: Duration) -> Result<(), String> {
        let replies = self.exchange(&command.get_packed_command(), 1, patience);
        match replies.map_err(|error| error.to_string())?.remove(0)? {
            Value::Okay => Ok(()),
            other => Err(format!("not understood: {other:?}")),
        }
    }

    fn exchange(&mut self, questions: &[u8], count: usize, limit: Duration) -> Result<Vec<Reply>, ReplyError> {
        self.stream.begin(limit);
        self.stream.write_all(questions)?;
        self.stream.flush()?;
        let mut replies = ReplyReader::new(&mut self.stream, &mut self.buffer);
        (0..count).map(|_| replies.next()).collect()
    }
}
