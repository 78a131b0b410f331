//! Completions on another CPU: a list and a thread for each CPU that is asked for.
//!
//! The threads belong to the process and serve all devices. Each is bound to its CPU and sleeps
//! while its list is empty; the first push after that wakes it.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::affinity::CpuSet;
use crate::threads::sync::Parking;
use crate::threads::{PushList, role};

/// Work for another CPU: the answers of some requests.
pub(crate) type Answers = Box<dyn FnOnce() + Send>;

/// The list of one CPU, and its thread.
struct Station {
    list: PushList<Answers>,
    thread: Parking,
}

static STATIONS: RwLock<Option<HashMap<u32, Arc<Station>>>> = RwLock::new(None);

/// Does `answers` in the thread for `cpu`; here, if there can be none (no such CPU, no thread).
pub(crate) fn send(cpu: u32, answers: Answers) {
    let known = STATIONS.read().as_ref().and_then(|all| all.get(&cpu)).map(Arc::clone);
    match known.or_else(|| start(cpu)) {
        Some(station) => {
            if station.list.push(answers) {
                station.thread.unpark();
            }
        }
        None => answers(),
    }
}

/// Starts the thread for `cpu`, unless another has done so.
fn start(cpu: u32) -> Option<Arc<Station>> {
    let mut stations = STATIONS.write();
    let stations = stations.get_or_insert_default();
    if let Some(station) = stations.get(&cpu) {
        return Some(Arc::clone(station));
    }
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let run = move || {
        let pinned = CpuSet::only(cpu).pin_current_thread().is_ok();
        let thread = Parking::current();
        let station = pinned.then(|| Arc::new(Station { list: PushList::new(), thread }));
        // The starter waits for it.
        let _ = sender.send(station.clone());
        if let Some(station) = station {
            station.work();
        }
    };
    std::thread::Builder::new().name(format!("block-answer-{cpu}")).spawn(run).ok()?;
    let station = receiver.recv().ok().flatten()?;
    stations.insert(cpu, Arc::clone(&station));
    Some(station)
}

impl Station {
    /// The life of the thread.
    fn work(&self) {
        role::become_worker();
        loop {
            let answers = self.list.take_all();
            if answers.is_empty() {
                self.thread.park(None);
            }
            for one in answers {
                // A panic of one receiver must not take the thread from the others.
                let _ = catch_unwind(AssertUnwindSafe(one));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::affinity::{Topology, current_cpu};

    #[test]
    fn answers_are_given_on_the_cpu_asked_for() {
        let (sender, receiver) = mpsc::channel();
        let online = Topology::of_machine().online();
        for round in 0..50 {
            for cpu in online.iter() {
                let sender = sender.clone();
                send(cpu, Box::new(move || sender.send((cpu, current_cpu(), round)).unwrap()));
            }
        }
        for (wanted, found, _) in receiver.iter().take(50 * online.len()) {
            assert_eq!(wanted, found);
        }
    }

    #[test]
    fn without_such_a_cpu_they_are_given_here() {
        let here = std::thread::current().id();
        let (sender, receiver) = mpsc::channel();
        send(60_000, Box::new(move || sender.send(std::thread::current().id()).unwrap()));
        assert_eq!(receiver.try_recv(), Ok(here));
    }
}
