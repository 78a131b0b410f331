//! Threads that get in each other's way.

use crate::volumes::{close_and_check, memory, open};
use std::sync::atomic::{AtomicUsize, Ordering};
use undercroft_fs::{Error, Existing, NewFile, RenameFlags};

#[test]
fn threads_create_and_remove_the_same_names() {
    let device = memory();
    let fs = open(&device);
    let (made, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..2_u8 {
            let (fs, made, gone) = (&fs, &made, &gone);
            scope.spawn(move || {
                for round in 0..2000_usize {
                    let name = format!("name-{}", round % 5);
                    let existing = if thread == 0 { Existing::Open } else { Existing::Refuse };
                    match fs.nodes().create(
                        fs.root(),
                        name.as_bytes(),
                        &NewFile::new(0o600),
                        existing,
                    ) {
                        Ok((_, file)) => {
                            file.write_at(0, &[thread; 100]).unwrap();
                            made.fetch_add(1, Ordering::Relaxed);
                            let mut bytes = [0; 100];
                            assert_eq!(file.read_at(0, &mut bytes).unwrap(), 100);
                        }
                        Err(Error::Exists(_)) if existing == Existing::Refuse => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    match fs.nodes().unlink(fs.root(), name.as_bytes()) {
                        Ok(_) => drop(gone.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::NotFound(_)) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    assert!(gone.into_inner() <= made.into_inner());
    assert_eq!(fs.read_dir("/").unwrap().count(), 0);
    close_and_check(fs, &device);
}

#[test]
fn paths_hold_while_trees_are_moved_and_removed() {
    let device = memory();
    let fs = open(&device);
    fs.create_dir_all("/in").unwrap();
    fs.create_dir_all("/out").unwrap();
    std::thread::scope(|scope| {
        let fs = &fs;
        let mover = scope.spawn(move || {
            for _ in 0..300 {
                fs.create_dir_all("/in/a/b").unwrap();
                fs.write("/in/a/b/file", "x").unwrap();
                fs.rename("/in/a", "/out/a", RenameFlags::REPLACE).unwrap();
                fs.remove_dir_all("/out/a").unwrap();
            }
        });
        let mut seen = 0;
        while !mover.is_finished() {
            match fs.read("/in/a/b/file") {
                // Empty between its making and the first write.
                Ok(bytes) => assert!(matches!(&bytes[..], b"" | b"x"), "{bytes:?}"),
                Err(error) => {
                    assert!(matches!(error.error(), Error::NotFound(_)), "{error:?}");
                }
            }
            for entry in fs.walk("/").unwrap() {
                match entry {
                    Ok(entry) => seen += entry.depth(),
                    Err(error) => {
                        assert!(matches!(error.error(), Error::NotFound(_)), "{error:?}");
                    }
                }
            }
            assert!(fs.exists("/out").unwrap());
        }
        mover.join().unwrap();
        assert!(seen > 0);
    });
    close_and_check(fs, &device);
}
