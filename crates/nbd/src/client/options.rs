//! How a client behaves: the parameters of a URI that are not standard.

use std::time::Duration;

use super::error::ClientError;
use crate::protocol::Uri;

/// Most connections to one export.
const MAX_CONNECTIONS: usize = 64;
/// Without `x-connections`: servers work on some 16 requests of each at a time, and a distant one has
/// to be given more.
const CONNECTIONS: usize = 4;
/// Without `x-timeout`. A cluster that looks for a lost member takes some tens of seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Without `x-unflushed`.
const UNFLUSHED: u64 = 64 << 20;
/// Least number of unflushed bytes: a few of the longest requests.
const MIN_UNFLUSHED: u64 = 1 << 20;

/// How a client behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// `x-connections`: how many, where the server allows several.
    pub connections: usize,
    /// `x-timeout`: how long a request may be without an answer, the time to connect again included.
    pub timeout: Duration,
    /// `x-unflushed`: bytes of writes that are kept until the server has flushed them.
    pub unflushed: u64,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { connections: CONNECTIONS, timeout: TIMEOUT, unflushed: UNFLUSHED }
    }
}

impl ClientOptions {
    /// Those in the parameters of `uri`.
    ///
    /// # Errors
    /// A parameter is not known, or has a wrong value.
    pub fn of(uri: &Uri) -> Result<Self, ClientError> {
        let mut options = Self::default();
        for (name, value) in &uri.experimental {
            let wrong = |name, wanted| ClientError::Parameter {
                uri: uri.to_string(),
                name,
                value: value.clone(),
                wanted,
            };
            match name.as_str() {
                "x-connections" => {
                    let number = value.parse().ok().filter(|n| (1..=MAX_CONNECTIONS).contains(n));
                    options.connections = number
                        .ok_or_else(|| wrong("x-connections", "write a number from 1 to 64"))?;
                }
                "x-timeout" => {
                    options.timeout = duration(value).ok_or_else(|| {
                        wrong("x-timeout", "write a time such as 30s, 500ms or 2m, at most a day")
                    })?;
                }
                "x-unflushed" => {
                    let bytes = bytes(value).filter(|bytes| *bytes >= MIN_UNFLUSHED);
                    options.unflushed = bytes.ok_or_else(|| {
                        wrong("x-unflushed", "write a size such as 64M, at least 1M")
                    })?;
                }
                _ => {
                    let (uri, name) = (uri.to_string(), name.clone());
                    return Err(ClientError::UnknownParameter { uri, name });
                }
            }
        }
        Ok(options)
    }
}

/// A number and its unit; a number alone is seconds.
fn duration(text: &str) -> Option<Duration> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let (number, unit) = split(text)?;
    let milliseconds = match unit {
        "ms" => number,
        "" | "s" => number.checked_mul(1000)?,
        "m" => number.checked_mul(60_000)?,
        _ => return None,
    };
    let duration = Duration::from_millis(milliseconds);
    (!duration.is_zero() && duration <= DAY).then_some(duration)
}

/// A number and its unit; a number alone is bytes.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<ClientOptions, String> {
        let uri = Uri::parse(&format!("nbd://host/x?{query}")).expect("a URI");
        ClientOptions::of(&uri).map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_set_options() {
        let options = parse("x-connections=7&x-timeout=1500ms&x-unflushed=2M").unwrap();
        let expected = ClientOptions {
            connections: 7,
            timeout: Duration::from_millis(1500),
            unflushed: 2 << 20,
        };
        assert_eq!(options, expected);
        assert_eq!(parse("x-timeout=5").unwrap().timeout, Duration::from_secs(5));
        assert_eq!(parse("").unwrap(), ClientOptions::default());
    }

    #[test]
    fn wrong_parameters_are_named_with_a_remedy() {
        for query in ["x-connections=0", "x-connections=65", "x-connections=a"] {
            assert!(parse(query).unwrap_err().contains("from 1 to 64"), "{query}");
        }
        for query in ["x-timeout=0", "x-timeout=3d", "x-timeout=1441m", "x-timeout=s"] {
            assert!(parse(query).unwrap_err().contains("such as 30s"), "{query}");
        }
        for query in ["x-unflushed=1023k", "x-unflushed=99999999999999G", "x-unflushed="] {
            assert!(parse(query).unwrap_err().contains("at least 1M"), "{query}");
        }
        assert!(parse("x-retries=3").unwrap_err().contains("unknown parameter x-retries"));
    }
}
