//! From the columns of a row to a call, and back.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::Url;
use sqlx::{Row as _, sqlite::SqliteRow};

use crate::{
    journal::{CorruptEntry, Ending, Entry, EntryId},
    key::ClientKey,
};
use idempotent_runtime::{
    __client::{read_framed, sqlite_failure, write_framed},
    StoreError, StoreErrorKind, Time,
};

pub(super) const COLUMNS: &str = "origin, account, call_key, method, url, headers, caller, digest, body, created, deadline, ending, status, answer_headers, answer_body, begun";

pub(super) const ANSWERED: i64 = 0;
pub(super) const GONE: i64 = 1;
pub(super) const BURNED: i64 = 2;

pub(super) fn encoded(headers: &HeaderMap) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        write_framed(&mut bytes, name.as_str().as_bytes());
        write_framed(&mut bytes, value.as_bytes());
    }
    bytes
}

fn decoded_headers(mut bytes: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    while !bytes.is_empty() {
        let name = HeaderName::from_bytes(read_framed(&mut bytes)?).ok()?;
        let value = HeaderValue::from_bytes(read_framed(&mut bytes)?).ok()?;
        headers.append(name, value);
    }
    Some(headers)
}

pub(super) fn decoded(row: &SqliteRow, doing: &'static str) -> Result<Entry, StoreError> {
    let read = entry(row).map_err(|error| sqlite_failure(error, doing))?;
    read.ok_or_else(|| {
        StoreError::new(StoreErrorKind::Corrupt, doing)
            .with_source("a call in the journal is not one that this crate wrote")
    })
}

/// The remains of a row that cannot be [decoded](decoded), and in which its number follows the
/// columns.
pub(super) fn damaged(row: &SqliteRow, table: &str, source: StoreError) -> CorruptEntry {
    let number: sqlx::Result<i64> = row.try_get("rowid");
    let place = match number {
        Ok(number) => format!("row {number} of `{table}`"),
        Err(_) => format!("`{table}`"),
    };
    CorruptEntry {
        id: id(row).ok().flatten().map(Box::new),
        place,
        source,
    }
}

fn id(row: &SqliteRow) -> sqlx::Result<Option<EntryId>> {
    let key: String = row.try_get(2)?;
    let Ok(key) = ClientKey::new(key) else {
        return Ok(None);
    };
    Ok(Some(EntryId {
        origin: row.try_get(0)?,
        account: row.try_get(1)?,
        key,
    }))
}

/// `None` if a column holds a value that was never written there.
fn entry(row: &SqliteRow) -> sqlx::Result<Option<Entry>> {
    let ending = match row.try_get::<Option<i64>, _>(11)? {
        Some(kind) => match ending(row, kind)? {
            Some(ending) => Some(ending),
            None => return Ok(None),
        },
        None => None,
    };
    let (method, url): (String, String) = (row.try_get(3)?, row.try_get(4)?);
    let headers: Vec<u8> = row.try_get(5)?;
    let caller: Option<Vec<u8>> = row.try_get(6)?;
    let digest: Option<Vec<u8>> = row.try_get(7)?;
    let begun: Option<Vec<u8>> = row.try_get(15)?;
    let body: Option<Vec<u8>> = row.try_get(8)?;
    let (Some(id), Ok(method), Ok(url), Some(headers)) = (
        id(row)?,
        Method::from_bytes(method.as_bytes()),
        Url::parse(&url),
        decoded_headers(&headers),
    ) else {
        return Ok(None);
    };
    let [Ok(caller), Ok(digest)] =
        [caller, digest].map(|digest| digest.map(<[u8; 32]>::try_from).transpose())
    else {
        return Ok(None);
    };
    let Ok(begun) = begun.map(<[u8; 16]>::try_from).transpose() else {
        return Ok(None);
    };
    Ok(Some(Entry {
        id,
        method,
        url,
        headers,
        caller,
        begun,
        digest,
        body: body.map(Bytes::from),
        created: Time::from_micros(row.try_get(9)?),
        deadline: Time::from_micros(row.try_get(10)?),
        ending,
    }))
}

fn ending(row: &SqliteRow, kind: i64) -> sqlx::Result<Option<Ending>> {
    Ok(match kind {
        ANSWERED => {
            let status: Option<u16> = row.try_get(12)?;
            let headers: Option<Vec<u8>> = row.try_get(13)?;
            let body: Option<Vec<u8>> = row.try_get(14)?;
            let status = status.and_then(|status| StatusCode::from_u16(status).ok());
            let headers = headers.as_deref().and_then(decoded_headers);
            status
                .zip(headers)
                .map(|(status, headers)| Ending::Answered {
                    status,
                    headers,
                    body: body.map(Bytes::from),
                })
        }
        GONE => Some(Ending::Gone),
        BURNED => Some(Ending::Burned),
        _ => None,
    })
}
