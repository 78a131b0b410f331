//! The experiments on the allocator in their smoke size: the counts, and the volumes left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use undercroft_block::{BlockDevice, FileDevice};
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, Xfsprogs, kernel};
use undercroft_lab::alloc::{
    self, AllocOptions, AllocOutcome, Case, LayoutFigures, SearchOutcome, Variant,
};
use undercroft_lab::{Outcome, RunOptions, Size};
use undercroft_xfs::inode::ForkKind;
use undercroft_xfs::internals::bmap;
use undercroft_xfs::ops::Position;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Volume, ops};

const SMOKE: RunOptions = RunOptions { size: Size::Smoke, repeat: None, duration: None, seed: 1 };

fn run(options: &AllocOptions) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    alloc::run(options, &SMOKE, &mut |outcome| outcomes.push(outcome)).unwrap();
    outcomes
}

fn workload(options: &AllocOptions) -> Vec<AllocOutcome> {
    let of = |outcome| match outcome {
        Outcome::Alloc(of) => of,
        other => panic!("{other:?} of another part"),
    };
    run(options).into_iter().map(of).collect()
}

fn searches(options: &AllocOptions) -> Vec<SearchOutcome> {
    let of = |outcome| match outcome {
        Outcome::AllocSearch(of) | Outcome::AllocGrowth(of) => of,
        other => panic!("{other:?} of another part"),
    };
    run(options).into_iter().map(of).collect()
}

/// Runs the workload with each variant and has the volume judged.
fn judged(case: Case, image: &Path) -> Vec<AllocOutcome> {
    let run = |variant| {
        let options = AllocOptions {
            cases: vec![case],
            variants: vec![variant],
            keep: Some(image.to_owned()),
            ..AllocOptions::default()
        };
        let [outcome] = workload(&options).try_into().unwrap();
        if let Err(complaint) = Xfsprogs::newest().unwrap().repair_check(image) {
            panic!("{variant}, {case} free space: {complaint}");
        }
        outcome
    };
    Variant::ALL.into_iter().map(run).collect()
}

#[test]
fn every_variant_leaves_a_sound_volume_with_all_files() {
    let directory = tempfile::tempdir().unwrap();
    for case in [Case::Clean, Case::Random] {
        let outcomes = judged(case, &directory.path().join("kept.img"));
        for (one, variant) in outcomes.iter().zip(Variant::ALL) {
            assert_eq!((one.variant.as_str(), one.files), (variant.name(), 400));
            assert!(one.operations.iter().all(|row| row.latency.count == 400), "{one:?}");
            let layout = one.layout.as_ref().unwrap();
            // 400 files and seven directories with a block each; the root has few names, the
            // fillers' directory more.
            assert_eq!(layout.inodes, layout.ideal);
            assert!((407..=408).contains(&layout.inodes), "{layout:?}");
            let counted: u64 = layout.distances.iter().map(|line| line.count).sum();
            assert_eq!(counted, layout.actual);
            let whole = layout.actual < layout.ideal + 8;
            assert_eq!(whole, case == Case::Clean, "{case}: {layout:?}");
        }
    }
}

/// With one writer nothing is left to chance.
#[test]
fn one_writer_meets_the_same_extents_again_and_stays_near_unless_size_decides() {
    let layout = |variant| {
        let options = AllocOptions {
            cases: vec![Case::Random],
            variants: vec![variant],
            bytes: Some(4 << 30),
            groups: Some(2),
            files: Some(1000),
            writers: Some(1),
            ..AllocOptions::default()
        };
        let layout = || {
            let [outcome] = workload(&options).try_into().unwrap();
            outcome.layout.unwrap()
        };
        let (first, again) = (layout(), layout());
        assert_eq!(first, again, "{variant}");
        first
    };
    let [near, old, by_size, indexed] =
        [Variant::Near, Variant::Near2018, Variant::BySize, Variant::Indexed].map(layout);
    let median = |layout: &LayoutFigures| layout.median_distance.unwrap();
    assert!(median(&by_size) > median(&near).max(median(&old)), "{by_size:?}");
    // The index never leaves more extents than near mode, or more of them far away.
    assert!(indexed.actual <= near.actual, "{indexed:?}");
    for blocks in (8..).map(|log| 1 << log).take_while(|far| *far <= u64::from(near.group_blocks)) {
        let (ours, theirs) = (indexed.beyond(blocks), near.beyond(blocks));
        assert!(ours <= theirs, "{ours} and {theirs} beyond {blocks} blocks");
    }
}

#[test]
fn searches_are_timed_on_the_free_space_asked_for() {
    let cases = vec![Case::Pathological, Case::Sequential, Case::Growth];
    let outcomes = searches(&AllocOptions { cases, ..AllocOptions::default() });
    // Two maps of one size, and the pathological one of two sizes.
    assert_eq!(outcomes.len(), 4 * Variant::ALL.len());
    for (one, variant) in outcomes.iter().zip(Variant::ALL.iter().cycle()) {
        assert_eq!(one.variant, variant.name());
        assert!(one.allocations > 0 && one.per_second > 0.0, "{one:?}");
        assert_eq!(one.bytes_read, 0.0, "{one:?}");
    }
    let extents: Vec<u64> = outcomes.iter().step_by(4).map(|one| one.free_extents).collect();
    // The short ones, 2,000 long ones, and what trees took or left.
    assert!(extents[0].abs_diff(3000) < 20 && extents[1] <= 2, "{extents:?}");
    assert!(extents[2].abs_diff(3000) < 20 && extents[3].abs_diff(12_000) < 20, "{extents:?}");
}

#[test]
fn the_same_files_are_made_on_a_mounted_directory() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("kernel.img");
    Xfsprogs::newest().unwrap().mkfs(&image, 1 << 30, &["-d", "agcount=8"]).unwrap();
    let mount = LoopMount::new(&image, Access::ReadWrite, &[]).unwrap();
    for (data, name) in [(false, "allocated"), (true, "written")] {
        let place = mount.join(name);
        std::fs::create_dir(&place).unwrap();
        let options = AllocOptions {
            bytes: Some(256 << 20),
            files: Some(100),
            on: Some(place.clone()),
            data,
            ..AllocOptions::default()
        };
        let [one] = workload(&options).try_into().unwrap();
        assert_eq!((one.variant.as_str(), one.files, one.data_written), ("kernel", 100, data));
        let sizes = (0..2).flat_map(|number| {
            std::fs::read_dir(place.join(format!("directory-{number}"))).unwrap()
        });
        let sizes: Vec<u64> = sizes.map(|entry| entry.unwrap().metadata().unwrap().len()).collect();
        assert_eq!((sizes.len(), sizes.iter().sum()), (100, one.data_bytes));
    }
    mount.unmount().unwrap();
}

/// Where an inode is, and its extents: block of the file, block of the volume, length.
type Place = (InodeNumber, Vec<(u64, u64, u32)>);

/// The places of everything in and below a directory, by path.
fn places(
    volume: &Volume,
    directory: InodeNumber,
    path: &str,
    found: &mut BTreeMap<String, Place>,
) {
    let mut children = Vec::new();
    let listed = volume.inode(directory).unwrap();
    let mut note = |name: &[u8], number| {
        children.push((format!("{path}/{}", String::from_utf8_lossy(name)), number));
        true
    };
    ops::entries(volume, &listed.read(), Position::START, |entry| note(entry.name, entry.inode))
        .unwrap();
    for (path, number) in children {
        let child = volume.inode(number).unwrap();
        let child = child.read();
        let extents = bmap::extents(volume, &child, ForkKind::Data).unwrap().as_slice().iter();
        let extents = extents.map(|extent| (extent.offset.0, extent.start.0, extent.len)).collect();
        let kind = child.file_type();
        drop(child);
        if kind == undercroft_xfs::format::FileType::Directory {
            places(volume, number, &path, found);
        }
        found.insert(path, (number, extents));
    }
}

fn places_in(image: &Path) -> BTreeMap<String, Place> {
    let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(image, true).unwrap());
    let volume = Volume::open(device).unwrap();
    let mut found = BTreeMap::new();
    places(&volume, volume.geometry().root_inode, "", &mut found);
    found
}

/// On free space without holes nothing depends on time: every inode and every extent must be the
/// kernel's.
#[test]
fn a_clean_volume_is_filled_to_the_block_as_by_the_kernel() {
    if !kernel::available_or_report() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours.img"), directory.path().join("kernel.img"));
    let options = AllocOptions {
        cases: vec![Case::Clean],
        variants: vec![Variant::Near],
        bytes: Some(4 << 30),
        groups: Some(4),
        files: Some(3000),
        writers: Some(1),
        in_flight: Some(0),
        keep: Some(ours.clone()),
        ..AllocOptions::default()
    };
    assert_eq!(workload(&options).len(), 1);
    Xfsprogs::newest().unwrap().mkfs(&theirs, 4 << 30, &["-d", "agcount=4"]).unwrap();
    let mount = LoopMount::new(&theirs, Access::ReadWrite, &[]).unwrap();
    let on = Some(mount.path().to_owned());
    workload(&AllocOptions { cases: Vec::new(), variants: Vec::new(), keep: None, on, ..options });
    mount.unmount().unwrap();

    let (ours, theirs) = (places_in(&ours), places_in(&theirs));
    assert!(ours.len() > 3000, "{}", ours.len());
    let differ = ours.iter().find(|(path, place)| theirs.get(*path) != Some(*place));
    assert!(differ.is_none(), "{differ:?}, kernel {:?}", differ.and_then(|(p, _)| theirs.get(p)));
    assert_eq!(ours.len(), theirs.len());
}
