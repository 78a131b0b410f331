//! One load, as fio brings it to a server, and as our client does.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::BYTES;
use crate::{shell, workspace};

/// What is asked for, and by how many connections.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) name: &'static str,
    /// Its name for fio.
    pub(super) pattern: &'static str,
    /// Bytes of a request.
    pub(super) block: u64,
    pub(super) connections: u64,
    /// Requests in flight on all connections.
    pub(super) flight: u64,
}

/// What a load came to.
pub(super) struct Found {
    /// Requests a second.
    pub(super) rate: f64,
    /// Requests in all.
    pub(super) count: f64,
    /// Microseconds of the client's CPU for one.
    pub(super) cost: f64,
}

impl Load {
    fn reads(&self) -> bool {
        self.pattern.ends_with("read")
    }

    /// fio at `uri`.
    pub(super) fn by_fio(&self, uri: &str, seconds: u64) -> Result<Found> {
        let mut fio = Command::new("fio");
        fio.args(["--name=load", "--ioengine=nbd", "--thread", "--time_based"]);
        fio.args(["--group_reporting", "--output-format=json", "--size", &BYTES.to_string()]);
        fio.arg(format!("--uri={uri}")).arg(format!("--rw={}", self.pattern));
        fio.arg(format!("--bs={}", self.block)).arg(format!("--numjobs={}", self.connections));
        fio.arg(format!("--iodepth={}", self.flight / self.connections));
        fio.arg(format!("--runtime={seconds}"));
        // Its NBD engine says on the same output that it has connected.
        let text = shell::output(&mut fio)?;
        let start = text.find('{').context("fio told no JSON")?;
        let told: Value = serde_json::from_str(&text[start..]).context("fio told no JSON")?;
        let job = &told["jobs"][0];
        let kind = &job[if self.reads() { "read" } else { "write" }];
        let number = |value: &Value, name: &str| {
            value[name].as_f64().with_context(|| format!("fio did not tell {name}"))
        };
        let (rate, count) = (number(kind, "iops")?, number(kind, "total_ios")?);
        ensure!(count > 0.0, "{uri} answered nothing");
        // In percent of the time of the load, of all connections together.
        let percent = number(job, "usr_cpu")? + number(job, "sys_cpu")?;
        let milliseconds = number(kind, "runtime")?;
        let cost = percent / 100.0 * milliseconds * 1e3 * self.connections as f64 / count;
        Ok(Found { rate, count, cost })
    }

    /// Our client at `uri`.
    pub(super) fn by_client(&self, uri: &str, seconds: u64) -> Result<Found> {
        let mut client = Command::new(workspace::target("release/examples/client_load"));
        client.args([uri, if self.reads() { "read" } else { "write" }]);
        client.args([self.block, self.connections, self.flight, seconds].map(|n| n.to_string()));
        let text = shell::output(&mut client)?;
        let mut numbers = text.split_whitespace().map(str::parse);
        let mut number =
            || -> Result<f64> { Ok(numbers.next().context("the client told too few numbers")??) };
        let (rate, cost) = (number()?, number()?);
        Ok(Found { rate, count: rate * seconds as f64, cost })
    }
}
