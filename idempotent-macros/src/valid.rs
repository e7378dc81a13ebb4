use proc_macro2::Span;
use quote::ToTokens as _;
use syn::visit::Visit;
use syn::{Expr, ExprLit, FnArg, Lit, ReceiverKind, Type, TypeImplTrait};

use crate::args::Args;
use crate::choices::{OnCancel, OnError};
use crate::errors::{Errors, closest, list};
use crate::function::{Argument, Function, Shape};
use crate::suspicious_text;
use crate::type_walk;
use crate::usage::Names;
use crate::values::Period;

/// Refuses everything that cannot be meant, each thing at its own token.
pub(crate) fn check(args: &Args, function: &Function, errors: &mut Errors) {
    shape(function, errors);
    output(function, errors);
    type_walk::borrowed_value(args, function, errors);
    name(args, function, errors);
    key(args, function, errors);
    suspicious_text::check(args, &names(function), errors);
    key_from_arguments(args, function, errors);
    skip(args, function, errors);
    mutable_arguments(args, function, errors);
    type_walk::random_order(args, function, errors);
    periods(args, errors);
    detach(args, function, errors);
    transaction(args, function, errors);
    committed_errors(args, errors);
    stored_outcome(args, errors);
}

fn shape(function: &Function, errors: &mut Errors) {
    let name = function.name();
    if let Some(semicolon) = function.missing_body() {
        errors.on(
            semicolon,
            format!("`{name}` has no body to protect: put `#[idempotent]` on its implementations"),
        );
    } else if function.shape() == Shape::Neither {
        let rewritten = if type_walk::is_a_future(&function.signature.output) {
            "; where another attribute has made one that returns a future of it, write that below"
        } else {
            ""
        };
        errors.on(
            function.signature.fn_token,
            format!("`#[idempotent]` protects async functions: write `async fn {name}`{rewritten}"),
        );
    }
}

fn output(function: &Function, errors: &mut Errors) {
    struct Opaque<'e>(&'e mut Errors);

    impl Visit<'_> for Opaque<'_> {
        fn visit_type_impl_trait(&mut self, opaque: &TypeImplTrait) {
            self.0.on(
                opaque,
                "an `impl Trait` cannot be stored and read back: name the type that is returned",
            );
        }
    }

    match function.output() {
        Some(_) if function.shape() == Shape::Neither => {}
        Some(output) => Opaque(errors).visit_type(output),
        None => {
            let name = function.name();
            errors.on(
                name,
                format!("`{name}` returns nothing that a duplicate could be answered with: write `-> Result<T, E>`"),
            );
        }
    }
}

fn name(args: &Args, function: &Function, errors: &mut Errors) {
    if args.name.named().is_some() {
        return;
    }
    let called = function.name();
    let fix = "write `name = \"payments.charge\"`, a name that stays when the code moves";
    if let Some(receiver) = function.receiver() {
        errors.on(
            receiver.self_token,
            format!("a method needs a name, because another type may have a `{called}` too: {fix}"),
        );
    } else if let Some(self_type) = function.self_type().or_else(|| args.self_type()) {
        errors.on(
            self_type,
            format!("a function that uses `Self` needs a name, because another type may have a `{called}` too: {fix}"),
        );
    }
}

fn key(args: &Args, function: &Function, errors: &mut Errors) {
    match (args.key.named(), args.key_from_arguments.named()) {
        (None, None) => {
            let source = match function.arguments.as_slice() {
                [] => "take as an argument what the caller sends, and write `key = …` with it"
                    .to_owned(),
                arguments => format!(
                    "write `key = …` with {}, or `key_from_arguments`",
                    choice(arguments)
                ),
            };
            errors.at(
                Span::call_site(),
                format!("`#[idempotent]` needs a `key`, which says when two calls are the same one: {source}"),
            );
        }
        (Some(_), Some(flag)) => errors.on(
            flag,
            "`key_from_arguments` stands instead of `key`: keep one of the two",
        ),
        _ => {}
    }
    let Some(key) = args.key.value() else { return };
    let names = names(function);
    let expressions = key.expressions();
    if !expressions
        .iter()
        .any(|expression| names.mentioned_in(expression))
    {
        let mistake = match expressions.as_slice() {
            [
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }),
            ] => key_without_braces(&text.value(), &names, function),
            _ => format!(
                "this `key` mentions no argument, so it cannot tell a retry from a new call: build it from {}",
                choice(&function.arguments)
            ),
        };
        errors.on(key, mistake);
        return;
    }
    for call in expressions
        .iter()
        .flat_map(|expression| names.detached_calls(expression))
    {
        errors.on(
            call,
            "this part of the `key` mentions no argument, so a retry may get another key: leave it out, or take its value as an argument",
        );
    }
}

/// A text that would be the same key for every call; most often an expression was meant.
fn key_without_braces(text: &str, names: &Names, function: &Function) -> String {
    let instead = if names.are_read_in(text) {
        format!("write `\"{{{text}}}\"` or leave the quotes out")
    } else {
        format!("build it from {}, in braces", choice(&function.arguments))
    };
    format!(
        "this `key` is text without braces, the same for every call; text is a template: {instead}"
    )
}

/// The names that an expression may mention.
fn names(function: &Function) -> Names {
    let arguments = function.arguments.iter();
    let arguments = arguments.map(|argument| argument.name.to_string());
    arguments.chain(["self".to_owned()]).collect()
}

fn key_from_arguments(args: &Args, function: &Function, errors: &mut Errors) {
    let Some(flag) = args.key_from_arguments.named() else {
        return;
    };
    if let Some(fingerprint) = args.fingerprint.named() {
        errors.on(
            fingerprint,
            "`fingerprint` with `key_from_arguments`: write that expression as the `key` instead",
        );
    }
    if let Some(missing) = args.on_missing_key.named() {
        errors.on(missing, "`on_missing_key` with `key_from_arguments`: the arguments are never missing, leave it out");
    }
    let skipped = args.skip.value().map(Vec::as_slice).unwrap_or_default();
    if function
        .arguments
        .iter()
        .all(|argument| skipped.contains(&argument.name) || args.tx.value() == Some(&argument.name))
    {
        errors.on(flag, "`key_from_arguments` finds no argument to make a key of: skip fewer, or write `key = …`");
    }
}

fn skip(args: &Args, function: &Function, errors: &mut Errors) {
    if let (Some(skip), Some(_)) = (args.skip.named(), args.fingerprint.named()) {
        errors.on(
            skip,
            "`skip` with `fingerprint`: only what `fingerprint` gives is compared, so leave `skip` out",
        );
    }
    let skipped = args.skip.value().map(Vec::as_slice).unwrap_or_default();
    let known: Vec<String> = function
        .arguments
        .iter()
        .map(|argument| argument.name.to_string())
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    for (index, name) in skipped.iter().enumerate() {
        if skipped[..index].contains(name) {
            errors.on(name, format!("`{name}` is skipped twice: keep one"));
        } else if name == "self" {
            errors.on(
                name,
                "`self` is never part of the fingerprint: leave it out of `skip`",
            );
        } else if !function.binds(name) {
            let hint = closest(&name.to_string(), &known)
                .map(|close| format!(", did you mean `{close}`?"));
            let hint = hint.unwrap_or_else(|| ":".to_owned());
            errors.on(
                name,
                format!(
                    "no argument binds `{name}`{hint} `skip` takes {}",
                    choice(&function.arguments)
                ),
            );
        }
    }
}

fn mutable_arguments(args: &Args, function: &Function, errors: &mut Errors) {
    let transaction_unread = args.tx.named().is_some() && args.tx.value().is_none();
    if args.fingerprint.named().is_some() || transaction_unread {
        return;
    }
    for argument in &function.arguments {
        let Some(Type::Reference(reference)) = &argument.ty else {
            continue;
        };
        let skipped = args
            .skip
            .value()
            .is_some_and(|skipped| skipped.contains(&argument.name));
        let transaction = args.tx.value() == Some(&argument.name);
        if reference.mutability.is_some() && !skipped && !transaction {
            let name = &argument.name;
            errors.on(
                reference,
                format!("`{name}` is `&mut`, a thing to work with, not a value that a retry sends again: write `skip({name})`"),
            );
        }
    }
}

fn periods(args: &Args, errors: &mut Errors) {
    let (
        Some(Period::Fixed {
            written,
            duration: lease,
        }),
        Some(Period::Fixed {
            written: longer,
            duration: ttl,
        }),
    ) = (args.lease.value(), args.ttl.value())
    else {
        return;
    };
    if lease >= ttl {
        errors.on(
            written,
            format!(
                "the `lease` (`{}`) is not shorter than the `ttl` (`{}`): it is how long a crashed call is waited for, `\"30s\"` is usual",
                written.value(),
                longer.value()
            ),
        );
    }
}

fn detach(args: &Args, function: &Function, errors: &mut Errors) {
    const FIX: &str =
        "`on_cancel = detach` lets the call run on in a task of its own, which cannot borrow";
    // With `tx` no choice of it has a meaning.
    if args.on_cancel.value() != Some(&OnCancel::Detach) || args.tx.named().is_some() {
        return;
    }
    for input in &function.signature.inputs {
        let (borrowed, instead) = match input {
            FnArg::Typed(argument) => (
                type_walk::borrows(&argument.ty),
                "the value itself, or an `Arc` of it",
            ),
            FnArg::Receiver(receiver) => match &receiver.kind {
                ReceiverKind::Reference(..) => {
                    (vec![receiver.to_token_stream()], "`self: Arc<Self>`")
                }
                ReceiverKind::Typed(_, ty) => (type_walk::borrows(ty), "`self: Arc<Self>`"),
                _ => continue,
            },
        };
        for borrow in borrowed {
            errors.on(borrow, format!("{FIX}: take {instead}"));
        }
    }
}

fn transaction(args: &Args, function: &Function, errors: &mut Errors) {
    const NOT_LENT: &str = "`tx` is lent by the caller, who commits: take `&mut PgConnection`, `&mut Transaction<'_, Postgres>`, or those of MySQL or SQLite, and let the caller pass `&mut *tx`";
    let Some(name) = args.tx.value() else { return };
    match function.argument(name).map(|argument| &argument.ty) {
        None => errors.on(
            name,
            format!(
                "no argument binds `{name}`: `tx` takes {}",
                choice(&function.arguments)
            ),
        ),
        Some(Some(Type::Reference(reference))) if reference.mutability.is_some() => {}
        Some(Some(other)) => errors.on(other, NOT_LENT),
        Some(None) => errors.on(name, NOT_LENT),
    }
    for (conflicting, why) in [
        (
            args.on_crash.named(),
            "a crash rolls record and rows back together",
        ),
        (args.lease.named(), "the transaction itself holds the key"),
        (
            args.in_flight.named(),
            "a duplicate waits for the transaction of the first call",
        ),
        (
            args.on_cancel.named(),
            "a call that is dropped is rolled back with the transaction",
        ),
        (args.on_outage.named(), "nothing runs without the database"),
        (
            args.also_accept.named(),
            "a look does not wait for a transaction that is open",
        ),
    ] {
        if let Some(conflicting) = conflicting {
            errors.on(
                conflicting,
                format!("`{conflicting}` has no meaning with `tx`, where {why}: leave it out"),
            );
        }
    }
}

/// A recorded error stands only if the caller commits after it, so that has to be said.
fn committed_errors(args: &Args, errors: &mut Errors) {
    let written = args.on_error.value();
    let on_error = written.and(args.on_error.named());
    let records = !matches!(written, Some(OnError::Release));
    match (args.tx.named(), args.commits_errors.named(), on_error) {
        (None, Some(word), _) => errors.on(
            word,
            "`commits_errors` is for a function with `tx`, whose caller commits: leave it out",
        ),
        (Some(_), Some(word), Some(_)) if !records => errors.on(
            word,
            "`commits_errors` says that recorded errors are committed, and `on_error = release` records none: keep one of the two",
        ),
        (Some(_), None, Some(on_error)) if records => errors.on(
            on_error,
            "with `tx`, an `Err` is released, because a caller who rolls back would undo its record: write `commits_errors` if every caller commits after an `Err`, too, or leave `on_error` out",
        ),
        _ => {}
    }
}

fn stored_outcome(args: &Args, errors: &mut Errors) {
    let Some(upgrade) = args.upgrade.named() else {
        return;
    };
    if args.version.named().is_none() {
        errors.on(upgrade, "`upgrade` reads outcomes of an older version: say the present one, as in `version = 2`");
    }
    if let Some(outcome) = args.outcome.named() {
        errors.on(outcome, "`outcome` with `upgrade`: a reference is read by its `load` function, which can tell old from new, so keep one of the two");
    }
}

/// The names that the arguments bind, for a message that says what to choose from.
fn choice(arguments: &[Argument]) -> String {
    let names: Vec<String> = arguments
        .iter()
        .map(|argument| argument.name.to_string())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.as_slice() {
        [] => "an argument, which it does not have yet".to_owned(),
        [name] => format!("the argument `{name}`"),
        names => format!("the arguments {}", list(names)),
    }
}
