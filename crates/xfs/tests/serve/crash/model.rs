//! The model refuses what no crash may leave.

use std::ops::Range;
use std::sync::Arc;
use undercroft_testkit::xfs::serve_crash::model::{
    Entry, Found, Names, Past, Reached, Tree, Version, Way,
};

const NAME: &str = "0-0";

fn entry(mode: u32) -> Entry {
    Entry { file: 0, inode: 70, mode, links: 1 }
}

fn version(operation: usize, way: Way, changed: Range<usize>, bytes: &[u8]) -> Version {
    Version { operation, way, changed, bytes: Arc::new(bytes.to_vec()) }
}

/// A file is made (1), written in memory (2), past it (3), in memory (4), gets another mode (5), and
/// is removed (6).
fn past() -> Past {
    let names = |mode| Arc::new(Names::from([(NAME.to_owned(), entry(mode))]));
    let (nothing, first, second) = (Arc::<Names>::default(), names(0o600), names(0o640));
    let four = (0..4).map(|_| Arc::clone(&first));
    Past {
        names: [Arc::clone(&nothing)].into_iter().chain(four).chain([second, nothing]).collect(),
        files: vec![vec![
            version(1, Way::Size, 0..usize::MAX, b""),
            version(2, Way::Memory, 0..4, b"aaaa"),
            version(3, Way::Device, 2..6, b"aabbbb"),
            version(4, Way::Memory, 1..3, b"accbbb"),
        ]],
    }
}

fn reached(begun: usize, committed: usize, written: usize) -> Reached {
    Reached { begun, committed, written: vec![written] }
}

fn is_allowed(reached: &Reached, mode: u32, bytes: &[u8]) -> bool {
    let found = Found { inode: 70, mode, links: 1, bytes: bytes.to_vec() };
    past().judge(reached, &Tree::from([(NAME.to_owned(), found)])).is_ok()
}

#[test]
fn what_a_ticket_covers_is_there() {
    let covered = reached(4, 4, 4);
    assert!(is_allowed(&covered, 0o600, b"accbbb"));
    for bytes in [&b"aabbbb"[..], b"accbb", b"accbbb\0", b"accbb\0", b""] {
        assert!(!is_allowed(&covered, 0o600, bytes), "{bytes:?}");
    }
    assert!(!is_allowed(&covered, 0o640, b"accbbb"));
    assert!(past().judge(&covered, &Tree::new()).is_err());
}

#[test]
fn what_was_written_later_is_there_or_not() {
    let covered = reached(4, 2, 2);
    for bytes in [&b"aaaa"[..], b"aabbbb", b"accbbb", b"acaabb", b"aaaa\0", b"aacb"] {
        assert!(is_allowed(&covered, 0o600, bytes), "{bytes:?}");
    }
    for bytes in [&b"aaa"[..], b"\0aaa", b"baaa", b"aaaac", b"aabbbbb"] {
        assert!(!is_allowed(&covered, 0o600, bytes), "{bytes:?}");
    }
}

#[test]
fn any_ticket_covers_what_went_past_memory() {
    let covered = reached(4, 3, 1);
    for bytes in [&b"aabbbb"[..], b"\0\0bbbb", b"\0ccbbb"] {
        assert!(is_allowed(&covered, 0o600, bytes), "{bytes:?}");
    }
    for bytes in [&b"aabb"[..], b"aaaabb", b"aab\0bb", b""] {
        assert!(!is_allowed(&covered, 0o600, bytes), "{bytes:?}");
    }
}

#[test]
fn names_are_those_behind_an_operation() {
    let covered = reached(6, 4, 4);
    assert!(is_allowed(&covered, 0o600, b"accbbb") && is_allowed(&covered, 0o640, b"accbbb"));
    assert!(past().judge(&covered, &Tree::new()).is_ok());
    assert!(!is_allowed(&covered, 0o644, b"accbbb"));
    assert!(!is_allowed(&reached(6, 6, 4), 0o640, b"accbbb"));
    assert!(!is_allowed(&reached(4, 4, 4), 0o640, b"accbbb"));
}
