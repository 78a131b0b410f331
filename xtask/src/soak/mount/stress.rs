//! The stressors of stress-ng for file systems, each on our mount and on the kernel's: what passes
//! there passes here.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use undercroft_judges::Scratch;

use super::stand::{SIZE, Stand};
use crate::shell;

/// How many of a stressor at a time.
const INSTANCES: &str = "4";
/// Seconds after its end at which a stressor counts as hanging.
const HANG: u64 = 60;

/// Runs each for so many seconds.
pub(super) fn run(program: &Path, seconds: u64) -> Result<String> {
    let kernels = Scratch::new(SIZE)?;
    let mut stand = Stand::new(program, &[])?;
    let (mut passed, mut faults) = (0, Vec::new());
    for stressor in stressors()? {
        let theirs = stress(&stressor, kernels.path(), seconds)?;
        let ours = stress(&stressor, &stand.path(), seconds)?;
        println!("{stressor}: {}, on the kernel's mount {}", ours.0, theirs.0);
        passed += u32::from(ours.0 == 0);
        if ours.0 != 0 && ours.0 != theirs.0 {
            faults.push(format!("{stressor}: {} instead of {}:\n{}", ours.0, theirs.0, ours.1));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(format!("{passed} stressors passed, {}", stand.accept()?))
}

/// The names of the stressors of the class.
fn stressors() -> Result<Vec<String>> {
    // It lists them and says that this is no class.
    let listed = Command::new("stress-ng").args(["--class", "filesystem?"]).output()?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned()
        + &String::from_utf8_lossy(&listed.stderr);
    let names = text.lines().find_map(|line| line.split_once("stressors: "));
    let names = names.with_context(|| format!("stress-ng lists no stressors:\n{text}"))?.1;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// The exit status, and what was said.
fn stress(stressor: &str, directory: &Path, seconds: u64) -> Result<(i32, String)> {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &(seconds + HANG).to_string(), "stress-ng"]);
    command.args([&format!("--{stressor}"), INSTANCES, "--verify", "--timeout"]);
    // One opens files where it stands.
    command.arg(format!("{seconds}s")).arg("--temp-path").arg(directory).current_dir(directory);
    let output =
        command.output().with_context(|| format!("cannot start `{}`", shell::line(&command)))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    Ok((output.status.code().unwrap_or(-1), text))
}
