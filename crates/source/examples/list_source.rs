//! Lists what a source delivers, or reads all of it and tells how long that took.
//!
//! `list_source [--scan | --drain] DIRECTORY|ARCHIVE|-`

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use undercroft_source::{Entry, Kind, SourceOptions, SourceSpec, open};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.pop().ok_or("usage: list_source [--scan | --drain] SOURCE")?;
    let spec = SourceSpec::from(PathBuf::from(path));
    let mut source = open(&spec, &SourceOptions::default())?.source;
    let start = Instant::now();
    let (mut entries, mut bytes, mut chunks) = (0u64, 0u64, 0u64);
    match arguments.first().map(String::as_str) {
        Some("--scan") => source.scan(&mut |_| entries += 1)?,
        Some("--drain") => {
            while source.next_entry()?.is_some() {
                entries += 1;
                while let Some(data) = source.next_data()? {
                    bytes += data.chunk.len() as u64;
                    chunks += 1;
                }
            }
        }
        _ => {
            let mut output = std::io::BufWriter::new(std::io::stdout().lock());
            while let Some(entry) = source.next_entry()? {
                writeln!(output, "{}", line(&entry))?;
            }
            return Ok(output.flush()?);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{entries} entries, {bytes} bytes in {chunks} chunks, {seconds:.3} s");
    Ok(())
}

fn line(entry: &Entry) -> String {
    let (kind, detail) = match &entry.kind {
        Kind::Directory => ('d', String::new()),
        Kind::Regular { size, data } => ('-', format!(" {size} bytes, {} data ranges", data.len())),
        Kind::Symlink(target) => ('l', format!(" -> {}", target.escape_ascii())),
        Kind::HardLink(first) => ('h', format!(" link to {first}")),
        Kind::CharDevice(device) => ('c', format!(" {}:{}", device.major, device.minor)),
        Kind::BlockDevice(device) => ('b', format!(" {}:{}", device.major, device.minor)),
        Kind::Fifo => ('p', String::new()),
        Kind::Socket => ('s', String::new()),
    };
    let metadata = entry.metadata;
    let time = metadata.mtime;
    format!(
        "{kind}{:04o} {}:{} {}.{:09} {}{detail}",
        metadata.mode, metadata.uid, metadata.gid, time.seconds, time.nanoseconds, entry.path
    )
}
