//! What a server may not do any more.

use crate::mounted::{Volume, succeeds, undercroft};
use std::fs;

/// Lines of what the kernel says of a thread.
fn of_thread(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
}

/// Rights that a server of root has at most: `DAC_OVERRIDE`, `IPC_LOCK`, `SYS_ADMIN`, `SYS_RESOURCE`.
const RIGHTS: u64 = 1 << 1 | 1 << 14 | 1 << 21 | 1 << 24;

/// In the background, in the foreground, and around a program: all threads are confined.
#[test]
fn the_server_is_confined() {
    let volume = Volume::new();
    let confined = |process: u64| {
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        let mut count = 0;
        for thread in threads {
            let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
            let found = ["NoNewPrivs", "Seccomp"].map(|name| of_thread(&status, name));
            assert_eq!(found, ["1", "2"], "{status}");
            for set in ["CapEff", "CapPrm", "CapInh"] {
                let rights = u64::from_str_radix(&of_thread(&status, set), 16).unwrap();
                assert_eq!(rights & !RIGHTS, 0, "{status}");
            }
            count += 1;
        }
        assert!(count > 4, "{count} threads");
    };
    let mounted = volume.mount(&[]);
    confined(mounted.process());
    mounted.unmount();
    let mounted = volume.serve(&[]);
    let process = mounted.process();
    // It is confined a moment after it answers.
    crate::mounted::wait_for("the confinement", || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        of_thread(&status, "Seccomp") == "2"
    });
    confined(process);
    mounted.unmount();
    // The program is not.
    let mut command = undercroft();
    command.arg("mount").arg(volume.image());
    command.args(["--exec", "cat", "/proc/self/status"]);
    let said = succeeds(&mut command);
    let own = fs::read_to_string("/proc/self/status").unwrap();
    for name in ["NoNewPrivs", "Seccomp", "CapEff", "CapPrm", "CapInh"] {
        assert_eq!(of_thread(&said, name), of_thread(&own, name), "{name}");
    }
}
