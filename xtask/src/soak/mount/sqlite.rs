//! `SQLite` in the middle of transactions when the server of its mount is killed: each transaction that
//! it reported is there, and the database is sound.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use undercroft_judges::random::Random;

use super::stand::Stand;
use crate::shell;

/// More transactions than are done before any kill.
const TRANSACTIONS: u64 = 50_000;

/// Kills so many servers, in turn under a journal that is deleted and under one that is written
/// ahead.
pub(super) fn run(program: &Path, count: u64, random: &mut Random) -> Result<String> {
    let mut stand = Stand::new(program, &[])?;
    let mut reported = 0;
    for round in 0..count {
        let mode = if round % 2 == 0 { "delete" } else { "wal" };
        reported += transactions(&mut stand, mode, random)
            .with_context(|| format!("round {}, journal mode {mode}", round + 1))?;
    }
    Ok(format!("{reported} transactions, {}", stand.accept()?))
}

/// One kill; the number of transactions that were reported before it.
fn transactions(stand: &mut Stand, mode: &str, random: &mut Random) -> Result<u64> {
    let (script, said) = (stand.outside().join("script"), stand.outside().join("said"));
    // Less than `extra` does not sync the directory from which the journal goes: the last transaction
    // may be undone.
    let mut text = format!(
        "pragma journal_mode={mode};\npragma synchronous=extra;\n\
         create table t(n integer primary key, body blob);\n"
    );
    for number in 1..=TRANSACTIONS {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "begin; insert into t values({number}, randomblob(3000)); commit; select 'n', {number};"
        );
    }
    fs::write(&script, text)?;
    let database = stand.path().join("database");
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let old = stand.path().join(format!("database{suffix}"));
        if old.exists() {
            fs::remove_file(old)?;
        }
    }
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg("-bail").arg(&database).stdin(File::open(&script)?);
    let mut running = sqlite.stdout(File::create(&said)?).stderr(Stdio::null()).spawn()?;
    thread::sleep(Duration::from_millis(200 + random.below(2000)));
    ensure!(running.try_wait()?.is_none(), "sqlite3 ended before the server was killed");
    stand.kill()?;
    running.wait()?;
    let text = fs::read_to_string(&said)?;
    let reported =
        text.lines().filter_map(|line| line.strip_prefix("n|")?.parse::<u64>().ok()).max();
    let reported = reported.unwrap_or(0);

    stand.revive()?;
    let database = stand.path().join("database");
    let mut sqlite = Command::new("sqlite3");
    sqlite.arg(&database).arg("pragma integrity_check; select count(*), max(n) from t;");
    let answer = shell::output(&mut sqlite)?;
    let (sound, counts) = answer.trim().split_once('\n').unwrap_or_default();
    let counts: Vec<u64> = counts.split('|').filter_map(|number| number.parse().ok()).collect();
    ensure!(sound == "ok", "the database is damaged:\n{answer}");
    ensure!(
        reported == 0 || counts.len() == 2 && counts[0] == counts[1] && counts[0] >= reported,
        "{reported} transactions were reported; rows and last: {counts:?}"
    );
    Ok(reported)
}
