//! The arguments of a call, encoded as they come and hashed once.

use crate::value::{opaque, with_scratch};
use std::hash::{Hash, Hasher};
use std::mem;
use std::sync::OnceLock;

use serde::Serialize;

use super::digests::ArgumentDigests;
use super::encode::{Encoder, tag};
use super::entries::Entries;
use super::fields::KnownFields;
use super::{Fingerprint, FingerprintError, FingerprintKey, hash};

/// Keeps fingerprints apart from every other hash, and one version of the encoding from the next.
pub(super) const DOMAIN: &[u8] = b"idem-fp/1";

/// The name under which [`Arguments::whole`] puts its value in the encoding.
const WHOLE: &str = "fingerprint";

/// The bytes that most calls need, so that encoding allocates once. It is no more, because the
/// memory store keeps it as long as the record.
const CAPACITY: usize = 256;

/// Collects the arguments of a call by name.
///
/// The order in which they come does not matter. An argument that is `None` counts as not given, so
/// that an optional one can be added to a function without changing the fingerprints of its old
/// calls.
///
/// # Examples
///
/// ```
/// use idempotent_runtime::fingerprint::Arguments;
///
/// let mut first = Arguments::new();
/// first.argument("order", "o-1");
/// first.argument("amount", &1_200_u32);
/// let mut again = Arguments::new();
/// again.argument("amount", &1_200_i64);
/// again.argument("order", "o-1");
/// assert_eq!(first.finish(None)?.fingerprint(), again.finish(None)?.fingerprint());
/// # Ok::<(), idempotent_runtime::fingerprint::FingerprintError>(())
/// ```
pub struct Arguments {
    encoder: Encoder,
    entries: Entries,
    failure: Option<FingerprintError>,
    is_empty: bool,
    /// The name in errors of the value that stands for all arguments, if there is one.
    shown: Option<&'static str>,
}

impl Arguments {
    /// Starts with no arguments, which is a call like any other.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        let mut buffer = Vec::with_capacity(CAPACITY);
        buffer.extend_from_slice(DOMAIN);
        buffer.push(tag::MAP);
        Self {
            encoder: Encoder::new(buffer),
            entries: Entries::new(),
            failure: None,
            is_empty: true,
            shown: None,
        }
    }

    /// Adds the argument called `name`; when that fails, [`Arguments::finish`] tells.
    // Always: a function that is not inlined is given a copy, which takes a tenth of the time of
    // the hash.
    #[inline(always)]
    pub fn argument<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) {
        self.add(name, name, value);
    }

    #[inline(always)]
    fn add<T: Serialize + ?Sized>(&mut self, name: &'static str, shown: &'static str, value: &T) {
        self.is_empty = false;
        self.encoder.fields.begin(name);
        if self.failure.is_none()
            && let Err(failure) = self.entries.field(&mut self.encoder, name, value)
        {
            self.failure = Some(failure.of(shown));
        }
    }

    /// Adds the value that stands for all arguments: exactly this must be equal in a retry.
    ///
    /// The same as an argument called `fingerprint`.
    pub fn whole<T: Serialize + ?Sized>(&mut self, value: &T) {
        self.whole_as(WHOLE, value);
    }

    /// The same, where errors call the value by the word by which the caller gave it.
    pub(crate) fn whole_as<T: Serialize + ?Sized>(&mut self, shown: &'static str, value: &T) {
        self.shown = Some(shown);
        self.add(WHOLE, shown, value);
    }

    /// Tells whether none has been added, not even one that is `None`: then the fingerprint tells
    /// no call from another.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Hashes the arguments that have been added: with `key` as HMAC-SHA-256, and without as
    /// SHA-256.
    ///
    /// # Errors
    ///
    /// The first failure of an argument.
    // Always, as above.
    #[inline(always)]
    pub fn finish(
        mut self,
        key: Option<&FingerprintKey>,
    ) -> Result<Fingerprinted, FingerprintError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.entries.sort(&mut self.encoder.buffer);
        self.encoder.buffer.push(tag::MAP_END);
        let fingerprint = Fingerprint(hash(key, &mut self.encoder.buffer));
        Ok(Fingerprinted {
            fingerprint,
            digests: Digests::ToCompute {
                encoding: self.encoder.buffer,
                entries: Box::new(self.entries),
                fields: self.encoder.fields.known,
                key: key.cloned(),
                shown: self.shown,
                computed: OnceLock::new(),
            },
        })
    }
}

/// The length of a value's encoding and the sum of its bytes; neither where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline(pub(crate) Option<(usize, u64)>);

impl Outline {
    /// Whether both may be of one value.
    pub(crate) fn fits(self, other: Self) -> bool {
        self.0.is_none() || other.0.is_none() || self == other
    }
}

/// The outline of a value. The order of its elements does not count: that of a `HashSet` is another
/// one in every copy.
pub(crate) fn outline<T: Serialize + ?Sized>(value: &T) -> Outline {
    with_scratch(|bytes| {
        let mut encoder = Encoder::without_order(mem::take(bytes));
        let encoded = value.serialize(&mut encoder);
        *bytes = encoder.buffer;
        Outline(encoded.ok().map(|()| {
            let sum = bytes.iter().map(|byte| u64::from(*byte)).sum();
            (bytes.len(), sum)
        }))
    })
}

impl Default for Arguments {
    fn default() -> Self {
        Self::new()
    }
}

opaque!(Arguments, |it| failure = it.failure);

/// Arguments with their fingerprint; their digests are computed only when asked for.
///
/// Two of them are equal when their fingerprints are.
#[derive(Clone)]
pub struct Fingerprinted {
    fingerprint: Fingerprint,
    digests: Digests,
}

#[derive(Clone)]
enum Digests {
    Known(ArgumentDigests),
    ToCompute {
        encoding: Vec<u8>,
        entries: Box<Entries>,
        fields: KnownFields,
        key: Option<FingerprintKey>,
        /// The name in errors of the value that stands for all arguments.
        shown: Option<&'static str>,
        /// The digests, computed once: a call that writes a record asks for them twice.
        computed: OnceLock<ArgumentDigests>,
    },
}

impl Fingerprinted {
    /// A fingerprint and digests as they stand in a store.
    #[must_use]
    pub const fn stored(fingerprint: Fingerprint, digests: ArgumentDigests) -> Self {
        Self {
            fingerprint,
            digests: Digests::Known(digests),
        }
    }

    /// The fingerprint of all arguments together.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// How many bytes of encoded arguments it holds.
    pub(crate) const fn held(&self) -> usize {
        match &self.digests {
            Digests::Known(_) => 0,
            Digests::ToCompute { encoding, .. } => encoding.len(),
        }
    }

    /// The digests of the arguments one by one, computed when they are first asked for.
    #[must_use]
    pub fn digests(&self) -> ArgumentDigests {
        match &self.digests {
            Digests::Known(digests) => digests.clone(),
            Digests::ToCompute {
                encoding,
                entries,
                fields,
                key,
                computed,
                ..
            } => {
                let compute = || {
                    let end = encoding.len() - [tag::MAP_END].len();
                    let entries = entries.ranges(end).map(|range| &encoding[range]);
                    ArgumentDigests::of_entries(entries, fields, key.as_ref())
                };
                computed.get_or_init(compute).clone()
            }
        }
    }
}

impl Fingerprinted {
    /// The names of the arguments that differ from those of another call, as this one gave them.
    pub(crate) fn differing(&self, theirs: &ArgumentDigests) -> Vec<String> {
        let mut names = self.digests().differing(theirs);
        if let Digests::ToCompute {
            shown: Some(shown), ..
        } = &self.digests
        {
            for name in &mut names {
                if name.split('.').next() == Some(WHOLE) {
                    name.replace_range(..WHOLE.len(), shown);
                }
            }
            names.sort_unstable();
        }
        names
    }
}

impl PartialEq for Fingerprinted {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for Fingerprinted {}

impl Hash for Fingerprinted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

// The encoding holds the values, and these must not be shown.
opaque!(Fingerprinted, |it| fingerprint = it.fingerprint);
