//! Inode timestamps and their two encodings (docs/format/inodes.md#timestamps).
//!
//! Decoding never fails. Encoding refuses what the encoding cannot hold; a caller that prefers the
//! nearest time says so with [`Timestamp::clamped`].

use thiserror::Error;

/// Nanoseconds per second.
const NANOSECONDS: u64 = 1_000_000_000;

/// Seconds from the wide encoding's origin (1901-12-13T20:45:52Z) to 1970.
const BIGTIME_OFFSET: i64 = 1 << 31;

/// Last second of the wide encoding: 2486-07-02T20:20:24Z.
const BIGTIME_MAX: i64 = 16_299_260_424;

/// A point in time: seconds since 1970 (UTC, no leap seconds) and nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z; negative before it.
    pub seconds: i64,
    /// Nanoseconds in the second, below 10^9. A damaged inode in the legacy encoding may decode to
    /// more; such a value does not encode.
    pub nanoseconds: u32,
}

/// How the timestamps of one inode are stored; all four use the same encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampEncoding {
    /// Signed 32-bit seconds and 32-bit nanoseconds: 1901 to 2038.
    Legacy,
    /// Nanoseconds since December 1901 in 64 bits: 1901 to 2486.
    Bigtime,
}

/// A time that the encoding cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "time {} s + {} ns cannot be stored: this inode holds seconds {first} to {last} (and \
     nanoseconds below 10^9); clamp the time or enable bigtime",
    time.seconds, time.nanoseconds
)]
pub struct TimestampError {
    /// The time.
    pub time: Timestamp,
    /// First second the encoding holds.
    pub first: i64,
    /// Last second the encoding holds.
    pub last: i64,
}

impl TimestampEncoding {
    /// First and last second that can be stored.
    #[must_use]
    pub const fn range(self) -> (i64, i64) {
        match self {
            Self::Legacy => (i32::MIN as i64, i32::MAX as i64),
            Self::Bigtime => (-BIGTIME_OFFSET, BIGTIME_MAX),
        }
    }
}

impl Timestamp {
    /// Decodes the eight bytes of an inode field, taken as a big-endian number.
    #[must_use]
    pub fn decode(raw: u64, encoding: TimestampEncoding) -> Self {
        match encoding {
            TimestampEncoding::Legacy => {
                let high = (raw >> 32) as u32;
                Self { seconds: i64::from(high.cast_signed()), nanoseconds: raw as u32 }
            }
            TimestampEncoding::Bigtime => Self {
                // At most 2^64 / 10^9, far below the sign bit.
                seconds: (raw / NANOSECONDS).cast_signed() - BIGTIME_OFFSET,
                nanoseconds: (raw % NANOSECONDS) as u32,
            },
        }
    }

    /// The number to store.
    ///
    /// # Errors
    ///
    /// The time is outside the encoding's range, or its nanoseconds are 10^9 or more.
    pub fn encode(self, encoding: TimestampEncoding) -> Result<u64, TimestampError> {
        let (first, last) = encoding.range();
        let nanoseconds = u64::from(self.nanoseconds);
        if self.seconds < first || self.seconds > last || nanoseconds >= NANOSECONDS {
            return Err(TimestampError { time: self, first, last });
        }
        Ok(match encoding {
            TimestampEncoding::Legacy => {
                u64::from((self.seconds as i32).cast_unsigned()) << 32 | nanoseconds
            }
            TimestampEncoding::Bigtime => {
                (self.seconds + BIGTIME_OFFSET).cast_unsigned() * NANOSECONDS + nanoseconds
            }
        })
    }

    /// The nearest time that `encoding` holds; outside of its range a whole second, as the kernel has it.
    #[must_use]
    pub fn clamped(self, encoding: TimestampEncoding) -> Self {
        let (first, last) = encoding.range();
        if self.seconds < first {
            Self { seconds: first, nanoseconds: 0 }
        } else if self.seconds > last {
            Self { seconds: last, nanoseconds: 0 }
        } else {
            Self { nanoseconds: self.nanoseconds.min((NANOSECONDS - 1) as u32), ..self }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TimestampEncoding::{Bigtime, Legacy};
    use proptest::prelude::*;

    #[test]
    fn the_worked_value_of_the_reference() {
        let time = Timestamp::decode(0x36b7_4dd4_c6ad_f3c8, Bigtime);
        // 2026-11-21T00:45:27.047853Z
        assert_eq!(time.nanoseconds, 47_853_000);
        assert_eq!(time.seconds, 1_795_221_927);
        assert_eq!(time.encode(Bigtime), Ok(0x36b7_4dd4_c6ad_f3c8));
    }

    #[test]
    fn limits_are_exact_and_errors_name_them() {
        for encoding in [Legacy, Bigtime] {
            let (first, last) = encoding.range();
            for seconds in [first, -1, 0, last] {
                let time = Timestamp { seconds, nanoseconds: 999_999_999 };
                let raw = time.encode(encoding).unwrap();
                assert_eq!(Timestamp::decode(raw, encoding), time);
                assert_eq!(time.clamped(encoding), time);
            }
            for seconds in [i64::MIN, first - 1, last + 1, i64::MAX] {
                let time = Timestamp { seconds, nanoseconds: 0 };
                let message = time.encode(encoding).unwrap_err().to_string();
                assert!(message.contains(&seconds.to_string()) && message.contains("bigtime"));
                let clamped = time.clamped(encoding);
                assert!(clamped.encode(encoding).is_ok());
                assert_eq!(clamped.nanoseconds, 0);
            }
            let odd = Timestamp { seconds: 0, nanoseconds: 1_000_000_000 };
            assert!(odd.encode(encoding).is_err());
        }
        assert_eq!(Timestamp::decode(0, Bigtime).encode(Bigtime), Ok(0));
    }

    proptest! {
        #[test]
        fn every_bigtime_number_decodes_in_order(a: u64, b: u64) {
            let (x, y) = (Timestamp::decode(a, Bigtime), Timestamp::decode(b, Bigtime));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
        }
    }
}
