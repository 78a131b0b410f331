//! The commands of the book, page by page, as a reader types them. What they print is an example: it
//! has times, identifiers and sizes that differ.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The commands of a page: in blocks of a console, what follows a prompt, and a document that goes with
/// it up to `END`.
fn commands(page: &str) -> String {
    let mut script = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next().filter(|line| *line != "```") {
            let Some(command) = line.strip_prefix("$ ") else { continue };
            script += &format!("{command}\n");
            if command.ends_with("<<END") {
                let document: Vec<_> = lines.by_ref().take_while(|line| *line != "END").collect();
                script += &format!("{}\nEND\n", document.join("\n"));
            }
        }
    }
    script
}

/// The pages that have commands.
fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages = vec![docs.join("start.md")];
    let recipes = fs::read_dir(docs.join("recipes")).unwrap();
    pages.extend(recipes.map(|entry| entry.unwrap().path()).filter(|path| {
        path.extension().is_some_and(|end| end == "md") && !path.ends_with("README.md")
    }));
    pages.sort();
    pages
}

#[test]
fn commands_of_the_book_work() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    fs::create_dir(&bin).unwrap();
    symlink(env!("CARGO_BIN_EXE_undercroft"), bin.join("undercroft")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let pages = pages();
    assert!(pages.len() >= 7, "{pages:?}");
    for page in pages {
        let script = commands(&fs::read_to_string(&page).unwrap());
        assert!(script.lines().count() >= 4, "{}: {script}", page.display());
        let directory = home.path().join(page.file_stem().unwrap());
        fs::create_dir(&directory).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-ex", "-c", &script]).current_dir(&directory).env("PATH", &path);
        let output = shell.env_remove("SOURCE_DATE_EPOCH").stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}: {errors}", page.display(), output.status);
    }
}

#[test]
fn a_page_gives_its_commands_alone() {
    let page =
        "$ not this\n```console\n$ one <<END\nword\nEND\noutput\n$ two\n```\n```sh\nthree\n```\n";
    assert_eq!(commands(page), "one <<END\nword\nEND\ntwo\n");
}
