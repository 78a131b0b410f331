//! Load on files with many links that ends in the middle.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use undercroft_testkit::xfs::recovery::load::{End, shut_down};

/// Gives files with hundreds of links on the volume mounted at `root` other names for so long, in the midst
/// of flushes, until the kernel shuts it down. So many parent pointers have a tree of leaves.
pub(crate) fn rename(root: &Path, time: Duration) {
    let link = |directory: &Path, number: u32| {
        let long = "x".repeat(100 + number as usize % 120);
        directory.join(format!("{number}{long}"))
    };
    let directories = [0, 1, 2, 3].map(|number| root.join(number.to_string()));
    for directory in &directories {
        fs::create_dir(directory).unwrap();
        File::create(directory.join("file")).unwrap();
        (0..250)
            .try_for_each(|number| fs::hard_link(directory.join("file"), link(directory, number)))
            .unwrap();
    }
    rustix::fs::syncfs(File::open(root).unwrap()).unwrap();
    let is_down = AtomicBool::new(false);
    thread::scope(|scope| {
        for directory in &directories {
            let is_down = &is_down;
            let mut rename =
                move |number| fs::rename(link(directory, number), link(directory, number + 250));
            scope.spawn(move || {
                (0..).take_while(|_| !is_down.load(Relaxed)).try_for_each(&mut rename)
            });
        }
        for number in 0..2 {
            let (is_down, path) = (&is_down, root.join(format!("flushed-{number}")));
            scope.spawn(move || {
                let mut file = File::create(path)?;
                while !is_down.load(Relaxed) {
                    file.write_all(b"written and flushed")?;
                    file.sync_all()?;
                }
                io::Result::Ok(())
            });
        }
        thread::sleep(time);
        shut_down(root, End::Cut);
        is_down.store(true, Relaxed);
    });
}
