//! URIs that name an export: `nbd://`, `nbds://`, `nbd+unix://`, `nbds+unix://`.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{DEFAULT_PORT, MAX_STRING};

/// An export, and the way to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Uri {
    /// The way to the server.
    pub transport: Transport,
    /// Whether the connection must be encrypted.
    pub tls: bool,
    /// The name of the export; the default export has the empty name.
    pub export: String,
    /// The user that TLS authenticates, where that has one.
    pub user: Option<String>,
    /// `tls-hostname`: the name that the certificate of the server must have.
    pub tls_hostname: Option<String>,
    /// `tls-verify-peer`: whether the certificate of the server is checked.
    pub tls_verify_peer: bool,
    /// `tls-certificates`: the directory of certificates and keys.
    pub tls_certificates: Option<PathBuf>,
    /// Parameters that begin with `x-`, as they stand there.
    pub experimental: Vec<(String, String)>,
}

/// The way to a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Transport {
    /// TCP.
    Tcp {
        /// A name or an address; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// A socket of this machine. A path that begins with NUL is in the abstract namespace.
    Unix(PathBuf),
}

/// Why a URI names no export.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum UriError {
    /// Another scheme.
    #[error("not an NBD URI: it begins with none of nbd://, nbds://, nbd+unix://, nbds+unix://")]
    Scheme,
    /// QEMU's old form.
    #[error("not a URI, but an old form of QEMU; write {0}")]
    Old(String),
    /// A scheme of NBD that is not known here.
    #[error(
        "{0}: this way to a server is not known; put a socket of this machine before it (socat \
         UNIX-LISTEN:PATH,fork ...), and write nbd+unix:///EXPORT?socket=PATH"
    )]
    Transport(String),
    /// The name of an export is longer than the protocol permits.
    #[error("the name of an export has {0} bytes; NBD has names of 4096 at most")]
    Name(usize),
    /// An IPv6 address without brackets.
    #[error("{0}: an address with colons stands in brackets; write [{0}], or [ADDRESS]:PORT")]
    Brackets(String),
    /// An escape that is not two hexadecimal digits behind a percent sign.
    #[error("{0}: a percent sign must be followed by two hexadecimal digits")]
    Escape(String),
    /// A name that is not text after its escapes are decoded.
    #[error("{0}: not UTF-8 text without NUL")]
    Text(String),
    /// No host.
    #[error("no host: nbd://HOST[:PORT]/EXPORT")]
    Host,
    /// A port that is no number up to 65,535.
    #[error("{0}: not a port")]
    Port(String),
    /// A host where there can be none.
    #[error("a socket of this machine has no host: nbd+unix:///EXPORT?socket=PATH")]
    UnixHost,
    /// No socket.
    #[error("no socket: nbd+unix:///EXPORT?socket=PATH")]
    Socket,
    /// A socket where there can be none.
    #[error("a TCP connection has no socket parameter: use nbd+unix:///EXPORT?socket=PATH")]
    TcpSocket,
    /// A parameter that is not known.
    #[error(
        "unknown parameter {0}; known are socket, tls-type, tls-hostname, tls-verify-peer and \
         tls-certificates"
    )]
    Parameter(String),
    /// A value that the parameter cannot have.
    #[error("{name}={value}: {wanted}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value that stands there.
        value: String,
        /// Words on the values that are possible.
        wanted: &'static str,
    },
    /// The same parameter twice.
    #[error("parameter {0} stands there twice")]
    Twice(&'static str),
}

impl Uri {
    /// Whether `text` begins as an NBD URI does.
    pub fn is_one(text: &str) -> bool {
        scheme(text).is_some()
    }

    /// An export on a socket of this machine.
    pub fn unix(socket: &Path, export: &str) -> Self {
        Self::new(Transport::Unix(socket.to_owned()), export)
    }

    /// An export behind a TCP port.
    pub fn tcp(host: &str, port: u16, export: &str) -> Self {
        Self::new(Transport::Tcp { host: host.to_owned(), port }, export)
    }

    fn new(transport: Transport, export: &str) -> Self {
        Self {
            transport,
            tls: false,
            export: export.to_owned(),
            user: None,
            tls_hostname: None,
            tls_verify_peer: true,
            tls_certificates: None,
            experimental: Vec::new(),
        }
    }

    /// From its text.
    pub fn parse(uri: &str) -> Result<Self, UriError> {
        let (scheme, rest) = scheme(uri).ok_or_else(|| other_form(uri))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let export = decoded_text(path.strip_prefix('/').unwrap_or_default())?;
        if export.len() > MAX_STRING {
            return Err(UriError::Name(export.len()));
        }
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(decoded_text(user)?), place),
            None => (None, authority),
        };
        let parameters = Parameters::parse(query)?;
        let transport = match (scheme.unix, parameters.socket) {
            (true, None) => return Err(UriError::Socket),
            (true, Some(_)) if !place.is_empty() => return Err(UriError::UnixHost),
            (true, Some(socket)) => Transport::Unix(socket),
            (false, Some(_)) => return Err(UriError::TcpSocket),
            (false, None) => tcp(place)?,
        };
        Ok(Self {
            transport,
            tls: scheme.tls,
            export,
            user,
            tls_hostname: parameters.hostname,
            tls_verify_peer: parameters.verify_peer.unwrap_or(true),
            tls_certificates: parameters.certificates,
            experimental: parameters.experimental,
        })
    }
}

impl std::str::FromStr for Uri {
    type Err = UriError;

    fn from_str(uri: &str) -> Result<Self, UriError> {
        Self::parse(uri)
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unix = matches!(self.transport, Transport::Unix(_));
        write!(f, "nbd{}{}://", if self.tls { "s" } else { "" }, if unix { "+unix" } else { "" })?;
        if let Some(user) = &self.user {
            write!(f, "{}@", Escaped(user.as_bytes(), b""))?;
        }
        let mut parameters = Vec::new();
        match &self.transport {
            Transport::Tcp { host, port } => {
                if host.contains(':') {
                    write!(f, "[{host}]")?;
                } else {
                    write!(f, "{}", Escaped(host.as_bytes(), b""))?;
                }
                if *port != DEFAULT_PORT {
                    write!(f, ":{port}")?;
                }
            }
            Transport::Unix(socket) => {
                parameters.push(("socket", socket.as_os_str().as_bytes()));
            }
        }
        write!(f, "/{}", Escaped(self.export.as_bytes(), b"/:@"))?;
        if let Some(hostname) = &self.tls_hostname {
            parameters.push(("tls-hostname", hostname.as_bytes()));
        }
        if !self.tls_verify_peer {
            parameters.push(("tls-verify-peer", b"0"));
        }
        if let Some(directory) = &self.tls_certificates {
            parameters.push(("tls-certificates", directory.as_os_str().as_bytes()));
        }
        for (name, value) in &self.experimental {
            parameters.push((name, value.as_bytes()));
        }
        for (index, (name, value)) in parameters.iter().enumerate() {
            let separator = if index == 0 { '?' } else { '&' };
            let name = Escaped(name.as_bytes(), b"");
            write!(f, "{separator}{name}={}", Escaped(value, b"/:"))?;
        }
        Ok(())
    }
}

/// What the scheme of a URI says.
#[derive(Clone, Copy)]
struct Scheme {
    tls: bool,
    unix: bool,
}

/// The scheme, and the text behind `://`.
fn scheme(uri: &str) -> Option<(Scheme, &str)> {
    let (name, rest) = uri.split_once("://")?;
    let (tls, unix) = match name.to_ascii_lowercase().as_str() {
        "nbd" => (false, false),
        "nbds" => (true, false),
        "nbd+unix" => (false, true),
        "nbds+unix" => (true, true),
        _ => return None,
    };
    Some((Scheme { tls, unix }, rest))
}

/// What is wrong with `text`, which has none of the schemes.
fn other_form(text: &str) -> UriError {
    if let Some((scheme, _)) = text.split_once("://")
        && scheme.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("nbd"))
    {
        return UriError::Transport(format!("{scheme}://"));
    }
    let Some(old) = text.strip_prefix("nbd:") else { return UriError::Scheme };
    let (place, export) = old.split_once(":exportname=").unwrap_or((old, ""));
    UriError::Old(match (place.strip_prefix("unix:"), place.rsplit_once(':')) {
        (Some(socket), _) => Uri::unix(Path::new(socket), export).to_string(),
        (None, Some((host, port))) if port.parse::<u16>().is_ok() => {
            Uri::tcp(host, port.parse().unwrap_or(DEFAULT_PORT), export).to_string()
        }
        _ => "nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH".to_owned(),
    })
}

/// Host and port.
fn tcp(place: &str) -> Result<Transport, UriError> {
    let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or(UriError::Host)?;
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return Err(UriError::Port(rest.to_owned())),
        }
    } else {
        match place.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err(UriError::Brackets(place.to_owned()));
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    if host.is_empty() {
        return Err(UriError::Host);
    }
    let port = match port {
        // RFC 3986 permits a colon without a port.
        None | Some("") => DEFAULT_PORT,
        Some(port) => port.parse().map_err(|_| UriError::Port(port.to_owned()))?,
    };
    Ok(Transport::Tcp { host: decoded_text(host)?, port })
}

/// The parameters behind the question mark.
#[derive(Default)]
struct Parameters {
    socket: Option<PathBuf>,
    hostname: Option<String>,
    verify_peer: Option<bool>,
    certificates: Option<PathBuf>,
    experimental: Vec<(String, String)>,
}

impl Parameters {
    fn parse(query: &str) -> Result<Self, UriError> {
        let mut all = Self::default();
        for parameter in query.split(['&', ';']).filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let name = decoded_text(name)?;
            match name.as_str() {
                "socket" => once(&mut all.socket, "socket", decoded_path(value)?)?,
                "tls-hostname" => once(&mut all.hostname, "tls-hostname", decoded_text(value)?)?,
                "tls-certificates" => {
                    once(&mut all.certificates, "tls-certificates", decoded_path(value)?)?;
                }
                "tls-verify-peer" => {
                    let verify = match value {
                        "0" => false,
                        "1" => true,
                        _ => return Err(refused("tls-verify-peer", value, "0 or 1")),
                    };
                    once(&mut all.verify_peer, "tls-verify-peer", verify)?;
                }
                "tls-type" if value.eq_ignore_ascii_case("x509") => {}
                "tls-type" => return Err(refused("tls-type", value, "only x509 is supported")),
                name if name.starts_with("x-") => {
                    all.experimental.push((name.to_owned(), decoded_text(value)?));
                }
                _ => return Err(UriError::Parameter(name)),
            }
        }
        if all.socket.as_ref().is_some_and(|socket| socket.as_os_str().is_empty()) {
            return Err(UriError::Socket);
        }
        Ok(all)
    }
}

fn refused(name: &'static str, value: &str, wanted: &'static str) -> UriError {
    UriError::Value { name, value: value.to_owned(), wanted }
}

fn once<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), UriError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(UriError::Twice(name)),
    }
}

fn decoded_text(part: &str) -> Result<String, UriError> {
    match String::from_utf8(decoded(part)?) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(UriError::Text(part.to_owned())),
    }
}

fn decoded_path(part: &str) -> Result<PathBuf, UriError> {
    Ok(OsString::from_vec(decoded(part)?).into())
}

/// Bytes behind percent signs decoded.
fn decoded(part: &str) -> Result<Vec<u8>, UriError> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let escape = after.split_at_checked(2).and_then(|(digits, after)| {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            rest = after;
            u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
        });
        bytes.push(escape.ok_or_else(|| UriError::Escape(part.to_owned()))?);
    }
    Ok(bytes)
}

/// Bytes with all but unreserved characters and those of the second field escaped.
struct Escaped<'a>(&'a [u8], &'a [u8]);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0 {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || self.1.contains(&byte) {
                write!(f, "{}", char::from(byte))?;
            } else {
                write!(f, "%{byte:02X}")?;
            }
        }
        Ok(())
    }
}
