//! Memory of a server under a load of everything that files do: it stays within the bound, and once the
//! caches are full it does not grow: the peaks of both halves of a long run are alike.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::stand::Stand;
use crate::shell;

/// What the server may take: `--memory` as it is by default, data that waits to be written, and the
/// program with its threads.
const MOST_KIB: u64 = (256 + 64 + 64) << 10;

/// A half this long begins with caches that have filled, but for their first moments.
const SETTLED: Duration = Duration::from_secs(10 * 60);

/// One of each.
const LOAD: [&str; 10] = [
    "dentry",
    "dir",
    "rename",
    "hdd",
    "xattr",
    "link",
    "symlink",
    "copy-file",
    "fallocate",
    "iomix",
];

/// Works for so many seconds; says what the peaks of both halves were.
pub(super) fn run(program: &Path, seconds: u64) -> Result<String> {
    let mut stand = Stand::new(program, &[])?;
    let half = Duration::from_secs(seconds.max(2) / 2);
    let mut peaks = [0; 2];
    for peak in &mut peaks {
        let server = format!("/proc/{}", stand.server()?);
        // The peak counts from here on (proc(5)).
        fs::write(format!("{server}/clear_refs"), "5").context("cannot reset the peak")?;
        let end = Instant::now() + half;
        // Stressors may end before their time.
        while Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            work(&stand.path(), left.as_secs().max(1))?;
        }
        *peak = peak_kib(&fs::read_to_string(format!("{server}/status"))?)?;
    }
    let [first, second] = peaks;
    ensure!(first.max(second) <= MOST_KIB, "{first} and {second} KiB, more than {MOST_KIB}");
    // A tenth: the moments of large writes fall as they like.
    let has_grown = half >= SETTLED && second > first + first / 10;
    ensure!(!has_grown, "from {first} to {second} KiB in the second half");
    let accepted = stand.accept()?;
    Ok(format!("peaks of {} and {} MiB, {accepted}", first >> 10, second >> 10))
}

fn work(directory: &Path, seconds: u64) -> Result<()> {
    let mut command = Command::new("stress-ng");
    for stressor in LOAD {
        command.args([format!("--{stressor}"), "1".to_owned()]);
    }
    command.args(["--hdd-bytes", "128M", "--copy-file-bytes", "128M", "--iomix-bytes", "64M"]);
    command.args(["--fallocate-bytes", "64M", "--dentries", "20000", "--verify"]);
    command.args(["--timeout", &format!("{seconds}s"), "--temp-path"]).arg(directory);
    shell::output(&mut command).map(drop)
}

/// The most that a process had in memory.
fn peak_kib(status: &str) -> Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.context("the system does not say it")?.trim().parse().context("no number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read() {
        assert_eq!(
            peak_kib("VmPeak:\t  7 kB\nVmHWM:\t   57032 kB\nVmRSS:\t 9 kB\n").unwrap(),
            57032
        );
        assert!(peak_kib("VmRSS:\t 9 kB\n").is_err());
    }
}
