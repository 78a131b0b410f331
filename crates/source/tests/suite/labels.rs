//! Labels of a distribution's policy, beside what libselinux says: `matchpathcon` on the policy of
//! Debian, over real paths and paths made from its expressions.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use undercroft_judges::rounds::rounds;
use undercroft_source::selinux::{FileContexts, LabelledKind};

const POLICY: &str = "/etc/selinux/default/contexts/files";
/// Paths of one call: their bytes must fit the arguments of a program.
const PATHS_OF_A_CALL: usize = 12_000;

const KINDS: [(LabelledKind, &str); 7] = [
    (LabelledKind::Regular, "file"),
    (LabelledKind::Directory, "dir"),
    (LabelledKind::Symlink, "lnk_file"),
    (LabelledKind::CharDevice, "chr_file"),
    (LabelledKind::BlockDevice, "blk_file"),
    (LabelledKind::Fifo, "pipe"),
    (LabelledKind::Socket, "sock_file"),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A text that the expression matches, more or less: groups are opened, alternatives chosen,
/// quantifiers followed. Now and then something else, for paths that nearly match.
fn example(expression: &[u8], random: &mut Random) -> Vec<u8> {
    let mut at = 0;
    let mut path = alternatives(expression, &mut at, random);
    match random.below(12) {
        0 => path.extend_from_slice(b"/deeper"),
        1 => path.push(b'x'),
        2 => drop(path.pop()),
        3 => path.extend_from_slice("\u{e9}".as_bytes()),
        _ => {}
    }
    path
}

fn alternatives(text: &[u8], at: &mut usize, random: &mut Random) -> Vec<u8> {
    let mut all = vec![Vec::new()];
    while *at < text.len() && text[*at] != b')' {
        if text[*at] == b'|' {
            *at += 1;
            all.push(Vec::new());
            continue;
        }
        let start = *at;
        let mut part = part(text, at, random);
        let (least, most) = match text.get(*at) {
            Some(b'?') => (0, 1),
            Some(b'*') => (0, 3),
            Some(b'+') => (1, 3),
            _ => (1, 1),
        };
        *at += usize::from(least != most);
        let after = *at;
        for round in 0..least + random.below(most - least + 1) {
            if round > 0 {
                *at = start;
                part = self::part(text, at, random);
            }
            all.last_mut().unwrap().extend_from_slice(&part);
        }
        *at = after;
    }
    random.one_of(&all).clone()
}

fn part(text: &[u8], at: &mut usize, random: &mut Random) -> Vec<u8> {
    const ANY: &[u8] = b"abz019._-/";
    let byte = text[*at];
    *at += 1;
    match byte {
        b'\\' => {
            *at += 1;
            vec![text[*at - 1]]
        }
        b'.' => vec![*random.one_of(ANY)],
        b'(' => {
            let inner = alternatives(text, at, random);
            *at += 1;
            inner
        }
        b'[' => {
            let negated = text[*at] == b'^';
            *at += usize::from(negated);
            let first = *at;
            while text[*at] != b']' || *at == first {
                *at += 1;
            }
            let class = &text[first..*at];
            *at += 1;
            let outside = ANY.iter().copied().filter(|byte| !class.contains(byte));
            let outside: Vec<u8> = outside.collect();
            vec![if negated { *random.one_of(&outside) } else { *random.one_of(class) }]
        }
        other => vec![other],
    }
}

/// Paths of files that are here.
fn real_paths(directory: &Path, most: usize, paths: &mut BTreeSet<Vec<u8>>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if paths.len() >= most {
            return;
        }
        paths.insert(entry.path().as_os_str().as_bytes().to_vec());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            real_paths(&entry.path(), most, paths);
        }
    }
}

/// The labels that libselinux has for paths.
fn judged(file: &Path, kind: &str, paths: &[Vec<u8>]) -> Vec<Vec<u8>> {
    // Only root looks for programs in /usr/sbin.
    let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("matchpathcon");
    command.env("PATH", path);
    command.args(["-n", "-N", "-m", kind, "-f"]).arg(file);
    command.args(paths.iter().map(|path| OsStr::from_bytes(path)));
    let output = command.output().expect("matchpathcon is of the Debian package selinux-utils");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    let labels: Vec<_> = output.stdout.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    assert_eq!(labels.len(), paths.len() + 1);
    labels
}

#[track_caller]
fn compare(file: &Path, paths: &[Vec<u8>]) -> usize {
    let contexts = FileContexts::read(file, None).unwrap();
    let mut labelled = 0;
    for (kind, name) in KINDS {
        for paths in paths.chunks(PATHS_OF_A_CALL) {
            let theirs = judged(file, name, paths);
            for (path, theirs) in paths.iter().zip(theirs) {
                let ours = contexts.lookup(path, kind);
                labelled += usize::from(ours.is_some());
                assert!(
                    ours.unwrap_or(b"<<none>>") == theirs,
                    "{name} {}: {:?}, libselinux has {}",
                    path.escape_ascii(),
                    ours.map(|label| label.escape_ascii().to_string()),
                    theirs.escape_ascii(),
                );
            }
        }
    }
    labelled
}

#[test]
fn no_path_has_another_label_than_libselinux_gives_it() {
    // Without the compiled forms, which libselinux would prefer.
    let home = tempfile::tempdir().unwrap();
    let names = ["file_contexts", "file_contexts.homedirs", "file_contexts.subs_dist"];
    let mut expressions = BTreeSet::new();
    for name in names {
        let text = fs::read(Path::new(POLICY).join(name)).unwrap_or_else(|error| {
            panic!("{POLICY}/{name}: {error}; it is of the Debian package selinux-policy-default")
        });
        fs::write(home.path().join(name), &text).unwrap();
        let lines = text.split(|&byte| byte == b'\n');
        let words = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
        let words = words.filter(|word| word.first() == Some(&b'/'));
        expressions.extend(words.map(<[u8]>::to_vec));
    }
    assert!(expressions.len() > 4000);
    let mut random = Random(1);
    let mut paths = BTreeSet::new();
    real_paths(Path::new("/"), rounds(4_000, 200_000), &mut paths);
    for expression in &expressions {
        for _ in 0..rounds(1, 20) {
            paths.insert(example(expression, &mut random));
        }
    }
    // Equivalent trees.
    for path in paths.iter().step_by(20).cloned().collect::<Vec<_>>() {
        for (from, to) in
            [(&b"/usr/lib"[..], &b"/usr/lib64"[..]), (b"/usr/bin", b"/bin"), (b"/run", b"/var/run")]
        {
            if let Some(rest) = path.strip_prefix(from) {
                paths.insert([to, rest].concat());
            }
        }
    }
    // What it does to them before it looks is its own: repeated and last slashes.
    paths.retain(|path| {
        path.first() == Some(&b'/')
            && !path.windows(2).any(|pair| pair == b"//")
            && (path.len() == 1 || !path.ends_with(b"/"))
            && !path.iter().any(|byte| matches!(byte, 0 | b'\n'))
    });
    let paths: Vec<_> = paths.into_iter().collect();
    let labelled = compare(&home.path().join(names[0]), &paths);
    println!("{} paths of {} kinds, {labelled} with a label", paths.len(), KINDS.len());
    assert!(labelled > paths.len());
}

/// Expressions that are seldom written.
const EXPRESSIONS: [&str; 24] = [
    "/.*",
    "/x/.*",
    "/y/.*",
    "/z/.*",
    "/x/b/.*",
    "/lit",
    "/li.*",
    "/usr/foo|/bar/baz",
    "/one|/two",
    "/q{",
    "/w[[]w",
    "/sp{,3}",
    "/sq{2}",
    "/v[a&&b]",
    "/v[a-]w",
    "/c[]x]",
    "/d\\d+",
    "/n[^a]n",
    "/e(a|b$)",
    "/f/^g",
    "/lazy.*?y",
    "/kk/k\\/l",
    "/[[:digit:]]d",
    "/t\\x41",
];

/// Paths that they match, or nearly.
const PATHS: [&str; 40] = [
    "/",
    "/x",
    "/x/c",
    "/x/b/c",
    "/lit",
    "/litt",
    "/usr/foo",
    "/usr/foozz",
    "/bar/baz",
    "/usr/q/bar/baz",
    "/usrx/bar/baz",
    "/one",
    "/onex",
    "/x/two",
    "/two",
    "/q{",
    "/w[w",
    "/sp",
    "/sp{,3}",
    "/sq{2}",
    "/sqq",
    "/va",
    "/v&",
    "/vaw",
    "/v-w",
    "/c]",
    "/cx",
    "/d12",
    "/d",
    "/n/n",
    "/nan",
    "/ea",
    "/eb",
    "/ec",
    "/f/g",
    "/lazyxy",
    "/kk/k/l",
    "/5d",
    "/tA",
    "/\u{e9}",
];

#[test]
fn odd_expressions_mean_what_they_mean_to_libselinux() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file_contexts");
    let text: Vec<_> =
        EXPRESSIONS.iter().enumerate().map(|(n, entry)| format!("{entry} u:r:t{n}\n")).collect();
    fs::write(&file, text.concat()).unwrap();
    let paths = PATHS.map(|path| path.as_bytes().to_vec());
    for [subs, dist] in [
        ["", ""],
        ["/m /a\n/a /z\n", "/a /x\n"],
        ["/ /x\n", ""],
        ["", "/l /x\n/li /y\n"],
        ["/usr /\n", ""],
    ] {
        fs::write(home.path().join("file_contexts.subs"), subs).unwrap();
        fs::write(home.path().join("file_contexts.subs_dist"), dist).unwrap();
        let with_trees = paths.iter().cloned().chain(
            ["/a/c", "/m/c", "/a", "/l/c", "/li/c", "/lib/c", "/usr/x/c"]
                .map(|path| path.as_bytes().to_vec()),
        );
        compare(&file, &with_trees.collect::<Vec<_>>());
    }
}
