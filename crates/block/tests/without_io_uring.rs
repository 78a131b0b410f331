//! Where io_uring is forbidden, as in many containers: the file device says so, works on threads,
//! and conforms.
//!
//! A filter on system calls binds the thread that installs it and those that it starts, so each
//! case has a thread of its own and the rest of the test program is free. A program of its own,
//! since the refusal is announced once in a process.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::{Arc, Mutex};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use undercroft_block::testing::conformance::check;
use undercroft_block::{
    BlockDevice, Engine, Fallback, FileDevice, FileOptions, OpenError, announce_fallback,
};

static ANNOUNCED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn announce(fallback: &Fallback) {
    ANNOUNCED.lock().unwrap().push(fallback.to_string());
}

/// Runs `test` in a thread for which setting up a ring fails with `errno`.
fn without_io_uring(errno: i32, test: impl FnOnce() + Send) {
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(
        [(libc::SYS_io_uring_setup, Vec::new())].into_iter().collect(),
        SeccompAction::Allow,
        SeccompAction::Errno(errno as u32),
        architecture,
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            apply_filter(&program).unwrap();
            test();
        });
    });
}

fn open(engine: Engine, direct: bool) -> Result<FileDevice, OpenError> {
    open_with(&FileOptions { engine, direct, ..FileOptions::default() })
}

fn open_with(options: &FileOptions) -> Result<FileDevice, OpenError> {
    let file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    FileDevice::from_file(file, "scratch", options)
}

#[test]
fn the_refusal_is_announced_once_and_threads_take_over() {
    announce_fallback(announce);
    assert_eq!(open(Engine::Auto, true).unwrap().engine(), Engine::Uring);
    assert!(ANNOUNCED.lock().unwrap().is_empty());
    for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES, libc::ENOMEM] {
        without_io_uring(errno, || {
            assert_eq!(open(Engine::Auto, true).unwrap().engine(), Engine::Threads);
            assert_eq!(open(Engine::Threads, true).unwrap().engine(), Engine::Threads);
            let error = open(Engine::Uring, false).unwrap_err();
            let OpenError::Ring { source, .. } = &error else { panic!("{error}") };
            assert_eq!(source.raw_os_error(), Some(errno));
            assert!(error.to_string().contains("threads"), "the remedy is named: {error}");
        });
    }
    let announced = ANNOUNCED.lock().unwrap();
    assert_eq!(announced.len(), 1, "{announced:?}");
    assert!(announced[0].contains("Operation not permitted"), "{announced:?}");
    assert!(announced[0].contains("using threads"), "{announced:?}");
}

#[test]
fn files_that_are_only_read_have_threads_without_a_word() {
    for errno in [libc::EPERM, libc::EMFILE] {
        without_io_uring(errno, || {
            let read = FileOptions { read_only: true, ..FileOptions::default() };
            assert_eq!(open_with(&read).unwrap().engine(), Engine::Threads);
        });
    }
    assert!(ANNOUNCED.lock().unwrap().iter().all(|line| !line.contains("Too many")));
}

#[test]
fn other_errors_do_not_lead_to_threads() {
    without_io_uring(libc::EMFILE, || {
        assert!(matches!(open(Engine::Auto, true), Err(OpenError::Ring { .. })));
    });
}

#[test]
fn the_device_conforms_all_the_same() {
    for direct in [false, true] {
        without_io_uring(libc::EPERM, || {
            check(&|capacity| {
                let device = open(Engine::Auto, direct).unwrap();
                assert_eq!(device.engine(), Engine::Threads);
                device.set_len(capacity.to_bytes().unwrap()).unwrap();
                Arc::new(device) as Arc<dyn BlockDevice>
            });
        });
    }
}
