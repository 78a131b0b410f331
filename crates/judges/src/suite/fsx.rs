//! fsx, the exerciser of one file: reads and writes by call and by mapping, cuts, holes, copies.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Error, cache, program};

/// Everything that Linux has, mappings as often as calls.
const CONFIGURATION: &str = r"
flen = 1048576
[opsize]
max = 131072
[weights]
close_open = 1
read = 10
write = 10
mapread = 10
mapwrite = 10
invalidate = 1
truncate = 5
fsync = 1
fdatasync = 1
posix_fallocate = 2
punch_hole = 3
sendfile = 2
posix_fadvise = 2
copy_file_range = 3
";

/// Operations of one process: fsx 0.3 keeps each mapping that it has read by, a sixth of them, and
/// the system, which looks at all of them when the file is cut, lets a process have 65,530.
const PART: u64 = 50_000;

/// Does `operations` on a file in `directory`, in the order of `seed`, in several processes with
/// seeds of their own if they are many. What one leaves when it fails goes to `artifacts`.
///
/// # Errors
/// A read that gave something else than was written, with the last operations; or the program is
/// missing.
pub fn run(directory: &Path, operations: u64, seed: u64, artifacts: &Path) -> Result<(), Error> {
    let program = cache::program("fsx")?;
    let configuration = artifacts.join("fsx.toml");
    fs::write(&configuration, CONFIGURATION).map_err(Error::io("cannot write", &configuration))?;
    for part in 0..operations.div_ceil(PART) {
        let count = PART.min(operations - part * PART);
        let mut command = Command::new(&program);
        command.args(["-N", &count.to_string(), "-S", &(seed + part).to_string()]);
        command.arg("-P").arg(artifacts).arg("-f").arg(&configuration);
        command.arg(directory.join("fsx"));
        program::run(&mut command)?.success()?;
    }
    Ok(())
}
