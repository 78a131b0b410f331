//! The long form of the mutation test: checks a volume with mutated metadata again and again, and
//! compares the verdict with that of the newest `xfs_repair -n`.
//!
//! `cargo run --release -p undercroft-xfs --example check_mutations -- ROUNDS SEED [COPY]`.
//! The volume is the one of the damage corpus; the kernel makes it, which needs root. With COPY, a
//! file to be made, `xfs_repair` is asked as well; without it the copy is in memory.

#[path = "../tests/mutation/mod.rs"]
mod mutation;

use mutation::Subject;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::{BlockDevice, FileDevice, MemoryDevice};
use undercroft_judges::Xfsprogs;
use undercroft_judges::damage::volume;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let (rounds, seed, copy) = match &arguments[1..] {
        [rounds, seed] => (rounds, seed, None),
        [rounds, seed, copy] => (rounds, seed, Some(Path::new(copy))),
        _ => return Err("usage: check_mutations ROUNDS SEED [COPY]".into()),
    };
    let (_directory, image) = volume()?;
    let image = std::fs::read(image)?;
    let device: Arc<dyn BlockDevice> = match copy {
        None => Arc::new(MemoryDevice::new(image.len() as u64)),
        Some(path) => {
            std::fs::File::create(path)?.set_len(image.len() as u64)?;
            Arc::new(FileDevice::open(path, false)?)
        }
    };
    let tools = Xfsprogs::newest()?;
    let mut subject = Subject::new(device, &image, seed.parse::<u64>()?.max(1))?;
    let (pristine, _) = subject.check()?;
    println!("{} pieces of metadata, {pristine:?}", subject.pieces());
    let (mut clean, mut most, mut differ) = (0_u64, 0, 0_u64);
    for round in 0..rounds.parse::<u64>()? {
        let (ours, theirs) = subject
            .round(4, |subject| (subject.check(), copy.map(|copy| tools.repair_check(copy))))?;
        let Ok((report, findings)) = ours else { continue };
        clean += u64::from(report.is_clean());
        most = most.max(report.bytes);
        let Some(theirs) = theirs else { continue };
        if report.is_clean() != theirs.is_ok() {
            differ += 1;
            let findings = &findings[..findings.len().min(3)];
            match theirs {
                Ok(()) => println!("round {round}: xfs_repair sees nothing, we see {findings:?}"),
                Err(error) => println!("round {round}: we see nothing, xfs_repair says {error}"),
            }
        }
    }
    println!("{clean} rounds found clean, {differ} verdicts differ, at most {most} bytes read");
    Ok(())
}
