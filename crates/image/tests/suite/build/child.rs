//! A build in a process of its own: this test program, started again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use undercroft_image::pack;

use undercroft_testkit::image::judged::options;

const SOURCE: &str = "UNDERCROFT_TEST_SOURCE";
const IMAGE: &str = "UNDERCROFT_TEST_IMAGE";
const PAUSE: &str = "UNDERCROFT_TEST_PAUSE";

const FORCE: &str = "UNDERCROFT_TEST_FORCE";

/// What the child says when it waits to be killed.
pub(crate) const HALF_DONE: &str = "half done";

/// Makes `command`, which starts this program, build an image.
pub(crate) fn arguments(command: &mut Command, source: &Path, image: &Path) {
    command.args(["--exact", "build::child::build", "--ignored", "--nocapture"]);
    command.env(SOURCE, source).env(IMAGE, image);
}

/// The same, and wait for ever when the build has begun.
pub(crate) fn pause(command: &mut Command) {
    command.env(PAUSE, "1");
}

/// The same, and replace an existing image.
pub(crate) fn force(command: &mut Command) {
    command.env(FORCE, "1");
}

#[test]
#[ignore = "other tests start it"]
fn build() {
    let [source, image] =
        [SOURCE, IMAGE].map(|name| PathBuf::from(std::env::var_os(name).unwrap()));
    let pause = std::env::var_os(PAUSE).is_some();
    let mut options = options(&source, &image);
    options.force = std::env::var_os(FORCE).is_some();
    pack::build(&options, &mut |progress| {
        if pause && progress.entries >= 256 {
            println!("{HALF_DONE}");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
    })
    .unwrap();
}
