//! Verbs that look: ls, tree, find, du, df, stat. GNU's tools on a mount by the kernel say what is right.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use undercroft_judges::mount::Access;
use undercroft_judges::{LoopMount, kernel};

use crate::run::{Sample, fails, sample, succeeds};

/// A volume with files of many kinds.
fn volume() -> Sample {
    let sample = sample(&["--size", "64M"]);
    let tree = Path::new(&sample.path("tree")).to_owned();
    for (path, bytes) in [
        ("etc/a.conf", 10),
        ("etc/B.CONF", 3000),
        ("etc/.hidden.conf", 1),
        ("usr/lib/large.so", 3_000_000),
        ("usr/lib/small.so", 0),
        ("usr/lib/deep/er/file", 70_000),
        ("odd\\[1]", 5),
    ] {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![b'x'; bytes]).unwrap();
    }
    fs::hard_link(tree.join("usr/lib/large.so"), tree.join("usr/lib/large.so.1")).unwrap();
    symlink("usr/lib", tree.join("lib")).unwrap();
    fs::create_dir(tree.join("empty")).unwrap();
    let mode = |path: &str, mode| {
        fs::set_permissions(tree.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("usr/lib/small.so", 0o4755);
    chown(tree.join("etc/a.conf"), Some(1234), Some(4321)).unwrap();
    File::options().write(true).open(tree.join("etc/hosts")).unwrap().set_len(1 << 30).unwrap();
    fs::remove_file(&sample.image).unwrap();
    succeeds(["build", "--size", "64M", &tree.display().to_string(), &sample.image]);
    sample
}

/// The output of a program in the root directory of a volume that the kernel has mounted.
fn by_kernel(mount: &LoopMount, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(mount.path()).env("LC_ALL", "C").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Lines that end with bytes of zero, in any order.
fn names(text: &str) -> BTreeSet<&str> {
    text.split_terminator('\0').collect()
}

#[test]
fn du_and_df_say_what_gnu_says_on_a_mount() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadWrite, &[]).unwrap();
    for options in [
        &["-a"][..],
        &["-s"],
        &["-h"],
        &["-d", "1"],
        &["--inodes"],
        &["-a", "--apparent-size", "-k"],
        &["-c"],
    ] {
        let theirs = by_kernel(&mount, "du", &[options, &["-0", "."]].concat());
        let theirs = theirs.replace("\t./", "\t/").replace("\t.\0", "\t/\0");
        let ours: Vec<&str> = options.iter().copied().filter(|option| *option != "-k").collect();
        let ours = succeeds([&["du", "-0"], &ours[..], &[&sample.image]].concat());
        assert_eq!(names(&ours), names(&theirs), "{options:?}");
    }
    // What is set aside for trees, each way of opening counts by itself.
    let theirs = by_kernel(&mount, "df", &["--output=size", "."]);
    let ours = succeeds(["df", &sample.image]);
    let ours = ours.lines().nth(1).unwrap().split_whitespace().next();
    assert_eq!(ours, theirs.lines().nth(1).map(str::trim));
    let inodes = by_kernel(&mount, "df", &["--output=iused", "."]);
    let ours: Value = serde_json::from_str(&succeeds(["df", "--json", &sample.image])).unwrap();
    assert_eq!(ours["used_inodes"].to_string(), inodes.lines().nth(1).unwrap().trim());
}

#[test]
fn find_finds_what_gnu_finds_on_a_mount() {
    if !kernel::available_or_report() {
        return;
    }
    let sample = volume();
    let mount = LoopMount::new(Path::new(&sample.image), Access::ReadOnly, &[]).unwrap();
    for expression in [
        "",
        "-name *.conf",
        "-iname *.conf",
        "-path ./usr/*so*",
        "-type f",
        "-type d,l",
        "-size +10k",
        "-size -2",
        "-size 3000c",
        "-empty",
        "-newer ./etc/hosts",
        "-user 1234",
        "-group 4321",
        "-perm -4000",
        "-perm /0111 -type f",
        "-links 2 -type f",
        "-maxdepth 1",
        "-mindepth 3",
        "! -type d -maxdepth 2",
        "( -name *.so -o -name a* ) -size +0",
        "-type f -a -not -name *.conf -o -empty",
    ] {
        let words: Vec<&str> = expression.split_whitespace().collect();
        // Without parentheses, the last word would count for what is behind the last -o.
        let tests = match words[..] {
            [] => Vec::new(),
            _ => [&["("], &words[..], &[")"]].concat(),
        };
        let theirs = by_kernel(&mount, "find", &[&["."], &tests[..], &["-print0"]].concat());
        let theirs = names(&theirs).into_iter().map(|name| match name {
            "." => "/",
            name => name.strip_prefix('.').unwrap_or(name),
        });
        let theirs: BTreeSet<_> = theirs.collect();
        let in_volume = words.iter().map(|word| match word.strip_prefix('.') {
            Some(path) if path.starts_with('/') => path,
            _ => word,
        });
        let ours: Vec<&str> = in_volume.collect();
        let ours = succeeds([&["find", "-0", &sample.image], &ours[..]].concat());
        assert_eq!(names(&ours), theirs, "{expression}");
    }
    let separated = succeeds(["find", &sample.image, "/etc", "-type", "f", "-print0"]);
    assert_eq!(separated.matches('\0').count(), 5, "{separated:?}");
    let message = fails(2, ["find", &sample.image, "-nonsense"]);
    assert!(message.contains("-nonsense is no test"), "{message}");
    let message = fails(2, ["find", &sample.image, "(", "-empty"]);
    assert!(message.contains("has no parenthesis behind it"), "{message}");
    fails(2, ["find", &sample.image, "-name"]);
    fails(1, ["find", &sample.image, "/nowhere"]);
}

#[test]
fn ls_has_the_letters_of_gnu() {
    let sample = volume();
    let image = &sample.image[..];
    assert_eq!(succeeds(["ls", "-S", image, "/usr/lib"]).lines().next(), Some("large.so"));
    assert_eq!(succeeds(["ls", "-r", image, "/usr/lib"]).lines().next(), Some("small.so"));
    let human = succeeds(["ls", "-lh", image, "/usr/lib/large.so"]);
    assert!(human.contains(" 2.9M "), "{human}");
    let all = succeeds(["ls", "-aF", image, "/"]);
    assert_eq!(all, "./\n../\nempty/\netc/\nlib@\nodd\\[1]\nusr/\n");
    let numbers = succeeds(["ls", "-i", image, "/usr/lib/large.so", "/usr/lib/large.so.1"]);
    let numbers: Vec<_> = numbers.lines().map(|line| line.split_whitespace().next()).collect();
    assert_eq!(numbers[0], numbers[1]);
    assert_eq!(succeeds(["ls", "-d", image, "/usr"]), "/usr\n");
    assert_eq!(succeeds(["ls", "-0", image, "/"]), "empty\0etc\0lib\0odd\\[1]\0usr\0");
    let help = succeeds(["ls", "--help"]);
    assert!(help.contains("-h, --human-readable"), "{help}");
}

#[test]
fn patterns_stand_for_names_that_are_there() {
    let sample = volume();
    let image = &sample.image[..];
    let found = succeeds(["ls", image, "/etc/*.conf", "/usr/*/*.so"]);
    assert_eq!(found, "/etc/a.conf\n/usr/lib/large.so\n/usr/lib/small.so\n");
    assert_eq!(succeeds(["ls", image, "/etc/.*.conf"]), "/etc/.hidden.conf\n");
    // Through the link, as it is one to a directory.
    assert_eq!(succeeds(["ls", image, "/l*/sm*"]), "/lib/small.so\n");
    assert_eq!(succeeds(["ls", image, "/odd\\[1]"]), "/odd\\[1]\n");
    assert_eq!(succeeds(["cat", image, "/etc/a*"]).len(), 10);
    let message = fails(1, ["cat", image, "/etc/*.nothing"]);
    assert!(message.contains("/etc/*.nothing: no such file"), "{message}");
    succeeds(["rm", image, "/usr/lib/*.so"]);
    assert_eq!(succeeds(["ls", image, "/usr/lib"]), "deep\nlarge.so.1\n");
}

#[test]
fn a_tree_is_drawn() {
    let sample = sample(&["--size", "64M"]);
    let drawn = "/\n└── etc/\n    ├── deep/\n    │   └── odd\\nname\n    ├── hosts\n    └── link\n\n\
                 2 directories, 3 files\n";
    assert_eq!(succeeds(["tree", &sample.image]), drawn);
    let top = "/etc\n└── deep/\n\n1 directories\n";
    assert_eq!(succeeds(["tree", "-d", "-L", "1", &sample.image, "/etc"]), top);
    let message = fails(1, ["tree", &sample.image, "/etc/hosts"]);
    assert!(message.contains("is no directory"), "{message}");
}

#[test]
fn stat_says_where_the_data_is() {
    let sample = volume();
    let image = &sample.image[..];
    let stat = succeeds(["stat", "--json", "--extents", image, "/usr/lib/large.so"]);
    let stat: Value = serde_json::from_str(&stat).unwrap();
    let disk = fs::read(image).unwrap();
    let mut bytes = 0;
    for extent in stat["extent_list"].as_array().unwrap() {
        let number = |key: &str| usize::try_from(extent[key].as_u64().unwrap()).unwrap();
        assert_eq!(number("offset"), bytes);
        assert_eq!(disk[number("place")], b'x');
        bytes += number("bytes");
    }
    assert!(bytes >= 3_000_000);
    let number = stat["inode"].to_string();
    let by_number = succeeds(["stat", "--json", "--inode", &number, image]);
    let by_number: Value = serde_json::from_str(&by_number).unwrap();
    assert_eq!((&by_number["size"], &by_number["links"]), (&3_000_000.into(), &2.into()));
    assert_eq!(by_number["parents"].as_array().unwrap().len(), 2);
    let message = fails(1, ["stat", "--inode", "3", image]);
    assert!(message.contains("inode 3"), "{message}");
}

#[test]
fn owner_names_what_lies_in_a_block() {
    for options in [&[][..], &["--feature", "rmapbt=0", "--feature", "parent=0"]] {
        let sample = volume();
        let image = &sample.image[..];
        let tree = sample.path("tree");
        succeeds([&["build", "--force", "--size", "64M", &tree, image], options].concat());
        let stat = succeeds(["stat", "--json", "--extents", image, "/usr/lib/large.so"]);
        let stat: Value = serde_json::from_str(&stat).unwrap();
        let place = stat["extent_list"][0]["place"].as_u64().unwrap() + 4096;
        let owner = |arguments: &[&str]| {
            let json = succeeds([&["owner", "--json"], arguments, &[image]].concat());
            serde_json::from_str::<Value>(json.lines().next().unwrap()).unwrap()
        };
        let found = owner(&["--byte", &place.to_string()]);
        assert_eq!((&found["kind"], &found["offset"]), (&"data".into(), &4096.into()));
        assert_eq!(found["inode"], stat["inode"]);
        let names: Vec<_> =
            found["paths"].as_array().unwrap().iter().map(|path| path["name"].as_str()).collect();
        assert_eq!(names, [Some("/usr/lib/large.so"), Some("/usr/lib/large.so.1")]);
        let text = succeeds(["owner", "--sector", &(place / 512).to_string(), image]);
        assert!(text.contains("byte 4096\n  /usr/lib/large.so\n"), "{text}");
        assert_eq!(owner(&["--byte", "0"])["kind"], "headers of the group");
        // The root directory is in the first chunk.
        let root = succeeds(["stat", "--json", image, "/"]);
        let root: Value = serde_json::from_str(&root).unwrap();
        let inodes = owner(&["--byte", &(root["inode"].as_u64().unwrap() * 512).to_string()]);
        assert_eq!((&inodes["kind"], &inodes["range"][0]), (&"inodes".into(), &root["inode"]));
        let free = owner(&["--byte", &((60 << 20) as u64).to_string()]);
        assert_eq!(free["kind"], "free");
    }
    let sample = sample(&["--size", "64M"]);
    let message = fails(1, ["owner", "--byte", "1073741824", &sample.image]);
    assert!(message.contains("behind the end of the volume"), "{message}");
    fails(2, ["owner", &sample.image, "1/x"]);
}

#[test]
fn trim_gives_free_space_back_and_nothing_else() {
    let sample = volume();
    let image = &sample.image[..];
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&fs::metadata(image).unwrap());
    let before = blocks();
    succeeds(["rm", "-r", image, "/usr"]);
    let report = succeeds(["trim", "--json", image]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["bytes"].as_u64().unwrap() > 50 << 20, "{report}");
    assert!(blocks() + 2 * 2900 < before, "{} of {before}", blocks());
    assert!(succeeds(["check", image]).starts_with("clean"));
    assert_eq!(succeeds(["cat", image, "/etc/B.CONF"]).len(), 3000);
}
