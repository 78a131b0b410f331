//! Prints a file of a volume: `cargo run --example cat -- disk.img /etc/os-release`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::FileDevice;
use undercroft_fs::{FileSystem, OpenOptions};

/// Writes the file at `path` in the volume that fills `image` to `out`.
pub(crate) fn cat(image: &Path, path: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let device = Arc::new(FileDevice::open(image, true)?);
    let fs = FileSystem::open(device, &OpenOptions::read_only())?;
    out.write_all(&fs.read(path)?)?;
    Ok(())
}

#[allow(dead_code, reason = "a test includes this file for the function above")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, image, path] = &arguments[..] else { return Err("usage: cat IMAGE PATH".into()) };
    cat(Path::new(image), path, &mut std::io::stdout())
}
