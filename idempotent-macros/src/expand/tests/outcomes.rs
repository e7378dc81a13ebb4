//! Outcomes: stored by reference, or asked for after a crash.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn reconcile_asks_with_every_argument() {
    picture(
        quote!(
            name = "payout",
            key = req.id,
            on_crash = reconcile(Self::ask),
            on_error = uncertain,
            skip(bank)
        ),
        quote! {
            async fn pay(&self, bank: &Bank, conn: Conn, req: Payout) -> Result<Paid, PayError> { bank.pay(req).await }
        },
        &expect![[r#"
            impl Shop {
                async fn pay(&self, bank: &Bank, conn: Conn, req: Payout) -> Result<Paid, PayError> {
                    let __idempotent_prepared = {
                        static __IDEMPOTENT_SITE: private::Site = private::Site::new("payout")
                            .at(private::core::file!(), private::core::line!())
                            .key("req.id")
                            .on_crash(private::OnCrash::Reconcile);
                        private::link!(__IDEMPOTENT_SITE);
                        let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                        private::Call::key(&mut __idempotent_call, &req.id);
                        private::Call::argument(&mut __idempotent_call, "conn", &conn);
                        private::Call::argument(&mut __idempotent_call, "req", &req);
                        __idempotent_call
                    };
                    let __idempotent_body = async move {
                        if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                            Result<Paid, PayError>,
                        > {
                            return __idempotent_outcome;
                        }
                        let _ = (&req, &bank);
                        if let private::core::option::Option::Some(__idempotent_answer) = private::reconcile::<
                            Result<Paid, PayError>,
                            _,
                            _,
                        >(|| Self::ask(self, bank, &conn, &req))
                            .await
                        {
                            return __idempotent_answer;
                        }
                        { bank.pay(req).await }
                    };
                    let __idempotent_body = private::core::pin::pin!(
                        private::core::option::Option::Some(__idempotent_body)
                    );
                    let __idempotent_outcome = __idempotent_prepared
                        .run(__idempotent_body, private::LeftUncertain, private::Whole)
                        .await;
                    return __idempotent_outcome;
                }
            }
        "#]],
    );
}

#[test]
fn a_reference_is_stored_in_place_of_the_value() {
    picture(
        quote!(
            key = id,
            outcome = reference(|order: &Order| order.id, load),
            on_error = replay
        ),
        quote! {
            async fn make(mut id: u64) -> Result<Order, MakeError> { id += 1; Err(MakeError(id)) }
        },
        &expect![[r#"
            async fn make(mut id: u64) -> Result<Order, MakeError> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new(
                            private::core::concat!(
                                private::core::env!("CARGO_PKG_NAME"), "::",
                                private::core::module_path!(), "::", "make"
                            ),
                        )
                        .at(private::core::file!(), private::core::line!())
                        .key("id");
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::key(&mut __idempotent_call, &id);
                    private::Call::argument(&mut __idempotent_call, "id", &id);
                    __idempotent_call
                };
                let (saves_idempotent_outcome, loads_idempotent_outcome) = (
                    |order: &Order| order.id,
                    load,
                );
                let __idempotent_body = async move {
                    if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                        Result<Order, MakeError>,
                    > {
                        return __idempotent_outcome;
                    }
                    let _ = (&id,);
                    {
                        id += 1;
                        Err(MakeError(id))
                    }
                };
                let __idempotent_body = private::core::pin::pin!(
                    private::core::option::Option::Some(__idempotent_body)
                );
                let __idempotent_outcome = __idempotent_prepared
                    .run(
                        __idempotent_body,
                        private::Replayed,
                        private::Reference(saves_idempotent_outcome, loads_idempotent_outcome),
                    )
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}
