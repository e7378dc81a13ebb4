//! Finds the one record that the arguments name.

use std::{str::FromStr, sync::Arc};

use idempotent_runtime::{
    Idempotency, KeyPart, KeyWriter, identity::RecordId, key::Key, operate::RecordCursor,
    record::Record,
};

use crate::{args::RecordArgs, failure::Failure};

/// How many digits of an id name a record at least.
const DIGITS: usize = 8;

/// A record as it stands.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) id: RecordId,
    pub(crate) record: Arc<Record>,
    /// The scope and the key, if it was named by these.
    pub(crate) spelled: Option<(Parts<'a>, Parts<'a>)>,
}

/// Finds the record that the arguments name.
pub(crate) async fn find<'a>(
    idem: &Idempotency,
    named: &'a RecordArgs,
) -> Result<Found<'a>, Failure> {
    match (&named.id, &named.operation) {
        (Some(id), _) => by_id(idem, &id.to_ascii_lowercase()).await,
        (None, Some(operation)) => by_key(idem, operation, named).await,
        (None, None) => Err(Failure::Usage("name a record".to_owned())),
    }
}

async fn load<'a>(idem: &Idempotency, id: RecordId) -> Result<Option<Found<'a>>, Failure> {
    let record = idem.store().load(&id).await?.record;
    Ok(record.map(|record| Found {
        id,
        record,
        spelled: None,
    }))
}

async fn by_id<'a>(idem: &Idempotency, digits: &str) -> Result<Found<'a>, Failure> {
    if let Ok(id) = RecordId::from_str(digits) {
        let found = load(idem, id).await?;
        return found.ok_or_else(|| not_found(digits));
    }
    let is_hex = digits.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_hex || !(DIGITS..64).contains(&digits.len()) {
        return Err(Failure::Usage(format!(
            "`{digits}` is no id: it has 64 hexadecimal digits, and {DIGITS} of them at least name a record"
        )));
    }
    let ids = matching(idem, digits).await?;
    match ids.as_slice() {
        [] => Err(not_found(digits)),
        [id] => load(idem, *id).await?.ok_or_else(|| not_found(digits)),
        several => {
            let ids: Vec<_> = several.iter().map(RecordId::to_hex).collect();
            Err(Failure::Usage(format!(
                "several records begin with {digits}: {}",
                ids.join(", ")
            )))
        }
    }
}

/// Two ids at most that begin with these digits. The list of attention comes first, because
/// Redis finds it by a set and looks at all keys otherwise.
async fn matching(idem: &Idempotency, digits: &str) -> Result<Vec<RecordId>, Failure> {
    let begins = |id: &RecordId| id.to_hex().starts_with(digits);
    let mut ids = Vec::new();
    let attention = idem.records().attention().page(10_000).await?;
    ids.extend(attention.rows.iter().map(|it| it.id).filter(begins));
    // Records are listed in the order of their ids behind a place, where the store has an order.
    let mut next = below(digits);
    loop {
        let page = idem.records();
        let page = match next {
            Some(cursor) => page.after(cursor).page(2).await?,
            None => page.page(2).await?,
        };
        let is_past = page
            .rows
            .last()
            .is_some_and(|it| it.id.to_hex().as_str() > digits && !begins(&it.id));
        ids.extend(page.rows.iter().map(|it| it.id).filter(begins));
        next = page.next;
        ids.sort_unstable_by_key(RecordId::to_hex);
        ids.dedup();
        if ids.len() > 1 || is_past || next.is_none() {
            ids.truncate(2);
            return Ok(ids);
        }
    }
}

/// The place just before the first id that begins with these digits; `None` at the very first.
fn below(digits: &str) -> Option<RecordCursor> {
    let first = format!("{digits:0<64}");
    let mut bytes = *RecordId::from_str(&first).ok()?.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (less, borrows) = byte.overflowing_sub(1);
        *byte = less;
        if !borrows {
            let id = RecordId::from_bytes(bytes).to_hex();
            return format!("0-{id}").parse().ok();
        }
    }
    None
}

fn not_found(digits: &str) -> Failure {
    Failure::NotFound(format!(
        "not found under this id: {digits}. Search by the text of the key: `idempotent list --operation NAME --key TEXT`"
    ))
}

async fn by_key<'a>(
    idem: &Idempotency,
    operation: &str,
    named: &'a RecordArgs,
) -> Result<Found<'a>, Failure> {
    let (scope, key) = (Parts::of(&named.scope), key(named)?);
    let framed_scope = match scope.0.is_empty() {
        true => None,
        false => Some(framed("scope", &scope)?),
    };
    let id = RecordId::new(operation, framed_scope.as_deref(), &framed("key", &key)?);
    match load(idem, id).await? {
        Some(found) => Ok(Found {
            spelled: Some((scope, key)),
            ..found
        }),
        None => Err(Failure::NotFound(format!(
            "not found under this id: no record of `{operation}` has this key and scope as they were said. \
             Search by text: `idempotent list --operation {operation} --key TEXT`"
        ))),
    }
}

fn key(named: &RecordArgs) -> Result<Parts<'_>, Failure> {
    let Some(hex) = &named.key_bytes else {
        return Ok(Parts::of(&named.key));
    };
    let bytes = bytes(hex).ok_or_else(|| {
        Failure::Usage("`--key-bytes` takes pairs of hexadecimal digits".to_owned())
    })?;
    Ok(Parts(vec![Part::Bytes(bytes)]))
}

fn framed<K: KeyPart + ?Sized>(what: &str, part: &K) -> Result<Vec<u8>, Failure> {
    let key = Key::from_part(part);
    let key = key.map_err(|error| Failure::Usage(format!("this {what} cannot be one: {error}")))?;
    Ok(key.framed().to_vec())
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    };
    pairs.map(byte).collect()
}

/// A part of a key as it was said. A number and its text are one key.
#[derive(Clone, Debug)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Bytes(Vec<u8>),
}

impl KeyPart for Part<'_> {
    fn write(&self, key: &mut KeyWriter) {
        match self {
            Self::Text(text) => text.write(key),
            Self::Bytes(bytes) => bytes.as_slice().write(key),
        }
    }
}

/// All parts of a key, as a tuple of the function's frames them.
#[derive(Clone, Debug)]
pub(crate) struct Parts<'a>(pub(crate) Vec<Part<'a>>);

impl<'a> Parts<'a> {
    fn of(said: impl IntoIterator<Item = &'a String>) -> Self {
        Self(said.into_iter().map(|text| Part::Text(text)).collect())
    }
}

impl KeyPart for Parts<'_> {
    fn write(&self, key: &mut KeyWriter) {
        match self.0.as_slice() {
            [one] => one.write(key),
            several => several.iter().for_each(|part| key.part(part)),
        }
    }
}
