//! The emitted code: the same function, whose body is one call into the runtime.

mod steps;
mod tokens;
mod transaction;

use proc_macro2::{Group, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Expr, Ident, ReceiverKind};

use self::tokens::{at, hidden, ours, rename_self};
use crate::choices::{OnCancel, OnCrash, OnError};
use crate::declaration;
use crate::function::Argument;
use crate::model::{Keep, Model, SelfName};
use crate::usage::Names;

// Input:
//     #[idempotent(name = "payments.charge", key = req.order_id, ttl = "24h", skip(gateway))]
//     async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
//         BODY
//     }
//
// Output:
//     async fn charge(gateway: &Gateway, req: &Charge) -> Result<Receipt, PayError> {
//         let __idempotent_prepared = {
//             static __IDEMPOTENT_SITE: Site =
//                 Site::new("payments.charge").at(file!(), line!()).key("req.order_id").ttl(Duration::new(86400, 0));
//             link!(__IDEMPOTENT_SITE);
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
    let bound = model.tx.map(|tx| &tx.name);
    model
        .function
        .with_body(bound, |body| expansion.protect(body))
}

struct Expansion<'a> {
    model: &'a Model<'a>,
    /// `::idempotent_runtime::__private`
    private: TokenStream,
    call: Ident,
}

impl Expansion<'_> {
    /// The block in which the call is prepared ends before the body begins. It bounds the
    /// temporaries, so that nothing that is not `Send` lives across the await. It also bounds every
    /// borrow of an argument.
    ///
    /// The first statement of the body never returns; it tells what `?` and `return` give, as a
    /// signature would. The call itself stands at the return type with all its tokens, so that a
    /// failing bound is reported there, once. That is why its name has no hygiene.
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
        let bound = self.model.tx.map(|tx| self.bound(tx));
        let protected = quote! {
            async move {
                if let #private::core::option::Option::Some(#returned) = #private::core::option::Option::None::<#output> {
                    return #returned;
                }
                #owned
                #reconcile
                #bound
                #hidden
            }
        };
        let pinned = quote! {
            let #unpolled = #private::core::pin::pin!(#private::core::option::Option::Some(#unpolled));
        };
        let run = match (self.model.tx, self.model.policies.on_cancel) {
            (Some(tx), _) => self.joined(
                tx,
                &on_error,
                &keep,
                &quote!(let #unpolled = #protected; #pinned),
            ),
            (None, Some(OnCancel::Detach)) => {
                let awaited = quote_spanned!(here=> #prepared.run_detached(#unpolled, #on_error, #keep).await);
                quote!(let #unpolled = #protected; let #returned = #awaited;)
            }
            (None, Some(OnCancel::Stop) | None) => {
                let awaited =
                    quote_spanned!(here=> #prepared.run(#unpolled, #on_error, #keep).await);
                quote!(let #unpolled = #protected; #pinned let #returned = #awaited;)
            }
        };
        quote! {
            let #prepared = {
                static __IDEMPOTENT_SITE: #private::Site = #site;
                #private::link!(__IDEMPOTENT_SITE);
                let mut #call = #private::begin(&__IDEMPOTENT_SITE);
                #(#steps)*
                #call
            };
            #kept
            #run
            return #returned;
        }
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

    /// Stands at the value type, where its missing traits are reported. The two functions of a
    /// reference are made before the body takes the arguments, so that `load` can have a clone of
    /// one. Their names have no hygiene and stand at their tokens, where mistakes are reported.
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
    /// of them whole, also where it says only a part of it. At its end they are dropped in the
    /// order of any function. Another argument stays with the caller until the call ends, and the
    /// compiler can say that it is unused. A name that begins with `_` says that the argument is
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
            let is_tx = self.model.tx.is_some_and(|tx| tx.name == name);
            let is_held = goes_on || name.starts_with('_') || in_body.in_tokens(body.stream());
            is_tx
                || !is_held
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

    /// Asks what became of the attempt before, at the begin of the body. Stands at the function
    /// that is asked: if that is not async, or answers something else, the error is reported there.
    /// A large future of it is not reported: nothing that is written there could box it.
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

#[cfg(test)]
pub(crate) use self::tests::what_a_user_may_have_forbidden;

#[cfg(test)]
mod tests;
