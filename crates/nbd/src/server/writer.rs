//! A connection's right to change its export.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::export::Export;
use super::writers::{Party, Refusal};

/// A writer that has ended may not have been noticed yet: its socket is closed, and its last request is
/// under way.
const LEAVE: Duration = Duration::from_secs(2);

/// A connection's right to change its export, until its last request has ended.
#[derive(Debug)]
pub(crate) struct Writer {
    export: Arc<Export>,
    has_joined: AtomicBool,
}

impl Writer {
    /// A right that is asked for with the first change, if there is one.
    pub(crate) fn unnamed(export: &Arc<Export>) -> Self {
        Self { export: Arc::clone(export), has_joined: AtomicBool::new(false) }
    }

    /// The right of a `party` from now on. One that is not named asks for it later.
    pub(crate) fn of(export: &Arc<Export>, party: &Party) -> Result<Self, Refusal> {
        let writer = Self::unnamed(export);
        if export.has_one_writer() && *party != Party::Unnamed {
            export.writers.join(party, LEAVE)?;
            writer.has_joined.store(true, Ordering::Relaxed);
        }
        Ok(writer)
    }

    /// Whether the connection may change the export. It asks in one thread.
    pub(crate) fn may_write(&self) -> bool {
        if self.has_joined.load(Ordering::Relaxed) || !self.export.has_one_writer() {
            return true;
        }
        let joined = self.export.writers.join(&Party::Unnamed, Duration::ZERO).is_ok();
        self.has_joined.store(joined, Ordering::Relaxed);
        joined
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if *self.has_joined.get_mut() {
            self.export.writers.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use undercroft_block::{BlockDevice, MemoryDevice, Reserved, Sector, Window};

    use super::*;

    fn export() -> Arc<Export> {
        Arc::new(Export::new("disk", Arc::new(MemoryDevice::new(1 << 20))))
    }

    fn program(name: &str) -> Party {
        Party::Program(name.into())
    }

    #[test]
    fn a_program_follows_another_that_ends() {
        let export = export();
        let first = Writer::of(&export, &program("a")).unwrap();
        let second = Writer::of(&export, &program("a")).unwrap();
        let other = Writer::unnamed(&export);
        assert!(
            export.writers.keep_out(&Party::Unnamed) && !export.writers.keep_out(&program("a"))
        );
        assert!(!other.may_write(), "beside a program");
        drop(first);
        assert!(!other.may_write(), "one of its connections is left");
        let leaves = thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            drop(second);
        });
        let next = Writer::of(&export, &program("b")).unwrap();
        leaves.join().unwrap();
        drop(next);
        let back = Writer::of(&export, &program("a"));
        assert_eq!(back.map(drop), Err(Refusal::Past));
        assert!(Writer::of(&export, &program("b")).is_ok());
    }

    #[test]
    fn those_without_a_name_change_it_together_and_keep_programs_out() {
        let export = export();
        let (one, other) = (Writer::unnamed(&export), Writer::unnamed(&export));
        assert!(Writer::of(&export, &program("a")).is_ok(), "neither has changed anything");
        assert!(one.may_write() && other.may_write() && !export.writers.keep_out(&Party::Unnamed));
        drop(one);
        assert_eq!(Writer::of(&export, &program("b")).map(drop), Err(Refusal::Taken));
        drop(other);
        assert!(Writer::of(&export, &program("b")).is_ok());
    }

    #[test]
    fn a_writer_holds_the_device() {
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(1 << 20));
        let whole = Arc::new(Export::new("disk", Arc::clone(&device)));
        let half = Window::new(Arc::clone(&device), Sector(0), Sector(1024)).unwrap();
        let half = Arc::new(Export::new("half", Arc::new(half)));
        let reserved = || Reserved::within(Arc::clone(&device), Duration::ZERO);

        let one = Writer::of(&whole, &program("a")).unwrap();
        let other = Writer::of(&whole, &program("a")).unwrap();
        let unnamed = Writer::unnamed(&half);
        assert!(!unnamed.may_write(), "another export has a writer");
        drop(one);
        assert!(reserved().is_err(), "a connection is left");
        drop(other);
        assert!(unnamed.may_write());
        drop(unnamed);
        let volume = reserved().unwrap();
        assert_eq!(Writer::of(&whole, &program("b")).map(drop), Err(Refusal::Held));
        drop(volume);
        assert!(Writer::of(&whole, &program("b")).is_ok());
    }

    #[test]
    fn a_shared_export_has_any_number_of_writers() {
        let device = Arc::new(MemoryDevice::new(1 << 20));
        let export = Arc::new(Export::new("disk", device).shared());
        let _one = Writer::of(&export, &program("a")).unwrap();
        let _other = Writer::of(&export, &program("b")).unwrap();
        assert!(Writer::unnamed(&export).may_write());
    }
}
