//! Which requests bring pieces that are missing.

use crate::origin::{GROUP, Origin};
use std::ops::Range;

/// The fetches for pieces, which ascend. Neighbours are fetched together, and also pieces with others between
/// them that cost less than one more request; never those of two groups.
pub(super) fn fetches(missing: &[u64], origin: &dyn Origin) -> Vec<Range<u64>> {
    let mut fetches: Vec<Range<u64>> = Vec::new();
    for number in missing {
        let unit = origin.unit(*number);
        match fetches.last_mut() {
            Some(last) if last.end >= unit.end => {}
            Some(last) if joins(last, &unit, origin.worth()) => last.end = unit.end,
            _ => fetches.push(unit),
        }
    }
    fetches
}

fn joins(last: &Range<u64>, unit: &Range<u64>, worth: Option<u64>) -> bool {
    let is_near = worth.is_some_and(|worth| unit.start - last.end <= worth);
    is_near && last.start / GROUP == (unit.end - 1) / GROUP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_joined_by_what_costs_less() {
        let joined = |end: u64, start, worth| joins(&(end - 1..end), &(start..start + 1), worth);
        assert!(joined(1, 1, Some(0)) && !joined(1, 2, Some(0)));
        assert!(joined(1, 4, Some(3)) && !joined(1, 5, Some(3)));
        assert!(!joined(GROUP, GROUP, Some(8)), "two groups");
        assert!(!joined(1, 1, None), "chunks");
    }
}
