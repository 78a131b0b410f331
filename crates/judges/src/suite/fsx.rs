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

/// Does `operations` on a file in `directory`, in the order of `seed`. What it leaves when it fails
/// goes to `artifacts`.
///
/// # Errors
/// A read that gave something else than was written, with the last operations; or the program is
/// missing.
pub fn run(directory: &Path, operations: u64, seed: u64, artifacts: &Path) -> Result<(), Error> {
    let program = cache::program("fsx")?;
    let configuration = artifacts.join("fsx.toml");
    fs::write(&configuration, CONFIGURATION).map_err(Error::io("cannot write", &configuration))?;
    let mut command = Command::new(program);
    command.args(["-N", &operations.to_string(), "-S", &seed.to_string()]);
    command.arg("-P").arg(artifacts).arg("-f").arg(&configuration);
    command.arg(directory.join("fsx"));
    program::run(&mut command)?.success().map(drop)
}
