//! The result of a verification.

use std::fmt;

/// The way in which a trail is not what it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergenceKind {
    /// A field of a sealed entry changed.
    Content,
    /// An entry is not in its place.
    Place,
    /// An entry or a seal is missing, or one was added.
    Gap,
    /// A seal does not follow the one before, or has another hash.
    Link,
    /// The last seals are missing.
    MissingTail,
    /// The chain was made anew: an anchor has another root.
    Remade,
    /// More is gone than the last pruning took.
    Pruned,
    /// An entry is older than an hour, and was not sealed: no sealer runs, or it was put there.
    NeverSealed,
    /// A record is not what its last entry says, or an entry does not follow the one before.
    Unaudited,
}

/// The first place where a trail is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Divergence {
    /// In which way.
    pub kind: DivergenceKind,
    /// The batch, where it is one.
    pub batch: Option<i64>,
    /// The number of the entry, where it is known.
    pub number: Option<i64>,
    /// The record, as hexadecimal digits, where it is one.
    pub record: Option<String>,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DivergenceKind::Content => "a field of a sealed entry changed",
            DivergenceKind::Place => "an entry is not in its place",
            DivergenceKind::Gap => "an entry or a seal is missing, or one was added",
            DivergenceKind::Link => "a seal does not follow the one before, or has another hash",
            DivergenceKind::MissingTail => "the last seals are missing",
            DivergenceKind::Remade => "the chain was made anew: an anchor has another root",
            DivergenceKind::Pruned => "more is gone than the last pruning took",
            DivergenceKind::NeverSealed => "an entry is older than an hour, and was not sealed",
            DivergenceKind::Unaudited => "a record is not what its entries say",
        })?;
        let parts = [
            ("batch", self.batch.map(|it| it.to_string())),
            ("entry", self.number.map(|it| it.to_string())),
            ("record", self.record.clone()),
        ];
        let parts = parts
            .iter()
            .filter_map(|(name, it)| Some((name, it.as_ref()?)));
        for (place, (name, it)) in parts.enumerate() {
            let before = if place == 0 { ": " } else { ", " };
            write!(f, "{before}{name} {it}")?;
        }
        Ok(())
    }
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// How many batches hold.
    pub batches: u64,
    /// How many entries these have.
    pub entries: u64,
    /// How many entries of these batches were pruned: they hold by their leaf, or by the seal
    /// alone.
    pub pruned: u64,
    /// The last batch up to which an anchor holds: nobody has changed these. 0 without an anchor.
    pub anchored: i64,
    /// If the application can change this trail: its users who own the tables, or on SQLite
    /// everyone who can write the file. `None` if no call of the last thousand changes came from an
    /// owner.
    pub changeable_by: Option<String>,
    /// The first divergence; `None` if there is none.
    pub divergence: Option<Divergence>,
}
