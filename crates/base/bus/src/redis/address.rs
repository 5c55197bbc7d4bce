//! `redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME&history=COUNT]`, as a user writes it; `rediss://…` for TLS, with the
//! system's certificate authorities or one of the user's own; or, for a server on this machine that listens on a socket file,
//! `redis+unix:///PATH[?prefix=NAME&history=COUNT]`.

use std::fmt;
use std::path::Path;

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};

use crate::BusError;

/// Messages of history that Redis is asked to keep, unless said otherwise: about 50 MB.
const HISTORY: usize = 100_000;

#[derive(Clone, Debug)]
pub struct RedisAddress {
    pub info: ConnectionInfo,
    pub prefix: String,
    pub history: usize,
    /// The certificate authority to trust, in PEM, instead of those of the system.
    pub ca: Option<Vec<u8>>,
    /// The address without its password.
    shown: String,
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl RedisAddress {
    pub fn parse(text: &str, ca: Option<&Path>) -> Result<Self, BusError> {
        let mut address = Self::read(text).map_err(|why| {
            BusError::Address(format!(
                "bus `{}`: {why}; expected redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME&history=COUNT]",
                without_password(text)
            ))
        })?;
        if let Some(path) = ca {
            let named = |why: &dyn fmt::Display| BusError::Address(format!("bus-ca {}: {why}", path.display()));
            if !address.has_tls() {
                return Err(named(&"only a rediss:// bus has certificates"));
            }
            let pem = std::fs::read(path).map_err(|error| named(&error))?;
            if !String::from_utf8_lossy(&pem).contains("-----BEGIN CERTIFICATE-----") {
                return Err(named(&"expected a certificate in PEM"));
            }
            address.ca = Some(pem);
        }
        Ok(address)
    }

    pub(crate) fn has_tls(&self) -> bool {
        matches!(self.info.addr(), ConnectionAddr::TcpTls { .. })
    }

    fn read(text: &str) -> Result<Self, String> {
        let mut url = redis::parse_redis_url(text).ok_or("not a Redis URL")?;
        let shown = match url.scheme() {
            "redis" | "valkey" => shown_host("redis", url.host_str(), url.port(), url.path())?,
            "rediss" | "valkeys" => shown_host("rediss", url.host_str(), url.port(), url.path())?,
            "redis+unix" => shown_file(url.host_str(), url.path())?,
            other => return Err(format!("`{other}:` is not supported")),
        };
        if let Some(fragment) = url.fragment() {
            return Err(format!("`#{fragment}` means nothing here"));
        }
        let (mut prefix, mut history) = ("hitless".to_owned(), HISTORY);
        for (name, value) in url.query_pairs() {
            match &*name {
                "prefix" => prefix = checked_prefix(&value)?,
                "history" => history = checked_history(&value)?,
                _ => return Err(format!("`{name}` is not known")),
            }
        }
        url.set_query(None);
        let info = url.into_connection_info().map_err(|error| error.to_string())?;
        // Redis before 7.2 answers this with an error each time.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        Ok(Self { info: info.set_redis_settings(settings), prefix, history, ca: None, shown })
    }
}

fn shown_host(scheme: &str, host: Option<&str>, port: Option<u16>, path: &str) -> Result<String, String> {
    let host = host.filter(|host| !host.is_empty()).ok_or("no host")?;
    let port = port.unwrap_or(6379);
    if port == 0 {
        return Err("port 0 is none".to_owned());
    }
    let database = path.trim_matches('/');
    let database: u32 = match database {
        "" => 0,
        _ => database.parse().map_err(|_| format!("`{database}` is not the number of a database"))?,
    };
    Ok(format!("{scheme}://{host}:{port}/{database}"))
}

fn shown_file(host: Option<&str>, path: &str) -> Result<String, String> {
    if host.is_some_and(|host| !host.is_empty()) {
        return Err("three slashes are needed before the path of a socket file".to_owned());
    }
    if path.trim_matches('/').is_empty() {
        Err("no socket file".to_owned())
    } else {
        Ok(format!("redis+unix://{path}"))
    }
}

/// Checks that a prefix has no characters of SCAN patterns. Braces are for Redis clusters, where all our keys must be
/// in one slot.
fn checked_prefix(value: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.:{}".contains(c);
    if value.is_empty() || !value.chars().all(fine) {
        return Err(format!("prefix `{value}` should be letters, digits and -_.:{{}}"));
    }
    Ok(value.to_owned())
}

fn checked_history(value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("history `{value}` should be a number of messages above 0")),
    }
}

/// Messages end up in logs.
fn without_password(text: &str) -> String {
    match (text.find("://"), text.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 <= at => format!("{}…{}", &text[..scheme + 3], &text[at..]),
        (None, Some(at)) => format!("…{}", &text[at..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match RedisAddress::parse(text, None) {
            Ok(address) => format!("{address} {} {}", address.prefix, address.history),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        assert_eq!(shown("redis://10.0.0.1"), "redis://10.0.0.1:6379/0 hitless 100000");
        assert_eq!(shown("redis://[::1]:7000/3"), "redis://[::1]:7000/3 hitless 100000");
        assert_eq!(shown("valkey://bus.example?prefix=lab&history=5"), "redis://bus.example:6379/0 lab 5");
        assert_eq!(shown("rediss://h"), "rediss://h:6379/0 hitless 100000");
        assert!(RedisAddress::parse("rediss://h", None).unwrap().has_tls());
        assert_eq!(shown("redis://h?prefix={hitless}"), "redis://h:6379/0 {hitless} 100000");
        let file = RedisAddress::parse("redis+unix:///run/redis.sock?prefix=lab", None).unwrap();
        assert_eq!(file.info.addr(), &ConnectionAddr::Unix("/run/redis.sock".into()));
        assert_eq!(file.prefix, "lab");
    }

    #[test]
    fn user_and_password_are_used_and_never_shown() {
        let address = RedisAddress::parse("redis://fleet:s%40cret@h:1/2", None).unwrap();
        let settings = address.info.redis_settings();
        assert_eq!((settings.username(), settings.password(), settings.db()), (Some("fleet"), Some("s@cret"), 2));
        for text in ["redis://fleet:s@cret@h:1/x", "fleet:s@cret@h", "http://:s@cret@h"] {
            assert!(!shown(text).contains("cret@"), "{}", shown(text));
        }
        assert!(!format!("{address:?}").contains("cret"));
    }

    #[test]
    fn a_wrong_address_says_what_is_wrong_with_it() {
        for (text, why) in [
            ("localhost:6379", "not a Redis URL"),
            ("http://h", "not a Redis URL"),
            ("", "not a Redis URL"),
            ("redis://", "no host"),
            ("redis://h:0", "port 0 is none"),
            ("redis://h:99999", "not a Redis URL"),
            ("rediss://h#insecure", "`#insecure` means nothing here"),
            ("unix:///run/redis.sock", "`unix:` is not supported"),
            ("redis+unix:///", "no socket file"),
            ("redis+unix://run/redis.sock", "three slashes are needed"),
            ("redis://h/zero", "`zero` is not the number of a database"),
            ("redis://h/-1", "`-1` is not the number of a database"),
            ("redis://h#x", "`#x` means nothing here"),
            ("redis://h?prefx=a", "`prefx` is not known"),
            ("redis://h?prefix=a*", "prefix `a*` should be"),
            ("redis://h?prefix=", "prefix `` should be"),
            ("redis://h?history=0", "history `0` should be"),
        ] {
            let error = RedisAddress::parse(text, None).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
            assert!(error.to_string().contains("expected redis://"), "{error}");
        }
    }

    #[test]
    fn an_authority_is_a_certificate_in_a_file_and_only_for_tls() {
        let path = std::env::temp_dir().join(format!("hitless-ca-{}", std::process::id()));
        let parsed = |url: &str| RedisAddress::parse(url, Some(&path)).map_err(|error| error.to_string());
        assert!(parsed("rediss://h").unwrap_err().contains("No such file"));
        std::fs::write(&path, "nonsense").unwrap();
        assert!(parsed("rediss://h").unwrap_err().contains("expected a certificate in PEM"));
        assert!(parsed("redis://h").unwrap_err().contains("only a rediss:// bus"));
        std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n").unwrap();
        assert!(parsed("rediss://h").unwrap().ca.is_some());
        std::fs::remove_file(&path).unwrap();
    }
}
