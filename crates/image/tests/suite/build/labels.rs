//! Labels of a built volume as `setfiles` finds them in a kernel's mount of it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel};
use undercroft_source::RuleList;

use undercroft_testkit::image::judged::{build, options, repair};

const POLICY: &str = "/etc/selinux/default/contexts/files";
/// Trees of this machine whose names are taken.
const REAL: [&str; 8] = ["/bin", "/etc", "/home", "/root", "/run", "/sbin", "/usr", "/var"];
/// Names of each at most.
const NAMES: usize = 4000;

/// Makes the names of a real tree with empty files, breadth first; how many there were.
fn names_of(real: &Path, to: &Path) -> usize {
    let mut directories = std::collections::VecDeque::from([(real.to_owned(), to.to_owned())]);
    let mut count = 0;
    while let Some((real, to)) = directories.pop_front() {
        // Another program may take it away meanwhile.
        let Ok(entries) = fs::read_dir(&real) else { continue };
        for entry in entries.flatten() {
            if count == NAMES {
                return count;
            }
            let (real, to) = (entry.path(), to.join(entry.file_name()));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    fs::create_dir(&to).unwrap();
                    directories.push_back((real, to));
                }
                Ok(kind) if kind.is_symlink() => {
                    std::os::unix::fs::symlink("target", &to).unwrap();
                }
                _ => fs::write(&to, "").unwrap(),
            }
            count += 1;
        }
    }
    count
}

/// Paths that `setfiles` would label otherwise.
fn judged(contexts: &Path, root: &Path) -> Vec<String> {
    let mut command = Command::new("setfiles");
    command.args(["-n", "-v", "-F", "-m", "-r"]).arg(root).arg(contexts).arg(root);
    let output = command.output().expect("setfiles is of the Debian package policycoreutils");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| line.contains("elabel"));
    lines.map(|line| line.replace(&root.display().to_string(), "")).collect()
}

#[test]
fn setfiles_would_change_no_label() {
    if !kernel::available_or_report() {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    // Without the compiled form, which would be another thing to agree with.
    let policy = home.path().join("files");
    fs::create_dir(&policy).unwrap();
    for entry in fs::read_dir(POLICY).expect("of the Debian package selinux-policy-default") {
        let entry = entry.unwrap();
        if !entry.file_name().to_string_lossy().ends_with(".bin") {
            fs::copy(entry.path(), policy.join(entry.file_name())).unwrap();
        }
    }
    let tree = home.path().join("tree");
    let mut count = 0;
    for real in REAL {
        let to = tree.join(&real[1..]);
        fs::create_dir_all(&to).unwrap();
        count += names_of(Path::new(real), &to);
    }
    assert!(count > 5000, "{count}");
    let special =
        "mkdir -p dev tmp home/user/.ssh; mkfifo dev/initctl run/fifo; mknod dev/sda b 8 0
        mknod dev/null c 1 3; touch home/user/.ssh/authorized_keys; ln etc/passwd etc/zz-second";
    let made = Command::new("sh").args(["-ec", special]).current_dir(&tree).status().unwrap();
    assert!(made.success());

    let contexts = policy.join("file_contexts");
    // One label is wrong, so that the judge has something to say.
    let rules = format!(
        "selinux {}\nxattr security.selinux=system_u:object_r:bin_t:s0 /etc/fstab",
        contexts.display()
    );
    fs::write(tree.join("etc/fstab"), "").unwrap();
    let image = home.path().join("image");
    let mut options = options(&tree, &image);
    let mut list = RuleList::default();
    list.add_text(rules.as_bytes(), "rules", home.path()).unwrap();
    let (exclude, rules) = list.finish().unwrap();
    options.source_options.reading.exclude = exclude;
    options.source_options.rules = Arc::new(rules);
    let summary = build(&options).unwrap();
    repair(&image, summary.image_bytes, &options.volume).unwrap();
    let mount = LoopMount::new(&image, Access::ReadOnly, &[]).unwrap();
    let other = judged(&contexts, mount.path());
    assert!(other.len() == 1 && other[0].contains("/etc/fstab "), "{other:#?}");
}
