//! A thread of a hardware queue: opens a driver queue and keeps it busy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::shared::Shared;
use crate::bio::Reason;
use crate::driver::{Bell, Completions, Driver, DriverQueue, OpenError};
use crate::queue::hardware::{Driving, HardwareQueue, Mail, Via};
use crate::queue::options::Drive;
use crate::request::RequestList;
use crate::threads::Alarm;

/// Starts a thread for `hardware`; returns when its driver queue is open.
pub(super) fn start<D: Driver>(
    shared: &Arc<Shared<D>>,
    hardware: &Arc<HardwareQueue>,
) -> Result<JoinHandle<()>, OpenError> {
    let name = shared.driver.name().to_owned();
    let (shared, hardware) = (Arc::clone(shared), Arc::clone(hardware));
    let (opened, answer) = mpsc::sync_channel(1);
    shared.threads.fetch_add(1, Ordering::Relaxed);
    let ending = Ending(Arc::clone(&shared));
    let thread = std::thread::Builder::new()
        .name("block-queue".into())
        .spawn(move || {
            let _ending = ending;
            if let Some(cpus) = shared.options.thread_cpus.get(hardware.index) {
                // Where it runs is a matter of speed; a set that does not exist is no reason to
                // refuse the device.
                let _ = cpus.pin_current_thread();
            }
            match shared.driver.open_queue(&shared.context(&hardware)) {
                Ok(queue) => {
                    if shared.options.drive == Drive::Threads(1) {
                        hardware.set_bell(queue.bell());
                    }
                    hardware.sound_threads.fetch_add(1, Ordering::Relaxed);
                    // The thread that opens the device may be gone.
                    let _ = opened.send(Ok(()));
                    drop(opened);
                    let work = || work(&shared, &hardware, queue);
                    if catch_unwind(AssertUnwindSafe(work)).is_err() {
                        refuse(&shared, &hardware);
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        })
        .map_err(|source| OpenError::Thread { name: name.clone(), source })?;
    match answer.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let source = std::io::Error::other("the driver panicked when it opened its queue");
            Err(OpenError::Thread { name, source })
        }
    }
}

/// Says that a thread has ended, or could not be started.
struct Ending<D: Driver>(Arc<Shared<D>>);

impl<D: Driver> Drop for Ending<D> {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Ordering::Release);
        self.0.gate.changed();
    }
}

/// The life of the thread: requests until the hardware queue is closed and all are answered.
fn work<D: Driver>(shared: &Arc<Shared<D>>, hardware: &Arc<HardwareQueue>, queue: D::Queue) {
    let alarm = Alarm::current();
    hardware.mail.attach(&alarm);
    let mut driving: Driving<D> = Driving::new(hardware, queue);
    let mut requests = RequestList::new();
    let mut completions = Completions::default();
    let mut stopped = false;
    loop {
        let mut mail = Mail::Empty;
        driving.mind_limits();
        if driving.is_held_up() {
            driving.go_on();
        } else {
            mail = hardware.mail.take(&mut requests, D::Queue::BATCH);
            hardware.count_taken(&requests);
            if !shared.is_stopping() {
                driving.start(&mut requests);
            }
        }
        if shared.is_stopping() {
            shared.stop(&mut driving, &mut requests, &mut stopped);
        }
        if !driving.completions.is_empty() {
            driving.poll();
        } else if driving.in_flight() > 0 || mail != Mail::Requests {
            let busy =
                driving.is_held_up() || driving.in_flight() > 0 || hardware.mail.is_waiting();
            if mail == Mail::Closed && !busy {
                shared.gate.wait_until(|| shared.may_end(hardware).then_some(()));
            }
            // Requests that the driver still has were answered.
            if mail == Mail::Closed && shared.may_end(hardware) && !hardware.has_answers() {
                driving.mind_limits();
                return;
            }
            if hardware.has_answers() || !sleep(hardware, &mut driving, &alarm) {
                driving.poll();
            }
        }
        std::mem::swap(&mut completions, &mut driving.completions);
        // A panic in a callback of one bio must not take the thread from the others; the panic hook
        // has reported it, and all other bios were answered.
        let ring = |bell: &Bell| driving.ring(bell);
        let finish = || shared.finish(hardware, &mut completions, Via::Driver, ring);
        let _ = catch_unwind(AssertUnwindSafe(finish));
        for answers in hardware.take_answers() {
            let _ = catch_unwind(AssertUnwindSafe(answers));
        }
    }
}

/// The life of a thread whose driver has panicked. Its requests were dropped; new ones are left to
/// the other threads of the queue, and refused when there is none.
fn refuse<D: Driver>(shared: &Arc<Shared<D>>, hardware: &HardwareQueue) {
    if hardware.sound_threads.fetch_sub(1, Ordering::Relaxed) > 1 {
        return;
    }
    let alarm = Alarm::current();
    let mut requests = RequestList::new();
    let mut completions = Completions::default();
    loop {
        let mail = hardware.mail.take(&mut requests, usize::MAX);
        while let Some(request) = requests.pop() {
            completions.push(request, Err(Reason::Broken.into()));
        }
        let finish = || shared.finish(hardware, &mut completions, Via::Driver, Bell::wake);
        let _ = catch_unwind(AssertUnwindSafe(finish));
        for answers in hardware.take_answers() {
            let _ = catch_unwind(AssertUnwindSafe(answers));
        }
        if mail == Mail::Closed && !hardware.mail.is_waiting() {
            shared.gate.wait_until(|| shared.may_end(hardware).then_some(()));
            if !hardware.has_answers() {
                return;
            }
        }
        if hardware.mail.may_sleep(&alarm, false, false) {
            alarm.park(None);
            hardware.mail.is_awake(&alarm);
        }
    }
}

/// Sleeps until there is work; returns whether there was none. Requests that were started go out
/// with the same call of the driver.
fn sleep<D: Driver>(
    hardware: &HardwareQueue,
    driving: &mut Driving<D>,
    alarm: &Arc<Alarm>,
) -> bool {
    if driving.is_held_up() {
        // It takes no further requests before it has started these.
        let sleeps = !driving.await_tag(alarm);
        if sleeps {
            driving.sleep(alarm);
        }
        return sleeps;
    }
    let sleeps = hardware.mail.may_sleep(alarm, driving.in_flight() > 0, false);
    if sleeps {
        driving.sleep(alarm);
        hardware.mail.is_awake(alarm);
    }
    sleeps
}
