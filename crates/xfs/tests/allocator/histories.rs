//! The allocator against a simple model, with every variant, judged by our own check and by
//! `xfs_repair -n`.

use std::sync::Mutex;
use undercroft_judges::random::Random;
use undercroft_testkit::xfs::allocations::History;
use undercroft_testkit::xfs::judged;
use undercroft_xfs::internals::experiments::{NearSearch, NearSteps, Variant};
use undercroft_xfs::mkfs::MkfsOptions;
use undercroft_xfs::{Error, Volume};
use uuid::Uuid;

fn options(size: u64) -> MkfsOptions {
    MkfsOptions { ag_count: Some(4), ..MkfsOptions::new(size, Uuid::from_u128(0xa110c)) }
}

/// A history with this variant, and the judges' verdict on the volume it leaves.
fn run(variant: Variant, seed: u64, options: &MkfsOptions, operations: u64) {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("allocator.img");
    let mut history =
        History::start(&image, options, |volume| volume.set_near_search(variant.search()), seed);
    history.wander(operations, 4);
    assert!(history.refused > operations / 1000, "the volume was never full");
    history.finish();
    judged::sound(&image, &format!("{variant}, seed {seed}"));
}

#[test]
fn near_keeps_its_books() {
    run(Variant::Near, 1, &options(1 << 30), 40_000);
}

#[test]
fn near_2018_keeps_its_books() {
    run(Variant::Near2018, 2, &options(1 << 30), 40_000);
}

#[test]
fn by_size_keeps_its_books() {
    run(Variant::BySize, 3, &options(1 << 30), 40_000);
}

#[test]
fn indexed_keeps_its_books() {
    run(Variant::Indexed, 4, &options(1 << 30), 40_000);
}

/// Near mode that leaves out the scan of the longest extents for a random half of the requests.
#[derive(Debug)]
struct RandomNear(Mutex<Random>);

impl NearSearch for RandomNear {
    fn find(&self, steps: &mut dyn NearSteps) -> Result<(), Error> {
        let scan = self.0.lock().unwrap().one_in(2);
        if steps.longest_first(scan)? { Ok(()) } else { steps.combined() }
    }
}

/// Both parts of near mode get work on a young volume.
#[test]
fn near_at_random_keeps_its_books() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("random.img");
    let search = Box::new(RandomNear(Mutex::new(Random::new(7))));
    let install = |volume: &mut Volume| volume.set_near_search(Some(search));
    let mut history = History::start(&image, &options(1 << 30), install, 5);
    history.wander(40_000, 4);
    history.finish();
    judged::sound(&image, "random near");
}

/// Space ends when it is gone, not before; and all of it can be used again.
#[test]
fn a_full_volume_is_full_and_an_emptied_one_empty() {
    for variant in Variant::ALL {
        let directory = tempfile::tempdir().unwrap();
        let image = directory.path().join("full.img");
        let mut history = History::start(
            &image,
            &options(512 << 20),
            |volume| volume.set_near_search(variant.search()),
            6,
        );
        history.wander(3000, 1);
        history.take_all();
        let most = history.held_blocks();
        history.compare();
        history.free_all();
        history.compare();
        history.take_all();
        // Trees of another height can hold a few blocks more or less.
        assert!(history.held_blocks().abs_diff(most) <= 64, "{variant}: {most}");
        history.compare();
        history.free_all();
        history.finish();
        judged::sound(&image, &format!("{variant}, emptied"));
    }
}
