//! Random operations on a tree of files: on a model, on a volume of ours, on a kernel's mount.

pub mod kernel;
pub mod model;
pub mod operation;
pub mod ours;
pub mod stream;

use model::{Model, ROOT};
use operation::Operation;
use ours::Ours;
use rustix::io::Errno;
use std::path::Path;
use stream::Stream;
use undercroft_judges::matrix::{FORMATS, Format};
use undercroft_judges::mount::Access;
use undercroft_judges::tree::{Holes, Options, compare};
use undercroft_judges::{LoopMount, image};
use undercroft_xfs::ErrorKind;

/// A time that both sides can be given.
const START: i64 = 1_700_000_000;

/// The formats that both sides can change: a metadata directory is known for reading only.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.mounts && !format.features.contains(&"metadir"))
}

/// Runs `count` operations on the empty volume in `image`, against the model, `sessions` times; it
/// is judged after each.
pub fn against_model(image: &Path, seed: u64, sessions: u32, count: u32) {
    let mut stream = Stream::new(seed, false);
    let mut ours = Ours::open(image);
    let root = ours.volume.inode(ours.volume.geometry().root_inode).unwrap();
    let core = root.read().core.clone();
    let (mode, modification) = (core.mode & 0o7777, core.mtime.seconds);
    drop(root);
    let mut model = Model::new(mode, modification);
    let mut now = START;
    for session in 0..sessions {
        for step in 0..count {
            now += 1;
            let operation = stream.next(&model);
            let expected = model.apply(&operation, now);
            let found = ours.apply(&operation, now).is_ok();
            assert_eq!(found, expected, "seed {seed}, {session}/{step}: {operation:?}");
        }
        // A root whose time was never set has nanoseconds.
        if model.nodes[ROOT].times.1 != modification {
            ours.compare(&model);
        }
        ours.close(image);
        ours = Ours::open(image);
        ours.compare(&model);
    }
}

/// Whether the kernel gives the same answer.
fn agree(found: Result<(), ErrorKind>, expected: Result<(), Errno>) -> bool {
    match (found, expected) {
        // Of a directory with names that should be replaced, XFS in Linux says that it exists.
        (Err(ErrorKind::NotEmpty), Err(Errno::EXIST))
        // Of a second name for a directory, which exists besides, one can be said.
        | (Err(ErrorKind::NotPermitted), Err(Errno::EXIST)) => true,
        _ => {
            found.map_err(ErrorKind::errno) == expected.map_err(Errno::raw_os_error)
        }
    }
}

/// Runs `count` operations on the empty volume in `image`, and the same on a mount of a copy,
/// `sessions` times; the trees are compared after each.
pub fn against_kernel(image: &Path, seed: u64, sessions: u32, count: u32) {
    rustix::process::umask(rustix::fs::Mode::empty());
    let copy = image.with_extension("kernel");
    image::copy(image, &copy).unwrap();
    // The model only helps to find operations that make sense.
    let mut model = Model::new(0o755, START);
    let mut stream = Stream::new(seed, true);
    let mut now = START;
    for session in 0..sessions {
        let mut ours = Ours::open(image);
        let mount = LoopMount::new(&copy, Access::ReadWrite, &[]).unwrap();
        for step in 0..count {
            now += 1;
            let operation = stream.next(&model);
            model.apply(&operation, now);
            let expected = kernel::apply(mount.path(), &operation);
            let found = ours.apply(&operation, now);
            let at = || format!("seed {seed}, {session}/{step}: {operation:?}");
            if operation.is_vague() {
                continue;
            }
            assert!(agree(found, expected), "{}: {found:?}, {expected:?}", at());
        }
        for (path, _) in model.walk() {
            let times = Operation::Times { path, access: START, modification: now };
            assert!(
                kernel::apply(mount.path(), &times).is_ok() && ours.apply(&times, now).is_ok(),
                "{times:?}"
            );
        }
        ours.close(image);
        let ours = LoopMount::new(image, Access::ReadOnly, &[]).unwrap();
        let options = Options { holes: Holes::Ignore, ..Options::default() };
        compare(ours.path(), mount.path(), &options).unwrap().assert_same();
        ours.unmount().unwrap();
        mount.unmount().unwrap();
    }
}
