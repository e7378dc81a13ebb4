//! The floors of a crate: a room, which is a module below its root, imports rooms below it, never
//! beside or above.

mod arrows;
mod attributes;
mod houses;
mod names;
#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    num::NonZero,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use self::{
    arrows::{Feature, Named, Read, read},
    houses::HOUSES,
    names::Names,
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
    /// Features that belong to a room: rooms below it do not name them.
    features: &'static [(&'static str, &'static str)],
    /// Files that name such a feature by now, and the feature. This list becomes only shorter.
    known_features: &'static [(&'static str, &'static str)],
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

/// The findings in a house.
#[derive(Default)]
struct Found {
    flaws: Vec<String>,
    /// The known arrows, and the known features, that are still there.
    arrows: BTreeSet<(&'static str, &'static str)>,
    features: BTreeSet<(&'static str, &'static str)>,
}

impl House {
    fn flaws(&self, root: &Path) -> io::Result<Vec<String>> {
        let sources = self.sources(root)?;
        let names = Names::of(self, &sources);
        let tests = tests(&sources);
        let is_of_tests = |it: &Source| tests.iter().any(|test| it.module.starts_with(test));
        let mut found = Found::default();
        let mut rooms = BTreeSet::new();
        for source in sources.iter().filter(|it| !is_of_tests(it)) {
            let place = source.path.display();
            let room = source.module.get(self.module.len());
            if let Some(room) = room
                && rooms.insert(room)
                && self.floor(room).is_none()
            {
                found.flaws.push(format!(
                    "{place}: the room {room} has no floor: list it in xtask/src/floors/houses.rs"
                ));
            }
            for named in &source.read.named {
                self.arrow(source, named, &names, &mut found);
            }
            for feature in &source.read.features {
                self.feature(source, feature, &mut found);
            }
        }
        found.flaws.dedup();
        found.flaws.extend(self.gone(&found));
        Ok(found.flaws)
    }

    /// Looks at a path, and at the arrow that it is.
    fn arrow(&self, source: &Source, named: &Named, names: &Names, found: &mut Found) {
        let Some(inside) = self.inside(&named.path) else {
            return;
        };
        let (place, line) = (source.path.display(), named.line);
        let is_glob = named.name.as_deref() == Some("*");
        let is_root = inside.iter().all(|name| name == "*");
        if named.name.is_some() && is_root {
            let rule = "the root itself may not be imported: name the room";
            found.flaws.push(format!("{place}:{line}: {rule}"));
            return;
        }
        let Some(to) = names.room(self, inside) else {
            return;
        };
        // The root stands on top of all.
        let Some(from) = self.room_at(&named.at) else {
            if is_glob {
                let rule = "a glob at the root hides rooms: name what it passes on";
                found.flaws.push(format!("{place}:{line}: {rule}"));
            }
            return;
        };
        if to == from || self.floor(to) < self.floor(from) {
            return;
        }
        match self.known.iter().find(|known| **known == (from, to)) {
            Some(known) => drop(found.arrows.insert(*known)),
            None => found
                .flaws
                .push(format!("{place}:{line}: {from} → {to} runs up")),
        }
    }

    /// Looks at a feature, which may belong to a room above.
    fn feature(&self, source: &Source, feature: &Feature, found: &mut Found) {
        let owner = self.features.iter().find(|(name, _)| *name == feature.name);
        let (Some((_, owner)), Some(from)) = (owner, self.room_at(&feature.at)) else {
            return;
        };
        if self.floor(from) >= self.floor(owner) {
            return;
        }
        let (place, line, name) = (source.path.display(), feature.line, &feature.name);
        let file = source.path.to_string_lossy().replace('\\', "/");
        let is_here = |known: &&(&str, &str)| file.ends_with(known.0) && *known.1 == *name;
        match self.known_features.iter().find(is_here) {
            Some(known) => drop(found.features.insert(*known)),
            None => found.flaws.push(format!(
                "{place}:{line}: {from} names the feature {name} of {owner}, which is above"
            )),
        }
    }

    /// Lists what is known, and is there no more.
    fn gone(&self, found: &Found) -> Vec<String> {
        let arrows = self.known.iter().filter(|it| !found.arrows.contains(it));
        let arrows = arrows.map(|(from, to)| format!("{from} → {to}"));
        let features = self.known_features.iter();
        let features = features.filter(|it| !found.features.contains(it));
        let features = features.map(|(file, name)| format!("the feature {name} in {file}"));
        let gone = arrows.chain(features);
        gone.map(|what| format!("{}: {what} is gone: take it from the list", self.folder))
            .collect()
    }

    fn floor(&self, room: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&room))
    }

    /// The part of a path behind this house.
    fn inside<'p>(&self, path: &'p [String]) -> Option<&'p [String]> {
        let (of, inside) = path.split_at_checked(self.module.len())?;
        (of == self.module).then_some(inside)
    }

    /// The room in which a module is; none for the root, and for modules that it has inside.
    fn room_at<'p>(&self, module: &'p [String]) -> Option<&'p str> {
        let room = self.inside(module)?.first()?;
        self.floor(room).map(|_| room.as_str())
    }

    /// Reads the sources, each module before those that it declares: files of tests are left out.
    fn sources(&self, root: &Path) -> io::Result<Vec<Source>> {
        let top = root.join(self.folder);
        let mut floors: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for path in files(&top)? {
            let module = self.module_of(&top, &path);
            let floor = floors.entry(module.len()).or_default();
            floor.push((path, module));
        }
        let mut sources = Vec::new();
        for (_, mut files) in floors {
            let tests = tests(&sources);
            files.retain(|(_, module)| !tests.iter().any(|test| module.starts_with(test)));
            drop(tests);
            sources.extend(read_all(root, &files)?);
        }
        sources.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(sources)
    }

    fn module_of(&self, top: &Path, path: &Path) -> Vec<String> {
        let inside = path.strip_prefix(top).unwrap_or(Path::new(""));
        let inside = inside.with_extension("");
        let names = inside.iter().map(|name| name.to_string_lossy());
        let names = names.filter(|name| name != "mod" && name != "lib");
        let above = self.module.iter().map(|name| (*name).to_owned());
        above.chain(names.map(Cow::into_owned)).collect()
    }
}

/// The files of Rust in a folder, and the one beside it that has its name.
fn files(top: &Path) -> io::Result<Vec<PathBuf>> {
    let beside = top.with_extension("rs");
    let mut files: Vec<_> = beside.exists().then_some(beside).into_iter().collect();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// Reads files that are these modules, on as many threads as there are processors.
fn read_all(root: &Path, files: &[(PathBuf, Vec<String>)]) -> io::Result<Vec<Source>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = files.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let readers = files.chunks(share).map(|files| {
            let sources = files
                .iter()
                .map(|(path, module)| source(root, path, module));
            scope.spawn(move || sources.collect::<io::Result<Vec<_>>>())
        });
        let readers: Vec<_> = readers.collect();
        let mut sources = Vec::new();
        for reader in readers {
            let read = reader.join();
            sources.extend(read.map_err(|_| io::Error::other("a reader panicked"))??);
        }
        Ok(sources)
    })
}

fn source(root: &Path, path: &Path, module: &[String]) -> io::Result<Source> {
    let text = fs::read_to_string(path)?;
    let tokens = text
        .parse()
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    Ok(Source {
        path: path.strip_prefix(root).unwrap_or(path).to_owned(),
        module: module.to_owned(),
        read: read(tokens, module),
    })
}

/// The modules that only tests have.
fn tests(sources: &[Source]) -> BTreeSet<&[String]> {
    let mut tests = BTreeSet::new();
    for source in sources {
        tests.extend(source.read.tests.iter().map(Vec::as_slice));
        let folder = source.path.parent().unwrap_or(&source.path);
        for file in &source.read.test_files {
            let path = folder.join(file);
            let declared = sources.iter().find(|it| it.path == path);
            tests.extend(declared.map(|it| it.module.as_slice()));
        }
    }
    for real in sources.iter().flat_map(|it| &it.read.real) {
        tests.remove(real.as_slice());
    }
    tests
}
