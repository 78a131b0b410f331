//! The file driver on block devices of the kernel: loop devices.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use tempfile::NamedTempFile;
use undercroft_block::testing::conformance::check;
use undercroft_block::{
    Bio, BlockDevice, Buffer, Engine, FileDevice, FileOptions, Layer, Limits, OpenError, Operation,
    Plug, QueueOptions, Reason, SECTOR_SIZE, Sector, flush, read_buffer, write_all_at,
};
use undercroft_judges::LoopDevice;
use undercroft_judges::kernel::available_or_report;

/// A file of `bytes` bytes for a loop device, on the disk of the build.
fn backing(bytes: u64) -> NamedTempFile {
    let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

fn open(path: &Path, options: &FileOptions) -> FileDevice {
    assert!(path.metadata().unwrap().file_type().is_block_device());
    FileDevice::open_with(path, options).unwrap()
}

/// Every engine, with and without the page cache.
fn ways() -> impl Iterator<Item = FileOptions> {
    [Engine::Threads, Engine::Uring].into_iter().flat_map(|engine| {
        [false, true].map(|direct| FileOptions { engine, direct, ..FileOptions::default() })
    })
}

/// A device together with the loop device that it is on.
struct OnLoop {
    device: FileDevice,
    _attached: LoopDevice,
    _backing: NamedTempFile,
}

impl BlockDevice for OnLoop {
    fn name(&self) -> &str {
        self.device.name()
    }

    fn capacity(&self) -> Sector {
        self.device.capacity()
    }

    fn limits(&self) -> Limits {
        self.device.limits()
    }

    fn is_read_only(&self) -> bool {
        self.device.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        self.device.layer()
    }
}

#[test]
fn block_devices_conform() {
    if !available_or_report() {
        return;
    }
    for options in ways() {
        // A queue that is often full, so that waiting for tags and room is exercised.
        let queue = QueueOptions { queue_bytes: 64 << 10, depth: 4, ..options.queue.clone() };
        let options = FileOptions { queue, ..options };
        check(&|capacity| {
            let backing = backing(capacity.0 * SECTOR_SIZE);
            let attached = LoopDevice::attach(backing.path()).unwrap();
            let device = open(attached.path(), &options);
            assert_eq!(device.capacity(), capacity);
            Arc::new(OnLoop { device, _attached: attached, _backing: backing })
        });
    }
}

#[test]
fn what_is_flushed_is_in_the_file_behind_the_device() {
    if !available_or_report() {
        return;
    }
    for options in ways() {
        let backing = backing(1 << 20);
        let attached = LoopDevice::attach(backing.path()).unwrap();
        let device = open(attached.path(), &options);
        write_all_at(&device, Sector(16), &[7; 8192]).unwrap();
        flush(&device).unwrap();
        let bytes = std::fs::read(backing.path()).unwrap();
        assert_eq!(bytes[8192..16384], [7; 8192]);
        assert!(matches!(device.set_len(1 << 21), Err(OpenError::Resize { .. })));
    }
}

/// The file behind the device is cut off below it: what lay there cannot be read any more.
#[test]
fn a_disk_that_fails_is_named_with_operation_and_place() {
    if !available_or_report() {
        return;
    }
    for options in ways() {
        let backing = backing(1 << 20);
        let attached = LoopDevice::attach(backing.path()).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(open(attached.path(), &options));
        File::options().write(true).open(backing.path()).unwrap().set_len(64 << 10).unwrap();
        let plug = Plug::new(&device);
        // Far apart, so that each is a request of its own and no read ahead joins them.
        let waiters: Vec<_> = [0, 1024, 1536]
            .map(|sector| {
                let read = Bio::read(Sector(sector), Buffer::zeroed(8192));
                let (bio, waiter) = read.waited();
                plug.submit(bio);
                (sector, waiter)
            })
            .into();
        for (sector, waiter) in waiters {
            let completion = waiter.wait();
            if sector == 0 {
                assert!(completion.result.is_ok(), "what is left of the disk");
                continue;
            }
            let error = completion.result.unwrap_err();
            assert_eq!(*error.device, *attached.path().display().to_string());
            let about = (error.operation, error.sector, error.length);
            assert_eq!(about, (Operation::Read, Sector(sector), 8192));
            assert!(matches!(error.reason, Reason::Io(_)), "{error:?}");
        }
        assert_eq!(read_buffer(&*device, Sector(0), 4096).unwrap()[..], [0; 4096]);
    }
}
