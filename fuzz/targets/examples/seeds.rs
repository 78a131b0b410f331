//! Writes the inputs that fuzzing begins with: a directory for each target that has some.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use undercroft_fuzz_targets::{TARGETS, seeds};

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args_os().nth(1).map(PathBuf::from).ok_or("which directory?")?;
    for target in TARGETS {
        let scratch = tempfile::tempdir()?;
        for (name, seed) in seeds(target.name, scratch.path())? {
            let directory = home.join(target.name);
            fs::create_dir_all(&directory)?;
            fs::write(directory.join(name), seed)?;
        }
    }
    Ok(())
}
