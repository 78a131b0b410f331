//! The machine that a record was made on.

use std::fs;
use std::path::PathBuf;

use rustix::system::uname;
use rustix::thread::sched_getaffinity;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

/// What figures depend on and a reader has to know. Nothing that names the machine or its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the first CPU.
    pub cpu_model: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Whether the machine is a virtual one.
    pub virtual_machine: bool,
    /// Architecture, such as `x86_64`.
    pub architecture: String,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Runnable threads when the session began, a mean over one minute: what else was going on.
    pub load: f64,
}

impl Machine {
    /// The machine that this process runs on.
    ///
    /// # Errors
    /// A file of `/proc` cannot be read, or the kernel refuses to say which CPUs may be used.
    pub fn this() -> Result<Self, LabError> {
        let names = uname();
        let cpus = read("/proc/cpuinfo")?;
        let affinity = sched_getaffinity(None).map_err(|error| LabError::Machine {
            path: PathBuf::from("the set of allowed CPUs"),
            source: error.into(),
        })?;
        let flags = field(&cpus, "flags").unwrap_or_default();
        let memory = field(&read("/proc/meminfo")?, "MemTotal").unwrap_or_default();
        let load = read("/proc/loadavg")?;
        Ok(Self {
            cpu_model: field(&cpus, "model name").unwrap_or_else(|| "unknown".to_owned()),
            cpus: affinity.count() as usize,
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
            architecture: names.machine().to_string_lossy().into_owned(),
            memory_bytes: number(&memory) * 1024,
            kernel: names.release().to_string_lossy().into_owned(),
            load: load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0),
        })
    }

    /// One line for the head of a report.
    #[must_use]
    pub fn summary(&self) -> String {
        format!(
            "{}, {} CPUs{}, {:.0} GiB, Linux {} {}, load {:.2}",
            self.cpu_model,
            self.cpus,
            if self.virtual_machine { " (virtual)" } else { "" },
            self.memory_bytes as f64 / f64::from(1 << 30),
            self.kernel,
            self.architecture,
            self.load,
        )
    }
}

fn read(path: &str) -> Result<String, LabError> {
    fs::read_to_string(path).map_err(|source| LabError::Machine { path: path.into(), source })
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// The number that `text` begins with; 0 if it does not.
fn number(text: &str) -> u64 {
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_cpu_memory_and_a_kernel() {
        let machine = Machine::this().unwrap();
        assert!(machine.cpus >= 1);
        assert!(machine.memory_bytes > 1 << 20);
        assert!(machine.kernel.contains('.'));
        assert!(machine.summary().contains(&machine.kernel));
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 2\nmodel name\t: A CPU: fast\nMemTotal:  17 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A CPU: fast"));
        assert_eq!(field(text, "name"), None);
        assert_eq!(number(&field(text, "MemTotal").unwrap()), 17);
    }
}
