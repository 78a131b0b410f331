//! Volumes that are closed while threads change them: each change is kept or refused.

use crate::volumes::{close_and_check, create, fresh, memory, open, open_to_crash, options, same};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};
use undercroft_block::BlockDevice;
use undercroft_fs::{Allocation, Error, ErrorKind, Existing, File, FileSystem, NewFile};
use undercroft_xfs::recovery::LogState;

const THREADS: usize = 8;

/// The contents of the files of one thread, as far as they were accepted.
type Accepted = BTreeMap<String, Vec<u8>>;

/// Makes files and appends to one, until it is refused.
fn change(
    fs: &FileSystem,
    (thread, appended): (usize, File),
    changes: &AtomicUsize,
) -> (Accepted, Error) {
    let log = format!("log-{thread}");
    let mut accepted = Accepted::from([(log.clone(), Vec::new())]);
    for round in 0_usize.. {
        let (name, bytes) = (format!("{thread}-{round}"), vec![round as u8; 3000]);
        let new = NewFile::new(0o644);
        let made = fs.nodes().create(fs.root(), name.as_bytes(), &new, Existing::Refuse);
        let file = match made {
            Ok((_, file)) => file,
            Err(error) => return (accepted, error),
        };
        accepted.insert(name.clone(), Vec::new());
        if let Err(error) = file.write_at(0, &bytes) {
            return (accepted, error);
        }
        accepted.insert(name, bytes);
        let line = round.to_le_bytes();
        if let Err(error) = appended.append(&line) {
            return (accepted, error);
        }
        accepted.get_mut(&log).unwrap().extend(line);
        // A removed file that is open is freed when the volume is closed, not seen by the test.
        if let Err(error) = remove_open_file(fs, thread, round) {
            return (accepted, error);
        }
        changes.fetch_add(1, Ordering::Relaxed);
    }
    unreachable!("it is refused in the end")
}

fn remove_open_file(fs: &FileSystem, thread: usize, round: usize) -> Result<(), Error> {
    if !round.is_multiple_of(16) {
        return Ok(());
    }
    let name = format!("gone-{thread}");
    let (_, file) =
        fs.nodes().create(fs.root(), name.as_bytes(), &NewFile::new(0o600), Existing::Refuse)?;
    file.write_at(0, &[9; 20_000])?;
    fs.nodes().unlink(fs.root(), name.as_bytes())?;
    file.set_len(5000)
}

fn is_refusal(error: &Error) -> bool {
    error.kind() == ErrorKind::ReadOnly && error.to_string().contains("closed")
}

#[test]
fn what_is_accepted_while_a_volume_is_closed_is_kept() {
    for round in 0..4 {
        let device = memory();
        let fs = open(&device);
        let changes = AtomicUsize::new(0);
        let logs = (0..THREADS).map(|it| (it, create(&fs, fs.root(), &format!("log-{it}"))));
        let logs: Vec<_> = logs.collect();
        let told: Vec<_> = std::thread::scope(|scope| {
            let (fs, changes) = (&fs, &changes);
            let start = |log| scope.spawn(move || change(fs, log, changes));
            let threads: Vec<_> = logs.into_iter().map(start).collect();
            while changes.load(Ordering::Relaxed) < 100 * (round + 1) {
                std::thread::sleep(Duration::from_millis(1));
            }
            fs.close().unwrap();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        drop(fs);
        is_clean(&device);
        let fs = open(&device);
        for (accepted, refusal) in told {
            assert!(is_refusal(&refusal), "{refusal:?}");
            for (name, bytes) in accepted {
                same(&fs.read(format!("/{name}")).unwrap(), &bytes);
            }
        }
        close_and_check(fs, &device);
    }
}

#[test]
fn what_is_accepted_before_the_last_handle_is_dropped_is_kept() {
    let device = memory();
    let fs = open(&device);
    let appended = create(&fs, fs.root(), "appended");
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let fs = fs.clone();
            std::thread::spawn(move || {
                for round in 0..50 {
                    let name = format!("/{thread}-{round}");
                    fs.write(name, vec![thread as u8; 3000 + round]).unwrap();
                }
            })
        })
        .collect();
    drop(fs);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    // A file is a handle, too.
    appended.append(b"the end").unwrap();
    drop(appended);
    is_clean(&device);
    let fs = open(&device);
    for (thread, round) in (0..THREADS).flat_map(|thread| (0..50).map(move |it| (thread, it))) {
        let bytes = fs.read(format!("/{thread}-{round}")).unwrap();
        same(&bytes, &vec![thread as u8; 3000 + round]);
    }
    assert_eq!(fs.read("/appended").unwrap(), b"the end");
    close_and_check(fs, &device);
}

#[test]
fn what_is_accepted_before_a_sync_outlives_the_process() {
    let device = memory();
    let fs = open_to_crash(&device);
    let (written, is_over) = (Mutex::new(BTreeMap::new()), AtomicBool::new(false));
    let synced = std::thread::scope(|scope| {
        let (fs, written, is_over) = (&fs, &written, &is_over);
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0_usize.. {
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    let (name, bytes) = (format!("/{thread}-{round}"), vec![round as u8; 3000]);
                    fs.write(&name, &bytes).unwrap();
                    written.lock().unwrap().insert(name, bytes);
                }
            });
        }
        while written.lock().unwrap().len() < 200 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let before = written.lock().unwrap().clone();
        fs.sync_and_wait().unwrap();
        is_over.store(true, Ordering::Relaxed);
        before
    });
    drop(fs);
    let fs = open(&device);
    for (name, bytes) in synced {
        same(&fs.read(name).unwrap(), &bytes);
    }
    close_and_check(fs, &device);
}

/// There is nothing to replay, and no file without a name.
fn is_clean(device: &Arc<dyn BlockDevice>) {
    let volume = undercroft_xfs::Volume::open_unreplayed(Arc::clone(device)).unwrap();
    assert_eq!(volume.log_state().unwrap(), LogState::Clean);
    let unnamed = |fs: &FileSystem| {
        let named = fs.walk("/").unwrap().count() as u64;
        fs.statfs().unwrap().inodes - named
    };
    // The volume's own.
    let own = unnamed(&fresh());
    assert_eq!(unnamed(&FileSystem::from_volume(Arc::new(volume))), own);
}

type Verb = fn(&FileSystem, &File) -> Result<(), Error>;

#[test]
fn every_change_of_a_closed_volume_is_refused() {
    let fs = fresh();
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, &[1; 5000]).unwrap();
    fs.close().unwrap();
    fs.close().unwrap();
    let verbs: [(&str, Verb); 8] = [
        ("write", |_, file| file.write_at(0, b"x")),
        ("append", |_, file| file.append(b"x").map(drop)),
        ("truncate", |_, file| file.set_len(1)),
        ("punch", |_, file| file.allocate(Allocation::PunchHole, 0..4096)),
        ("create", |fs, _| {
            fs.nodes().create(fs.root(), b"n", &NewFile::new(0o600), Existing::Refuse).map(drop)
        }),
        ("unlink", |fs, _| fs.nodes().unlink(fs.root(), b"file").map(drop)),
        ("mkdir", |fs, _| fs.create_dir_all("/d").map_err(Error::from)),
        ("write by path", |fs, _| fs.write("/file", "y").map_err(Error::from)),
    ];
    for (verb, act) in verbs {
        let error = act(&fs, &file).unwrap_err();
        assert!(is_refusal(&error), "{verb}: {error:?}");
    }
    assert_eq!(fs.read("/file").unwrap(), [1; 5000]);
}

#[test]
fn threads_and_callbacks_may_close_at_once() {
    let device = memory();
    let fs = open(&device);
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, &[1; 5000]).unwrap();
    let called = Arc::new(AtomicBool::new(false));
    let (other, flag) = (fs.clone(), Arc::clone(&called));
    // No answer comes before the callback is there.
    let held = fs.volume().begin().unwrap();
    file.fsync().on_complete(move |answer| {
        other.close().unwrap();
        answer.unwrap();
        flag.store(true, Ordering::SeqCst);
    });
    drop(held);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fs.close().unwrap());
        }
    });
    assert!(called.load(Ordering::SeqCst), "a callback that waits has run");
    drop(file);
    drop(fs);
    is_clean(&device);
    let fs = FileSystem::open(Arc::clone(&device), &options()).unwrap();
    assert_eq!(fs.read("/file").unwrap(), [1; 5000]);
    close_and_check(fs, &device);
}

/// Polls a future in this thread, which sleeps until it is woken; `None` if that takes too long.
fn awaited<F: Future>(future: F, bound: Duration) -> Option<F::Output> {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let (mut future, end) = (std::pin::pin!(future), Instant::now() + bound);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        std::thread::park_timeout(end.checked_duration_since(Instant::now())?);
    }
}

#[test]
fn a_callback_may_await_tickets_and_holds_up_no_task() {
    let device = memory();
    let fs = open(&device);
    let file = create(&fs, fs.root(), "file");
    file.write_at(0, &[1; 5000]).unwrap();
    let bound = Duration::from_secs(60);
    let (go, waits) = std::sync::mpsc::channel::<()>();
    let (awaits, has_awaited) = std::sync::mpsc::channel::<()>();
    let other = fs.clone();
    // No answer comes before the callback is there.
    let held = fs.volume().begin().unwrap();
    file.fsync().on_complete(move |answer| {
        answer.unwrap();
        other.write("/second", "2").unwrap();
        awaited(other.sync(), bound).expect("a callback can await").unwrap();
        awaits.send(()).unwrap();
        // Blocks until a task of another thread got its answer.
        waits.recv_timeout(bound).unwrap();
    });
    drop(held);
    file.write_at(0, &[2; 5000]).unwrap();
    awaited(file.fsync(), bound).expect("a task waits for no callback").unwrap();
    has_awaited.recv_timeout(bound).unwrap();
    go.send(()).unwrap();
    fs.close().unwrap();
    drop(file);
    close_and_check(fs, &device);
}
