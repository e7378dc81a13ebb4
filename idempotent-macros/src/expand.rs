//! What is emitted: the same function, whose body is one call into the runtime.

use proc_macro2::{Group, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{Expr, Ident, ReceiverKind};

use crate::choices::{InFlight, OnCancel, OnCrash, OnError};
use crate::declaration;
use crate::function::{Argument, regroup};
use crate::key::Key;
use crate::model::{Fingerprint, Identity, Keep, Model, SelfName};
use crate::template::{Piece, Template};
use crate::usage::Names;
use crate::values::{AlsoAccept, Period};

// Input:
//     #[idempotent(name = "payments.charge", key = req.order_id, ttl = "24h", skip(gateway))]
//     async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
//         BODY
//     }
//
// Output:
//     async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
//         let __idempotent_prepared = {
//             static __IDEMPOTENT_SITE: Site = Site::new("payments.charge").key("req.order_id").ttl(Duration::new(86400, 0));
//             let mut __idempotent_call = begin(&__IDEMPOTENT_SITE);
//             Call::key(&mut __idempotent_call, &req.order_id);
//             Call::argument(&mut __idempotent_call, "req", req);
//             __idempotent_call
//         };
//         let __idempotent_body = async move {
//             if let Some(__idempotent_outcome) = None::<Result<Receipt, PayError>> {
//                 return __idempotent_outcome;
//             }
//             let _ = (&req, &gateway);
//             { BODY }
//         };
//         let __idempotent_body = pin!(Some(__idempotent_body));
//         let __idempotent_outcome =
//             __idempotent_prepared.run(__idempotent_body, Recorded, Whole).await;
//         return __idempotent_outcome;
//     }
pub(crate) fn expand(model: &Model<'_>) -> TokenStream {
    let expansion = Expansion {
        model,
        private: {
            let runtime = &model.runtime;
            quote!(#runtime::__private)
        },
        call: ours("call"),
    };
    model.function.with_body(|body| expansion.protect(body))
}

struct Expansion<'a> {
    model: &'a Model<'a>,
    /// `::idempotent_runtime::__private`
    private: TokenStream,
    call: Ident,
}

impl Expansion<'_> {
    /// The block in which the call is prepared ends before the body begins: it bounds the temporaries, so that
    /// nothing that is not `Send` lives across the await, and every borrow of an argument.
    ///
    /// The first statement of the body never returns; it tells what `?` and `return` give, as a signature would.
    /// The call itself stands at the return type with all its tokens, so that a failing bound is reported there, once;
    /// hence a name without hygiene.
    fn protect(&self, body: &Group) -> TokenStream {
        let Self { private, call, .. } = self;
        let site = declaration::declare(self.model, private);
        let steps = self.steps();
        let output = self.model.output;
        let owned = self.owned(body);
        let hidden = hidden(body);
        let here = output.span();
        let prepared = Ident::new("__idempotent_prepared", here);
        let on_error = self.on_error();
        let (kept, keep) = self.keep();
        let reconcile = self.reconcile();
        let (returned, unpolled) = (ours("outcome"), ours("body"));
        let protected = quote! {
            async move {
                if let #private::core::option::Option::Some(#returned) = #private::core::option::Option::None::<#output> {
                    return #returned;
                }
                #owned
                #reconcile
                #hidden
            }
        };
        let (run, pinned) = match self.model.policies.on_cancel {
            Some(OnCancel::Detach) => ("run_detached", None),
            Some(OnCancel::Stop) | None => (
                "run",
                Some(quote! {
                    let #unpolled = #private::core::pin::pin!(#private::core::option::Option::Some(#unpolled));
                }),
            ),
        };
        let run = Ident::new(run, here);
        let awaited = quote_spanned!(here=> #prepared.#run(#unpolled, #on_error, #keep).await);
        quote! {
            let #prepared = {
                static __IDEMPOTENT_SITE: #private::Site = #site;
                let mut #call = #private::begin(&__IDEMPOTENT_SITE);
                #(#steps)*
                #call
            };
            #kept
            let #unpolled = #protected;
            #pinned
            let #returned = #awaited;
            return #returned;
        }
    }

    /// What is known only when called. The methods are named by their paths: those of a trait that is implemented for every type would
    /// be found before any that takes `&mut self`.
    fn steps(&self) -> Vec<TokenStream> {
        let Self { private, call, .. } = self;
        let policies = &self.model.policies;
        let mut steps = Vec::new();
        if let Some(handle) = &policies.handle {
            let handle = by_reference(handle);
            steps.push(quote!(#private::Call::handle(&mut #call, #handle);));
        }
        match &self.model.identity {
            Identity::Key(key) => {
                let key = self.key(key);
                steps.push(quote!(#private::Call::key(&mut #call, #key);));
            }
            Identity::Arguments => {
                steps.push(quote!(#private::Call::key_from_arguments(&mut #call);));
            }
        }
        if let Some(scope) = &policies.scope {
            let scope = self.key(scope);
            steps.push(quote!(#private::Call::scope(&mut #call, #scope);));
        }
        if let Some(AlsoAccept::Key(old)) = &policies.also_accept {
            let old = self.template(old);
            steps.push(quote!(#private::Call::also_accept_key(&mut #call, #old);));
        }
        match &self.model.fingerprint {
            Fingerprint::Expression(expression) => {
                let expression = by_reference(expression);
                steps.push(quote!(#private::Call::fingerprint(&mut #call, #expression);));
            }
            Fingerprint::Arguments(arguments) => steps.extend(arguments.iter().map(|argument| {
                let cfg = &argument.cfg;
                let name = argument.name.unraw().to_string();
                let value = argument.by_reference();
                quote!(#(#cfg)* #private::Call::argument(&mut #call, #name, #value);)
            })),
        }
        if let Some(Period::Computed(ttl)) = &policies.ttl {
            steps.push(quote!(#private::Call::ttl(&mut #call, #ttl);));
        }
        if let Some(Period::Computed(lease)) = &policies.lease {
            steps.push(quote!(#private::Call::lease(&mut #call, #lease);));
        }
        if let Some(InFlight::Wait(Period::Computed(limit))) = &policies.in_flight {
            steps.push(
                quote!(#private::Call::in_flight(&mut #call, #private::InFlight::Wait(#limit));),
            );
        }
        match self.model.self_name {
            SelfName::Plain => steps,
            SelfName::Renamed => steps.into_iter().map(rename_self).collect(),
        }
    }

    fn key(&self, key: &Key) -> TokenStream {
        match key {
            Key::Expression(expression) => by_reference(expression),
            Key::Tuple(written, elements) => {
                let private = &self.private;
                let elements = elements.iter().map(|element| {
                    let span = element.span();
                    let part = at(span, quote!(#private::part));
                    let element = self.key(element);
                    quote_spanned!(span=> #part(#element))
                });
                quote_spanned!(written.span()=> &(#(#elements,)*))
            }
            Key::Template(template) => self.template(template),
        }
    }

    fn template(&self, template: &Template) -> TokenStream {
        let private = &self.private;
        let pieces = template.pieces.iter().map(|piece| match piece {
            Piece::Literal(literal) => quote!(.literal(#literal)),
            Piece::Part(part) => {
                let part = by_reference(part);
                quote!(.part(#part))
            }
        });
        quote!(&#private::Template::new()#(#pieces)*)
    }

    /// Stands at the error type, where its missing traits are reported.
    fn on_error(&self) -> TokenStream {
        let private = &self.private;
        let here = self.model.output.span();
        match &self.model.policies.on_error {
            None => at(here, quote!(#private::Recorded)),
            Some(OnError::Replay) => at(here, quote!(#private::Replayed)),
            Some(OnError::Release) => quote!(#private::Released),
            Some(OnError::Uncertain) => quote!(#private::LeftUncertain),
            Some(OnError::Classify(function)) => {
                let marker = at(function.span(), quote!(#private::Classified));
                let function = self.renamed(function);
                quote_spanned!(function.span()=> #marker(#function))
            }
        }
    }

    /// Stands at the value type, where its missing traits are reported. What a reference is made of is there before the body takes the
    /// arguments, so that what loads it can have a clone of one, and has names without hygiene at its tokens, where mistakes are reported.
    fn keep(&self) -> (TokenStream, TokenStream) {
        let private = &self.private;
        match &self.model.keep {
            Keep::Whole => {
                let here = self.model.output.span();
                (TokenStream::new(), at(here, quote!(#private::Whole)))
            }
            Keep::Upgraded(function) => {
                let function = self.renamed(function);
                (TokenStream::new(), quote!(#private::Upgraded(#function)))
            }
            Keep::Reference(references) => {
                let save = self.renamed(&references.save);
                let load = self.renamed(&references.load);
                let saves = Ident::new("saves_idempotent_outcome", references.save.span());
                let loads = Ident::new("loads_idempotent_outcome", references.load.span());
                let made = quote!(let (#saves, #loads) = (#save, #load););
                (made, quote!(#private::Reference(#saves, #loads)))
            }
        }
    }

    /// Mentions every argument that the body mentions, the last one first. The body then owns each
    /// of them whole, also where it says only a part of it, and what is dropped at its end is
    /// dropped in the order of any function. Another argument stays with the caller until the call
    /// ends, and the compiler can say that it is unused; one that begins with `_` says that it is
    /// only held. A body that goes on without the caller takes all of them along, because nothing
    /// else would hold them. An expression beside the body keeps its arguments.
    fn owned(&self, body: &Group) -> TokenStream {
        let beside = self.beside();
        let goes_on = self.model.policies.on_cancel == Some(OnCancel::Detach);
        let stays = |name: &str| {
            let names: Names = [name.to_owned()].into_iter().collect();
            let name_in_body = match (name, self.model.self_name) {
                ("self", SelfName::Renamed) => "__self",
                _ => name,
            };
            let in_body: Names = [name_in_body.to_owned()].into_iter().collect();
            let is_held = goes_on || name.starts_with('_') || in_body.in_tokens(body.stream());
            !is_held
                || beside
                    .iter()
                    .any(|expression| names.mentioned_in(expression))
        };
        let function = self.model.function;
        let arguments = function.arguments.iter().rev();
        let arguments = arguments
            .filter(|argument| !stays(&argument.name.to_string()))
            .map(|argument| {
                let Argument { name, cfg, .. } = argument;
                quote!(#(#cfg)* &#name)
            });
        let receiver = function.receiver().filter(|_| !stays("self"));
        let receiver = receiver.map(|receiver| {
            let token = receiver.self_token;
            self.renamed(quote!(&#token))
        });
        let mentioned: Vec<TokenStream> = arguments.chain(receiver).collect();
        if mentioned.is_empty() {
            return TokenStream::new();
        }
        quote!(let _ = (#(#mentioned,)*);)
    }

    /// The expressions that are handed over together with the body.
    fn beside(&self) -> Vec<&Expr> {
        let mut beside = match &self.model.keep {
            Keep::Whole => Vec::new(),
            Keep::Upgraded(function) => vec![function],
            Keep::Reference(references) => vec![&references.save, &references.load],
        };
        if let Some(OnError::Classify(function)) = &self.model.policies.on_error {
            beside.push(function);
        }
        beside
    }

    /// Asks what became of the attempt before, at the begin of the body. Stands at the function that is asked, where it is reported
    /// that it is not async, or answers something else. That its future is large is not reported: what is written there cannot box it.
    fn reconcile(&self) -> TokenStream {
        let Some(OnCrash::Reconcile(ask)) = &self.model.policies.on_crash else {
            return TokenStream::new();
        };
        let private = &self.private;
        let output = self.model.output;
        let function = self.model.function;
        let ask = match ask {
            Expr::Path(_) => ask.to_token_stream(),
            other => quote!((#other)),
        };
        let receiver = function.receiver().map(|receiver| {
            let token = receiver.self_token;
            match &receiver.kind {
                ReceiverKind::Reference(_, _, None) => quote!(#token,),
                ReceiverKind::Reference(_, _, Some(_)) => quote!(&*#token,),
                _ => quote!(&#token,),
            }
        });
        let arguments = function.arguments.iter().map(|argument| {
            let cfg = &argument.cfg;
            let value = argument.by_reference();
            quote!(#(#cfg)* #value,)
        });
        let here = ask.span();
        let reconcile = at(here, quote!(#private::reconcile));
        let asked = self.renamed(quote!(#ask(#receiver #(#arguments)*)));
        let asked = quote_spanned!(here=> #reconcile::<#output, _, _>(|| #asked).await);
        let answer = ours("answer");
        quote! {
            if let #private::core::option::Option::Some(#answer) = #asked {
                return #answer;
            }
        }
    }

    fn renamed(&self, tokens: impl ToTokens) -> TokenStream {
        match self.model.self_name {
            SelfName::Plain => tokens.into_token_stream(),
            SelfName::Renamed => rename_self(tokens.into_token_stream()),
        }
    }
}

/// A name of the expansion's own. Where it is bound, a constant of the user's with that name would
/// be taken for a pattern.
fn ours(name: &str) -> Ident {
    Ident::new(&format!("__idempotent_{name}"), Span::mixed_site())
}

/// `&expression`, or the expression where it is a reference by its tokens. A tuple borrows its elements.
fn by_reference(expression: &Expr) -> TokenStream {
    let span = expression.span();
    match expression {
        Expr::Reference(reference) if reference.mutability.is_none() => {
            expression.to_token_stream()
        }
        Expr::Tuple(tuple) => {
            let elements = tuple.elems.iter().map(by_reference);
            quote_spanned!(span=> &(#(#elements,)*))
        }
        Expr::Path(_)
        | Expr::Field(_)
        | Expr::MethodCall(_)
        | Expr::Call(_)
        | Expr::Lit(_)
        | Expr::Index(_)
        | Expr::Macro(_)
        | Expr::Paren(_)
        | Expr::Try(_)
        | Expr::Await(_) => {
            quote_spanned!(span=> & #expression)
        }
        _ => quote_spanned!(span=> &(#expression)),
    }
}

/// Gives every generated token the same place, so that a failing bound is reported there, and once. A `$crate` that the path of the
/// runtime begins with still means the crate whose `macro_rules` wrote it.
fn at(span: Span, generated: TokenStream) -> TokenStream {
    generated
        .into_iter()
        .map(|mut token| {
            let place = match &token {
                TokenTree::Ident(word) if word == "$crate" => word.span().located_at(span),
                _ => span,
            };
            token.set_span(place);
            token
        })
        .collect()
}

/// The body in braces that are ours, so that no lint asks to remove them, at their place.
fn hidden(body: &Group) -> Group {
    let mut hidden = body.clone();
    hidden.set_span(Span::mixed_site().located_at(body.span()));
    hidden
}

/// `#[async_trait]` renames `self` in the body; what comes from the attribute follows. In `self::judge` it is the module.
fn rename_self(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut renamed = TokenStream::new();
    while let Some(token) = tokens.next() {
        let is_module = matches!(
            tokens.peek(),
            Some(TokenTree::Punct(next)) if next.as_char() == ':' && next.spacing() == Spacing::Joint
        );
        renamed.extend([match token {
            TokenTree::Ident(ident) if ident == "self" && !is_module => {
                Ident::new("__self", ident.span()).into()
            }
            TokenTree::Group(group) => regroup(&group, rename_self(group.stream())).into(),
            other => other,
        }]);
    }
    renamed
}

#[cfg(test)]
pub(crate) use self::tests::what_a_user_may_have_forbidden;

#[cfg(test)]
mod tests;
