//! Work that the kernel does in several transactions, cut off in the middle.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::ioctl_ficlone;
use undercroft_judges::Xfsprogs;

use undercroft_testkit::xfs::recovery::load::{End, shut_down};

/// The operation that is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutOff {
    /// A file whose blocks others have is cut to nothing: reverse mappings, counts, free space.
    Truncate,
    /// Many extents are shared with a new file: counts, mappings.
    Clone,
    /// Many files are renamed, linked and deleted: parent pointers.
    Names,
    /// Two files exchange their contents: mappings, and the rest to exchange.
    Exchange,
    /// The same, but only the written parts of the first.
    ExchangeWritten,
    /// Two files of different lengths exchange their contents once.
    ExchangeLengths,
}

const EXTENTS: u64 = 3000;

/// By how many bytes the second of two files is shorter.
const SHORTER: u64 = 1_000_000;

/// Prepares, starts and cuts off work of this `kind` on the volume mounted at `root`.
pub(crate) fn cut_off(root: &Path, kind: CutOff, delay: Duration) {
    prepare(root, kind);
    rustix::fs::syncfs(File::open(root).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in 0..3 {
            let stop = &stop;
            // Every sync ends a checkpoint, so that the steps of the work fall into many.
            scope.spawn(move || noise(root, number, stop));
        }
        scope.spawn(move || work(root, kind));
        thread::sleep(delay);
        shut_down(root, End::Cut);
        stop.store(true, Ordering::Relaxed);
    });
}

fn prepare(root: &Path, kind: CutOff) {
    if kind == CutOff::Names {
        for directory in 0..4 {
            fs::create_dir(root.join(format!("d{directory}"))).unwrap();
            for name in 0..1500 {
                File::create(root.join(format!("d{directory}/n{name}"))).unwrap();
            }
        }
        return;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(root.join("a")).unwrap();
    for extent in 0..EXTENTS {
        file.write_all_at(&[extent as u8; 4096], extent * 8192).unwrap();
    }
    if !matches!(kind, CutOff::Truncate | CutOff::Clone) {
        // Holes of one are data of the other here and there.
        let other = options.open(root.join("b")).unwrap();
        for extent in 0..EXTENTS {
            other.write_all_at(&[!extent as u8; 4096], extent * 8192 + extent % 3 * 4096).unwrap();
        }
        file.set_len(EXTENTS * 8192).unwrap();
        let shorter = if kind == CutOff::ExchangeLengths { SHORTER } else { 0 };
        other.set_len(EXTENTS * 8192 - shorter).unwrap();
    }
    if kind == CutOff::Truncate {
        ioctl_ficlone(File::create(root.join("b")).unwrap(), &file).unwrap();
    }
}

/// Contents of the two files that [`CutOff::ExchangeLengths`] starts from.
pub(crate) fn contents() -> [Vec<u8>; 2] {
    let mut files = [EXTENTS * 8192, EXTENTS * 8192 - SHORTER].map(|len| vec![0; len as usize]);
    for extent in 0..EXTENTS {
        let places = [extent * 8192, extent * 8192 + extent % 3 * 4096];
        for ((file, place), byte) in files.iter_mut().zip(places).zip([extent as u8, !extent as u8])
        {
            let end = file.len().min(place as usize + 4096);
            file.get_mut(place as usize..end).into_iter().for_each(|block| block.fill(byte));
        }
    }
    files
}

fn noise(root: &Path, number: u32, stop: &AtomicBool) {
    let path = root.join(format!("noise{number}"));
    let Ok(file) = File::create(&path) else { return };
    for round in 0.. {
        let mode = fs::Permissions::from_mode(0o600 + round % 8);
        if stop.load(Ordering::Relaxed)
            || file.set_permissions(mode).is_err()
            || file.sync_all().is_err()
        {
            return;
        }
    }
}

/// Works until the kernel refuses.
fn work(root: &Path, kind: CutOff) {
    let _ = match kind {
        CutOff::Truncate => {
            let file = OpenOptions::new().write(true).open(root.join("a"));
            file.and_then(|file| file.set_len(0))
        }
        CutOff::Clone => (0..50).try_for_each(|number| {
            let new = File::create(root.join(format!("c{number}")))?;
            Ok(ioctl_ficlone(new, File::open(root.join("a"))?)?)
        }),
        CutOff::Exchange => exchange(root, "exchangerange", 50),
        CutOff::ExchangeWritten => exchange(root, "exchangerange -w", 50),
        CutOff::ExchangeLengths => exchange(root, "exchangerange", 1),
        CutOff::Names => (0..1500).try_for_each(|name| {
            let path = |directory: u32, name: String| root.join(format!("d{directory}/{name}"));
            fs::rename(path(0, format!("n{name}")), path(1, format!("moved{name}")))?;
            fs::hard_link(path(2, format!("n{name}")), path(3, format!("link{name}")))?;
            fs::remove_file(path(3, format!("n{name}")))
        }),
    };
}

/// Lets the two files exchange their contents, there and back.
fn exchange(root: &Path, command: &str, times: u32) -> io::Result<()> {
    let tool = Xfsprogs::newest().unwrap();
    let command = format!("{command} {}", root.join("b").display());
    for _ in 0..times {
        let mut xfs_io = Command::new(tool.tool("xfs_io").unwrap());
        let output = xfs_io.args(["-c", &command]).arg(root.join("a")).output()?;
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!message.contains("not found"), "{message}");
        if !message.is_empty() {
            break;
        }
    }
    Ok(())
}
