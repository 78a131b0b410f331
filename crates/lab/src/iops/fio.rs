//! fio beside the drivers: the same file, the same kind of I/O, in the same run.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::outcome::Access;
use super::work::FileWork;
use crate::error::LabError;
use crate::measure::rate::Window;
use crate::measure::usage::Usage;

/// An engine of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// One thread, many requests: io_uring with registered buffers and files.
    IoUring,
    /// Threads that block in `pread` and `pwrite`, as many as requests.
    Psync,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::IoUring => "fio-io_uring",
            Self::Psync => "fio-psync",
        }
    }
}

/// What fio prints, as far as it is used here.
#[derive(Deserialize)]
struct Report {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    /// In milliseconds.
    job_runtime: u64,
    /// In percent of the run time of one job.
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    read: Direction,
    write: Direction,
}

#[derive(Deserialize)]
struct Direction {
    iops: f64,
    /// In milliseconds.
    runtime: u64,
    total_ios: u64,
}

/// Runs fio once.
///
/// # Errors
/// fio is not installed, fails, or its output is not understood.
pub(super) fn run(
    engine: Engine,
    work: &FileWork,
    threads: usize,
    path: &Path,
    duration: Duration,
    seed: u64,
) -> Result<Window, LabError> {
    let output = command(engine, work, threads, path, duration, seed)
        .output()
        .map_err(|source| LabError::Fio(format!("{source}; install it (package fio)")))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(LabError::Fio(format!("{}: {}", output.status, message.trim())));
    }
    let report = serde_json::from_slice(&output.stdout)
        .map_err(|error| LabError::Fio(format!("its report is not understood: {error}")))?;
    Ok(window(&report))
}

fn command(
    engine: Engine,
    work: &FileWork,
    threads: usize,
    path: &Path,
    duration: Duration,
    seed: u64,
) -> Command {
    let mut fio = Command::new("fio");
    let rw = match work.access {
        Access::Read => "randread",
        Access::Write => "randwrite",
    };
    fio.args(["--name=lab", "--output-format=json", "--thread", "--time_based", "--norandommap"]);
    fio.args(["--group_reporting", "--randrepeat=1", "--fallocate=none", "--invalidate=0"]);
    fio.arg(format!("--filename={}", path.display())).arg(format!("--rw={rw}"));
    fio.arg(format!("--bs={}", work.block_bytes)).arg(format!("--size={}", work.file_bytes));
    fio.arg(format!("--direct={}", u8::from(work.direct))).arg(format!("--randseed={seed}"));
    fio.arg(format!("--runtime={}ms", duration.as_millis()));
    match engine {
        Engine::IoUring => {
            fio.args(["--ioengine=io_uring", "--fixedbufs", "--registerfiles"]);
            fio.arg(format!("--iodepth={}", work.depth)).arg(format!("--numjobs={threads}"));
        }
        Engine::Psync => {
            fio.args(["--ioengine=psync", "--iodepth=1"])
                .arg(format!("--numjobs={}", threads * work.depth));
        }
    }
    fio
}

/// What one run of fio counted, in the terms of our own runs.
fn window(report: &Report) -> Window {
    let directions = || report.jobs.iter().flat_map(|job| [&job.read, &job.write]);
    let ios: u64 = directions().map(|direction| direction.total_ios).sum();
    let iops: f64 = directions().map(|direction| direction.iops).sum();
    let runtime = directions().map(|direction| direction.runtime).max().unwrap_or(0);
    // With several jobs in one group the rate is that of all, over the longest run.
    let seconds = if iops > 0.0 { ios as f64 / iops } else { runtime as f64 / 1e3 };
    let cpu_ns = |job: &Job| (job.usr_cpu + job.sys_cpu) / 100.0 * job.job_runtime as f64 * 1e6;
    Window {
        elapsed: Duration::from_secs_f64(seconds),
        ios,
        all_ios: ios,
        usage: Usage {
            cpu_ns: report.jobs.iter().map(cpu_ns).sum::<f64>() as u64,
            // fio counts both kinds together; almost all are sleeps.
            voluntary: report.jobs.iter().map(|job| job.ctx).sum(),
            involuntary: 0,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_becomes_a_window() {
        let text = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "lab", "job_runtime": 1000,
            "usr_cpu": 18.7, "sys_cpu": 71.3, "ctx": 72,
            "read": {"iops": 5000.0, "runtime": 1000, "total_ios": 5000},
            "write": {"iops": 0.0, "runtime": 0, "total_ios": 0}}]}"#;
        let window = window(&serde_json::from_str(text).unwrap());
        assert_eq!((window.ios, window.elapsed), (5000, Duration::from_secs(1)));
        assert_eq!(window.usage.cpu_ns / 1_000_000, 900);
        assert_eq!(window.usage.voluntary, 72);
    }
}
