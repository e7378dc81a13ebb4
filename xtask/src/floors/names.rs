//! The names of a root, and the rooms that they come from.

use super::{House, Source};

/// The most names that stand for one another in a row; names can go round in a ring.
const LONGEST: usize = 8;

/// The imports of a root, and of the modules that it has inside.
pub(super) struct Names<'s> {
    /// The path of a name below the root, and the path that it stands for.
    passed_on: Vec<(Vec<String>, &'s [String])>,
}

impl<'s> Names<'s> {
    pub(super) fn of(house: &House, sources: &'s [Source]) -> Self {
        let mut passed_on = Vec::new();
        for source in sources {
            for named in &source.read.named {
                if let Some(name) = &named.name
                    && house.room_at(&named.at).is_none()
                    && let (Some(at), Some(target)) =
                        (house.inside(&named.at), house.inside(&named.path))
                {
                    passed_on.push(([at, std::slice::from_ref(name)].concat(), target));
                }
            }
            // A macro is passed on to the root of its crate.
            let exported = source.read.exported.iter();
            let exported = exported.filter(|_| house.module.is_empty());
            let exported = exported.filter_map(|it| Some((vec![it.last()?.clone()], &it[..])));
            passed_on.extend(exported);
        }
        Self { passed_on }
    }

    /// The highest of the rooms to which a path below the root leads: by its name, or through what
    /// passes it on. A name can be a type of one room, and a function or a macro of another one.
    pub(super) fn room(&self, house: &House, path: &[String]) -> Option<&'static str> {
        let mut rooms = Vec::new();
        self.rooms(house, path, LONGEST, &mut rooms);
        rooms.into_iter().max_by_key(|room| house.floor(room))
    }

    fn rooms(&self, house: &House, path: &[String], left: usize, rooms: &mut Vec<&'static str>) {
        let path = match path {
            [path @ .., last] if last == "*" => path,
            path => path,
        };
        let Some(first) = path.first() else {
            return;
        };
        let room = house.floors.iter().copied().flatten();
        let room = room.copied().find(|room| room == first);
        rooms.extend(room);
        if left == 0 || room.is_some() && path.len() > 1 {
            return;
        }
        for (name, target) in &self.passed_on {
            if let Some(rest) = path.strip_prefix(&name[..]) {
                self.rooms(house, &[target, rest].concat(), left - 1, rooms);
            } else if name.starts_with(path) {
                // A module inside the root, with all that it passes on.
                self.rooms(house, target, left - 1, rooms);
            }
        }
    }
}
