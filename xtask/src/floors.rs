//! The floors of a crate: a room, which is a module below its root, imports rooms below it, never
//! beside or above.

mod arrows;
mod houses;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use self::{
    arrows::{Read, read},
    houses::HOUSES,
};
use crate::plan::root;

/// A crate, or a module of one, whose rooms have floors.
pub(crate) struct House {
    /// The folder of its sources.
    folder: &'static str,
    /// The module that it is; empty for a crate.
    module: &'static [&'static str],
    /// From the lowest floor up.
    floors: &'static [&'static [&'static str]],
    /// Arrows that run up or sideways by now: from a room to another one. This list becomes only
    /// shorter.
    known: &'static [(&'static str, &'static str)],
}

/// Checks every house, and prints what is wrong.
pub(crate) fn check() -> ExitCode {
    let mut wrong = Vec::new();
    for house in HOUSES {
        match house.flaws(root()) {
            Ok(flaws) => wrong.extend(flaws),
            Err(error) => wrong.push(format!("{}: {error}", house.folder)),
        }
    }
    for flaw in &wrong {
        eprintln!("{flaw}");
    }
    match wrong.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// A source file: where it lies, and what it names.
struct Source {
    path: PathBuf,
    module: Vec<String>,
    read: Read,
}

impl House {
    fn flaws(&self, root: &Path) -> io::Result<Vec<String>> {
        let sources = self.sources(root)?;
        let re_exports = self.re_exports(&sources);
        let tests: BTreeSet<_> = sources.iter().flat_map(|it| &it.read.tests).collect();
        let is_of_tests = |it: &Source| tests.iter().any(|test| it.module.starts_with(test));
        let (mut flaws, mut met) = (Vec::new(), BTreeSet::new());
        let mut rooms = BTreeSet::new();
        for source in sources.iter().filter(|it| !is_of_tests(it)) {
            // The root stands on top of all.
            let Some(from) = source.module.get(self.module.len()) else {
                continue;
            };
            if rooms.insert(from) && self.floor(from).is_none() {
                let place = source.path.display();
                flaws.push(format!(
                    "{place}: the room {from} has no floor: list it in xtask/src/floors/houses.rs"
                ));
            }
            for named in &source.read.named {
                let Some(to) = self.room_of(&named.path, &re_exports) else {
                    continue;
                };
                let is_up = to != *from && self.floor(&to) >= self.floor(from);
                let arrow = (from.clone(), to);
                if is_up && self.is_known(&arrow) {
                    met.insert(arrow);
                } else if is_up {
                    let (place, line) = (source.path.display(), named.line);
                    flaws.push(format!("{place}:{line}: {} → {} runs up", arrow.0, arrow.1));
                }
            }
        }
        flaws.dedup();
        let known = self.known.iter();
        let gone =
            known.filter(|(from, to)| !met.contains(&((*from).to_owned(), (*to).to_owned())));
        flaws.extend(gone.map(|(from, to)| {
            format!(
                "{}: {from} → {to} is gone: take it from the list",
                self.folder
            )
        }));
        Ok(flaws)
    }

    fn floor(&self, room: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&room))
    }

    /// The part of a path behind this house.
    fn inside<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let (of, inside) = path.split_at_checked(self.module.len())?;
        (of == self.module).then_some(inside)
    }

    fn is_known(&self, (from, to): &(String, String)) -> bool {
        self.known.contains(&(from, to))
    }

    /// The room that a path leads to: by its name, or through the root that passes it on.
    fn room_of(&self, path: &[String], re_exports: &BTreeMap<String, String>) -> Option<String> {
        let name = self.inside(path)?.first()?;
        match self.floor(name) {
            Some(_) => Some(name.clone()),
            None => re_exports.get(name).cloned(),
        }
    }

    /// The names that the root passes on, and their rooms.
    fn re_exports(&self, sources: &[Source]) -> BTreeMap<String, String> {
        let roots = sources
            .iter()
            .filter(|it| it.module.len() == self.module.len());
        let named = roots.flat_map(|it| &it.read.named);
        let names = named.filter_map(|named| {
            let inside = self.inside(&named.path)?;
            let (room, name) = (inside.first()?, inside.last()?);
            (inside.len() > 1 && self.floor(room).is_some()).then(|| (name.clone(), room.clone()))
        });
        names.collect()
    }

    fn sources(&self, root: &Path) -> io::Result<Vec<Source>> {
        let top = root.join(self.folder);
        let mut sources = Vec::new();
        let mut folders = vec![top.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|it| it == "rs") {
                    sources.push(self.source(&top, root, &path)?);
                }
            }
        }
        // A house of one file, and the folder of its rooms.
        let beside = top.with_extension("rs");
        if !self.module.is_empty() && beside.exists() {
            sources.push(self.source(&top, root, &beside)?);
        }
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(sources)
    }

    fn source(&self, top: &Path, root: &Path, path: &Path) -> io::Result<Source> {
        let text = fs::read_to_string(path)?;
        let tokens = text
            .parse()
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        let inside = path
            .strip_prefix(top)
            .unwrap_or(Path::new(""))
            .with_extension("");
        let names = inside
            .iter()
            .map(|name| name.to_string_lossy().into_owned());
        let names = names.filter(|name| name != "mod" && name != "lib");
        let module: Vec<_> = self
            .module
            .iter()
            .map(|name| (*name).to_owned())
            .chain(names)
            .collect();
        let read = read(tokens, &module);
        let path = path.strip_prefix(root).unwrap_or(path).to_owned();
        Ok(Source { path, module, read })
    }
}
