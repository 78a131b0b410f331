//! Every operation that changes a file, by programs with more and with fewer rights, on files that give
//! rights to those who run them: here, and beside it on the kernel's XFS. What a program then sees must
//! be the same on both, at once, when the kernel has forgotten the files, and after another mount.

mod actors;
mod operations;
mod seen;

use crate::mounted::Volume;
use actors::{ACTORS, Actor};
use operations::{OPERATIONS, Operation};
use seen::{Seen, compare};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use undercroft_judges::mount::{Access, LoopMount};

/// Owner of all files, and their group.
const OWNER: u32 = 1000;
const GROUP: u32 = 2000;

/// A user who may write to them by their mode alone.
const STRANGER: u32 = 3000;

const SIZE: usize = 10_000;

/// Longer than the kernel's clock for files stands still.
const TICK: Duration = Duration::from_millis(25);

/// Of version 2: CAP_NET_RAW, permitted.
const CAPABILITY: [u8; 20] = [0, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What a file gives to those who run it.
const GIFTS: [(&str, u32, bool); 6] = [
    ("nothing", 0o777, false),
    ("setuid", 0o4777, false),
    ("setgid", 0o2777, false),
    ("setgid without execute", 0o2767, false),
    ("all", 0o6777, true),
    ("capability", 0o766, true),
];

/// One operation, by one program, on one file.
struct Case {
    actor: &'static Actor,
    operation: &'static Operation,
    gift: (&'static str, u32, bool),
    file: String,
}

impl Case {
    fn name(&self) -> String {
        format!("{} by {} of a file with {}", self.operation.name, self.actor.name, self.gift.0)
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for actor in &ACTORS {
        for operation in OPERATIONS {
            for gift in GIFTS {
                // FUSE takes the capability away by a request of its own, before it asks for the right.
                let is_taken_first = operation.name == "chown of nothing" && gift.0 == "all";
                if is_taken_first && actor.name.starts_with("another user") {
                    continue;
                }
                let file = format!("{}", cases.len());
                cases.push(Case { actor, operation, gift, file });
            }
        }
    }
    cases
}

fn prepare(root: &Path, cases: &[Case]) {
    fs::set_permissions(root, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(root.join(operations::SOURCE), vec![7; SIZE]).unwrap();
    let old = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let times = FileTimes::new().set_accessed(old).set_modified(old);
    for case in cases {
        let path = root.join(&case.file);
        fs::write(&path, vec![1; SIZE]).unwrap();
        chown(&path, Some(OWNER), Some(GROUP)).unwrap();
        if case.gift.2 {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::setxattr(&path, "security.capability", &CAPABILITY, flags).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(case.gift.1)).unwrap();
        File::open(&path).unwrap().set_times(times).unwrap();
    }
    rustix::fs::sync();
}

fn look(root: &Path, cases: &[Case]) -> Vec<Seen> {
    cases.iter().map(|case| Seen::of(&root.join(&case.file))).collect()
}

/// Does all of it, each with its rights; returns the results.
fn act(root: &Path, cases: &[Case]) -> Vec<Result<(), i32>> {
    let each = |actor: &'static Actor| {
        let root: PathBuf = root.into();
        let mine = cases.iter().filter(move |case| std::ptr::eq(case.actor, actor));
        let work: Vec<_> = mine.map(|case| (case.operation, root.join(&case.file))).collect();
        // Rights are those of a thread.
        let done = thread::spawn(move || {
            actor.become_it();
            work.iter().map(|(operation, path)| operation.run(path)).collect::<Vec<_>>()
        });
        done.join().unwrap()
    };
    // Cases are in the order of their actors.
    ACTORS.iter().flat_map(each).collect()
}

/// What was seen of all files: before, at once, when the kernel had forgotten them, after a mount.
struct Sights {
    results: Vec<Result<(), i32>>,
    before: Vec<Seen>,
    after: [Vec<Seen>; 3],
}

const MOMENTS: [&str; 3] = ["at once", "when the kernel has forgotten it", "after a mount"];

/// The kernel writes back, and forgets what no program uses.
fn forget() {
    rustix::fs::sync();
    for _ in 0..2 {
        fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    }
}

fn see<M>(
    cases: &[Case],
    mount: impl Fn() -> M,
    root: impl Fn(&M) -> PathBuf,
    unmount: impl Fn(M),
) -> Sights {
    let mounted = mount();
    let at = root(&mounted);
    prepare(&at, cases);
    let before = look(&at, cases);
    thread::sleep(TICK);
    let results = act(&at, cases);
    let live = look(&at, cases);
    forget();
    let forgotten = look(&at, cases);
    unmount(mounted);
    let mounted = mount();
    let again = look(&root(&mounted), cases);
    unmount(mounted);
    Sights { results, before, after: [live, forgotten, again] }
}

#[test]
fn every_operation_changes_what_it_changes_in_the_kernel() {
    let (ours, theirs) = (Volume::sized("400M"), Volume::sized("400M"));
    // Programs of others have to come to the mount.
    let above = ours.at().parent().unwrap().to_owned();
    fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
    let cases = cases();
    let here = see(
        &cases,
        || ours.mount(&["-o", "suid,allow_other"]),
        |mounted| mounted.path(""),
        |mounted| mounted.unmount(),
    );
    let there = see(
        &cases,
        || LoopMount::new(&theirs.image(), Access::ReadWrite, &[]).unwrap(),
        |mounted| mounted.path().to_owned(),
        |mounted| mounted.unmount().unwrap(),
    );
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        compare(index, case, &here, &there, &mut wrong);
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
