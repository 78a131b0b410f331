//! Many small files, each made durable, by one thread: a ticket for each instead of a thread that
//! sleeps for it.
//!
//!     cargo run --release -p undercroft-xfs --example durable_files -- [FILES [IMAGE]]
//!
//! Makes a volume in the new file IMAGE, or in memory, and writes FILES files of 4 KiB (10,000
//! without an argument). First one after the other, each waited for; then all at once.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_xfs::format::{FileType, Timestamp};
use undercroft_xfs::mkfs::{self, MkfsOptions};
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::volume::LiveOptions;
use undercroft_xfs::{OpenFile, Volume};
use uuid::Uuid;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Files that are waited for one by one.
const PATIENT: usize = 200;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(10_000), |count| count.parse())?;
    let bytes = (512 << 20) + count as u64 * (16 << 10);
    let device: Arc<dyn BlockDevice> = match arguments.next() {
        Some(image) => {
            std::fs::File::create_new(&image)?.set_len(bytes)?;
            Arc::new(FileDevice::open(image.as_ref(), false)?)
        }
        None => Arc::new(MemoryDevice::new(bytes)),
    };
    let plan = mkfs::plan(&MkfsOptions::new(bytes, Uuid::from_u128(1)))?;
    mkfs::finish(&mkfs::begin(&device, plan, &NewInode::new(FileType::Directory, 0o755))?, true)?;

    // Open for changes through the journal, with data of files in memory until it is written back.
    let volume = Arc::new(Volume::open_live(device, &LiveOptions::default())?);

    let start = Instant::now();
    for number in 0..PATIENT {
        write(&volume, &format!("patient-{number}"))?.fsync().wait()?;
    }
    report("one after the other", PATIENT, start);

    // Callbacks come from the thread that writes the journal: they only say what came of it.
    let start = Instant::now();
    let (answers, answered) = sync_channel(count);
    for number in 0..count {
        let file = write(&volume, &format!("file-{number}"))?;
        let answers = answers.clone();
        file.fsync().on_complete(move |result| drop(answers.send(result)));
    }
    for _ in 0..count {
        answered.recv()??;
    }
    report("all at once", count, start);

    // As an unmount does; every ticket would be answered by this at the latest.
    volume.close()?;
    Ok(())
}

/// A new file in the root directory with 4 KiB in memory: nothing of it is durable yet.
fn write(volume: &Arc<Volume>, name: &str) -> Result<OpenFile> {
    let root = volume.geometry().root_inode;
    let new = NewInode::new(FileType::Regular, 0o644);
    let file = ops::make_open(volume, root, name.as_bytes(), &new)?;
    file.write(0, &[7; 4096], Timestamp::default())?;
    Ok(file)
}

fn report(how: &str, count: usize, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{how:>20}: {count} files, {:.0} a second", count as f64 / seconds);
}
