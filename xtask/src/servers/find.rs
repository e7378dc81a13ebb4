//! Finds a server's programs: Debian keeps most of them out of the path.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Programs that do the same, if the usual ones are not there.
const OTHERS: [(&str, &str); 2] = [
    ("redis-server", "valkey-server"),
    ("redis-cli", "valkey-cli"),
];

/// Finds a program, or else another one that does the same.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    or_another(name, called)
}

fn or_another(name: &str, called: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    called(name).or_else(|| {
        let other = OTHERS.iter().find(|(usual, _)| *usual == name);
        other.and_then(|(_, other)| called(other))
    })
}

/// Looks in the path, then at the versions of Postgres side by side, the newest first, then where
/// system programs are.
fn called(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(newest_first(folders(Path::new("/usr/lib/postgresql"))))
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Finds a program that comes with another one: beside the file that a link leads to, or else
/// anywhere.
pub(super) fn beside(program: &Path, name: &str) -> Option<PathBuf> {
    let file = fs::canonicalize(program).ok()?;
    let beside = file.with_file_name(name);
    if beside.is_file() {
        Some(beside)
    } else {
        self::program(name)
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The folders of programs in the folders of versions.
fn newest_first(mut versions: Vec<PathBuf>) -> Vec<PathBuf> {
    versions.sort_by_cached_key(|version| {
        let name = version.file_name().unwrap_or_default().to_string_lossy();
        name.split('.')
            .map(|number| number.parse().unwrap_or(0))
            .collect::<Vec<u32>>()
    });
    versions.reverse();
    versions.iter().map(|version| version.join("bin")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_and_not_text() {
        let versions = ["9.6", "15", "9.10", "17", "other"].map(PathBuf::from);
        assert_eq!(
            newest_first(versions.into()),
            ["17/bin", "15/bin", "9.10/bin", "9.6/bin", "other/bin"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_link_leads_to_the_programs_beside_its_file() {
        let shell = program("sh").expect("a shell");
        assert!(beside(&shell, "ls").is_some());
        assert_eq!(program("a-program-that-nobody-has"), None);
    }
    #[test]
    fn another_program_is_taken_only_where_the_usual_one_is_not_there() {
        let found = |there: &[&str]| {
            let called = |name: &str| there.contains(&name).then(|| name.into());
            or_another("redis-server", called)
        };
        let both = ["valkey-server", "redis-server"];
        assert_eq!(found(&both), Some("redis-server".into()));
        assert_eq!(found(&both[..1]), Some("valkey-server".into()));
        assert_eq!(found(&["valkey-cli"]), None);
    }
}
