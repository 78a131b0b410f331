//! Descriptions: what each language says, and what is wrong in it.

use crate::collect::{Delivered, drain};
use std::fs;
use std::io::Cursor;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use tempfile::TempDir;
use undercroft_source::DescriptionFormat::{Composefs, Mtree, Prototype};
use undercroft_source::description::DescriptionSource;
use undercroft_source::{
    DescriptionFormat, DescriptionOptions, Device, Exclude, Kind, Links, Source, SourceOptions,
    Timestamp,
};

fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn options(contents: Option<&Path>) -> SourceOptions {
    let description =
        DescriptionOptions { contents: contents.map(Path::to_owned), ..Default::default() };
    SourceOptions { description, ..SourceOptions::default() }
}

/// Reads a description twice; both passes have the same entries.
fn read(
    format: DescriptionFormat,
    text: &str,
    options: &SourceOptions,
) -> Result<(Vec<Delivered>, Vec<String>), String> {
    let reader = Cursor::new(text.as_bytes().to_vec());
    let mut source =
        DescriptionSource::from_reader(format, reader, &options.description, &options.reading);
    let mut scanned = Vec::new();
    source.scan(&mut |entry| scanned.push(entry.clone())).map_err(|error| error.to_string())?;
    let all = drain(&mut source).map_err(|error| error.to_string())?;
    assert!(all.iter().map(|delivered| &delivered.entry).eq(&scanned));
    Ok((all, source.warnings().description))
}

fn entries(format: DescriptionFormat, text: &str, contents: Option<&Path>) -> Vec<Delivered> {
    read(format, text, &options(contents)).unwrap().0
}

#[track_caller]
fn refused(format: DescriptionFormat, text: &str, contents: Option<&Path>, parts: &[&str]) {
    let error = read(format, text, &options(contents)).expect_err(text);
    let line = format!("{} line ", format.prefix());
    assert!(error.starts_with(&line), "{error}");
    for part in parts {
        assert!(error.contains(part), "{error:?} has no {part:?}");
    }
}

/// One line for each entry.
fn shown(all: &[Delivered]) -> Vec<String> {
    let line = |delivered: &Delivered| {
        let entry = &delivered.entry;
        let kind = match &entry.kind {
            Kind::Directory => "dir".to_owned(),
            Kind::Regular { .. } => {
                format!("file {:?}", String::from_utf8_lossy(&delivered.contents()))
            }
            Kind::Symlink(target) => format!("-> {}", target.escape_ascii()),
            Kind::HardLink(first) => format!("= {first}"),
            Kind::CharDevice(Device { major, minor }) => format!("char {major}:{minor}"),
            Kind::BlockDevice(Device { major, minor }) => format!("block {major}:{minor}"),
            Kind::Fifo => "fifo".to_owned(),
            Kind::Socket => "socket".to_owned(),
        };
        let metadata = entry.metadata;
        let Timestamp { seconds, nanoseconds } = metadata.mtime;
        format!(
            "{} {:o} {}:{} {seconds}.{nanoseconds} {kind}",
            entry.path, metadata.mode, metadata.uid, metadata.gid
        )
    };
    all.iter().map(line).collect()
}

/// A directory with contents.
fn contents() -> TempDir {
    let home = scratch();
    fs::create_dir_all(home.path().join("dir/sub")).unwrap();
    fs::create_dir(home.path().join("etc")).unwrap();
    fs::write(home.path().join("file"), "hello").unwrap();
    fs::write(home.path().join("dir/sub/deep"), "deep").unwrap();
    fs::write(home.path().join("etc/passwd"), "root:x:0:0\nwww:x:33:34:::\nbad\n").unwrap();
    fs::write(home.path().join("etc/group"), "staff:x:50:\n").unwrap();
    symlink("file", home.path().join("link")).unwrap();
    symlink("loop", home.path().join("loop")).unwrap();
    symlink("dir", home.path().join("linked-dir")).unwrap();
    home
}

#[test]
fn classic_mtree_has_names_in_the_current_directory() {
    let home = contents();
    let text = "#mtree\n\
        /set type=file uid=1 gid=2 mode=0644 time=5.000000007\n\
        .               type=dir mode=0755\n\
        \\#hash\\swith\\040space   size=5 contents=file\n\
        \tdev type=char device=native,300,70000 \\\n   mode=600\n\
        opaque type=block device=0x11112c70\n\
        dir type=dir mode=u=rwx,go=rx\n    # a comment\n\
        sub type=dir uname=www gname=staff\n\
        /unset uid gid\n\
        deep uname=www gname=staff size=4\n\
        ..\n..\n\
        pipe type=fifo uid=3 gid=4\n\
        zlink type=link link=\\.\\.\n"
        .replace("\\.", ".");
    let all = entries(Mtree, &text, Some(home.path()));
    let shown = shown(&all);
    // What is not told is that of the file in the contents, or 0.
    assert_eq!(
        shown[..7],
        [
            ". 755 1:2 5.7 dir",
            "#hash with space 644 1:2 5.7 file \"hello\"",
            "dev 600 1:2 5.7 char 300:70000",
            "dir 755 1:2 5.7 dir",
            "dir/sub 644 1:2 5.7 dir",
            "dir/sub/deep 644 33:50 5.7 file \"deep\"",
            "opaque 644 1:2 5.7 block 300:70000",
        ]
    );
    assert_eq!(shown.len(), 9);
    assert_eq!(shown[7], "pipe 644 3:4 5.7 fifo");
    assert!(shown[8].starts_with("zlink 644") && shown[8].ends_with("-> .."), "{}", shown[8]);
}

#[test]
fn what_mtree_does_not_say_comes_from_the_contents() {
    let home = contents();
    let text = "./dir type=dir mode=700\n./dir/sub type=dir\n./file type=file uid=9\n\
                ./dir/sub/deep type=file mode=600 size=99 nochange\n";
    let all = entries(Mtree, text, Some(home.path()));
    let stat = |path: &str| fs::metadata(home.path().join(path)).unwrap();
    for (index, path) in ["dir", "dir/sub", "dir/sub/deep", "file"].iter().enumerate() {
        let (found, stat) = (all[index].entry.metadata, stat(path));
        assert_eq!(all[index].path(), *path);
        assert_eq!(found.mtime.seconds, stat.mtime());
        assert_eq!(i64::from(found.mtime.nanoseconds), stat.mtime_nsec());
        let mode = if *path == "dir" { 0o700 } else { stat.mode() & 0o7777 };
        assert_eq!(u32::from(found.mode), mode);
        assert_eq!(found.uid, if *path == "file" { 9 } else { stat.uid() });
    }
    // Without contents there is no mode to be guessed; owner and time are 0.
    let bare = entries(Mtree, "./x type=dir mode=1777\n./y type=file mode=600 size=0\n", None);
    assert_eq!(shown(&bare), ["x 1777 0:0 0.0 dir", "y 600 0:0 0.0 file \"\""]);
    refused(Mtree, "./x type=dir\n", None, &["line 1: \"x\" has no mode", "/set mode="]);
    refused(Mtree, "./x type=dir\n", Some(home.path()), &["\"x\" has no mode"]);
}

#[test]
fn later_lines_of_mtree_go_before_and_order_means_nothing() {
    let text = "#mtree v2.0\n./d/f type=file mode=644 size=0 uid=1\n./d type=dir mode=755\n\
                . type=dir mode=700\n./d/f type=file mode=600\n";
    let all = entries(Mtree, text, None);
    assert_eq!(
        shown(&all),
        [". 700 0:0 0.0 dir", "d 755 0:0 0.0 dir", "d/f 600 1:0 0.0 file \"\""]
    );
    let conflict = "./a type=dir mode=7\n./a type=fifo mode=7\n";
    refused(Mtree, conflict, None, &["line 2", "\"a\" is described on line 1 already"]);
}

#[test]
fn names_of_one_file_by_numbers_tags_and_contents() {
    let file = "type=file mode=644 size=0 nlink=2";
    let text = format!(
        "./b {file} inode=5 resdevice=native,1,2\n./a {file} inode=5 resdevice=native,1,2\n\
         ./c {file} inode=5 resdevice=native,1,3\n./d {file} tags=x,names-of:1\n\
         ./e {file} tags=names-of:1\n"
    );
    let all = entries(Mtree, &text, None);
    let kinds: Vec<_> =
        shown(&all).iter().map(|line| line.split(' ').nth(4).unwrap().to_owned()).collect();
    assert_eq!(kinds, ["file", "=", "file", "file", "="]);
    assert_eq!((all[0].entry.links, all[2].entry.links), (Links::Several, Links::Single));
    let (_, warnings) = read(Mtree, &format!("./a {file}\n./b {file}\n"), &options(None)).unwrap();
    assert!(warnings[0].starts_with("2 names, line 1 first, are of files"), "{warnings:?}");
    let differs = "./a type=file mode=600 size=0 inode=1\n./b type=file mode=644 size=0 inode=1\n";
    refused(Mtree, differs, None, &["line 2: \"b\" is another name of the file on line 1"]);
    let home = contents();
    fs::hard_link(home.path().join("file"), home.path().join("second")).unwrap();
    let text = "./file type=file mode=644 nlink=2\n./second type=file mode=644 nlink=2\n";
    assert!(shown(&entries(Mtree, text, Some(home.path())))[1].ends_with("= file"));
    // The first name that is not left out is the file.
    let exclude = Exclude::new(["file"]).unwrap();
    let mut left = options(Some(home.path()));
    left.reading.exclude = exclude;
    let (all, _) = read(Mtree, text, &left).unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].data, b"hello");
}

#[test]
fn digests_and_sizes_are_compared() {
    let home = contents();
    let right = [
        "md5=5d41402abc4b2a76b9719d911017c592",
        "sha1digest=aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d",
        "sha256digest=2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
    ]
    .join(" ");
    let text = format!("./file type=file mode=644 size=5 {right}\n");
    assert_eq!(entries(Mtree, &text, Some(home.path()))[0].data, b"hello");
    let wrong = text.replace("b9824", "b9825");
    refused(
        Mtree,
        &wrong,
        Some(home.path()),
        &["line 1: \"file\" has the SHA-256 digest 2cf2", "says 2cf2", "damaged"],
    );
    let size = "./file type=file mode=644 size=6\n";
    refused(Mtree, size, Some(home.path()), &["\"file\" has 6 bytes by its description", "have 5"]);
    refused(
        Mtree,
        "./file type=file mode=644 md5=5d\n",
        None,
        &["digest is \"5d\"", "not all of it"],
    );
    let absent = "./absent type=file mode=644\n./maybe type=file mode=644 optional\n";
    refused(
        Mtree,
        absent,
        Some(home.path()),
        &[
            "line 1: \"absent\"",
            "no regular file",
            &home.path().join("absent").display().to_string(),
        ],
    );
    let optional = absent.lines().nth(1).unwrap();
    assert!(entries(Mtree, optional, Some(home.path())).is_empty());
    let needed = "./file type=file mode=644 size=5\n";
    refused(Mtree, needed, None, &["\"file\" has contents", "name their directory"]);
}

#[test]
fn keywords_that_are_not_followed_are_told() {
    let text = "./a type=fifo mode=644 flags=uchg,nodump foo=1\n./b type=fifo mode=644 flags=uchg\n\
                ./c type=file mode=644 size=0 cksum=5 flags=none\n";
    let (all, warnings) = read(Mtree, text, &options(None)).unwrap();
    assert_eq!(all.len(), 3);
    let expected = [
        "the keyword flags is not followed, which 2 lines have, line 1 first",
        "the keyword foo is not followed, which 1 lines have, line 1 first",
        "the keyword cksum is not followed, which 1 lines have, line 3 first",
    ];
    assert_eq!(warnings, expected);
    let mut strict = options(None);
    strict.reading.strict = true;
    let error = read(Mtree, text, &strict).unwrap_err();
    assert!(error.contains("line 1: the keyword flags is not followed"), "{error}");
}

#[test]
fn symbolic_links_in_the_contents_are_not_followed() {
    let home = contents();
    let base = Some(home.path());
    for path in ["link", "loop"] {
        let text = format!("./{path} type=file mode=644\n");
        refused(Mtree, &text, base, &["symbolic link on the way, which is not followed", path]);
    }
    let through = "./f type=file mode=644 contents=linked-dir/sub/deep\n";
    refused(Mtree, through, base, &["symbolic link on the way", "linked-dir/sub/deep"]);
    let cycle = "./f type=file mode=644 contents=loop/x\n";
    refused(Mtree, cycle, base, &["symbolic link on the way", "loop/x"]);
    let above = "./f type=file mode=644 contents=../etc/passwd\n";
    refused(Mtree, above, base, &["\"..\""]);
    let payload = "/ 0 40755 2 0 0 0 0.0 - - -\n/f 4 100644 1 0 0 0 0.0 linked-dir/sub/deep - -\n";
    refused(Composefs, payload, base, &["line 2", "symbolic link on the way"]);
    let words = "x 0 0 d--755 0 0\nf ---644 0 0 linked-dir/sub/deep\n$\n";
    refused(Prototype, words, base, &["line 2", "symbolic link on the way"]);
}

/// A whole path is one below the directory of contents, in all languages: no description reaches
/// another file of the machine.
#[test]
fn whole_paths_stay_below_the_contents() {
    let home = contents();
    let outside = scratch();
    let secret = outside.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let secret = secret.display();
    for (format, text) in [
        (Mtree, format!("./f type=file mode=644 contents={secret}\n")),
        (Composefs, format!("/ 0 40755 2 0 0 0 0.0 - - -\n/f 6 100644 1 0 0 0 0.0 {secret} - -\n")),
        (Prototype, format!("x 0 0 d--755 0 0\nf ---644 0 0 {secret}\n$\n")),
    ] {
        let place = format!("{}{secret}", home.path().display());
        refused(format, &text, Some(home.path()), &[&place, "no regular file"]);
        let below = text.replace(&secret.to_string(), "/dir/sub/deep").replace("/f 6", "/f 4");
        let all = entries(format, &below, Some(home.path()));
        assert_eq!(all.last().unwrap().contents(), b"deep", "{below}");
    }
    let text = format!("./f type=file mode=644 contents={secret}\n");
    refused(Mtree, &text, None, &["\"f\" has contents", "name their directory"]);
}

#[test]
fn cycles_of_symbolic_links_are_kept_and_nothing_is_below_them() {
    let text = "./a type=link mode=777 link=b\n./b type=link mode=777 link=a\n";
    let all = entries(Mtree, text, None);
    assert_eq!(shown(&all), ["a 777 0:0 0.0 -> b", "b 777 0:0 0.0 -> a"]);
    let below = format!("{text}./a/x type=fifo mode=600\n");
    let parts = ["line 3: \"a/x\" lies below \"a\"", "symbolic link by line 1", "no directory"];
    refused(Mtree, &below, None, &parts);
    let dump = "/a 1 120777 1 0 0 0 0.0 b - -\n/a/x 0 10644 1 0 0 0 0.0 - - -\n";
    refused(Composefs, dump, None, &["line 2: \"a/x\" lies below \"a\"", "symbolic link"]);
    let deeper = "./f type=fifo mode=600\n./f/x/y type=fifo mode=600\n";
    refused(Mtree, deeper, None, &["line 2: \"f/x/y\" lies below \"f\", which is a pipe"]);
}

#[test]
fn wrong_lines_of_mtree() {
    let refused = |text: &str, parts: &[&str]| refused(Mtree, text, None, parts);
    refused("./a type=fifo mode=9\n", &["line 1: mode is \"9\"", "octal digits"]);
    refused("\n./a type=pipe mode=6\n", &["line 2: type is \"pipe\"", "write block, char"]);
    refused("./a mode=6\n", &["\"./a\" has no type", "/set"]);
    refused("type=dir mode=755 ./a\n", &["has no type", "mtree -C"]);
    refused("./a type=link mode=777\n", &["\"a\" is a symbolic link without link="]);
    refused("./a type=link mode=777 link=\n", &["target of 0 bytes"]);
    refused("./a type=char mode=600\n", &["\"a\" is a device without device=", "-K device"]);
    refused("./a type=char mode=600 device=native,1\n", &["device is \"native,1\""]);
    refused("./a type=fifo mode=6 uid=-1\n", &["uid is \"-1\"", "number"]);
    refused("./a type=fifo mode=6 time=1.1000000000\n", &["time is", "nanoseconds"]);
    refused("./a type=fifo mode=6 time=x\n", &["time is \"x\""]);
    refused("./a type=file mode=6 size=99999999999999999999\n", &["size is"]);
    refused("./a type=file mode=6 size=9999999999999999999\n", &["a size of 9999999999999999999"]);
    refused("./a type=fifo mode=6 uname=nobody\n", &["uname=nobody", "uid=", "etc/passwd"]);
    refused("/etc type=dir mode=755\n", &["\"/etc\" is neither /set nor /unset", "./NAME"]);
    refused("..\n", &["leaves the root"]);
    refused("./a/../b type=fifo mode=6\n", &["the name \"..\"", "without \"..\""]);
    refused("a\\057b type=fifo mode=6\n", &["slash"]);
    refused("a\\000b type=fifo mode=6\n", &["zero byte"]);
    refused("a\\q type=fifo mode=6\n", &["a\\\\q", "vis(3)"]);
    refused(&format!("{} type=fifo mode=6\n", "n".repeat(256)), &["256 bytes; the most is 255"]);
    refused(&format!("{}x type=fifo mode=6\n", "n/".repeat(9000)), &["the most is 16384"]);
    refused("./a/b type=fifo mode=6\n", &["\"a/b\" lies in \"a\", which is not described"]);
    refused(". type=fifo mode=6\n", &["root of the tree", "directory"]);
    refused("./a type=fifo mode=6\nb type=fifo mode=6\n", &["line 2", "mtree -C"]);
    refused("./a type=fifo \\\n", &["ends before the end of a line", "cut off"]);
    refused("#mtree v2.0\n# nothing\n", &["ends before its first name", "cut off"]);
}

const DUMP: &str = "\
/ 0 40755 3 0 0 0 1.2 - - - user.a\\x3db=c=d security.selinux=x\\x00\n\
/a\\x20dir 0 40700 2 1 2 0 -6.750000000 - - -\n\
/a\\x20dir/inline 6 100644 2 3 4 0 5.0 - hi\\n\\x00\\t\\\\ -\n\
/link 6 @100644 2 3 4 0 5.0 /a\\x20dir/inline - -\n\
/char 0 20600 1 0 0 1049900 0.0 - - -\n\
/empty 0 100600 1 0 0 0 0.0 - - -\n\
/lnk 6 120777 1 0 0 0 0.0 ta\\x20get - -\n\
/dash 1 120777 1 0 0 0 0.0 \\x2d - -\n";

#[test]
fn composefs_dumps() {
    let all = entries(Composefs, DUMP, None);
    assert_eq!(
        shown(&all),
        [
            ". 755 0:0 1.2 dir",
            "a dir 700 1:2 -6.750000000 dir",
            "a dir/inline 644 3:4 5.0 file \"hi\\n\\0\\t\\\\\"",
            "char 600 0:0 0.0 char 5:300",
            "dash 777 0:0 0.0 -> -",
            "empty 600 0:0 0.0 file \"\"",
            "link 644 3:4 5.0 = a dir/inline",
            "lnk 777 0:0 0.0 -> ta get",
        ]
    );
    let xattrs = &all[0].entry.xattrs;
    let named: Vec<_> = xattrs.iter().map(|xattr| (&xattr.name[..], &xattr.value[..])).collect();
    assert_eq!(named, [(&b"security.selinux"[..], &b"x\0"[..]), (b"user.a=b", b"c=d")]);
    let home = contents();
    // As `fsverity digest` has it.
    let right = "555b589c26ee43b7a2510e6c67ced9fb3190b6da6e9e683984551f5d77a763de";
    let payload = |digest: &str| {
        format!("/ 0 40755 2 0 0 0 0.0 - - -\n/f 5 100644 1 0 0 0 0.0 /file - {digest}\n")
    };
    for digest in ["-", right] {
        assert_eq!(entries(Composefs, &payload(digest), Some(home.path()))[1].data, b"hello");
    }
    let cut = payload(&right[1..]);
    refused(Composefs, &cut, Some(home.path()), &["line 2: DIGEST is", "64 hexadecimal"]);
    let wrong = payload(&right.replace("d77a", "d77b"));
    refused(Composefs, &wrong, Some(home.path()), &["\"f\" has the fs-verity digest 555b589c"]);
    refused(Composefs, &payload("-"), None, &["name their directory"]);
}

#[test]
fn wrong_lines_of_composefs() {
    let refused = |line: &str, parts: &[&str]| {
        let text = format!("/ 0 40755 2 0 0 0 0.0 - - -\n{line}\n");
        refused(Composefs, &text, None, parts);
    };
    refused("/a 0 10600 1 0 0 0 0.0 - -", &["line 2: DIGEST is \"\"", "eleven fields"]);
    refused("a 0 10600 1 0 0 0 0.0 - - -", &["PATH is \"a\"", "slash"]);
    refused("/a\\y 0 10600 1 0 0 0 0.0 - - -", &["PATH is", "backslash"]);
    refused("/a 0 99 1 0 0 0 0.0 - - -", &["MODE is \"99\""]);
    refused("/a 0 644 1 0 0 0 0.0 - - -", &["MODE is \"644\"", "100644"]);
    refused("/a x 10600 1 0 0 0 0.0 - - -", &["SIZE is \"x\""]);
    refused("/a 0 10600 1 4294967296 0 0 0.0 - - -", &["UID is", "32 bits"]);
    refused("/a 0 10600 1 0 0 0 0.0.0 - - -", &["MTIME is"]);
    refused("/a 2 100600 1 0 0 0 0.0 - abc -", &["\"a\" has 2 bytes", "contents have 3"]);
    refused("/a 2 100600 1 0 0 0 0.0 - - -", &["\"a\" has a size", "neither PAYLOAD nor CONTENT"]);
    refused("/a 0 120777 1 0 0 0 0.0 - - -", &["target of 0 bytes"]);
    refused("/a 0 @100600 1 0 0 0 0.0 - - -", &["PAYLOAD is \"-\"", "hard link"]);
    refused("/a 0 @100600 1 0 0 0 0.0 /b - -", &["hard link to \"b\"", "is not described"]);
    refused("/a 0 @100600 1 0 0 0 0.0 / - -", &["hard link to \"\"", "is a directory"]);
    refused("/a 0 @100600 1 0 0 0 0.0 /a - -", &["hard link to \"a\"", "hard link itself"]);
    let cycle = "/a 0 @100600 1 0 0 0 0.0 /b - -\n/b 0 @100600 1 0 0 0 0.0 /a - -";
    refused(cycle, &["line 2", "hard link itself"]);
    refused("/ 0 40755 2 0 0 0 0.0 - - -", &["line 2: \"\" is described on line 1 already"]);
    refused("/a/b 0 10600 1 0 0 0 0.0 - - -", &["\"a/b\" lies in \"a\", which is not described"]);
    refused("/a 0 10600 1 0 0 0 0.0 - - - user.a", &["\"user.a\" is no extended attribute"]);
    refused("/a 0 10600 1 0 0 0 0.0 - - - foo=1", &["attribute \"foo\" is in none of"]);
    refused("/a 0 10600 1 0 0 0 0.0 - - - user.a=1 user.a=2", &["\"user.a\" is there twice"]);
    let long = format!("/a 0 10600 1 0 0 0 0.0 - - - user.a={}", "x".repeat(65_537));
    refused(&long, &["more than 65536 bytes"]);
}

#[test]
fn prototype_files() {
    let home = contents();
    let absolute = "/dir/sub/deep";
    let text = format!(
        "/stand/diskboot\n4872 110\nd--777 3 1\n\
         usr d--755 0 0\n sh -ug755 0x10 010 {absolute}\n a:b ---644 1 2 file\n ken d--750 6 1\n $\n\
         b0 b--644 3 1 300 70000 c0 c--644 3 1 0 1\n fifo p--644 3 1\n \
         slink l--644 3 1 /a/symbolic/link : a comment $\n : another $\n $\n$\n"
    );
    let all = entries(Prototype, &text, Some(home.path()));
    let shown = shown(&all);
    let expected = [
        ". 777 3:1 0.0 dir",
        "usr 755 0:0 0.0 dir",
        "usr/a:b 644 1:2",
        "usr/b0 644 3:1 0.0 block 300:70000",
        "usr/c0 644 3:1 0.0 char 0:1",
        "usr/fifo 644 3:1 0.0 fifo",
        "usr/ken 750 6:1 0.0 dir",
        "usr/sh 6755 16:8",
        "usr/slink 644 3:1 0.0 -> /a/symbolic/link",
    ];
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for (line, expected) in shown.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert!(shown[2].ends_with("file \"hello\"") && shown[7].ends_with("file \"deep\""));
    // Files have the time of their contents, as nothing else tells one.
    let stat = fs::metadata(home.path().join("file")).unwrap();
    assert_eq!(all[2].entry.metadata.mtime.seconds, stat.mtime());
    let spaces = "x 0 0 d--755 0 0 two/words p--644 0 0 $";
    let mut with = options(None);
    with.description.slashes_are_spaces = true;
    assert_eq!(read(Prototype, spaces, &with).unwrap().0[1].path(), "two words");
    refused(Prototype, spaces, None, &["\"two/words\" has a slash", "stands for a space"]);
}

#[test]
fn wrong_words_of_prototype_files() {
    let refused = |words: &str, parts: &[&str]| {
        refused(Prototype, &format!("x\n0 0\nd--755 0 0\n{words}\n"), None, parts);
    };
    refused("a p--648 0 0\n$", &["line 4: the mode is \"p--648\"", "three octal digits"]);
    refused("a r--644 0 0 4096\n$", &["the mode is \"r--644\"", "one of - b c d l p"]);
    refused("a s--644 0 0\n$", &["the mode is \"s--644\""]);
    refused("a pg-644 0 0\n$", &["the mode is \"pg-644\""]);
    refused("a p--1644 0 0\n$", &["the mode is \"p--1644\""]);
    refused("a p--644 0 1x\n$", &["the group is \"1x\"", "number"]);
    refused("a p--644", &["ends before the owner", "cut off"]);
    refused("a p--644 0 0", &["ends before the $ that ends a directory"]);
    refused("a p--644 0 0\na p--644 0 0\n$", &["line 5: \"a\" is described on line 4 already"]);
    refused("$ $", &["\"$\" follows the $ that ends the root"]);
    refused("a ---644 0 0 /nonexistent/x\n$", &["line 4", "/nonexistent/x"]);
    refused(".. p--644 0 0\n$", &["the name \"..\""]);
    super::descriptions::refused(Prototype, "x y\n", None, &["blocks is \"y\""]);
    super::descriptions::refused(Prototype, "", None, &["ends before its first name"]);
    let root = "x 0 0 p--755 0 0 $";
    super::descriptions::refused(Prototype, root, None, &["root of the tree"]);
}

#[test]
fn large_files_are_lent_and_compared_all_the_same() {
    use undercroft_source::Lending;
    let home = scratch();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|number| number as u8).collect();
    fs::write(home.path().join("large"), &bytes).unwrap();
    let right = "./large type=file mode=644 size=3000000 \
                 sha256=1913233a0a87fe912497ee543021c40adc5d414614fc76fdff3e0c08b6a1d981\n";
    let wrong = right.replace("sha256=1913", "sha256=0000");
    for (text, is_right) in [(right.to_owned(), true), (wrong, false)] {
        let reader = Cursor::new(text.into_bytes());
        let SourceOptions { description, reading, .. } = options(Some(home.path()));
        let mut source = DescriptionSource::from_reader(Mtree, reader, &description, &reading);
        assert!(source.lend_files(&Lending::new(64 << 10)));
        let entry = source.next_entry().unwrap().unwrap();
        assert!(matches!(entry.kind, Kind::Regular { size: 3_000_000, .. }));
        match source.lent_file() {
            Ok(lent) => assert!(is_right && lent.is_some()),
            Err(error) => assert!(!is_right && error.to_string().contains("SHA-256"), "{error}"),
        }
    }
}
