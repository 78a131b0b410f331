//! The reference of commands: what the command prints for `--help`.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::{shell, workspace};

/// A page for each command, by its name; commands of commands are sections of its page.
pub(super) fn pages() -> Result<Vec<(String, String)>> {
    build()?;
    let commands = commands(&help(&[])?);
    ensure!(commands.len() > 10, "`undercroft --help` lists no commands");
    let mut pages = Vec::new();
    for name in commands {
        let text = help(&[&name])?;
        let mut page = format!("# undercroft {name}\n\n{}", block(&text));
        for part in self::commands(&text) {
            page += &format!("\n## undercroft {name} {part}\n\n{}", block(&help(&[&name, &part])?));
        }
        pages.push((name, page));
    }
    Ok(pages)
}

/// Builds the command as the tests do, so that it is there when they were built.
fn build() -> Result<()> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--quiet", "--workspace", "--all-features", "--test", "suite", "--no-run"]);
    shell::run(&mut cargo)
}

fn help(command: &[&str]) -> Result<String> {
    let mut program = Command::new(workspace::target("debug/undercroft"));
    shell::output(program.args(command).arg("--help").env("COLUMNS", "100"))
}

fn block(text: &str) -> String {
    let lines: Vec<_> = text.trim().lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n"))
}

/// The commands that a help lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split_once("\nCommands:\n").map_or("", |(_, list)| list);
    let list = list.split("\n\n").next().unwrap_or_default();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let named = lines.filter(|line| !line.starts_with(' '));
    let names = named.filter_map(|line| line.split(' ').next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_list() {
        let help = "Does it.\n\nCommands:\n  one   First\n        of all\n  two   Second\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(commands(help), ["one", "two"]);
        assert!(commands("No list.\n\nOptions:\n  -h\n").is_empty());
    }
}
