//! Points in time as people write them.

use crate::Timestamp;
use std::str::FromStr;

impl FromStr for Timestamp {
    type Err = String;

    /// `@SECONDS` since 1970 with an optional fraction, or RFC 3339.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "write @SECONDS since 1970, or a time such as 2024-05-01T12:00:00Z".to_owned();
        let parsed: jiff::Timestamp = match text.strip_prefix('@') {
            Some(seconds) => return epoch(seconds).ok_or_else(wrong),
            None => text.parse().map_err(|_| wrong())?,
        };
        Ok(normal(parsed.as_second(), i64::from(parsed.subsec_nanosecond())))
    }
}

/// Seconds with up to nine digits of a fraction; a sign belongs to both.
fn epoch(text: &str) -> Option<Timestamp> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let seconds: i64 = whole.parse().ok()?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some(normal(seconds, if whole.starts_with('-') { -nanoseconds } else { nanoseconds }))
}

/// A time whose parts may differ in sign. `nanoseconds` is less than a second either way.
fn normal(seconds: i64, nanoseconds: i64) -> Timestamp {
    let borrowed = i64::from(nanoseconds < 0);
    let nanoseconds = nanoseconds + borrowed * 1_000_000_000;
    // 0 to 999,999,999.
    let nanoseconds = nanoseconds as u32;
    Timestamp { seconds: seconds.saturating_sub(borrowed), nanoseconds }
}
