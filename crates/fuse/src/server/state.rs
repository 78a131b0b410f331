//! The state of a mount as the server knows it.

use super::Server;
use crate::status::Status;

impl Server {
    /// The state now.
    pub(crate) fn status(&self) -> Status {
        let volume = self.fs.volume();
        let load = volume.load();
        let failed = volume.refusal().map(|why| why.to_string());
        Status {
            image: self.name.clone(),
            pid: std::process::id(),
            socket: self.ending.as_ref().map_or_else(String::new, |ending| ending.name().into()),
            read_only: !self.fs.is_writable() || failed.is_some() || self.is_at_rest(),
            at_rest: self.is_at_rest(),
            failed,
            dirty_data: load.dirty_data,
            buffers: load.buffers,
            dirty_buffers: load.dirty_buffers,
            journal: load.journal,
            journal_used: load.journal_used,
            known_files: self.nodes.known(),
            open_files: self.nodes.openings() as u64,
            requests: self.counters.begun(),
            in_flight: self.counters.under_way(),
            damage_errors: self.failures.damage(),
            device_errors: self.failures.device(),
        }
    }
}
