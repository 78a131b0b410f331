//! Zeroes in data that was read, which need not be sent.

use smallvec::SmallVec;

/// Zeroes are looked for in blocks of this length.
const BLOCK: usize = 4 << 10;
/// Shorter ranges of zeroes are sent as data: a chunk of their own would cost more.
const LEAST: usize = 32 << 10;

/// Bytes that tell whether there may be zeroes.
pub(crate) const SAMPLE: usize = 64;

static ZEROES: [u8; BLOCK] = [0; BLOCK];

/// A part of the data of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) length: usize,
    pub(crate) is_zero: bool,
}

/// The parts of the data of a read, in order.
pub(crate) type Runs = SmallVec<[Run; 4]>;

/// The parts of `data`. Other data than zeroes is known by its first bytes most often, so it costs
/// a look at each block.
pub(crate) fn runs(data: &[u8]) -> Runs {
    if data.len() < LEAST {
        return all(data.len());
    }
    let mut runs = Runs::new();
    for block in data.chunks(BLOCK) {
        let is_zero = *block == ZEROES[..block.len()];
        append(&mut runs, Run { length: block.len(), is_zero });
    }
    let mut joined = Runs::new();
    for run in runs {
        append(&mut joined, Run { is_zero: run.is_zero && run.length >= LEAST, ..run });
    }
    joined
}

/// `length` bytes that are sent, whatever they are.
pub(crate) fn all(length: usize) -> Runs {
    Runs::from_iter([Run { length, is_zero: false }])
}

/// Where in `length` bytes there is a sample of every range of zeroes that [`runs`] would find.
pub(crate) fn samples(length: usize) -> impl Iterator<Item = usize> {
    (0..length).step_by(LEAST)
}

/// Appends `run`, to the last one if both are alike.
fn append(runs: &mut Runs, run: Run) {
    match runs.last_mut() {
        Some(last) if last.is_zero == run.is_zero => last.length += run.length,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of data and of zeroes in turn, data first.
    fn found(data: &[u8]) -> Vec<(usize, bool)> {
        runs(data).iter().map(|run| (run.length, run.is_zero)).collect()
    }

    #[test]
    fn only_long_zeroes_are_told_apart() {
        let (short, long) = (vec![0; LEAST - BLOCK], vec![0; LEAST]);
        let data = vec![7; BLOCK];
        assert_eq!(found(&long), [(LEAST, true)]);
        assert_eq!(found(&short), [(LEAST - BLOCK, false)]);
        assert_eq!(found(&[&data[..], &short, &data].concat()), [(LEAST + BLOCK, false)]);
        let mixed = [&long[..], &data, &long, &short].concat();
        let rest = 2 * LEAST - BLOCK;
        assert_eq!(found(&mixed), [(LEAST, true), (BLOCK, false), (rest, true)]);
    }

    #[test]
    fn a_byte_anywhere_makes_data_of_its_block() {
        for place in [0, 1, BLOCK - 1, 3 * BLOCK + 77, 16 * BLOCK - 1] {
            let mut data = vec![0; 16 * BLOCK];
            data[place] = 1;
            let block = place / BLOCK;
            let mut sum = 0;
            for (length, is_zero) in found(&data) {
                let holds = (sum..sum + length).contains(&(block * BLOCK));
                assert!(!(holds && is_zero), "byte {place}");
                sum += length;
            }
            assert_eq!(sum, data.len());
        }
    }

    #[test]
    fn data_that_ends_inside_a_block_is_whole() {
        assert_eq!(found(&vec![0; LEAST + 512]), [(LEAST + 512, true)]);
        assert_eq!(found(&[1; 512]), [(512, false)]);
    }
}
