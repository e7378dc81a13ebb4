//! Every shape of function.

use std::fmt::Debug;
use std::sync::Arc;

use idempotent_runtime::{Error, Reconciled, idempotent};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub struct Gateway;

impl Gateway {
    async fn charge(&self, amount: u64) -> Result<u64, PayError> {
        Ok(amount)
    }
}

#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
pub enum PayError {
    #[error("declined")]
    Declined,
    #[error(transparent)]
    Idempotency(#[from] Error),
}

pub struct Json<T>(T);
pub struct State<T>(T);

impl<T: Serialize> Serialize for Json<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Json<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Json)
    }
}

#[derive(Serialize, Deserialize, Clone)]
pub struct Charge {
    id: u64,
    amount: u64,
}

pub struct Noted {
    id: u64,
    amount: u64,
    note: String,
}

type PayResult<T> = Result<T, PayError>;

/// Charges once.
#[idempotent(key = req.id, skip(gateway))]
pub async fn borrowed(gateway: &Gateway, req: &Charge) -> Result<u64, PayError> {
    gateway.charge(req.amount).await
}

#[idempotent(key = req.id)]
pub async fn owned(req: Charge) -> Result<Charge, PayError> {
    Ok(req)
}

#[idempotent(key = id)]
pub async fn text_argument(id: &str) -> Result<String, PayError> {
    Ok(id.to_owned())
}

#[idempotent(key = id)]
pub async fn mutable_binding(mut id: u64, mut list: Vec<u8>) -> Result<u64, PayError> {
    id += 1;
    list.push(1);
    Ok(id + list.len() as u64)
}

#[idempotent(key = req.id, skip(out))]
pub async fn mutable_reference(req: Charge, out: &mut Vec<u64>) -> Result<(), PayError> {
    out.push(req.id);
    Ok(())
}

#[idempotent(key = body.id, skip(app))]
pub async fn patterns(State(app): State<Arc<Gateway>>, Json(body): Json<Charge>) -> Result<Json<Charge>, PayError> {
    app.charge(body.amount).await?;
    Ok(Json(body))
}

#[idempotent(key = id)]
pub async fn struct_pattern(Charge { id, amount }: Charge, (left, _): (u8, u8)) -> Result<u64, PayError> {
    Ok(id + amount + u64::from(left))
}

#[idempotent(key = id)]
pub async fn ignored(id: u64, _: u8, _reason: &str) -> Result<u64, PayError> {
    Ok(id)
}

#[idempotent(key = (id, std::any::type_name::<T>(), value), name = "generic", skip(value))]
#[allow(clippy::type_complexity)]
pub async fn generic_with_type_in_the_value<T, const N: usize>(id: T, value: [u8; N]) -> Result<T, PayError>
where
    T: Serialize + DeserializeOwned + idempotent_runtime::KeyPart + Send + Sync + 'static,
{
    let _ = value;
    Ok(id)
}

#[idempotent(key = id.as_ref())]
pub async fn lifetimes<'a, S: AsRef<str> + Serialize>(id: S, note: &'a str) -> Result<usize, PayError> {
    Ok(id.as_ref().len() + note.len())
}

#[idempotent(key = id)]
pub async fn impl_argument(id: u64, note: impl Serialize + Debug) -> Result<String, PayError> {
    Ok(format!("{id}{note:?}"))
}

#[idempotent(key = id)]
pub async fn early_return(id: u64) -> PayResult<u64> {
    if id == 0 {
        return Err(PayError::Declined);
    }
    let parsed: u64 = Some(id).ok_or(PayError::Declined)?;
    Ok(parsed)
}

#[idempotent(key = req.id, fingerprint = (req.amount, (req.note, req.id)))]
pub async fn partly_compared(req: &Noted) -> PayResult<String> {
    Ok(req.note.clone())
}

#[idempotent(key = id)]
pub async fn only_return(id: u64) -> PayResult<u64> {
    return Ok(id);
}

#[idempotent(key = id)]
pub async fn never_ends(id: u64) -> PayResult<u64> {
    loop {
        tokio::task::yield_now().await;
        if id == 1 {
            break Ok(id);
        }
    }
}

#[idempotent(key = id)]
pub async fn panics(id: u64) -> PayResult<u64> {
    panic!("{id}")
}

#[idempotent(key = id)]
pub async fn inferred_error(id: u64) -> PayResult<Vec<u64>> {
    let list = [id].into_iter().map(|id| Ok::<_, Error>(id)).collect::<Result<_, _>>()?;
    Ok(list)
}

#[idempotent(key = id)]
#[allow(clippy::unused_async)]
#[must_use]
pub async fn attributes_below(id: u64) -> PayResult<u64> {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(id)
}

#[tracing::instrument(skip_all, fields(id = id))]
#[idempotent(key = id)]
pub async fn instrumented(id: u64) -> PayResult<u64> {
    Ok(id)
}

#[idempotent(key = id)]
#[tracing::instrument(skip_all)]
pub async fn instrumented_inside(id: u64) -> PayResult<u64> {
    Ok(id)
}

#[idempotent(key = id)]
pub async fn items_inside(id: u64) -> PayResult<u64> {
    struct Helper(u64);
    impl Helper {
        fn new(id: u64) -> Self {
            Self(id)
        }
    }
    Ok(Helper::new(id).0)
}

#[idempotent(key = id)]
#[allow(dead_code)]
pub async fn types_inside_that_hold_themselves(id: u64) -> PayResult<u64> {
    struct Node {
        next: Option<Box<Self>>,
    }
    struct Chain(u64, Option<Box<Self>>);
    enum Tree {
        Leaf,
        Branch(Box<Self>),
    }
    union Either {
        number: u64,
        other: std::mem::ManuallyDrop<Option<Box<Self>>>,
    }
    let (node, chain) = (Node { next: None }, Chain(id, None));
    Ok(chain.0 + u64::from(node.next.is_some()))
}

#[idempotent(key = r#type)]
pub async fn raw_names(r#type: u64) -> PayResult<u64> {
    Ok(r#type)
}

#[idempotent(key = call)]
pub async fn names_of_the_expansion(call: u64, __call: u8) -> PayResult<u64> {
    Ok(call + u64::from(__call))
}

#[idempotent(key = id)]
pub async fn conditional(id: u64, #[cfg(any())] never: NoSuchType, #[cfg(test)] always: u8) -> PayResult<u64> {
    Ok(id + u64::from(always))
}

#[idempotent(key = id, on_crash = reconcile(ask))]
pub async fn conditional_piece(Charge { id, #[cfg(any())] never, .. }: Charge, part: u8) -> PayResult<u64> {
    Ok(id + u64::from(part))
}

async fn ask(_: &u64, _: &u8) -> Reconciled<u64, PayError> {
    Reconciled::Unknown
}

#[idempotent(key = id, on_crash = reconcile(ask))]
pub async fn conditional_and_asked_for(
    id: u64,
    #[cfg(any())] never: NoSuchType,
    #[allow(unused_variables)] always: u8,
) -> PayResult<u64> {
    Ok(id)
}

macro_rules! made {
    ($name:ident, $ttl:literal, $id:ident, $key:expr, $type:ty, $result:ty) => {
        #[idempotent(key = $key, ttl = $ttl, scope = "tenant-1", skip($id))]
        pub async fn $name($id: $type) -> $result {
            Ok(*$id)
        }
    };
}

made!(made_by_a_macro, "1h", id, *id + 1, &mut u64, PayResult<u64>);

/// One of a fixed table, which is written as its place there.
#[derive(Serialize)]
pub struct Currency(u8);

static CURRENCIES: [Currency; 2] = [Currency(0), Currency(1)];

impl<'de> Deserialize<'de> for &'static Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let place = usize::deserialize(deserializer)?;
        CURRENCIES.get(place).ok_or_else(|| serde::de::Error::custom("no such currency"))
    }
}

#[idempotent(key = id)]
pub async fn one_of_a_table(id: usize) -> PayResult<&'static Currency> {
    Ok(&CURRENCIES[id])
}

#[idempotent(key = id)]
pub async fn some_of_a_table(id: usize) -> Result<Option<Vec<&'static Currency>>, PayError> {
    Ok(Some(vec![&CURRENCIES[id]]))
}

pub trait Lookup {
    type Found;
}

impl Lookup for &'static str {
    type Found = u64;
}

type FoundBy<K> = Result<<K as Lookup>::Found, PayError>;

#[idempotent(key = id)]
pub async fn an_alias_of_what_is_found(id: u64) -> FoundBy<&'static str> {
    Ok(id)
}

macro_rules! made_of_a_block {
    ($visible:vis fn $name:ident($id:ident: $type:ty) -> $result:ty, $body:block) => {
        #[idempotent(key = $id)]
        $visible async fn $name($id: $type) -> $result $body
    };
}

made_of_a_block!(pub(crate) fn made_of_a_block(id: u64) -> PayResult<u64>, {
    let twice = id * 2;
    Ok(twice)
});

macro_rules! annotated {
    ($item:item) => {
        #[idempotent(key_from_arguments)]
        $item
    };
}

annotated!(pub async fn annotated_by_a_macro(id: u64) -> PayResult<u64> { Ok(id) });

pub mod nested {
    use idempotent_runtime::{Error, idempotent};

    #[idempotent(key = id)]
    pub(crate) async fn visible_in_the_crate(id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    pub async fn outer(id: u64) -> Result<u64, Error> {
        #[idempotent(key = id)]
        async fn inner(id: u64) -> Result<u64, Error> {
            Ok(id)
        }
        visible_in_the_crate(id).await?;
        inner(id).await
    }
}

/// A trait of everything, whose methods are called like those of the library.
pub mod beside_a_blanket_trait {
    use std::time::Duration;

    use idempotent_runtime::{Error, Idempotency, idempotent};

    pub trait Anything: Sized {
        fn handle(&self) {}
        fn key(&self) {}
        fn scope(self) {}
        fn also_accept_key(&self) {}
        fn argument(&self) {}
        fn fingerprint(self) {}
        fn key_from_arguments(&self) {
            panic!("it is the library's that is called")
        }
        fn ttl(&self) {}
        fn lease(&self) {}
        fn in_flight(&self) {}
        fn part(&self) {}
        fn literal(&self) {}
        fn run(&self) {}
        fn run_detached(&self) {}
    }

    impl<T> Anything for T {}

    #[idempotent(
        handle = handle,
        key = "{id}/1",
        scope = id,
        also_accept = "{id}",
        ttl = patience,
        lease = patience,
        in_flight = wait(patience),
        skip(handle)
    )]
    pub async fn by_key(handle: &Idempotency, id: u64, patience: Duration) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(key = id, fingerprint = id, on_cancel = detach)]
    pub async fn by_fingerprint(id: u64) -> Result<u64, Error> {
        Ok(id)
    }

    #[idempotent(key_from_arguments)]
    pub async fn by_arguments(id: u64) -> Result<u64, Error> {
        Ok(id)
    }
}

fn assert_send<T: Send>(_: T) {}

#[test]
fn their_futures_can_be_sent() {
    assert_send(owned(Charge { id: 1, amount: 1 }));
    assert_send(borrowed(&Gateway, &Charge { id: 1, amount: 1 }));
    assert_send(impl_argument(1, "x"));
    let _ = made_of_a_block(1);
    let _ = nested::outer(1);
}
