//! A request of HTTP.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `GET` and its like.
    pub method: String,
    /// The path with the query.
    pub target: String,
    /// How many came before it.
    pub number: u64,
    pub(super) headers: Vec<(String, String)>,
}

impl Asked {
    /// A header, by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The head of a request, and its body.
    pub(super) fn read(
        client: &TcpStream,
        number: &AtomicU64,
    ) -> io::Result<Option<(Self, Vec<u8>)>> {
        let mut reader = BufReader::new(client);
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace().map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let number = number.fetch_add(1, Ordering::SeqCst);
        let asked = Self { method, target, number, headers };
        let length = asked.header("content-length").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        Ok(Some((asked, body)))
    }
}
