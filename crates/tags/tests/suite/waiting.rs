//! Threads, tasks and callbacks that wait, on the real machine: order, limits, statistics.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Attempt, CallbackWait, Caller, Tag, TagSet};

const POLICIES: [WakePolicy; 4] =
    [WakePolicy::Counters, WakePolicy::CyclicBatches, WakePolicy::WakeOne, WakePolicy::WakeAll];

fn take_all(caller: &mut Caller) -> Vec<Tag> {
    std::iter::from_fn(|| caller.try_get()).collect()
}

/// Waits until so many waiters stand in the queues.
fn until_waiting(set: &TagSet, waiters: usize) {
    while set.waiting() != waiters {
        thread::yield_now();
    }
}

/// A waiter that notes its number when it is called.
fn noted(caller: &mut Caller, number: usize, notes: &Arc<Mutex<Vec<usize>>>) -> CallbackWait {
    let notes = Arc::clone(notes);
    match caller.get_or_call(Arc::new(move || notes.lock().unwrap().push(number))) {
        Attempt::Waiting(wait) => wait,
        Attempt::Tag(tag) => panic!("got {tag:?} of a full set"),
    }
}

#[test]
fn one_queue_keeps_the_order_of_arrival() {
    for policy in [WakePolicy::Counters, WakePolicy::CyclicBatches, WakePolicy::WakeOne] {
        let set = TagSet::builder(2).policy(policy).wait_queues(1).build().unwrap();
        let tags = take_all(&mut set.caller());
        let notes = Arc::default();
        let mut caller = set.caller();
        let waits: Vec<_> = (0..4).map(|number| noted(&mut caller, number, &notes)).collect();
        set.put(tags[0]);
        set.put(tags[1]);
        assert_eq!(*notes.lock().unwrap(), [0, 1]);
        drop(waits);
    }
}

#[test]
fn all_kinds_of_waiters_stand_in_one_queue() {
    struct Note(Arc<Mutex<Vec<usize>>>);
    impl Wake for Note {
        fn wake(self: Arc<Self>) {
            self.0.lock().unwrap().push(1);
        }
    }
    let set = TagSet::builder(3).wait_queues(1).build().unwrap();
    let tags = take_all(&mut set.caller());
    let notes: Arc<Mutex<Vec<usize>>> = Arc::default();
    let mut dispatcher = set.caller();
    let first = noted(&mut dispatcher, 0, &notes);
    let mut task = set.caller();
    let mut second = pin!(task.get_async());
    let waker = Waker::from(Arc::new(Note(Arc::clone(&notes))));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    thread::scope(|scope| {
        let third = scope.spawn(|| {
            let tag = set.caller().get_blocking();
            notes.lock().unwrap().push(2);
            tag
        });
        until_waiting(&set, 3);
        set.put(tags[0]);
        assert_eq!(*notes.lock().unwrap(), [0]);
        assert!(first.is_woken());
        set.put(tags[1]);
        assert_eq!(*notes.lock().unwrap(), [0, 1]);
        set.put(tags[2]);
        third.join().unwrap();
    });
    assert_eq!(*notes.lock().unwrap(), [0, 1, 2]);
    assert!(matches!(first.retry(&mut dispatcher), Attempt::Tag(_)));
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    let statistics = set.statistics();
    assert_eq!((statistics.sleeps, statistics.wakes_granted, statistics.wakes_used), (3, 3, 3));
}

#[test]
fn a_waiter_that_lost_the_race_keeps_its_place() {
    let set = TagSet::builder(1).wait_queues(1).build().unwrap();
    let mut fast = set.caller();
    let tag = fast.try_get().unwrap();
    let notes = Arc::default();
    let mut caller = set.caller();
    let first = noted(&mut caller, 0, &notes);
    let _second = noted(&mut caller, 1, &notes);
    set.put(tag);
    let tag = fast.try_get().unwrap();
    let Attempt::Waiting(first) = first.retry(&mut caller) else { panic!("the tag is gone") };
    set.put(tag);
    assert_eq!(*notes.lock().unwrap(), [0, 0]);
    assert!(matches!(first.retry(&mut caller), Attempt::Tag(_)));
}

#[test]
fn a_waiter_that_gives_up_passes_its_wake_up_on() {
    let set = TagSet::builder(1).wait_queues(1).build().unwrap();
    let tag = set.caller().try_get().unwrap();
    let notes = Arc::default();
    let mut caller = set.caller();
    let waits: Vec<_> = (0..4).map(|number| noted(&mut caller, number, &notes)).collect();
    let mut waits = waits.into_iter();
    set.put(tag);
    // Woken, then given up: the next one is told.
    drop(waits.next());
    assert_eq!(*notes.lock().unwrap(), [0, 1]);
    // Given up without having been woken: no other waiter is woken, and the queue closes up.
    let second = waits.next();
    drop(waits.next());
    drop(second);
    assert_eq!(*notes.lock().unwrap(), [0, 1, 3]);
    assert_eq!(set.statistics().wakes_passed_on, 2);
}

#[test]
fn a_timeout_ends_a_wait() {
    let set = TagSet::new(1).unwrap();
    let mut caller = set.caller();
    let tag = caller.get_timeout(Duration::ZERO).unwrap();
    assert_eq!(caller.get_timeout(Duration::from_millis(5)), None);
    assert_eq!((set.waiting(), set.statistics().sleeps), (0, 1));
    set.put(tag);
    assert_eq!(caller.get_timeout(Duration::MAX), Some(tag));
}

#[test]
fn batches_follow_the_depth() {
    for (depth, batch) in [(64, 8), (20, 2)] {
        assert_eq!(TagSet::new(depth).unwrap().wake_batch(), batch);
    }
    let shared = TagSet::builder(64).fair_sharing(true).build().unwrap();
    let users: Vec<_> = (0..4).map(|_| shared.user()).collect();
    let mut callers: Vec<_> = users.iter().map(undercroft_tags::User::caller).collect();
    for caller in &mut callers {
        caller.try_get().unwrap();
    }
    assert_eq!((shared.active_users(), shared.wake_batch()), (4, 2));
    users[0].idle();
    assert_eq!((shared.active_users(), shared.wake_batch()), (3, 2));
    drop((users, callers));
    assert_eq!((shared.active_users(), shared.wake_batch()), (0, 8));
    assert_eq!(shared.in_use(), 4);
}

#[test]
fn a_batch_of_puts_wakes_a_batch_of_waiters() {
    for policy in POLICIES {
        let set = TagSet::builder(64).policy(policy).build().unwrap();
        let mut caller = set.caller();
        let mut batches = Vec::new();
        while set.in_use() < 64 {
            batches.push(caller.try_get_batch(64));
        }
        let notes: Arc<Mutex<Vec<usize>>> = Arc::default();
        let _waits: Vec<_> = (0..20).map(|number| noted(&mut caller, number, &notes)).collect();
        let woken = || notes.lock().unwrap().len();
        set.put_batch(batches[0]);
        assert_eq!(batches[0].len(), 16);
        match policy {
            // Two batches of 8.
            WakePolicy::Counters | WakePolicy::WakeOne => assert_eq!(woken(), 16),
            // Two queues of the eight, which hold 2 or 3 of the 20.
            WakePolicy::CyclicBatches => assert!((4..=6).contains(&woken())),
            _ => assert_eq!(woken(), 20),
        }
    }
}

#[test]
fn puts_below_a_batch_are_carried() {
    let set = TagSet::new(64).unwrap();
    let mut caller = set.caller();
    let tags = take_all(&mut caller);
    let notes: Arc<Mutex<Vec<usize>>> = Arc::default();
    let _waits: Vec<_> = (0..10).map(|number| noted(&mut caller, number, &notes)).collect();
    for tag in &tags[..7] {
        set.put(*tag);
    }
    assert_eq!(notes.lock().unwrap().len(), 0);
    set.put(tags[7]);
    assert_eq!(notes.lock().unwrap().len(), 8);
}

/// A callback that puts another tag in the middle of a wake-up, on the same thread.
#[test]
fn a_completion_may_interrupt_a_completion() {
    for policy in POLICIES {
        let set = TagSet::builder(2).policy(policy).build().unwrap();
        let tags = take_all(&mut set.caller());
        let calls = Arc::new(AtomicUsize::new(0));
        let mut caller = set.caller();
        let (inner, other, count) = (set.clone(), Mutex::new(Some(tags[1])), Arc::clone(&calls));
        let first = caller.get_or_call(Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            if let Some(tag) = other.lock().unwrap().take() {
                inner.put(tag);
            }
        }));
        let count = Arc::clone(&calls);
        let second = caller.get_or_call(Arc::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        set.put(tags[0]);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        for attempt in [first, second] {
            let Attempt::Waiting(wait) = attempt else { panic!("the set was full") };
            assert!(matches!(wait.retry(&mut caller), Attempt::Tag(_)));
        }
    }
}

/// The other waiters of a batch are told though the first one's callback panics.
#[test]
fn a_panic_in_a_callback_loses_no_waiter() {
    let set = TagSet::builder(1).policy(WakePolicy::WakeAll).build().unwrap();
    let tag = set.caller().try_get().unwrap();
    let mut caller = set.caller();
    let _first = caller.get_or_call(Arc::new(|| panic!("a callback of the test")));
    let notes: Arc<Mutex<Vec<usize>>> = Arc::default();
    let waits: Vec<_> = (1..20).map(|number| noted(&mut caller, number, &notes)).collect();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| set.put(tag))).is_err());
    set.wake_all();
    assert_eq!(notes.lock().unwrap().len(), 19);
    drop(waits);
}

#[test]
fn many_threads_share_few_tags() {
    for policy in POLICIES {
        for (depth, queues) in [(1, 1), (2, 8), (5, 3), (64, 8)] {
            let set = TagSet::builder(depth).policy(policy).wait_queues(queues).build().unwrap();
            let holders: Vec<_> = (0..depth).map(|_| AtomicUsize::new(0)).collect();
            thread::scope(|scope| {
                for _ in 0..12 {
                    scope.spawn(|| {
                        let mut caller = set.caller();
                        for round in 0..500 {
                            let tag = caller.get_blocking();
                            assert_eq!(holders[tag.index()].fetch_add(1, Ordering::Relaxed), 0);
                            if round % 16 == 0 {
                                thread::yield_now();
                            }
                            holders[tag.index()].fetch_sub(1, Ordering::Relaxed);
                            caller.put(tag);
                        }
                    });
                }
            });
            let statistics = set.statistics();
            assert_eq!((statistics.gets, statistics.puts), (6000, 6000), "{policy:?} {depth}");
            assert_eq!((set.waiting(), set.in_use()), (0, 0));
        }
    }
}

/// An executor of one thread: a task that was woken is polled.
#[test]
fn tasks_share_few_tags() {
    struct Ready(usize, mpsc::Sender<usize>);
    impl Wake for Ready {
        fn wake(self: Arc<Self>) {
            self.1.send(self.0).unwrap();
        }
    }
    let set = TagSet::builder(3).build().unwrap();
    let (send, receive) = mpsc::channel();
    let finished = Arc::new(AtomicUsize::new(0));
    let mut tasks: Vec<_> = (0..20)
        .map(|_| {
            let (mut caller, finished) = (set.caller(), Arc::clone(&finished));
            Box::pin(async move {
                for _ in 0..50 {
                    let tag = caller.get_async().await;
                    let mut yielded = false;
                    std::future::poll_fn(|context| {
                        if std::mem::replace(&mut yielded, true) {
                            return Poll::Ready(());
                        }
                        context.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                    caller.put(tag);
                }
                finished.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    for task in 0..tasks.len() {
        send.send(task).unwrap();
    }
    let mut done = vec![false; tasks.len()];
    while finished.load(Ordering::Relaxed) < tasks.len() {
        let task = receive.recv_timeout(Duration::from_secs(60)).unwrap();
        if !done[task] {
            let waker = Waker::from(Arc::new(Ready(task, send.clone())));
            let polled = tasks[task].as_mut().poll(&mut Context::from_waker(&waker));
            done[task] = polled.is_ready();
        }
    }
    assert_eq!((set.in_use(), set.waiting(), set.statistics().gets), (0, 0, 1000));
}

/// Users of a shared set: the one that asks for much leaves the other its share.
#[test]
fn shares_are_fair() {
    for (fair, most) in [(true, 32), (false, 63)] {
        let set = TagSet::builder(63).fair_sharing(fair).build().unwrap();
        let (small, large) = (set.user(), set.user());
        let mut few = small.caller();
        let tag = few.try_get().unwrap();
        few.put(tag);
        let mut many = large.caller();
        assert_eq!(take_all(&mut many).len(), most);
        assert_eq!(few.try_get().is_some(), fair);
    }
}

/// A waiter that is limited and woken while another user's tags are free passes its wake-up on.
#[test]
fn wake_ups_are_for_waiters_that_can_use_them() {
    let set = TagSet::builder(8).fair_sharing(true).wait_queues(1).build().unwrap();
    let (large, small) = (set.user(), set.user());
    let mut few = small.caller();
    let own: Vec<_> = (0..4).map(|_| few.try_get().unwrap()).collect();
    let mut many = large.caller();
    let tags = take_all(&mut many);
    assert_eq!((tags.len(), set.in_use()), (4, 8));
    let notes = Arc::default();
    let _limited = noted(&mut many, 0, &notes);
    let _other = noted(&mut few, 1, &notes);
    // The tag goes to the user whose share has room now, though it came later.
    set.put(own[0]);
    assert_eq!(*notes.lock().unwrap(), [1]);
    set.put(tags[0]);
    assert_eq!(*notes.lock().unwrap(), [1, 0]);
}

#[test]
fn dumps_name_what_matters() {
    let set = TagSet::new(64).unwrap();
    let mut caller = set.caller();
    let tags = take_all(&mut caller);
    for tag in &tags {
        if !(10..20).contains(&tag.number()) {
            set.put(*tag);
        }
    }
    let dump = format!("{set:?}");
    for part in ["depth: 64", "busy: [10..=19]", "wake_batch: 8"] {
        assert!(dump.contains(part), "{part} is missing in {dump}");
    }
}

#[test]
fn a_million_tags() {
    let set = TagSet::builder(1_000_000).build().unwrap();
    let mut caller = set.caller();
    let mut batches = Vec::new();
    loop {
        let batch = caller.try_get_batch(64);
        if batch.is_empty() {
            break;
        }
        batches.push(batch);
    }
    assert_eq!((set.in_use(), caller.try_get()), (1_000_000, None));
    for batch in batches {
        set.put_batch(batch);
    }
    assert_eq!((set.in_use(), set.statistics().puts), (0, 1_000_000));
}

/// What may go to another thread.
#[test]
fn handles_move_between_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Caller>();
    send::<CallbackWait>();
    send::<undercroft_tags::GetAsync<'_>>();
    send::<TagSet>();
    sync::<TagSet>();
    send::<undercroft_tags::User>();
    sync::<undercroft_tags::User>();
}

/// A tag that a caller keeps for itself is free for all others, and survives its caller.
#[test]
fn a_kept_tag_is_free() {
    let set = TagSet::new(1).unwrap();
    let (mut one, mut other) = (set.caller(), set.caller());
    let tag = one.try_get().unwrap();
    one.put(tag);
    assert_eq!((set.in_use(), set.iter_busy().count()), (0, 0));
    assert_eq!(other.try_get(), Some(tag));
    assert_eq!((set.in_use(), one.try_get()), (1, None));
    other.put(tag);
    let mut third = set.caller();
    assert_eq!(third.try_get_batch(1).len(), 1);
    set.put(tag);
    one.put(third.try_get().unwrap());
    drop(one);
    assert_eq!(other.try_get(), Some(tag));
}
