//! The files of the experiment: how large, in which directory, in which order.
//!
//! One directory after the other: with files in random directories, those of a chunk of inodes are
//! close to it, and few are as far from their inodes as in the source.

use crate::measure::random::stream;

/// Files of a directory: the 720 extents of the source that belong to no file are those of so many
/// directories, about.
const FILES_OF_DIRECTORY: usize = 64;
/// Smallest file in bytes.
const SMALLEST: u64 = 4096;
/// Purpose of random numbers, apart from those of groups.
const SIZES: u64 = 1 << 32;

/// One file to create, write, sync and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Its number, which is its name.
    pub(super) number: usize,
    /// The number of its directory.
    pub(super) directory: usize,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

/// The files of a run, in the order in which writers take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jobs {
    pub(super) list: Vec<Job>,
    pub(super) directories: usize,
}

impl Jobs {
    /// `files` files of 4 KiB to `largest` bytes, `total` bytes together, about. The logarithm of
    /// a size is normally distributed with the deviation `spread`.
    pub(super) fn new(files: usize, largest: u64, total: u64, spread: f64, seed: u64) -> Self {
        let directories = files.div_ceil(FILES_OF_DIRECTORY).max(1);
        let mut random = stream(seed, SIZES);
        let shape: Vec<f64> = (0..files).map(|_| (spread * normal(&mut random)).exp()).collect();
        // Of a small volume the largest share is less than the smallest file.
        let largest = largest.max(SMALLEST);
        let size = |scale: f64, factor: &f64| ((scale * factor) as u64).clamp(SMALLEST, largest);
        // What the limits cut off is given to the others.
        let mut scale = 0.0;
        let mut step = total as f64;
        while step > 1.0 {
            // Many large files may be more than 64 bits together, before the sum is right.
            let sum: u128 = shape.iter().map(|factor| u128::from(size(scale + step, factor))).sum();
            if sum <= total.into() {
                scale += step;
            }
            step /= 2.0;
        }
        let list = shape.iter().enumerate().map(|(number, factor)| Job {
            number,
            directory: number / FILES_OF_DIRECTORY,
            bytes: size(scale, factor),
        });
        Self { list: list.collect(), directories }
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.list.iter().map(|job| job.bytes).sum()
    }
}

/// A normally distributed number with mean 0 and deviation 1 (Box and Muller 1958).
fn normal(random: &mut fastrand::Rng) -> f64 {
    // 1 - u is above 0, where the logarithm is finite.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_skewed_and_add_up() {
        let (mib, largest) = (1 << 20, 500_000_000);
        let jobs = Jobs::new(40_000, largest, 355_014 * mib, 1.6, 1);
        assert_eq!(jobs, Jobs::new(40_000, largest, 355_014 * mib, 1.6, 1));
        assert!((jobs.bytes() as f64 / (355_014 * mib) as f64 - 1.0).abs() < 1e-3);
        assert!(jobs.list.iter().all(|job| (SMALLEST..=largest).contains(&job.bytes)));
        let mut sizes: Vec<u64> = jobs.list.iter().map(|job| job.bytes).collect();
        sizes.sort_unstable();
        // The mean is far above the median.
        assert!((2 * mib..4 * mib).contains(&sizes[20_000]), "{}", sizes[20_000]);
        assert_eq!(sizes[39_999], largest);
        assert_eq!(jobs.directories, 625);
    }

    #[test]
    fn volumes_of_any_size_have_files() {
        for bytes in [0, 1, 1 << 20, 1 << 40, u64::MAX] {
            for (files, spread) in [(0, 1.6), (1, 0.0), (1000, 10.0)] {
                let jobs = Jobs::new(files, bytes / 1000, bytes / 10 * 7, spread, 1);
                assert_eq!(jobs.list.len(), files);
                assert!(jobs.list.iter().all(|job| job.bytes >= SMALLEST));
            }
        }
    }
}
