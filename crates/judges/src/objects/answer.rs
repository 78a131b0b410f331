//! A file over HTTP: parts of it, and a tag that says whether it changed.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::asked::Asked;

/// All of an answer to a request for a file.
pub(super) fn of_file(path: &Path, asked: &Asked) -> io::Result<Vec<u8>> {
    let Ok(file) = File::open(path) else { return Ok(head("404 Not Found", &[], 0)) };
    let metadata = file.metadata()?;
    let length = metadata.len();
    let tag = format!("\"{:x}-{:x}-{length:x}\"", metadata.mtime(), metadata.mtime_nsec());
    if asked.header("if-match").is_some_and(|wanted| wanted != tag) {
        return Ok(head("412 Precondition Failed", &[], 0));
    }
    let range = asked.header("range").and_then(|range| {
        let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some((start.parse::<u64>().ok()?, end.parse::<u64>().ok()?))
    });
    let (status, start, end) = match range {
        Some((start, end)) => ("206 Partial Content", start, (end + 1).min(length)),
        None => ("200 OK", 0, length),
    };
    let kind = format!("bytes {start}-{}/{length}", end.saturating_sub(1));
    let mut headers = vec![("ETag", tag), ("Accept-Ranges", "bytes".into())];
    if range.is_some() {
        headers.push(("Content-Range", kind));
    }
    let bytes = end.saturating_sub(start);
    let mut answer = head(status, &headers, bytes);
    if asked.method != "HEAD" {
        let from = answer.len();
        answer.resize(from + usize::try_from(bytes).map_err(io::Error::other)?, 0);
        file.read_exact_at(&mut answer[from..], start)?;
    }
    Ok(answer)
}

/// The head of an answer with a body of so many bytes.
pub(super) fn head(status: &str, headers: &[(&str, String)], bytes: u64) -> Vec<u8> {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let text = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {bytes}\r\n");
    format!("{text}Connection: close\r\n\r\n").into_bytes()
}
