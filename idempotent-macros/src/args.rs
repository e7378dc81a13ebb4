//! What was written between the parentheses of the attribute.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::errors::{Errors, unknown};
use crate::key::Key;
use crate::values::{
    self, AlsoAccept, InFlight, OnCancel, OnCrash, OnError, OnMissingKey, OnOutage, Period,
    References,
};

impl Args {
    /// Reads everything that can be read; what cannot is an error at its own token.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self::default();
        let everything = |input: ParseStream<'_>| {
            while !input.is_empty() {
                args.next(input, errors)?;
            }
            Ok(())
        };
        let ended = everything.parse2(tokens);
        errors.keep(ended);
        args
    }

    fn next(&mut self, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        if input.peek(Token![,]) {
            let comma: Token![,] = input.parse()?;
            errors.on(comma, "expected an argument here: one comma is enough");
            return Ok(());
        }
        if !input.peek(Ident::peek_any) {
            let written: TokenTree = input.parse()?;
            errors.on(
                written,
                "expected the name of an argument, as in `key = req.order_id`",
            );
            skip_to_comma(input);
        } else {
            let name = input.call(Ident::parse_any)?;
            self.read(name, input, errors);
        }
        if input.is_empty() {
            return Ok(());
        }
        if input.peek(Token![,]) {
            input.parse::<Token![,]>()?;
            return Ok(());
        }
        let next: TokenTree = input.fork().parse()?;
        errors.on(next, "expected `,` between two arguments");
        if !starts_argument(input) {
            skip_to_comma(input);
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    }
}

fn starts_argument(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    ahead
        .call(Ident::parse_any)
        .is_ok_and(|name| KNOWN.contains(&name.to_string().as_str()))
}

/// Moves to the comma before the next argument, so that its mistakes are found too.
fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

/// One argument: its place, and its value where that could be read.
pub(crate) struct Slot<T> {
    name: Option<Ident>,
    value: Option<T>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            name: None,
            value: None,
        }
    }
}

impl<T> Slot<T> {
    /// Where the argument was named, whatever became of its value.
    pub(crate) fn named(&self) -> Option<&Ident> {
        self.name.as_ref()
    }

    pub(crate) fn value(&self) -> Option<&T> {
        self.value.as_ref()
    }

    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take()
    }

    fn fill(&mut self, name: Ident, input: ParseStream<'_>, errors: &mut Errors, read: Read<T>) {
        let value = errors.keep(read(&name, input));
        if value.is_none() {
            skip_to_comma(input);
        }
        if self.name.is_some() {
            errors.at(name.span(), format!("`{name}` is given twice: keep one"));
        } else {
            self.name = Some(name);
            self.value = value;
        }
    }
}

type Read<T> = fn(&Ident, ParseStream<'_>) -> syn::Result<T>;

macro_rules! arguments {
    ($($name:literal $field:ident: $value:ty = $read:expr;)*) => {
        /// Every argument that the attribute knows.
        #[derive(Default)]
        pub(crate) struct Args {
            $(pub(crate) $field: Slot<$value>,)*
        }

        const KNOWN: &[&str] = &[$($name),*];

        impl Args {
            fn read(&mut self, name: Ident, input: ParseStream<'_>, errors: &mut Errors) {
                match name.to_string().as_str() {
                    $($name => self.$field.fill(name, input, errors, $read),)*
                    other => {
                        errors.at(name.span(), unknown("argument", other, KNOWN));
                        skip_to_comma(input);
                    }
                }
            }
        }
    };
}

arguments! {
    "key" key: Key = values::key;
    "scope" scope: Key = values::scope;
    "ttl" ttl: Period = values::ttl;
    "name" name: LitStr = values::operation_name;
    "skip" skip: Vec<Ident> = values::skip;
    "in_flight" in_flight: InFlight = values::in_flight;
    "on_error" on_error: OnError = values::on_error;
    "on_crash" on_crash: OnCrash = values::on_crash;
    "on_cancel" on_cancel: OnCancel = values::on_cancel;
    "lease" lease: Period = values::lease;
    "handle" handle: Expr = values::handle;
    "key_from_arguments" key_from_arguments: () = values::flag;
    "fingerprint" fingerprint: Expr = values::fingerprint;
    "on_missing_key" on_missing_key: OnMissingKey = values::on_missing_key;
    "on_outage" on_outage: OnOutage = values::on_outage;
    "tx" tx: Ident = values::transaction;
    "outcome" outcome: References = values::outcome;
    "version" version: u32 = values::version;
    "upgrade" upgrade: Expr = values::upgrade;
    "also_accept" also_accept: AlsoAccept = values::also_accept;
    "crate" runtime: Path = values::runtime;
}
