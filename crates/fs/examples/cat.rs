//! Prints a file of a volume: `cargo run --example cat -- disk.img /etc/os-release`.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use undercroft_fs::FileSystem;

/// Writes the file at `path` in the volume that fills `image` to `out`.
pub(crate) fn cat(image: &Path, path: &str, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let fs = FileSystem::open_image(image)?;
    std::io::copy(&mut fs.open_file(path)?, out)?;
    Ok(())
}

#[allow(dead_code, reason = "a test includes this file for the function above")]
fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, image, path] = &arguments[..] else { return Err("usage: cat IMAGE PATH".into()) };
    cat(Path::new(image), path, &mut std::io::stdout())
}
