//! Something that happens to a file at the very moment when a program begins to read it: after the
//! program opened the file and asked for its size, before it got the first byte. The kernel holds
//! the program until it is done, so nothing depends on speed.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nix::errno::Errno;
use nix::sys::fanotify::{
    EventFFlags, Fanotify, FanotifyEvent, FanotifyResponse, InitFlags, MarkFlags, MaskFlags,
    Response,
};

use crate::Error;

/// Runs `program`, which reads `file` in another process, and `act` when it begins to. `act` must
/// not read the file. Later reads are not held. Needs root.
///
/// Returns what `program` returned, or `None` when it never read the file, whose state then means
/// nothing.
///
/// # Errors
/// The kernel cannot hold readers, or the process lacks the right to ask it to.
pub fn at_first_read<T>(
    file: &Path,
    act: impl FnOnce() + Send,
    program: impl FnOnce() -> T,
) -> Result<Option<T>, Error> {
    let failed = |action| move |error: Errno| Error::io(action, file)(error);
    let flags = InitFlags::FAN_CLASS_CONTENT | InitFlags::FAN_CLOEXEC;
    let group = Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC)
        .map_err(failed("cannot watch"))?;
    group
        .mark(MarkFlags::FAN_MARK_ADD, MaskFlags::FAN_ACCESS_PERM, rustix::fs::CWD, Some(file))
        .map_err(failed("cannot watch the reads of"))?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watch = scope.spawn(|| {
            // Reads that wait are let through at the latest when the group goes.
            let group = group;
            let events = group.read_events().map_err(failed("cannot see the reads of"))?;
            let in_time = !over.load(Ordering::SeqCst);
            if in_time {
                act();
            }
            for fd in events.iter().filter_map(FanotifyEvent::fd) {
                group
                    .write_response(FanotifyResponse::new(fd, Response::FAN_ALLOW))
                    .map_err(failed("cannot let through a reader of"))?;
            }
            Ok(in_time)
        });
        let end = EndOfWatch { over: &over, file };
        let result = program();
        drop(end);
        match watch.join() {
            Ok(in_time) => Ok(in_time?.then_some(result)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Ends a watch that still waits when this is dropped, also by a program that panics: the scope waits
/// for the thread of the watch.
struct EndOfWatch<'a> {
    over: &'a AtomicBool,
    file: &'a Path,
}

impl Drop for EndOfWatch<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Err(error) = File::open(self.file).and_then(|mut file| file.read(&mut [0])) {
            eprintln!("cannot read {}: {error}", self.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel;
    use std::fs;
    use std::process::Command;

    #[test]
    fn the_reader_sees_what_was_done() {
        if !kernel::available_or_report() {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "before").unwrap();
        let cut = || File::options().write(true).open(&file).unwrap().set_len(2).unwrap();
        let read = || Command::new("cat").arg(&file).output().unwrap().stdout;
        assert_eq!(at_first_read(&file, cut, read).unwrap().unwrap(), b"be");
        assert_eq!(at_first_read(&file, || unreachable!(), || ()).unwrap(), None);
    }

    #[test]
    #[should_panic(expected = "the program")]
    fn a_panic_of_the_program_ends_the_watch() {
        if !kernel::available_or_report() {
            panic!("the program cannot be watched");
        }
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("file");
        fs::write(&file, "before").unwrap();
        let _ = at_first_read(&file, || unreachable!(), || panic!("the program"));
    }
}
