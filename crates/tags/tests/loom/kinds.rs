//! Tasks and callbacks.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::sync::Notify;
use loom::thread;
use undercroft_tags::Attempt;
use undercroft_tags::experiments::WakePolicy;

use crate::{EVERY, Holders, model, small};

#[test]
fn a_task_is_woken() {
    model(EVERY, || {
        let set = small(1, WakePolicy::Counters, 1);
        let holders = Holders::new(1);
        let tag = set.caller().try_get().unwrap();
        holders.hold(tag);
        let (tasks, held) = (set.clone(), holders.clone());
        let task = thread::spawn(move || {
            let tag = block_on(async { tasks.caller().get_async().await });
            held.hold(tag);
            tasks.put(tag);
        });
        set.put(tag);
        task.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// A future that was polled once and is dropped while the tag is put, beside a thread that sleeps.
pub(crate) fn dropped_future_beside_a_waiter() {
    let set = small(1, WakePolicy::Counters, 1);
    let tag = set.caller().try_get().unwrap();
    let (mut task, mut patient) = (set.caller(), set.caller());
    let waiter = {
        // The future stands in the queue before the thread does.
        let mut future = Box::pin(async move {
            let mut get = pin!(task.get_async());
            std::future::poll_fn(|context| get.as_mut().poll(context)).await
        });
        let mut context = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut context).is_pending());
        let waiter = thread::spawn(move || {
            let tag = patient.get_blocking();
            patient.put(tag);
        });
        let put = set.clone();
        let putter = thread::spawn(move || put.put(tag));
        drop(future);
        putter.join().unwrap();
        waiter
    };
    waiter.join().unwrap();
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

#[test]
fn a_dropped_future_passes_the_wake_up_on() {
    model(3, dropped_future_beside_a_waiter);
}

/// The callback is called, or the retry after publication finds the tag; never neither.
#[test]
fn a_callback_is_called() {
    for policy in [WakePolicy::Counters, WakePolicy::CyclicBatches] {
        model(EVERY, move || {
            let set = small(1, policy, 1);
            let tag = set.caller().try_get().unwrap();
            let put = set.clone();
            let putter = thread::spawn(move || put.put(tag));
            let called = Arc::new(Notify::new());
            let bell = Arc::clone(&called);
            let mut caller = set.caller();
            let mut attempt = caller.get_or_call(Arc::new(move || bell.notify()));
            let tag = loop {
                match attempt {
                    Attempt::Tag(tag) => break tag,
                    Attempt::Waiting(wait) => {
                        called.wait();
                        attempt = wait.retry(&mut caller);
                    }
                }
            };
            caller.put(tag);
            putter.join().unwrap();
            assert_eq!((set.in_use(), set.waiting()), (0, 0));
        });
    }
}

/// A callback that is dropped while it is called, beside a thread that sleeps.
#[test]
fn a_dropped_callback_passes_the_wake_up_on() {
    model(3, || {
        let set = small(1, WakePolicy::Counters, 1);
        let tag = set.caller().try_get().unwrap();
        let (mut dispatcher, mut patient) = (set.caller(), set.caller());
        let Attempt::Waiting(wait) = dispatcher.get_or_call(Arc::new(|| ())) else {
            panic!("the only tag is taken");
        };
        let waiter = thread::spawn(move || {
            let tag = patient.get_blocking();
            patient.put(tag);
        });
        let put = set.clone();
        let putter = thread::spawn(move || put.put(tag));
        drop(wait);
        putter.join().unwrap();
        waiter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// A spurious poll with another waker: the last waker is the one that is woken.
#[test]
fn the_last_waker_counts() {
    model(3, || {
        let set = small(1, WakePolicy::Counters, 1);
        let tag = set.caller().try_get().unwrap();
        let mut caller = set.caller();
        let put = set.clone();
        let putter = thread::spawn(move || put.put(tag));
        let tag = {
            let mut get = pin!(caller.get_async());
            let mut context = Context::from_waker(Waker::noop());
            match get.as_mut().poll(&mut context) {
                Poll::Ready(tag) => tag,
                Poll::Pending => block_on(get),
            }
        };
        caller.put(tag);
        putter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}
