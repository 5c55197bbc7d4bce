//! A connection to Redis as bytes: over TCP, with TLS, or by a socket file.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::ConnectionAddr;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::address::RedisAddress;
use crate::time::instant;

/// Longest time from the first to the last byte of an answer. Without it a server that sends a byte now and then would hold
/// the caller for ever.
const WHOLE: Duration = Duration::from_secs(10);

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A stream with a limit on the wait for each byte and on the time of all bytes. It is below TLS, so handshakes are bounded
/// too.
pub(super) struct BoundedSocket {
    socket: Socket,
    limit: Duration,
    until: Instant,
}

pub(super) enum RedisStream {
    Plain(BoundedSocket),
    Tls(Box<StreamOwned<ClientConnection, BoundedSocket>>),
}

impl RedisStream {
    pub(super) fn connect(address: &RedisAddress, patience: Duration) -> io::Result<Self> {
        let bounded = |socket| BoundedSocket { socket, limit: patience, until: instant() + patience + WHOLE };
        let tcp = |host: &str, port: u16| -> io::Result<BoundedSocket> {
            let socket = connect(host, port, patience)?;
            socket.set_write_timeout(Some(patience))?;
            Ok(bounded(Socket::Tcp(socket)))
        };
        Ok(match address.info.addr() {
            ConnectionAddr::Tcp(host, port) => Self::Plain(tcp(host, *port)?),
            ConnectionAddr::TcpTls { host, port, .. } => {
                let session = tls(host, address.ca.as_deref())?;
                Self::Tls(Box::new(StreamOwned::new(session, tcp(host, *port)?)))
            }
            ConnectionAddr::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_write_timeout(Some(patience))?;
                Self::Plain(bounded(Socket::Unix(socket)))
            }
            _ => return Err(ErrorKind::Unsupported.into()),
        })
    }

    /// A question begins whose answer may take so long to begin.
    pub(super) fn begin(&mut self, limit: Duration) {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(session) => &mut session.sock,
        };
        (socket.limit, socket.until) = (limit, instant() + limit + WHOLE);
    }
}

impl Read for BoundedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(instant());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        let wait = Some(left.min(self.limit).max(Duration::from_millis(1)));
        match &mut self.socket {
            Socket::Tcp(socket) => socket.set_read_timeout(wait).and_then(|()| socket.read(buffer)),
            Socket::Unix(socket) => socket.set_read_timeout(wait).and_then(|()| socket.read(buffer)),
        }
    }
}

impl Write for BoundedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.write(bytes),
            Socket::Unix(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The first address that answers.
fn connect(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "no such host");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Trusts the given authority alone, or those of the system.
fn tls(host: &str, ca: Option<&[u8]>) -> io::Result<ClientConnection> {
    let invalid = |error: &dyn std::fmt::Display| io::Error::new(ErrorKind::InvalidData, error.to_string());
    // A second time it is there already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    match ca {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| invalid(&error))?;
                roots.add(certificate).map_err(|error| invalid(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| invalid(&error))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| invalid(&error))
}

impl Read for RedisStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for RedisStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
