//! A connection that is there when it is needed.

use std::time::Duration;

use redis::{Client, Cmd, Connection, ConnectionLike, Pipeline, RedisError, RedisResult, TlsCertificates, Value};

use super::address::RedisAddress;
use crate::BusError;

/// How long to wait for a connection, and for an answer that does not wait for others, unless said otherwise.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects when first asked something, and again after every error: an answer that comes too late would otherwise be
/// taken for that of the next question.
pub struct RedisConnection {
    address: RedisAddress,
    patience: Duration,
    connection: Option<Connection>,
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
        Self { address, patience: PATIENCE, connection: None }
    }

    /// The same, not connected yet.
    pub fn another(&self) -> Self {
        Self { address: self.address.clone(), patience: self.patience, connection: None }
    }

    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
        self.connection = None;
    }

    pub fn address(&self) -> &RedisAddress {
        &self.address
    }

    /// `doing` is for people, should it fail. Redis itself may take `patience` before it answers.
    pub fn ask(&mut self, doing: &str, command: &Cmd, patience: Duration) -> Result<Value, BusError> {
        let limit = self.patience.saturating_add(patience);
        self.with(doing, |connection| {
            connection.set_read_timeout(Some(limit))?;
            match connection.req_command(command)? {
                Value::ServerError(error) => Err(error.into()),
                answer => Ok(answer),
            }
        })
    }

    /// Many questions in one go, each about one key. `None` where what is under it is of another type.
    pub(crate) fn ask_all(&mut self, doing: &str, questions: &mut Pipeline) -> Result<Vec<Option<Value>>, BusError> {
        questions.ignore_errors();
        let limit = self.patience;
        self.with(doing, |connection| {
            connection.set_read_timeout(Some(limit))?;
            let answers: Vec<RedisResult<Value>> = questions.query(connection)?;
            let of_key = |answer: RedisResult<Value>| match answer {
                Err(error) if error.code() == Some("WRONGTYPE") => Ok(None),
                answer => answer.map(Some),
            };
            answers.into_iter().map(of_key).collect()
        })
    }

    /// An answer that makes no sense.
    pub fn nonsense(&mut self, doing: &str, answer: &Value) -> BusError {
        self.connection = None;
        let mut answer = format!("{answer:?}");
        if let Some((end, _)) = answer.char_indices().nth(100) {
            answer.replace_range(end.., "…");
        }
        BusError::Down(format!("{}: {doing}: not understood: {answer}", self.address))
    }

    fn with<T>(
        &mut self,
        doing: &str,
        ask: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, BusError> {
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => connect(&self.address, self.patience),
        };
        let answer = connection.and_then(|mut connection| Ok((ask(&mut connection)?, connection)));
        match answer {
            Ok((answer, connection)) => {
                self.connection = Some(connection);
                Ok(answer)
            }
            Err(error) => Err(BusError::Down(format!("{}: {doing}: {}", self.address, in_words(&error)))),
        }
    }
}

fn connect(address: &RedisAddress, patience: Duration) -> Result<Connection, RedisError> {
    let client = if address.has_tls() {
        // A second time it is there already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::build_with_tls(
            address.info.clone(),
            TlsCertificates { client_tls: None, root_cert: address.ca.clone() },
        )?
    } else {
        Client::open(address.info.clone())?
    };
    let connection = client.get_connection_with_timeout(patience)?;
    connection.set_write_timeout(Some(patience))?;
    Ok(connection)
}

fn in_words(error: &RedisError) -> String {
    if error.is_timeout() {
        "no answer in time".to_owned()
    } else if error.is_connection_refusal() {
        "connection refused: is Redis running there?".to_owned()
    } else if error.is_connection_dropped() {
        "the connection was closed".to_owned()
    } else {
        error.to_string().trim_end().replace('\n', " ")
    }
}
