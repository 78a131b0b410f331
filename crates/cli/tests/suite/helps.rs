//! The helps of all commands: short enough, with an example, and true about options.

use std::process::Stdio;

use crate::run::{program, sample, says, succeeds, undercroft};

/// Columns of a line.
const WIDTH: usize = 100;
/// Lines of a short help: a screen.
const SHORT: usize = 60;

/// Commands whose letter h has another meaning, as people know it.
const SIZES: [&str; 3] = ["ls", "du", "df"];

/// The commands below one, as its help lists them.
fn commands_of(command: &[String]) -> Vec<Vec<String>> {
    let help = help(command, "--help");
    let listed = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| !line.is_empty());
    // Further lines of a description stand deeper.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let below = names.filter(|name| *name != "help");
    below.map(|name| [command, &[name.to_owned()]].concat()).collect()
}

fn help(command: &[String], option: &str) -> String {
    succeeds(command.iter().map(String::as_str).chain([option]))
}

/// All commands.
fn all() -> Vec<Vec<String>> {
    let mut all = commands_of(&[]);
    let deeper: Vec<_> = all.iter().filter(|command| command[0] == "lab").cloned().collect();
    all.extend(deeper.iter().flat_map(|command| commands_of(command)));
    all
}

#[test]
fn helps_fit_a_screen_and_have_examples() {
    for command in all() {
        let long = help(&command, "--help");
        let is_group = long.contains("\nCommands:\n");
        let has_example = long.contains("For example: ") || long.contains("\n  undercroft ");
        assert!(is_group || has_example, "no example: {command:?}");
        let mut helps = vec![long];
        if !SIZES.contains(&&command[0][..]) {
            let short = help(&command, "-h");
            assert!(short.lines().count() <= SHORT, "{command:?}: {short}");
            helps.push(short);
        }
        for line in helps.iter().flat_map(|help| help.lines()) {
            assert!(line.chars().count() <= WIDTH, "{command:?}: {line}");
        }
    }
    assert!(succeeds(["help", "--help"]).contains("help"));
}

/// The options of images stand below those of a command.
#[test]
fn options_of_all_images_come_last() {
    for command in ["ls", "stat", "put", "check", "grow", "mount", "salvage"] {
        let help = succeeds([command, "--help"]);
        let (own, image) = help.split_once("\nImage:\n").unwrap();
        for option in ["--offset", "--partition", "--stats"] {
            let option = format!("      {option}");
            assert!(image.contains(&option) && !own.contains(&option), "{command} {option}");
        }
    }
}

/// A journal that must not be replayed is no matter for commands that replay it.
#[test]
fn no_option_is_shown_that_is_refused() {
    for (command, is_shown) in [
        ("ls", true),
        ("info", true),
        ("extract", true),
        ("mount", true),
        ("put", false),
        ("replay", false),
        ("fsck", false),
        ("grow", false),
        ("shrink", false),
        ("trim", false),
        ("set", false),
    ] {
        let help = succeeds([command, "--help"]);
        assert_eq!(help.contains("--no-replay\n"), is_shown, "{command}");
    }
    // Statistics are printed where they are shown.
    let sample = sample(&["--size", "64M"]);
    let image = &sample.image[..];
    let new = sample.path("new");
    for arguments in [
        &["ls", image][..],
        &["info", image],
        &["check", image],
        &["frag", image],
        &["replay", image],
        &["fsck", image],
        &["trim", image],
        &["deleted", image],
        &["salvage", "--list", image],
        &["extract", image, &new],
        &["mkdir", image, "/directory"],
        &["grow", image, "--size", "80M"],
        &["shrink", image, "--size", "60M"],
        &["minimise", image],
        &["set", image, "--label", "new"],
    ] {
        let said = says([arguments, &["--stats"]].concat());
        assert!(said.contains("bios"), "{arguments:?}: {said}");
    }
}

#[test]
fn manual_pages_of_commands() {
    let page = succeeds(["man", "build"]);
    assert!(page.contains("undercroft\\-build"), "{page}");
    assert!(succeeds(["man", "lab", "tags"]).contains("undercroft\\-lab\\-tags"));
    let output = undercroft(["man", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let mut man = program();
    let output = man.args(["help", "help"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success());
}
