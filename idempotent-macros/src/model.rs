//! The meaning of the attribute: every field is decided, nothing is left to check.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Expr, LitStr, Type};

use crate::args::Args;
use crate::choices::{InFlight, OnCancel, OnCrash, OnError, OnMissingKey, OnOutage};
use crate::function::{Argument, Function, Shape};
use crate::key::Key;
use crate::values::{AlsoAccept, Period, References};

pub(crate) struct Model<'a> {
    pub(crate) function: &'a Function,
    /// The type that the call resolves to.
    pub(crate) output: &'a Type,
    /// `::idempotent_runtime`, or the path that `crate` says.
    pub(crate) runtime: TokenStream,
    pub(crate) self_name: SelfName,
    pub(crate) name: Name,
    pub(crate) identity: Identity,
    pub(crate) fingerprint: Fingerprint<'a>,
    pub(crate) keep: Keep,
    /// The transaction that the call is a part of.
    pub(crate) tx: Option<&'a Argument>,
    pub(crate) policies: Policies,
}

/// The settings that were said, and for which the handle has defaults of its own.
pub(crate) struct Policies {
    pub(crate) scope: Option<Key>,
    pub(crate) handle: Option<Expr>,
    pub(crate) also_accept: Option<AlsoAccept>,
    pub(crate) ttl: Option<Period>,
    pub(crate) lease: Option<Period>,
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) on_error: Option<OnError>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) on_cancel: Option<OnCancel>,
    pub(crate) on_missing_key: Option<OnMissingKey>,
    pub(crate) on_outage: Option<OnOutage>,
    pub(crate) version: Option<u32>,
}

/// The name of the receiver where the body stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelfName {
    Plain,
    /// `__self`, which `#[async_trait]` makes of it.
    Renamed,
}

pub(crate) enum Name {
    Given(LitStr),
    /// Package, module path and function.
    Derived,
}

pub(crate) enum Identity {
    Key(Key),
    Arguments,
}

pub(crate) enum Fingerprint<'a> {
    Arguments(Vec<&'a Argument>),
    Expression(Expr),
}

/// The part of a value that is stored.
pub(crate) enum Keep {
    Whole,
    Upgraded(Expr),
    Reference(References),
}

impl<'a> Model<'a> {
    /// `None` where an error has been reported already.
    pub(crate) fn new(mut args: Args, function: &'a Function) -> Option<Self> {
        let identity = match args.key.take() {
            Some(key) => Identity::Key(key),
            None => args
                .key_from_arguments
                .take()
                .map(|()| Identity::Arguments)?,
        };
        let on_error = args.on_error.take();
        let on_error = match (args.tx.named(), args.commits_errors.named()) {
            (Some(_), None) => Some(OnError::Release),
            _ => on_error,
        };
        let tx = args.tx.take();
        let tx = tx.and_then(|name| function.argument(&name));
        let skipped = args.skip.take().unwrap_or_default();
        let compared = |argument: &&Argument| {
            !skipped.contains(&argument.name) && tx.is_none_or(|tx| tx.name != argument.name)
        };
        let fingerprint = match args.fingerprint.take() {
            Some(expression) => Fingerprint::Expression(expression),
            None => Fingerprint::Arguments(function.arguments.iter().filter(compared).collect()),
        };
        let keep = match (args.outcome.take(), args.upgrade.take()) {
            (Some(references), _) => Keep::Reference(references),
            (None, Some(upgrade)) => Keep::Upgraded(upgrade),
            (None, None) => Keep::Whole,
        };
        Some(Self {
            function,
            output: function.output()?,
            runtime: match args.runtime.take() {
                Some(path) => path.into_token_stream(),
                None => quote!(::idempotent_runtime),
            },
            self_name: match function.shape() {
                Shape::AsyncTrait => SelfName::Renamed,
                Shape::Async | Shape::Neither => SelfName::Plain,
            },
            name: args.name.take().map_or(Name::Derived, Name::Given),
            identity,
            fingerprint,
            keep,
            tx,
            policies: Policies {
                scope: args.scope.take(),
                handle: args.handle.take(),
                also_accept: args.also_accept.take(),
                ttl: args.ttl.take(),
                lease: args.lease.take(),
                in_flight: args.in_flight.take(),
                on_error,
                on_crash: args.on_crash.take(),
                on_cancel: args.on_cancel.take(),
                on_missing_key: args.on_missing_key.take(),
                on_outage: args.on_outage.take(),
                version: args.version.take(),
            },
        })
    }
}
