//! Every form of `key` and `scope`.

use idempotent_runtime::{Error, KeyPart, idempotent, text};
use serde::{Deserialize, Serialize};

const REGION: &str = "eu";

#[derive(Clone, Serialize, KeyPart)]
pub struct OrderId(u64);

#[derive(Clone, Serialize, KeyPart)]
pub struct LineKey {
    order: OrderId,
    line: u32,
}

#[derive(Clone, Copy, Serialize, KeyPart)]
pub enum Channel {
    Web,
    #[allow(dead_code)]
    Phone,
}

#[derive(Clone, Serialize, KeyPart)]
pub struct Typed<T, M = ()> {
    value: T,
    #[serde(skip)]
    marker: std::marker::PhantomData<M>,
}

#[derive(Clone, Serialize, KeyPart)]
pub struct Sized_<const N: usize>(#[serde(skip)] [u8; N], String);

macro_rules! newtypes {
    ($($name:ident($value:ident))*) => {$(
        #[derive(Clone, Serialize, KeyPart)]
        pub struct $name($value);
    )*};
}

newtypes! { Sku(String) }

macro_rules! as_it_stands {
    ($($item:tt)*) => {
        #[derive(Clone, Serialize, KeyPart)]
        $($item)*
    };
}

as_it_stands! {
    pub struct Piece<T> {
        sku: Sku,
        of: Option<T>,
    }
}

#[derive(Serialize)]
pub struct Order {
    id: OrderId,
    line: LineKey,
    tenant: String,
    client_key: Option<String>,
    channel: Channel,
    typed: Typed<String>,
    sized: Sized_<4>,
}

impl Order {
    fn key(&self) -> String {
        self.tenant.clone()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Done(u64);

async fn lookup(order: &Order) -> Result<u64, Error> {
    Ok(order.id.0)
}

#[idempotent(key = order.id, scope = "order-service")]
pub async fn in_a_constant_scope(order: &Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.id, scope = "the shop's queue#3")]
pub async fn in_a_scope_that_is_no_expression(order: &Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.id, scope = concat!("order"))]
pub async fn in_a_scope_called_like_an_argument(order: &Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.id)]
pub async fn by_newtype(order: &Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.line, scope = order.tenant)]
pub async fn by_struct(order: &Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = (order.id, order.channel, "v1", REGION, 7))]
pub async fn by_tuple(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = ((order.id, order.line), (order.channel,)), scope = (order.tenant, REGION))]
pub async fn by_nested_tuple(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = "{order.tenant}:{order.id}/{order.line.line}", scope = "tenant-{order.tenant}")]
pub async fn by_template(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.key())]
pub async fn by_method(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = format!("{}-{}", order.tenant, order.id.0))]
pub async fn by_format(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = format!("order-{id}"))]
pub async fn by_inline_format(id: u64) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(key = &order.tenant)]
pub async fn by_reference(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.client_key, on_missing_key = run)]
pub async fn by_optional(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.client_key.as_deref().unwrap_or("none"), on_missing_key = refuse)]
pub async fn by_unwrapped(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = lookup(&order).await?)]
pub async fn by_awaited(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = a + b)]
pub async fn by_sum(a: u64, b: u64) -> Result<Done, Error> {
    Ok(Done(a + b))
}

#[idempotent(key = match order.channel { Channel::Web => order.id.0, Channel::Phone => 0 })]
pub async fn by_match(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = ids.iter().map(|id| id.to_string()).collect::<Vec<_>>().join(","))]
pub async fn by_closure(ids: Vec<u64>) -> Result<Done, Error> {
    Ok(Done(ids.len() as u64))
}

#[idempotent(key = text(&address))]
pub async fn by_display(address: std::net::Ipv4Addr) -> Result<Done, Error> {
    Ok(Done(u64::from(u32::from(address))))
}

#[idempotent(key = order.typed)]
pub async fn by_generic_newtype(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = order.sized.1)]
pub async fn by_field_of_tuple(order: Order) -> Result<Done, Error> {
    Ok(Done(order.id.0))
}

#[idempotent(key = ids[0])]
pub async fn by_index(ids: [u64; 2]) -> Result<Done, Error> {
    Ok(Done(ids[1]))
}

#[idempotent(key = *id)]
pub async fn by_dereference(id: &u64) -> Result<Done, Error> {
    Ok(Done(*id))
}

#[idempotent(key_from_arguments)]
pub async fn by_arguments(a: u64, b: String) -> Result<Done, Error> {
    Ok(Done(a + b.len() as u64))
}

#[idempotent(key = (sku, piece))]
pub async fn by_types_of_a_macro(sku: Sku, piece: Piece<u8>) -> Result<Done, Error> {
    Ok(Done((sku.0.len() + piece.sku.0.len()) as u64))
}

pub struct Secret(String);

impl Secret {
    fn into_text(self) -> String {
        self.0
    }
}

fn text_of(secret: Secret) -> String {
    secret.0
}

#[idempotent(key = secret.into_text(), scope = (text_of(tenant), "eu"), skip(secret, tenant))]
pub async fn given_away(secret: Secret, tenant: Secret, id: u64) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(key = id, fingerprint = text_of(secret), ttl = period(plan))]
pub async fn given_away_beside_the_key(id: u64, secret: Secret, plan: Vec<u8>) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(
    key = id,
    also_accept = "{old.into_text()}",
    lease = period(plan),
    in_flight = wait(period(patience)),
    skip(old, plan, patience)
)]
pub async fn given_away_to_what_is_rare(id: u64, old: Secret, plan: Vec<u8>, patience: Vec<u8>) -> Result<Done, Error> {
    Ok(Done(id))
}

fn period(plan: Vec<u8>) -> std::time::Duration {
    std::time::Duration::from_secs(plan.len() as u64)
}

#[idempotent(key = id, handle = made(app), skip(app))]
pub async fn given_away_to_a_handle(id: u64, app: idempotent_runtime::Idempotency) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(key = client_key.unwrap_or_default(), skip(client_key))]
pub async fn given_away_to_a_method_of_an_option(id: u64, client_key: Option<String>) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(
    key = match client_key { Some(key) => key, None => id.to_string() },
    scope = if let Some(tenant) = tenant { tenant } else { "nobody".to_owned() },
    skip(client_key, tenant)
)]
pub async fn given_away_to_a_pattern(
    id: u64,
    client_key: Option<String>,
    tenant: Option<String>,
) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(
    key = prefix + "/" + &id.to_string(),
    scope = tenant?.to_owned(),
    fingerprint = [note].concat(),
    also_accept = "{text_of(secret.0)}"
)]
pub async fn given_away_to_operators(
    id: u64,
    prefix: String,
    tenant: Result<String, Error>,
    note: String,
    secret: (Secret, u8),
) -> Result<Done, Error> {
    Ok(Done(id))
}

#[idempotent(key = match channel { Channel::Web => 0, Channel::Phone => 1 }, skip(parts))]
pub async fn looked_at_by_a_pattern(channel: Channel, parts: (Secret, Secret)) -> Result<Done, Error> {
    drop(parts.0);
    Ok(Done(channel as u64))
}

#[idempotent(key = "{type}:{id}")]
pub async fn a_keyword_in_a_template(r#type: u64, id: u64) -> Result<Done, Error> {
    Ok(Done(id + r#type))
}

fn made(app: idempotent_runtime::Idempotency) -> idempotent_runtime::Idempotency {
    app
}
