//! A function with `tx`: its call joins the transaction that this argument stands for.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Ident;
use syn::spanned::Spanned;

use super::Expansion;
use super::tokens::ours;
use crate::function::Argument;

// Input:
//     #[idempotent(name = "ledger.post", key = transfer.id, tx = tx)]
//     async fn post(tx: &mut PgConnection, transfer: &Transfer) -> Result<Receipt, PostError> {
//         BODY
//     }
//
// Output, behind what prepares the call:
//         let mut __idempotent_joined = match __idempotent_prepared.join(&mut *tx, Recorded, Whole).await {
//             Ok(joined) => joined,
//             Err(outcome) => return outcome,
//         };
//         let __idempotent_outcome = {
//             let __idempotent_lent = &mut *tx;
//             let __idempotent_body = async move {
//                 …
//                 let tx = __idempotent_lent;
//                 { BODY }
//             };
//             let __idempotent_body = pin!(Some(__idempotent_body));
//             __idempotent_joined.run(__idempotent_body).await
//         };
//         let __idempotent_outcome = __idempotent_joined.finish(&mut *tx, __idempotent_outcome).await;
impl Expansion<'_> {
    /// Claims, runs the body and writes how it ended, one after another on one connection. `body`
    /// makes the pinned body. The claim has all the bounds, and stands at the return type; that the
    /// argument is no transaction is reported at its type.
    pub(super) fn joined(
        &self,
        tx: &Argument,
        on_error: &TokenStream,
        keep: &TokenStream,
        body: &TokenStream,
    ) -> TokenStream {
        let private = &self.private;
        let here = self.model.output.span();
        let prepared = Ident::new("__idempotent_prepared", here);
        let (joined, lent, unpolled) = (ours("joined"), ours("lent"), ours("body"));
        let outcome = ours("outcome");
        let name = &tx.name;
        let at_type = tx.ty.as_ref().map_or_else(|| name.span(), Spanned::span);
        let connection = {
            let mut name = name.clone();
            name.set_span(name.span().located_at(at_type));
            quote_spanned!(at_type=> &mut *#name)
        };
        let claimed = quote_spanned!(here=> #prepared.join(#connection, #on_error, #keep).await);
        let finished = quote_spanned!(here=> #joined.finish(#connection, #outcome).await);
        quote! {
            let mut #joined = match #claimed {
                #private::core::result::Result::Ok(#joined) => #joined,
                #private::core::result::Result::Err(#outcome) => return #outcome,
            };
            let #outcome = {
                let #lent = &mut *#name;
                #body
                #joined.run(#unpolled).await
            };
            let #outcome = #finished;
        }
    }

    /// Binds the transaction in the body, with the user's own tokens.
    pub(super) fn bound(&self, tx: &Argument) -> TokenStream {
        let lent = ours("lent");
        let Argument {
            name, mutability, ..
        } = tx;
        quote!(let #mutability #name = #lent;)
    }
}
