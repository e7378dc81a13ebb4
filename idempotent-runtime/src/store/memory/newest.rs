//! The records of each operation, in the order in which they were created.

use std::{collections::HashMap, sync::Arc};

use crate::{
    identity::RecordId,
    record::{Record, Time},
};

/// When a record was created, and its id.
pub(super) type Place = (Time, RecordId);

/// The index of the records that stand: one place for each.
#[derive(Default)]
pub(super) struct Newest(HashMap<Arc<str>, Vec<Place>>);

impl Newest {
    /// Enters a record. Nearly always it is the newest one.
    pub(super) fn enter(&mut self, id: RecordId, record: &Record) {
        let name = &record.subject.operation;
        let place = (record.created, id);
        match self.0.get_mut(&**name) {
            // Nearly all come in order: the search would read what no cache holds.
            Some(places) if places.last().is_none_or(|last| *last < place) => places.push(place),
            Some(places) => places.insert(places.partition_point(|it| *it < place), place),
            None => drop(self.0.insert(Arc::clone(name), vec![place])),
        }
    }

    /// Takes a record out that begins anew, which is rare.
    pub(super) fn leave(&mut self, id: RecordId, record: &Record) {
        if let Some(places) = self.0.get_mut(&*record.subject.operation)
            && let Ok(place) = places.binary_search(&(record.created, id))
        {
            places.remove(place);
        }
    }

    /// Drops the places of records that are gone.
    pub(super) fn retain(&mut self, stands: impl Fn(&RecordId) -> bool) {
        self.0.retain(|_, places| {
            places.retain(|(_, id)| stands(id));
            !places.is_empty()
        });
    }

    /// The newest of an operation that are older than this one.
    pub(super) fn of(
        &self,
        operation: &str,
        after: Option<Place>,
    ) -> impl Iterator<Item = Place> + use<'_> {
        let places = self.0.get(operation).map_or(&[][..], Vec::as_slice);
        let end = after.map_or(places.len(), |after| {
            places.partition_point(|it| *it < after)
        });
        places[..end].iter().rev().copied()
    }
}
