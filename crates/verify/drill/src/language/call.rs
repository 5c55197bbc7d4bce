//! System calls: which are understood, and what a script expects of them.

use super::cursor::{Cursor, Parsed};
use super::values::{CallArgument, integer, list};
use linux::stream::ShutdownHalf;

/// An option of a socket that scripts may read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketOption {
    ReuseAddress,
    SendBuffer,
    ReceiveBuffer,
    Error,
    NoDelay,
    Cork,
    MaxSegment,
    UserTimeout,
    /// `TCP_INQ`: reads report how many bytes still wait.
    Inq,
    TypeOfService,
    MtuDiscovery,
}

/// A call of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketCall {
    Socket,
    Bind,
    Listen {
        backlog: i32,
    },
    Accept,
    Connect,
    Send {
        len: u64,
        more: bool,
    },
    Receive {
        len: u64,
    },
    Close,
    Shutdown(ShutdownHalf),
    SetOption {
        option: SocketOption,
        value: i64,
    },
    GetOption {
        option: SocketOption,
    },
    GetFlags,
    SetNonblocking(bool),
    /// `ioctl(SIOCINQ)`: bytes that wait to be read.
    Waiting,
}

/// Result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// Return value; -1 with an error.
    pub(crate) value: i64,
    /// The name of the error, such as `EPIPE`.
    pub(crate) error: Option<String>,
    /// Additional output: the value of an option, bytes that wait.
    pub(crate) out: Option<i64>,
}

impl CallResult {
    pub(crate) fn value(value: i64) -> Self {
        Self { value, ..Self::default() }
    }

    pub(crate) fn error(name: &str) -> Self {
        Self { value: -1, error: Some(name.to_owned()), out: None }
    }
}

/// Result that a script expects of a call; `None` is not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExpectedResult {
    pub(crate) value: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) out: Option<i64>,
}

/// A call with the descriptor it is about; that of `socket` is its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptCall {
    pub(crate) descriptor: i64,
    pub(crate) call: SocketCall,
    pub(crate) expected: ExpectedResult,
}

/// `name(arguments) = result ERROR (remark)`.
pub(super) fn call(cursor: &mut Cursor<'_>) -> Parsed<ScriptCall> {
    let name = cursor.word();
    if name.is_empty() {
        return cursor.error(format!("not understood: {:?}", cursor.excerpt()));
    }
    cursor.expect("(")?;
    let arguments = list(cursor, ")")?;
    cursor.expect("=")?;
    let mut expected = ExpectedResult::default();
    if !cursor.take("...") {
        expected.value = Some(integer(cursor)?);
    }
    if cursor.peek().is_some_and(|letter| letter.is_ascii_uppercase()) {
        expected.error = Some(cursor.word().to_owned());
    }
    if cursor.take("(") {
        cursor.until(")")?;
    }
    let Some((call, out)) = understand(name, &arguments) else {
        return cursor.error(format!("a system call that is not understood: {name}({arguments:?})"));
    };
    expected.out = out;
    let descriptor = match call {
        SocketCall::Socket => expected.value,
        _ => arguments.first().and_then(CallArgument::number),
    };
    match descriptor {
        Some(descriptor) => Ok(ScriptCall { descriptor, call, expected }),
        None => cursor.error(format!("{name}: its descriptor is not a number")),
    }
}

/// The call, and what it must write besides its result.
fn understand(name: &str, arguments: &[CallArgument]) -> Option<(SocketCall, Option<i64>)> {
    use CallArgument::{Any, Symbol};
    let symbol = |at: usize| match arguments.get(at) {
        Some(Symbol(name)) => Some(name.as_str()),
        _ => None,
    };
    let size = |at: usize| arguments.get(at).and_then(CallArgument::number).and_then(|len| u64::try_from(len).ok());
    let call = match (name, arguments.len()) {
        ("socket", 3) if arguments[0] == Any || symbol(0) == Some("AF_INET") => {
            (symbol(1)? == "SOCK_STREAM" && symbol(2)? == "IPPROTO_TCP").then_some(SocketCall::Socket)?
        }
        ("bind", 3) => SocketCall::Bind,
        ("listen", 2) => SocketCall::Listen { backlog: i32::try_from(size(1)?).ok()? },
        ("accept", 3) => SocketCall::Accept,
        ("connect", 3) => SocketCall::Connect,
        ("write", 3) => SocketCall::Send { len: size(2)?, more: false },
        ("send", 4) => SocketCall::Send { len: size(2)?, more: more_flag(&arguments[3])? },
        ("sendmsg", 3) => SocketCall::Send { len: parts(&arguments[1])?, more: more_flag(&arguments[2])? },
        ("read", 3) => SocketCall::Receive { len: size(2)? },
        ("recv", 4) if size(3) == Some(0) => SocketCall::Receive { len: size(2)? },
        ("recvmsg", 3) if size(2) == Some(0) => {
            return Some((SocketCall::Receive { len: parts(&arguments[1])? }, waiting(&arguments[1])?));
        }
        ("close", 1) => SocketCall::Close,
        ("shutdown", 2) => SocketCall::Shutdown(half(symbol(1)?)?),
        ("setsockopt", 5) => {
            SocketCall::SetOption { option: option(symbol(1)?, symbol(2)?)?, value: option_value(&arguments[3])? }
        }
        ("getsockopt", 5) => {
            let call = SocketCall::GetOption { option: option(symbol(1)?, symbol(2)?)? };
            return Some((call, Some(arguments[3].number()?)));
        }
        ("fcntl", 2) if symbol(1)? == "F_GETFL" => SocketCall::GetFlags,
        ("fcntl", 3) if symbol(1)? == "F_SETFL" => SocketCall::SetNonblocking(nonblocking(symbol(2)?)?),
        ("ioctl", 3) if symbol(1)? == "SIOCINQ" => return Some((SocketCall::Waiting, Some(arguments[2].number()?))),
        _ => return None,
    };
    Some((call, None))
}

fn half(name: &str) -> Option<ShutdownHalf> {
    match name {
        "SHUT_RD" => Some(ShutdownHalf::Read),
        "SHUT_WR" => Some(ShutdownHalf::Write),
        "SHUT_RDWR" => Some(ShutdownHalf::Both),
        _ => None,
    }
}

fn nonblocking(flags: &str) -> Option<bool> {
    match flags {
        "O_RDWR" => Some(false),
        "O_RDWR|O_NONBLOCK" | "O_NONBLOCK" => Some(true),
        _ => None,
    }
}

fn option(level: &str, name: &str) -> Option<SocketOption> {
    Some(match (level, name) {
        ("SOL_SOCKET", "SO_REUSEADDR") => SocketOption::ReuseAddress,
        ("SOL_SOCKET", "SO_SNDBUF") => SocketOption::SendBuffer,
        ("SOL_SOCKET", "SO_RCVBUF") => SocketOption::ReceiveBuffer,
        ("SOL_SOCKET", "SO_ERROR") => SocketOption::Error,
        ("SOL_TCP" | "IPPROTO_TCP", "TCP_NODELAY") => SocketOption::NoDelay,
        ("SOL_TCP" | "IPPROTO_TCP", "TCP_CORK") => SocketOption::Cork,
        ("SOL_TCP" | "IPPROTO_TCP", "TCP_MAXSEG") => SocketOption::MaxSegment,
        ("SOL_TCP" | "IPPROTO_TCP", "TCP_USER_TIMEOUT") => SocketOption::UserTimeout,
        ("SOL_TCP" | "IPPROTO_TCP", "TCP_INQ") => SocketOption::Inq,
        ("SOL_IP" | "IPPROTO_IP", "IP_TOS") => SocketOption::TypeOfService,
        ("SOL_IP" | "IPPROTO_IP", "IP_MTU_DISCOVER") => SocketOption::MtuDiscovery,
        _ => return None,
    })
}

fn option_value(argument: &CallArgument) -> Option<i64> {
    match argument {
        CallArgument::List(parts) if *parts == [CallArgument::Symbol("IP_PMTUDISC_DONT".to_owned())] => {
            Some(i64::from(libc::IP_PMTUDISC_DONT))
        }
        other => other.number(),
    }
}

fn more_flag(flags: &CallArgument) -> Option<bool> {
    match flags {
        CallArgument::Number(0) => Some(false),
        CallArgument::Symbol(name) if name == "MSG_MORE" => Some(true),
        _ => None,
    }
}

/// Bytes of all parts of a message.
fn parts(message: &CallArgument) -> Option<u64> {
    let CallArgument::List(parts) = message.field("msg_iov")? else { return None };
    parts.iter().try_fold(0, |sum, part| match part {
        CallArgument::List(part) => Some(sum + u64::try_from(part.get(1)?.number()?).ok()?),
        _ => None,
    })
}

/// Value that `TCP_CM_INQ` must have, if the script asks; `None` if it asks for something else.
fn waiting(message: &CallArgument) -> Option<Option<i64>> {
    let Some(control) = message.field("msg_control") else { return Some(None) };
    match control {
        CallArgument::List(messages) => match messages.as_slice() {
            [] => Some(None),
            [one] if one.field("cmsg_type") == Some(&CallArgument::Symbol("TCP_CM_INQ".to_owned())) => {
                one.field("cmsg_data")?.number().map(Some)
            }
            _ => None,
        },
        _ => None,
    }
}
