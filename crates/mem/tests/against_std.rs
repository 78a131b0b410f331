//! All short lengths, places and overlaps, and many long ones, against the standard library.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code, reason = "what is tested takes pointers")]

use std::cmp::Ordering;
use undercroft_mem::{compare, copy};

const SIZE: usize = 5000;

/// Bytes of which neighbours differ, and those 251 on.
fn pattern() -> Vec<u8> {
    (0..SIZE).map(|index| (index % 251) as u8).collect()
}

fn lengths() -> impl Iterator<Item = usize> {
    (0..300).chain([511, 512, 513, 1000, 1023, 1024, 1025, 2000, 2048])
}

#[test]
fn copies_inside_a_buffer_are_those_of_copy_within() {
    let before = pattern();
    for length in lengths() {
        for source in [0, 1, 7, 64, 100, 2100] {
            for target in [0, 1, 3, 63, 64, 65, 99, 101, 130, 170, 300, 2090, 2110, 2500] {
                let (mut found, mut expected) = (before.clone(), before.clone());
                expected.copy_within(source..source + length, target);
                assert!(source.max(target) + length <= SIZE);
                let start = found.as_mut_ptr();
                // SAFETY: both ranges lie inside the buffer.
                unsafe { copy(start.add(target), start.add(source), length) };
                assert!(found == expected, "{length} bytes from {source} to {target}");
            }
        }
    }
}

#[test]
fn comparisons_find_the_first_byte_that_differs() {
    let left = pattern();
    for length in lengths() {
        for offset in [0, 1, 5, 15] {
            let mut places: Vec<usize> = (0..length).step_by(1 + length / 64).collect();
            places.extend(length.checked_sub(1));
            for place in places {
                for byte in [0, 255] {
                    let mut right = left.clone();
                    right[offset + place] = byte;
                    // Behind it others differ, too, the other way round.
                    right[offset + place + 1] = !byte;
                    assert_compared(
                        &left[offset..offset + length],
                        &right[offset..offset + length],
                    );
                }
            }
            assert_compared(&left[offset..offset + length], &left.clone()[offset..offset + length]);
        }
    }
}

fn assert_compared(left: &[u8], right: &[u8]) {
    // SAFETY: both have that many bytes.
    let found = unsafe { compare(left.as_ptr(), right.as_ptr(), left.len()) };
    let expected = left.cmp(right);
    assert_eq!(found.cmp(&0), expected, "{} bytes", left.len());
    assert_eq!(found == 0, expected == Ordering::Equal);
}
