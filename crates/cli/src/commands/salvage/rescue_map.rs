//! The map that GNU ddrescue keeps of a copy: which bytes it read.
//!
//! Lines of numbers and a letter; `#` begins a comment. The first says where the program was. Each other has a
//! start, a length and a status, in ascending order: `+` was read; `?`, `*`, `/` and `-` were not, for one
//! reason or another.

use anyhow::{Context, Result, bail};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RescueMap {
    /// Bytes of the disk, in ascending order.
    rescued: Vec<Range<u64>>,
}

impl RescueMap {
    pub(super) fn read(path: &Path) -> Result<Self> {
        let name = path.display();
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Self::parse(&text).with_context(|| format!("{name} is no map of ddrescue"))
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().enumerate().map(|(index, line)| {
            let line = line.split('#').next().unwrap_or_default();
            (index + 1, line.split_whitespace().collect::<Vec<_>>())
        });
        let mut lines = lines.filter(|(_, words)| !words.is_empty());
        // Where the program was.
        let first = lines.next();
        let Some((_, [position, _status, ..])) = first.as_ref().map(|(at, words)| (at, &words[..]))
        else {
            bail!("it does not begin with a position and a status");
        };
        number(position).context("it does not begin with a position")?;
        let (mut rescued, mut end) = (Vec::<Range<u64>>::new(), 0);
        for (line, words) in lines {
            let range = range(&words).with_context(|| {
                format!("line {line}: not a start, a length and one of the letters ? * / - +")
            })?;
            if range.start < end {
                bail!("line {line}: it begins before the end of the line above");
            }
            end = range.end;
            match rescued.last_mut() {
                _ if words[2] != "+" => {}
                Some(last) if last.end == range.start => last.end = range.end,
                _ => rescued.push(range),
            }
        }
        Ok(Self { rescued })
    }

    /// The sectors of a device that were not read, as a whole; it begins at the byte `start` of the disk.
    pub(super) fn lost(&self, start: u64, sectors: u64) -> Vec<Range<u64>> {
        let mut lost = Vec::new();
        let mut at = 0;
        for range in &self.rescued {
            let first = range.start.saturating_sub(start).div_ceil(512);
            let end = (range.end.saturating_sub(start) / 512).min(sectors);
            if first < end {
                lost.push(at..first);
                at = end;
            }
        }
        lost.push(at..sectors.max(at));
        lost.retain(|range| !range.is_empty());
        lost
    }
}

/// The bytes of a line.
fn range(words: &[&str]) -> Option<Range<u64>> {
    let [start, length, "?" | "*" | "/" | "-" | "+"] = words else { return None };
    let (start, length) = (number(start)?, number(length)?);
    Some(start..start.checked_add(length)?)
}

/// A number as C has them: hexadecimal behind 0x, octal behind 0.
fn number(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let radix = if text.starts_with('0') { 8 } else { 10 };
    u64::from_str_radix(&text, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
# Mapfile. Created by GNU ddrescue version 1.27
# current_pos  current_status  current_pass
0x00000000     +               1
#      pos        size  status
0x00000000  0x00001000  +
0x00001000  1536  -
02700  0x00000400  +
";

    #[test]
    fn what_is_not_in_the_map_is_lost() {
        let map = RescueMap::parse(MAP).unwrap_err();
        assert!(format!("{map:#}").contains("line 7"), "{map:#}");
        // 013000 is where the line above ends.
        let map = RescueMap::parse(&MAP.replace("02700", "013000")).unwrap();
        assert_eq!(map.rescued, [0..4096, 5632..6656]);
        assert_eq!(map.lost(0, 20), [8..11, 13..20]);
        assert_eq!(map.lost(512, 4), []);
        // Half a sector is lost as a whole.
        assert_eq!(map.lost(100, 4096), [7..11, 12..4096]);
        assert_eq!(
            RescueMap::parse("0 ?").unwrap().lost(0, 9),
            std::iter::once(0..9).collect::<Vec<_>>()
        );
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for text in ["", "hello", "x +", "0 +\n0 5", "0 +\n0 5 x", "0 +\n0 5 + 7", "0 +\n-1 5 +"] {
            assert!(RescueMap::parse(text).is_err(), "{text}");
        }
        let far = format!("0 +\n{} 5 +", u64::MAX);
        assert!(RescueMap::parse(&far).is_err());
    }
}
