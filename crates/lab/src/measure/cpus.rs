//! The CPUs of the machine that an experiment may use.

use rustix::thread::sched_getaffinity;
use undercroft_block::Topology;

use crate::error::LabError;

/// The CPUs that run and that this process may use, in ascending order; at least one.
///
/// # Errors
/// The kernel refuses to say.
pub(crate) fn usable_cpus() -> Result<Vec<u32>, LabError> {
    let allowed = sched_getaffinity(None).map_err(|error| LabError::Machine {
        path: "the set of allowed CPUs".into(),
        source: error.into(),
    })?;
    let online = Topology::of_machine().online();
    Ok(online.iter().filter(|&cpu| allowed.is_set(cpu as usize)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_cpus() {
        assert!(!usable_cpus().unwrap().is_empty());
    }
}
