//! The identity of a call, from what its caller says.

use std::sync::Arc;

use crate::{
    error::Error,
    identity::RecordId,
    key::{Key, KeyError, KeyPart},
};

/// The id of a call.
pub(crate) fn identify<S, K>(
    operation: &Arc<str>,
    scope: Option<&S>,
    key: &K,
) -> Result<RecordId, Error>
where
    S: KeyPart + ?Sized,
    K: KeyPart + ?Sized,
{
    let identity = identity(operation, scope.map(Key::from_part), Key::from_part(key));
    identity.map(|(id, _, _)| id)
}

/// The id of a call, with the scope and the key that it is made of.
pub(crate) fn identity(
    operation: &Arc<str>,
    scope: Option<Result<Key, KeyError>>,
    key: Result<Key, KeyError>,
) -> Result<(RecordId, Option<Key>, Key), Error> {
    let scope = scope.transpose();
    let scope = scope.map_err(Error::invalid_key(operation, "scope"))?;
    let key = key.map_err(Error::invalid_key(operation, "key"))?;
    let framed_scope = scope.as_ref().map(Key::framed);
    let id = RecordId::new(operation, framed_scope, key.framed());
    Ok((id, scope, key))
}
