//! Workers: they get tags and submit commands.
//!
//! A worker is a thread that keeps a number of commands outstanding. It waits for tags either
//! itself, as a process in a kernel does that submits one I/O after the other, or through one task
//! for each outstanding command.

use std::future::poll_fn;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::{self, Thread};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use futures_executor::block_on;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use futures_util::task::AtomicWaker;
use undercroft_tags::{Caller, User};

use super::device::{Command, Device, Owner};

/// A worker that waits for tags in its thread.
pub(super) struct ThreadOwner(CachePadded<ThreadState>);

struct ThreadState {
    outstanding: AtomicUsize,
    /// Set while the thread sleeps because it has enough outstanding.
    full: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A task of a worker: one command at a time.
pub(super) struct TaskOwner(CachePadded<TaskState>);

struct TaskState {
    done: AtomicBool,
    waker: AtomicWaker,
}

/// What one worker is asked to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// Its index among the workers.
    pub(super) worker: usize,
    /// Index of its first owner.
    pub(super) owner: usize,
    /// Its class.
    pub(super) class: usize,
    /// Commands that it keeps outstanding.
    pub(super) outstanding: usize,
    /// Bytes of each command.
    pub(super) bytes: u64,
}

impl ThreadOwner {
    pub(super) fn new() -> Self {
        Self(CachePadded::new(ThreadState {
            outstanding: AtomicUsize::new(0),
            full: AtomicBool::new(false),
            thread: OnceLock::new(),
        }))
    }

    /// Sleeps until fewer than `limit` commands are outstanding.
    fn wait_below(&self, limit: usize) {
        let state = &self.0;
        while state.outstanding.load(Ordering::SeqCst) >= limit {
            state.full.store(true, Ordering::SeqCst);
            if state.outstanding.load(Ordering::SeqCst) >= limit {
                thread::park();
            }
            state.full.store(false, Ordering::SeqCst);
        }
    }
}

impl Owner for ThreadOwner {
    fn completed(&self) {
        let state = &self.0;
        state.outstanding.fetch_sub(1, Ordering::SeqCst);
        if state.full.swap(false, Ordering::SeqCst)
            && let Some(thread) = state.thread.get()
        {
            thread.unpark();
        }
    }
}

impl TaskOwner {
    pub(super) fn new() -> Self {
        let state = TaskState { done: AtomicBool::new(false), waker: AtomicWaker::new() };
        Self(CachePadded::new(state))
    }

    /// Ends when the command is complete, and is ready for the next.
    async fn wait(&self) {
        poll_fn(|context| {
            self.0.waker.register(context.waker());
            if self.0.done.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl Owner for TaskOwner {
    fn completed(&self) {
        self.0.done.store(true, Ordering::Release);
        self.0.waker.wake();
    }
}

/// The life of a worker whose thread waits: submits until `stop`, then until all is complete.
pub(super) fn run_thread(
    caller: &mut Caller,
    owner: &ThreadOwner,
    device: &Device<'_, ThreadOwner>,
    job: Job,
    stop: &AtomicBool,
) {
    owner.0.thread.get_or_init(thread::current);
    while !stop.load(Ordering::Relaxed) {
        owner.wait_below(job.outstanding);
        let asked = Instant::now();
        let tag = caller.get_blocking();
        owner.0.outstanding.fetch_add(1, Ordering::SeqCst);
        let Job { owner, class, bytes, .. } = job;
        device.submit(Command { tag, owner, class, bytes, asked });
    }
    owner.wait_below(1);
}

/// The life of a worker of tasks: as [`run_thread`], with one task for each of `owners`.
pub(super) fn run_tasks(
    user: &User,
    owners: &[TaskOwner],
    device: &Device<'_, TaskOwner>,
    job: Job,
    stop: &AtomicBool,
) {
    let tasks = owners
        .iter()
        .enumerate()
        .map(|(index, owner)| run_task(user, owner, job.owner + index, device, job, stop));
    // A collection of futures polls only woken ones, as an executor does.
    let mut tasks: FuturesUnordered<_> = tasks.collect();
    block_on(async { while tasks.next().await.is_some() {} });
}

/// The life of one task: one command after the other until `stop`.
async fn run_task(
    user: &User,
    owner: &TaskOwner,
    index: usize,
    device: &Device<'_, TaskOwner>,
    job: Job,
    stop: &AtomicBool,
) {
    let mut caller = user.caller();
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let tag = caller.get_async().await;
        let Job { class, bytes, .. } = job;
        device.submit(Command { tag, owner: index, class, bytes, asked });
        owner.wait().await;
    }
}
