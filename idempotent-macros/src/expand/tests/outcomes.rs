//! What becomes of an outcome: stored by reference, or asked for after a crash.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn reconcile_asks_with_every_argument() {
    // Input:
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
        // Output:
        &expect![[r#"
            impl Shop {
                async fn pay(&self, bank: &Bank, conn: Conn, req: Payout) -> Result<Paid, PayError> {
                    #[allow(clippy::used_underscore_binding)]
                    let prepared_idempotent_call = {
                        static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                                "payout",
                            )
                            .key("req.id")
                            .on_crash(::idempotent_runtime::__private::OnCrash::Reconcile);
                        let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                        ::idempotent_runtime::__private::Call::key(&mut __call, &req.id);
                        ::idempotent_runtime::__private::Call::argument(&mut __call, "conn", &conn);
                        ::idempotent_runtime::__private::Call::argument(&mut __call, "req", &req);
                        __call
                    };
                    let __body = async move {
                        if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                            Result<Paid, PayError>,
                        > {
                            return __ret;
                        }
                        #[allow(clippy::used_underscore_binding)]
                        let _ = (&req, &conn, &bank, &self);
                        #[allow(clippy::large_futures, clippy::used_underscore_binding)]
                        let __answer = ::idempotent_runtime::__private::reconcile::<
                            Result<Paid, PayError>,
                            _,
                            _,
                        >(|| Self::ask(self, bank, &conn, &req))
                            .await;
                        if let ::core::option::Option::Some(__answer) = __answer {
                            return __answer;
                        }
                        { bank.pay(req).await }
                    };
                    let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                    #[allow(clippy::large_futures)]
                    let __ret = prepared_idempotent_call
                        .run(
                            __body,
                            ::idempotent_runtime::__private::LeftUncertain,
                            ::idempotent_runtime::__private::Whole,
                        )
                        .await;
                    __ret
                }
            }
        "#]],
    );
}

#[test]
fn a_reference_is_stored_in_place_of_the_value() {
    // Input:
    picture(
        quote!(
            key = id,
            outcome = reference(|order: &Order| order.id, load),
            on_error = replay
        ),
        quote! {
            async fn make(mut id: u64) -> Result<Order, MakeError> { id += 1; Err(MakeError(id)) }
        },
        // Output:
        &expect![[r#"
            async fn make(mut id: u64) -> Result<Order, MakeError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "make"
                            ),
                        )
                        .key("id");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    ::idempotent_runtime::__private::Call::key(&mut __call, &id);
                    ::idempotent_runtime::__private::Call::argument(&mut __call, "id", &id);
                    __call
                };
                let (saves_idempotent_outcome, loads_idempotent_outcome) = (
                    |order: &Order| order.id,
                    load,
                );
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Order, MakeError>,
                    > {
                        return __ret;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = (&id,);
                    {
                        id += 1;
                        Err(MakeError(id))
                    }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Replayed,
                        ::idempotent_runtime::__private::Reference(
                            saves_idempotent_outcome,
                            loads_idempotent_outcome,
                        ),
                    )
                    .await;
                __ret
            }
        "#]],
    );
}
