//! The kernel's tracepoints of the allocator, for one mounted volume.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const TRACING: &str = "/sys/kernel/tracing";

/// The events recorded.
const EVENTS: [&str; 9] = [
    "xfs_alloc_near_first",
    "xfs_alloc_cur_lookup",
    "xfs_alloc_cur",
    "xfs_alloc_exact_done",
    "xfs_alloc_size_done",
    "xfs_alloc_vextent_finish",
    "xfs_free_extent",
    "xfs_extent_busy_clear",
    "xfs_alloc_small_freelist",
];

/// A buffer of the kernel's tracer for one volume; dropping it removes it.
pub(crate) struct Tracer {
    instance: PathBuf,
}

impl Tracer {
    /// Starts to record what the allocator does on the volume mounted at `mount`.
    pub(crate) fn start(mount: &Path) -> Self {
        let instances = Path::new(TRACING).join("instances");
        if !instances.exists() {
            let status = Command::new("mount").args(["-t", "tracefs", "tracefs", TRACING]).status();
            assert!(status.unwrap().success(), "{TRACING} cannot be mounted");
        }
        let name = mount.file_name().unwrap();
        let instance = instances.join(name);
        fs::create_dir(&instance).unwrap();
        let tracer = Self { instance };
        tracer.set("buffer_size_kb", "65536");
        // Clocks of processors differ by more than what lies between two events.
        tracer.set("trace_clock", "counter");
        let device = fs::metadata(mount).unwrap().dev();
        let device =
            u64::from(rustix::fs::major(device)) << 20 | u64::from(rustix::fs::minor(device));
        for event in EVENTS {
            tracer.set(&format!("events/xfs/{event}/filter"), &format!("dev == {device}"));
            tracer.set(&format!("events/xfs/{event}/enable"), "1");
        }
        tracer
    }

    fn set(&self, file: &str, value: &str) {
        let path = self.instance.join(file);
        if let Err(error) = fs::write(&path, value) {
            panic!("{}: {error}; the kernel lacks a tracepoint", path.display());
        }
    }

    /// The events recorded, in their order.
    pub(crate) fn stop(self) -> Vec<Event> {
        self.set("tracing_on", "0");
        let text = fs::read_to_string(self.instance.join("trace")).unwrap();
        let lost = text.lines().any(|line| line.contains("LOST"));
        assert!(!lost, "the tracer's buffer is too small");
        text.lines().filter_map(Event::parse).collect()
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.instance);
    }
}

/// One line of a trace.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) task: u32,
    pub(crate) name: String,
    fields: HashMap<String, u64>,
}

impl Event {
    /// `task-pid [cpu] flags time: name: key value key value ...`
    fn parse(line: &str) -> Option<Self> {
        let (head, rest) = line.split_once(": xfs_")?;
        let (name, fields) = rest.split_once(": ")?;
        let task = head.split(" [").next()?.trim().rsplit('-').next()?.trim();
        let mut words = fields.split_whitespace();
        let mut values = HashMap::new();
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            let number = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16),
                None => value.parse(),
            };
            if let Ok(number) = number {
                values.insert(key.to_owned(), number);
            }
        }
        Some(Self { task: task.parse().ok()?, name: format!("xfs_{name}"), fields: values })
    }

    /// A field; all are of 32 bits.
    pub(crate) fn get(&self, field: &str) -> u32 {
        let value = self.fields.get(field);
        let value = value.unwrap_or_else(|| panic!("{self:?} has no field {field}"));
        u32::try_from(*value).unwrap()
    }
}
