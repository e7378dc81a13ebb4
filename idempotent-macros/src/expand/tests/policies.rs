//! What is declared in the static of a function, and what is computed at each call.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn every_policy() {
    // Input:
    picture(
        quote!(
            name = "stock.reserve",
            key = lookup(&req).await?,
            handle = &app.idempotency,
            in_flight = wait("10s"),
            on_error = classify,
            on_crash = uncertain,
            on_cancel = detach,
            lease = "1m30s",
            on_missing_key = run,
            on_outage = read_only,
            version = 2,
            upgrade = Receipt::read_old,
            also_accept = "stock.hold",
            skip(app),
        ),
        quote! {
            async fn reserve(app: App, req: Reserve) -> Result<Receipt, StockError> { app.stock.reserve(req).await }
        },
        // Output:
        &expect![[r#"
            async fn reserve(app: App, req: Reserve) -> Result<Receipt, StockError> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            "stock.reserve",
                        )
                        .key("lookup(&req).await?")
                        .lease(::idempotent_runtime::__private::Duration::new(90u64, 0u32))
                        .in_flight(
                            ::idempotent_runtime::__private::InFlight::Wait(
                                ::idempotent_runtime::__private::Duration::new(10u64, 0u32),
                            ),
                        )
                        .on_crash(::idempotent_runtime::__private::OnCrash::Uncertain)
                        .on_cancel(::idempotent_runtime::__private::OnCancel::Detach)
                        .on_missing_key(::idempotent_runtime::__private::OnMissingKey::Run)
                        .on_outage(::idempotent_runtime::__private::OnOutage::ReadOnly)
                        .version(2u32)
                        .also_accept_name("stock.hold");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    ::idempotent_runtime::__private::Call::handle(&mut __call, &app.idempotency);
                    ::idempotent_runtime::__private::Call::key(&mut __call, &lookup(&req).await?);
                    ::idempotent_runtime::__private::Call::argument(&mut __call, "req", &req);
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        Result<Receipt, StockError>,
                    > {
                        return __ret;
                    }
                    #[allow(clippy::used_underscore_binding)]
                    let _ = (&req, &app);
                    { app.stock.reserve(req).await }
                };
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run_detached(
                        __body,
                        ::idempotent_runtime::__private::Classified(classify),
                        ::idempotent_runtime::__private::Upgraded(Receipt::read_old),
                    )
                    .await;
                __ret
            }
        "#]],
    );
}

#[test]
fn computed_durations_and_a_fingerprint() {
    // Input:
    picture(
        quote!(
            key = a + b,
            fingerprint = (a, b),
            ttl = Duration::from_secs(a),
            lease = LEASE,
            in_flight = wait(PATIENCE),
            on_error = release,
        ),
        quote! {
            async fn add(a: u64, b: u64) -> anyhow::Result<u64> { Ok(a + b) }
        },
        // Output:
        &expect![[r#"
            async fn add(a: u64, b: u64) -> anyhow::Result<u64> {
                #[allow(clippy::used_underscore_binding)]
                let prepared_idempotent_call = {
                    static __IDEMPOTENT_SITE: ::idempotent_runtime::__private::Site = ::idempotent_runtime::__private::Site::new(
                            ::idempotent_runtime::__private::core::concat!(
                                ::idempotent_runtime::__private::core::env!("CARGO_PKG_NAME"), "::",
                                ::idempotent_runtime::__private::core::module_path!(), "::", "add"
                            ),
                        )
                        .key("a + b");
                    let mut __call = ::idempotent_runtime::__private::begin(&__IDEMPOTENT_SITE);
                    ::idempotent_runtime::__private::Call::key(&mut __call, &(a + b));
                    ::idempotent_runtime::__private::Call::fingerprint(&mut __call, &(&a, &b));
                    ::idempotent_runtime::__private::Call::ttl(&mut __call, Duration::from_secs(a));
                    ::idempotent_runtime::__private::Call::lease(&mut __call, LEASE);
                    ::idempotent_runtime::__private::Call::in_flight(
                        &mut __call,
                        ::idempotent_runtime::__private::InFlight::Wait(PATIENCE),
                    );
                    __call
                };
                let __body = async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<
                        anyhow::Result<u64>,
                    > {
                        return __ret;
                    }
                    { Ok(a + b) }
                };
                let __body = ::core::pin::pin!(::core::option::Option::Some(__body));
                #[allow(clippy::large_futures)]
                let __ret = prepared_idempotent_call
                    .run(
                        __body,
                        ::idempotent_runtime::__private::Released,
                        ::idempotent_runtime::__private::Whole,
                    )
                    .await;
                __ret
            }
        "#]],
    );
}
