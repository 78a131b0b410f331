//! Programs that run while a volume is mounted.

use crate::mounted::{Volume, fails, script, signal, succeeds, undercroft, wait_for};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `undercroft mount --exec` with a script that has said where it is mounted.
fn running(volume: &Volume, options: &[&str], text: &str) -> (Child, PathBuf) {
    let mut command = undercroft();
    let text = format!("echo \"$UNDERCROFT_MOUNT\"; {text}");
    command.arg("mount").args(options).arg(volume.image()).arg("--exec").args(script(&text));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (child, PathBuf::from(line.trim_end()))
}

fn server_at(place: &Path) -> u32 {
    let status = succeeds(undercroft().args(["status", "--json"]).arg(place));
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    u32::try_from(status["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_program_runs_and_its_status_is_returned() {
    let volume = Volume::new();
    let run = |text: &str| {
        let mut command = undercroft();
        command.arg("mount").arg(volume.image()).arg("--exec").args(script(text));
        command
    };
    let place = succeeds(&mut run("echo content >file; echo \"$UNDERCROFT_MOUNT\"; pwd"));
    let lines: Vec<_> = place.lines().collect();
    assert_eq!(lines[0], lines[1]);
    assert!(!Path::new(lines[0]).exists());
    volume.is_clean();
    fails(7, &mut run("test -e file; exit 7"));
    fails(128 + 9, &mut run("kill -9 $$"));
    let mut missing = undercroft();
    missing.arg("mount").arg(volume.image()).args(["--exec", "/no/such/program"]);
    assert!(fails(1, &mut missing).contains("cannot run /no/such/program"));
    volume.is_clean();
}

#[test]
fn a_program_runs_in_a_user_name_space() {
    let volume = Volume::new();
    let mut command = Command::new("unshare");
    command.args(["-Urm", env!("CARGO_BIN_EXE_undercroft"), "mount"]).arg(volume.image());
    let said = succeeds(command.arg("--exec").args(script("id -u >user; mount")));
    assert!(said.contains("fuse.undercroft"), "{said}");
    volume.is_clean();
    assert_eq!(succeeds(undercroft().arg("cat").arg(volume.image()).arg("/user")), "0\n");
}

/// A mount name space that is made meanwhile has a copy.
#[test]
fn no_other_name_space_keeps_the_command() {
    let volume = Volume::new();
    let (child, place) = running(&volume, &["--timeout", "1000"], "touch file; sleep 2");
    let mut space = Command::new("unshare").args(["-m", "sleep", "1000"]).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(space.try_wait().unwrap().is_none());
    space.kill().unwrap();
    space.wait().unwrap();
    assert!(!place.exists());
    volume.is_clean();
}

#[test]
fn programs_that_were_left_behind_do_not_keep_the_command() {
    let volume = Volume::new();
    let text = "sleep 1000 >file 2>&1 </dev/null & echo $! >left";
    let (child, place) = running(&volume, &["--timeout", "2"], text);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("(sleep), which has files"), "{said}");
    assert!(!place.exists());
    volume.is_clean();
    let left = succeeds(undercroft().arg("cat").arg(volume.image()).arg("/left"));
    signal("KILL", left.trim().parse().unwrap());
}

#[test]
fn a_command_that_is_killed_leaves_nothing_behind() {
    let volume = Volume::new();
    let (mut child, place) = running(&volume, &[], "echo text >file; exec sleep 1");
    let server = server_at(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end", || !fs::exists(format!("/proc/{server}")).unwrap());
    assert!(!fs::exists(&place).unwrap());
    volume.is_clean();
    assert_eq!(succeeds(undercroft().arg("cat").arg(volume.image()).arg("/file")), "text\n");
}

#[test]
fn a_server_that_is_killed_leaves_no_mount_behind() {
    let volume = Volume::new();
    let (child, place) = running(&volume, &[], "sync file || true; sleep 1");
    signal("KILL", server_at(&place));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the server ended before the program"), "{said}");
    assert!(!fs::exists(&place).unwrap());
    succeeds(undercroft().arg("replay").arg(volume.image()));
    volume.is_clean();
}

#[test]
fn signals_reach_the_program() {
    let volume = Volume::new();
    let (mut child, _) = running(&volume, &[], "exec sleep 1000");
    signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    volume.is_clean();
}

#[test]
fn what_the_program_mounts_there_goes_as_well() {
    let volume = Volume::new();
    let mut command = undercroft();
    command.arg("mount").arg(volume.image()).arg("--exec");
    succeeds(command.args(script("mkdir proc; mount -t proc proc proc; test -e proc/self")));
    volume.is_clean();
}

#[test]
fn program_and_server_share_a_processor() {
    let volume = Volume::new();
    let text = "grep ^Cpus_allowed_list: /proc/self/status /proc/$0/status";
    let mut command = undercroft();
    command.args(["mount", "--one-cpu"]).arg(volume.image()).args(["--exec", "sh", "-ec"]);
    let status = format!("{} status --json .", env!("CARGO_BIN_EXE_undercroft"));
    let text = format!(
        "server=$({status} | sed 's/.*\"pid\":\\([0-9]*\\).*/\\1/'); {}",
        text.replace("$0", "$server")
    );
    let said = succeeds(command.arg(OsStr::new(&text)));
    let lists: Vec<_> = said.lines().map(|line| line.rsplit('\t').next().unwrap()).collect();
    assert_eq!(lists.len(), 2, "{said}");
    assert_eq!(lists[0], lists[1], "{said}");
    assert!(lists[0].parse::<u32>().is_ok(), "{said}");
    volume.is_clean();
}
