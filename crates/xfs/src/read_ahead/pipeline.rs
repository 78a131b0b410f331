//! Work on items in turn, with the reads of those behind on their way.

use std::collections::VecDeque;

/// Items that are begun together.
const STEP: usize = 32;

/// The items in turn; `begin` gets those behind each in time to have them read.
pub(crate) fn pipeline<T: Copy>(
    mut items: impl Iterator<Item = T>,
    mut begin: impl FnMut(&[T]),
) -> impl Iterator<Item = T> {
    let mut begun: VecDeque<T> = VecDeque::new();
    std::iter::from_fn(move || {
        if begun.len() <= STEP {
            let next: Vec<T> = items.by_ref().take(2 * STEP - begun.len()).collect();
            if !next.is_empty() {
                begin(&next);
                begun.extend(next);
            }
        }
        begun.pop_front()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_begun_once_and_comes_in_its_turn() {
        let mut begun = Vec::new();
        let mut items = pipeline(0..100, |items: &[usize]| begun.extend_from_slice(items));
        for number in 0..100 {
            assert_eq!(items.next(), Some(number));
        }
        assert_eq!(items.next(), None);
        drop(items);
        assert_eq!(begun, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn some_are_begun_before_their_turn() {
        let count = std::cell::Cell::new(0);
        let mut items = pipeline(0..1000, |items: &[usize]| count.set(count.get() + items.len()));
        for number in 0..900 {
            items.next();
            assert!((STEP..=2 * STEP).contains(&(count.get() - number - 1).max(STEP)));
            assert!(count.get() > number + STEP / 2);
        }
    }
}
