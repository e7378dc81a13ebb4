//! The arguments of the attribute, as they were written between its parentheses.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::ext::IdentExt as _;
use syn::parse::{ParseStream, Parser as _};
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::choices::{self, InFlight, OnCancel, OnCrash, OnError, OnMissingKey, OnOutage};
use crate::errors::{Errors, unknown};
use crate::function::self_type_in;
use crate::key::Key;
use crate::values::{self, AlsoAccept, Period, References};

impl Args {
    /// Reads everything that can be read; anything else is an error at its own token.
    pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut args = Self {
            written: tokens.clone(),
            ..Self::default()
        };
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

    /// The first `Self` in the values, or in the braces of a template.
    pub(crate) fn self_type(&self) -> Option<Ident> {
        let keys = [self.key.value(), self.scope.value()];
        let in_keys = keys.into_iter().flatten().flat_map(Key::expressions);
        let in_old_key = match self.also_accept.value() {
            Some(AlsoAccept::Key(old)) => Some(old.parts()),
            Some(AlsoAccept::Name(_)) | None => None,
        };
        let mut expressions = in_keys.chain(in_old_key.into_iter().flatten());
        self_type_in(self.written.clone())
            .or_else(|| expressions.find_map(|written| self_type_in(written.to_token_stream())))
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
    /// The place where the argument was named, also if its value could not be read.
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
            /// As it stands there, with the name of each argument.
            written: TokenStream,
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
    "in_flight" in_flight: InFlight = choices::in_flight;
    "on_error" on_error: OnError = choices::on_error;
    "on_crash" on_crash: OnCrash = choices::on_crash;
    "on_cancel" on_cancel: OnCancel = choices::on_cancel;
    "lease" lease: Period = values::lease;
    "handle" handle: Expr = values::handle;
    "key_from_arguments" key_from_arguments: () = values::flag;
    "fingerprint" fingerprint: Expr = values::fingerprint;
    "on_missing_key" on_missing_key: OnMissingKey = choices::on_missing_key;
    "on_outage" on_outage: OnOutage = choices::on_outage;
    "tx" tx: Ident = values::transaction;
    "commits_errors" commits_errors: () = values::flag;
    "outcome" outcome: References = values::outcome;
    "version" version: u32 = values::version;
    "upgrade" upgrade: Expr = values::upgrade;
    "also_accept" also_accept: AlsoAccept = values::also_accept;
    "crate" runtime: Path = values::runtime;
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    fn mistakes(arguments: TokenStream) -> Vec<String> {
        let mut errors = Errors::new();
        Args::parse(arguments, &mut errors);
        match errors.finish() {
            Ok(()) => Vec::new(),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
        }
    }

    fn mistake(arguments: TokenStream) -> String {
        let mut mistakes = mistakes(arguments);
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        mistakes.remove(0)
    }

    #[test]
    fn every_argument_is_read() {
        let none: [String; 0] = [];
        let found = mistakes(quote!(
            key = (a, "{b}"),
            scope = a,
            ttl = "24h",
            name = "n",
            skip(a, b),
            in_flight = wait("10s"),
            on_error = replay,
            on_crash = reconcile(ask),
            on_cancel = stop,
            lease = Duration::from_secs(1),
            handle = &a,
            key_from_arguments,
            fingerprint = (a, b),
            on_missing_key = run,
            on_outage = read_only,
            tx = tx,
            commits_errors,
            outcome = reference(save, load),
            version = 2,
            upgrade = read_old,
            also_accept = "old",
            crate = some::path,
        ));
        assert_eq!(found, none);
    }

    #[test]
    fn parentheses_around_a_value_say_nothing() {
        let none: [String; 0] = [];
        let found = mistakes(quote!(
            key = ("{a}"),
            name = ("n"),
            scope = &"{a}",
            ttl = ("24h"),
            skip((a)),
            in_flight = (wait(("10s"))),
            on_error = (release),
            on_crash = (rerun),
            lease = &("30s"),
            outcome = (reference((save), load)),
            version = (2),
            also_accept = ("old"),
        ));
        assert_eq!(found, none);
        assert!(mistake(quote!(ttl = ("24x"))).starts_with("unknown unit `x`"));
        assert!(mistake(quote!(key = (a, ("{b")))).starts_with("`{` is not closed"));
    }

    #[test]
    fn all_mistakes_are_found_at_once() {
        let found = mistakes(quote!(
            tll = 5,
            ttl = "24x",
            key,
            lease = 30,
            ttl = "1h",
            on_crash = retry(),
            skip(a.b)
        ));
        assert_eq!(found.len(), 7, "{found:#?}");
        assert!(found[0].starts_with("unknown argument `tll`, did you mean `ttl`?"));
        assert!(found[1].starts_with("unknown unit `x`"));
        assert!(found[2].starts_with("`key` needs a value"));
        assert!(found[3].starts_with("a duration has a unit"));
        assert_eq!(found[4], "`ttl` is given twice: keep one");
        assert!(found[5].starts_with("`on_crash` is"));
        assert!(found[6].starts_with("`skip` takes names"));
    }

    #[test]
    fn a_broken_value_hides_nothing_that_follows() {
        let found = mistakes(quote!(key = a., tll = 1));
        assert_eq!(found.len(), 2, "{found:#?}");
        let found = mistakes(quote!(key = a b c, tll = 1));
        assert_eq!(found.len(), 2, "{found:#?}");
    }

    #[test]
    fn commas_stand_between_arguments() {
        assert_eq!(
            mistake(quote!(key = a scope = b)),
            "expected `,` between two arguments"
        );
        assert_eq!(
            mistake(quote!(key = a,, scope = b)),
            "expected an argument here: one comma is enough"
        );
        assert_eq!(
            mistake(quote!("a", key = a)),
            "expected the name of an argument, as in `key = req.order_id`"
        );
    }

    #[test]
    fn words_are_not_called_and_calls_have_their_names() {
        for written in [
            quote!(in_flight = reject("10s")),
            quote!(on_error = replay(Declined)),
            quote!(on_error = release(Declined)),
            quote!(on_error = uncertain()),
            quote!(on_crash = rerun(3)),
            quote!(on_crash = uncertain(ask)),
            quote!(on_cancel = detach(true)),
            quote!(on_outage = open(loudly)),
            quote!(on_missing_key = run()),
            quote!(outcome = by_reference(save, load)),
            quote!(upgrade = read_old(1)),
            quote!(version = 2_u64),
            quote!(name = "  "),
            quote!(also_accept = "cart}"),
            quote!(crate = "my_app"),
            quote!(skip(<A>::gateway)),
        ] {
            assert_eq!(mistakes(written.clone()).len(), 1, "{written}");
        }
    }

    #[test]
    fn commas_inside_of_a_value_do_not_end_it() {
        let none: [String; 0] = [];
        assert_eq!(
            mistakes(quote!(key = pick::<A, B>(a, |x, y| x + y), scope = b)),
            none
        );
    }
}
