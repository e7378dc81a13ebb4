//! The value of each argument, as it may be written.

use std::time::Duration;

use quote::ToTokens as _;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{
    Error, Expr, ExprCall, ExprLit, ExprPath, Ident, Lit, LitInt, LitStr, Path, Result, Token,
};

use crate::derive::gather;
use crate::duration;
use crate::key::Key;
use crate::syntax::bare;
use crate::template::Template;

/// `ttl`, `lease` and the end of a wait.
pub(crate) enum Period {
    Fixed { written: LitStr, duration: Duration },
    Computed(Expr),
}

/// `outcome = reference(save, load)`
pub(crate) struct References {
    pub(crate) save: Expr,
    pub(crate) load: Expr,
}

/// `also_accept = "old.name"` or `also_accept = "{req.cart}:{req.seq}"`
pub(crate) enum AlsoAccept {
    /// Text, or `concat!("order")` where the text reads as an argument.
    Name(Expr),
    Key(Template),
}

pub(crate) fn key(name: &Ident, input: ParseStream<'_>) -> Result<Key> {
    Key::read(&expression(name, input, "key = req.order_id")?)
}

pub(crate) fn scope(name: &Ident, input: ParseStream<'_>) -> Result<Key> {
    Key::read(&expression(name, input, "scope = req.merchant")?)
}

pub(crate) fn handle(name: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    expression(name, input, "handle = app.idempotency")
}

pub(crate) fn fingerprint(name: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    expression(name, input, "fingerprint = (req.amount, req.currency)")
}

pub(crate) fn upgrade(name: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let written = expression(name, input, "upgrade = read_old_receipt")?;
    function_path(
        &written,
        "`upgrade` is a path to the function that reads an older outcome, as in `upgrade = read_old_receipt`",
    )?;
    Ok(written)
}

/// As at run time, where a manual clock takes shorter ones.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

pub(crate) fn ttl(name: &Ident, input: ParseStream<'_>) -> Result<Period> {
    period(expression(name, input, "ttl = \"24h\"")?)
}

pub(crate) fn lease(name: &Ident, input: ParseStream<'_>) -> Result<Period> {
    let lease = period(expression(name, input, "lease = \"30s\"")?)?;
    match &lease {
        Period::Fixed { written, duration } if *duration < SHORTEST_LEASE => Err(Error::new(
            written.span(),
            format!(
                "the `lease` (`{}`) is shorter than `100ms`, so that it would be over before a busy store answers: write a longer one, `\"30s\"` is usual",
                written.value()
            ),
        )),
        _ => Ok(lease),
    }
}

pub(crate) fn operation_name(name: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let written = text(name, input, "name = \"payments.charge\"")?;
    if written.value().trim().is_empty() {
        return Err(Error::new(
            written.span(),
            "`name` is empty: write a stable name, as in `name = \"payments.charge\"`",
        ));
    }
    if written.value().starts_with("inbox:") {
        return Err(Error::new(
            written.span(),
            "names that begin with `inbox:` are those of consumers: give the operation another one",
        ));
    }
    if written.value().starts_with("sequence:") {
        return Err(Error::new(
            written.span(),
            "names that begin with `sequence:` are those of sequences: give the operation another one",
        ));
    }
    Ok(written)
}

pub(crate) fn also_accept(name: &Ident, input: ParseStream<'_>) -> Result<AlsoAccept> {
    const EXAMPLE: &str = "also_accept = \"old.name\"";
    let written = expression(name, input, EXAMPLE)?;
    if matches!(&written, Expr::Macro(invocation) if invocation.mac.path.is_ident("concat")) {
        return Ok(AlsoAccept::Name(written));
    }
    let text = text_of(&written, name, EXAMPLE)?;
    let value = text.value();
    if value.trim().is_empty() {
        return Err(Error::new(
            text.span(),
            "`also_accept` is empty: write the old name, or the old key as a template like `\"{req.cart}:{req.seq}\"`",
        ));
    }
    if value.contains(['{', '}']) {
        return Template::parse(&text).map(AlsoAccept::Key);
    }
    Ok(AlsoAccept::Name(written))
}

pub(crate) fn flag(name: &Ident, input: ParseStream<'_>) -> Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(Error::new(
        name.span(),
        format!("`{name}` is a flag: write it alone, without a value"),
    ))
}

pub(crate) fn skip(name: &Ident, input: ParseStream<'_>) -> Result<Vec<Ident>> {
    const FORM: &str = "`skip` takes names that the arguments bind, as in `skip(gateway)`; for `State(app)` write `skip(app)`";
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(name.span(), FORM));
    }
    let content;
    syn::parenthesized!(content in input);
    let names = Punctuated::<Expr, Token![,]>::parse_terminated(&content)
        .map_err(|error| Error::new(error.span(), FORM))?;
    if names.is_empty() {
        return Err(Error::new(
            name.span(),
            "`skip` names nothing: write `skip(gateway)`, or leave it away",
        ));
    }
    gather(names.iter().map(|name| match single_ident(name) {
        Some(ident) => Ok(ident.clone()),
        None => Err(Error::new_spanned(name, FORM)),
    }))
}

pub(crate) fn transaction(name: &Ident, input: ParseStream<'_>) -> Result<Ident> {
    let written = expression(name, input, "tx = tx")?;
    single_ident(&written).cloned().ok_or_else(|| {
        Error::new_spanned(
            &written,
            "`tx` is the plain name of an argument, as in `tx = tx`",
        )
    })
}

pub(crate) fn outcome(name: &Ident, input: ParseStream<'_>) -> Result<References> {
    const FORM: &str = "`outcome` is `reference(save, load)`: the function that gives the reference, and the one that reads the value back";
    let written = expression(name, input, "outcome = reference(save, load)")?;
    let (word, values) = said(&written);
    match (word.as_str(), values.as_deref()) {
        ("reference", Some([save, load])) => Ok(References {
            save: save.clone(),
            load: load.clone(),
        }),
        _ => Err(Error::new_spanned(written, FORM)),
    }
}

pub(crate) fn version(name: &Ident, input: ParseStream<'_>) -> Result<u32> {
    const FORM: &str = "`version` is a whole number from 0 to 4294967295, as in `version = 2`";
    let written = expression(name, input, "version = 2")?;
    match &written {
        Expr::Lit(ExprLit {
            lit: Lit::Int(number),
            ..
        }) => base_number(number, FORM),
        _ => Err(Error::new_spanned(written, FORM)),
    }
}

pub(crate) fn runtime(name: &Ident, input: ParseStream<'_>) -> Result<Path> {
    const FORM: &str = "`crate` is the path of the runtime, without quotes, as in `crate = my_app::idempotent_runtime`";
    assign(name, input, "crate = my_app::idempotent_runtime")?;
    if input.peek(Lit) {
        let written: Lit = input.parse()?;
        return Err(Error::new(written.span(), FORM));
    }
    input
        .call(Path::parse_mod_style)
        .map_err(|error| Error::new(error.span(), FORM))
}

fn base_number(number: &LitInt, form: &str) -> Result<u32> {
    if !number.suffix().is_empty() && number.suffix() != "u32" {
        return Err(Error::new(number.span(), form));
    }
    number
        .base10_parse()
        .map_err(|_| Error::new(number.span(), form))
}

fn assign(name: &Ident, input: ParseStream<'_>, example: &str) -> Result<()> {
    if input.peek(Token![=]) {
        input.parse::<Token![=]>()?;
        if !input.is_empty() && !input.peek(Token![,]) {
            return Ok(());
        }
    }
    Err(Error::new(
        name.span(),
        format!("`{name}` needs a value: write `{example}`"),
    ))
}

pub(crate) fn expression(name: &Ident, input: ParseStream<'_>, example: &str) -> Result<Expr> {
    assign(name, input, example)?;
    let written: Expr = input.parse()?;
    Ok(bare(&written).clone())
}

fn text(name: &Ident, input: ParseStream<'_>, example: &str) -> Result<LitStr> {
    text_of(&expression(name, input, example)?, name, example)
}

fn text_of(written: &Expr, name: &Ident, example: &str) -> Result<LitStr> {
    match written {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Ok(text.clone()),
        Expr::Macro(invocation) => Err(Error::new_spanned(
            written,
            format!(
                "`{name}` is a literal, and `{}!` is not expanded here: write `{example}`",
                invocation.mac.path.to_token_stream()
            ),
        )),
        other => Err(Error::new_spanned(
            other,
            format!("`{name}` is a string: write `{example}`"),
        )),
    }
}

pub(crate) fn period(written: Expr) -> Result<Period> {
    let Expr::Lit(ExprLit { lit, .. }) = &written else {
        return Ok(Period::Computed(written));
    };
    let Lit::Str(text) = lit else {
        let hint = match lit {
            Lit::Int(number) if number.suffix().is_empty() => {
                format!("a duration has a unit and stands in quotes: `\"{number}s\"`")
            }
            Lit::Int(number) => format!("a duration stands in quotes: `\"{number}\"`"),
            _ => "a duration is a string like `\"24h\"`, or an expression of type `Duration`"
                .to_owned(),
        };
        return Err(Error::new(lit.span(), hint));
    };
    let duration =
        duration::parse(&text.value()).map_err(|message| Error::new(text.span(), message))?;
    Ok(Period::Fixed {
        written: text.clone(),
        duration,
    })
}

pub(crate) fn function_path(written: &Expr, form: &str) -> Result<()> {
    match written {
        Expr::Path(_) | Expr::Closure(_) => Ok(()),
        other => Err(Error::new_spanned(other, form)),
    }
}

fn single_ident(written: &Expr) -> Option<&Ident> {
    match bare(written) {
        Expr::Path(ExprPath {
            qself: None, path, ..
        }) => path.get_ident(),
        _ => None,
    }
}

/// The word, and its values where it is called; an empty word for anything else.
pub(crate) fn said(written: &Expr) -> (String, Option<Vec<Expr>>) {
    let (word, values) = match written {
        Expr::Call(ExprCall { func, args, .. }) => {
            let values = args.iter().map(|value| bare(value).clone());
            (single_ident(func), Some(values.collect()))
        }
        other => (single_ident(other), None),
    };
    (word.map(Ident::to_string).unwrap_or_default(), values)
}
