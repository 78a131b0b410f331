//! A picture of a terminal for the first page: commands that are run, with what they print.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{shell, workspace};

/// What is typed, in a directory with the tree `rootfs`.
const TYPED: &[&str] = &[
    "tar -C rootfs -c . | undercroft build - disk.img",
    "undercroft put -r disk.img site /srv",
    "undercroft mount disk.img --exec du -sh srv/site",
    "undercroft rm -r disk.img /srv/site",
    "undercroft deleted disk.img",
    "undercroft undelete --in-place disk.img --all",
    "undercroft cat disk.img /srv/site/index.html",
    "undercroft minimise disk.img",
    "undercroft check disk.img && ls -sh disk.img",
];

/// Makes the tree.
const SET_UP: &str = "mkdir -p rootfs/etc rootfs/srv rootfs/usr/bin site; echo box > rootfs/etc/hostname; \
    printf 'ID=box\\nNAME=Box\\n' > rootfs/etc/os-release; head -c 150000 /dev/urandom > rootfs/usr/bin/tool; \
    echo '<h1>It works</h1>' > site/index.html";

/// Columns, and the sizes of a letter and of a line in the picture.
const COLUMNS: usize = 108;
const LETTER: f64 = 7.25;
const LINE: usize = 18;
const MARGIN: usize = 16;

/// What is in the picture.
#[derive(clap::Args)]
pub(crate) struct TerminalArguments {
    /// The command that is run; by default the release build, which is made
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs the commands, and writes docs/terminal.svg.
pub(crate) fn write(arguments: &TerminalArguments) -> Result<()> {
    let program = match &arguments.program {
        Some(program) => program.canonicalize().context("there is no such program")?,
        None => {
            let mut cargo = workspace::cargo();
            shell::run(cargo.args(["build", "--release", "--package", "undercroft"]))?;
            workspace::target("release/undercroft")
        }
    };
    let place = tempfile::tempdir()?;
    let programs = place.path().join("bin");
    fs::create_dir(&programs)?;
    std::os::unix::fs::symlink(program, programs.join("undercroft"))?;
    run(place.path(), SET_UP)?;
    let mut lines = Vec::new();
    for typed in TYPED {
        lines.push((true, format!("$ {typed}")));
        let printed = run(place.path(), typed)?;
        lines.extend(printed.lines().map(|line| (false, line.to_owned())));
    }
    let path = workspace::root().join("docs/terminal.svg");
    fs::write(&path, picture(&lines)?)?;
    println!("{}", path.display());
    Ok(())
}

/// Both outputs of a line of a shell, one after the other.
fn run(place: &Path, line: &str) -> Result<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{{ {line}; }} 2>&1")]).current_dir(place);
    command.env("PATH", format!("{}:{path}", place.join("bin").display()));
    shell::output(&mut command)
}

/// The lines of a terminal as a picture; the first of each is what was typed.
fn picture(lines: &[(bool, String)]) -> Result<String> {
    let width = (COLUMNS as f64 * LETTER) as usize + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         xml:space=\"preserve\">\n\
         <title>A volume built, changed, brought back and made small</title>\n\
         <style>\n  rect {{ fill: #0d1117; stroke: #30363d }}\n  \
         text {{ font: 12px 'DejaVu Sans Mono', monospace; fill: #c9d1d9; white-space: pre }}\n  \
         .typed {{ fill: #7ee787 }}\n</style>\n\
         <rect x=\"1\" y=\"1\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n",
        width - 2,
        height - 2
    );
    for (index, (is_typed, line)) in lines.iter().enumerate() {
        let columns = line.chars().count();
        ensure!(columns <= COLUMNS, "{columns} columns are too wide for the picture: {line}");
        let class = if *is_typed { " class=\"typed\"" } else { "" };
        let y = MARGIN + index * LINE + LINE * 3 / 4;
        let text = line.replace('\t', "    ").replace('&', "&amp;").replace('<', "&lt;");
        svg += &format!("<text{class} x=\"{MARGIN}\" y=\"{y}\">{text}</text>\n");
    }
    Ok(svg + "</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_long_lines_are_refused() {
        let svg = picture(&[(true, "$ a < b && c".into())]).unwrap();
        assert!(
            svg.contains("class=\"typed\"") && svg.contains("$ a &lt; b &amp;&amp; c<"),
            "{svg}"
        );
        assert!(picture(&[(false, "x".repeat(109))]).is_err());
    }
}
