//! Text where an expression may have been meant: it is the same for every call.

use syn::{Expr, ExprLit, Lit, LitStr};

use crate::args::Args;
use crate::errors::Errors;
use crate::key::Key;
use crate::template::Template;
use crate::usage::Names;
use crate::values::AlsoAccept;

/// Refuses text that would make one scope of all tenants, a retry of every call, or a new call of
/// one under way.
pub(crate) fn check(args: &Args, names: &Names, errors: &mut Errors) {
    scope(args, names, errors);
    fingerprint(args, names, errors);
    old_name(args, names, errors);
}

/// Refuses a scope that reads as an argument.
fn scope(args: &Args, names: &Names, errors: &mut Errors) {
    if let Some(Key::Expression(written)) = args.scope.value() {
        refuse_named(written, names, errors, |text| {
            format!(
                "this `scope` is text without braces, the same for every call; text is a template: write `\"{{{text}}}\"` or leave the quotes out; where the text itself is meant, write `concat!(\"{text}\")`"
            )
        });
    }
}

/// Refuses a fingerprint of literals alone: no other arguments would differ from it. Beside an
/// expression, text may be a label, such as `"order"`, but not where it has the form of a template,
/// or of a field.
fn fingerprint(args: &Args, names: &Names, errors: &mut Errors) {
    let Some(written) = args.fingerprint.value() else {
        return;
    };
    let compared = elements(written);
    let is_literal = |element: &&Expr| matches!(element, Expr::Lit(_));
    if !compared.is_empty() && compared.iter().all(is_literal) {
        errors.on(
            written,
            "this `fingerprint` is the same for every call, so that other arguments are taken for a retry: write what has to be equal, without quotes, as in `fingerprint = (req.amount, req.currency)`; where nothing is to be compared, write `()`",
        );
        return;
    }
    for element in compared {
        if let Some(text) = literal(element)
            && (is_a_template(text, names)
                || text.value().contains('.') && names.are_read_in(&text.value()))
        {
            errors.on(
                text,
                "this part of the `fingerprint` is text, the same for every call: leave the quotes out; where the text itself is meant, write it as `concat!(…)`",
            );
        }
    }
}

/// Refuses an old name that reads as an argument: most often the old key was meant, whose calls
/// would then not be found.
fn old_name(args: &Args, names: &Names, errors: &mut Errors) {
    if let Some(AlsoAccept::Name(written)) = args.also_accept.value() {
        refuse_named(written, names, errors, |text| {
            format!(
                "this `also_accept` is text without braces, which is an old name: where the old key is meant, write `\"{{{text}}}\"`; where the name itself is meant, write `concat!(\"{text}\")`"
            )
        });
    }
}

/// Refuses text that reads as an argument. Any other text may be meant.
fn refuse_named(
    written: &Expr,
    names: &Names,
    errors: &mut Errors,
    message: impl FnOnce(&str) -> String,
) {
    if let Some(text) = literal(written)
        && names.are_read_in(&text.value())
    {
        errors.on(text, message(&text.value()));
    }
}

fn literal(written: &Expr) -> Option<&LitStr> {
    match written {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text),
        _ => None,
    }
}

/// The elements of a tuple, at any depth, or the expression itself.
fn elements(written: &Expr) -> Vec<&Expr> {
    match written {
        Expr::Tuple(tuple) => tuple.elems.iter().flat_map(elements).collect(),
        Expr::Group(group) => elements(&group.expr),
        Expr::Paren(paren) => elements(&paren.expr),
        Expr::Reference(reference) => elements(&reference.expr),
        other => vec![other],
    }
}

fn is_a_template(written: &LitStr, names: &Names) -> bool {
    Template::parse(written)
        .is_ok_and(|template| template.parts().any(|part| names.mentioned_in(part)))
}
