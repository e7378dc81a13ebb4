//! Policies: declared in the static of a function, or computed at each call.

use expect_test::expect;
use quote::quote;

use super::picture;

#[test]
fn every_policy() {
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
        &expect![[r#"
            async fn reserve(app: App, req: Reserve) -> Result<Receipt, StockError> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new("stock.reserve")
                        .at(private::core::file!(), private::core::line!())
                        .key("lookup(&req).await?")
                        .lease(private::Duration::new(90u64, 0u32))
                        .in_flight(private::InFlight::Wait(private::Duration::new(10u64, 0u32)))
                        .on_crash(private::OnCrash::Uncertain)
                        .on_cancel(private::OnCancel::Detach)
                        .on_missing_key(private::OnMissingKey::Run)
                        .on_outage(private::OnOutage::ReadOnly)
                        .version(2u32)
                        .also_accept_name("stock.hold");
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::handle(&mut __idempotent_call, &app.idempotency);
                    private::Call::key(&mut __idempotent_call, &lookup(&req).await?);
                    private::Call::argument(&mut __idempotent_call, "req", &req);
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                        Result<Receipt, StockError>,
                    > {
                        return __idempotent_outcome;
                    }
                    let _ = (&req, &app);
                    { app.stock.reserve(req).await }
                };
                let __idempotent_outcome = __idempotent_prepared
                    .run_detached(
                        __idempotent_body,
                        private::Classified(classify),
                        private::Upgraded(Receipt::read_old),
                    )
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}

#[test]
fn computed_durations_and_a_fingerprint() {
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
        &expect![[r#"
            async fn add(a: u64, b: u64) -> anyhow::Result<u64> {
                let __idempotent_prepared = {
                    static __IDEMPOTENT_SITE: private::Site = private::Site::new(
                            private::core::concat!(
                                private::core::env!("CARGO_PKG_NAME"), "::",
                                private::core::module_path!(), "::", "add"
                            ),
                        )
                        .at(private::core::file!(), private::core::line!())
                        .key("a + b");
                    private::link!(__IDEMPOTENT_SITE);
                    let mut __idempotent_call = private::begin(&__IDEMPOTENT_SITE);
                    private::Call::key(&mut __idempotent_call, &(a + b));
                    private::Call::fingerprint(&mut __idempotent_call, &(&a, &b));
                    private::Call::ttl(&mut __idempotent_call, Duration::from_secs(a));
                    private::Call::lease(&mut __idempotent_call, LEASE);
                    private::Call::in_flight(
                        &mut __idempotent_call,
                        private::InFlight::Wait(PATIENCE),
                    );
                    __idempotent_call
                };
                let __idempotent_body = async move {
                    if let private::core::option::Option::Some(__idempotent_outcome) = private::core::option::Option::None::<
                        anyhow::Result<u64>,
                    > {
                        return __idempotent_outcome;
                    }
                    let _ = (&b, &a);
                    { Ok(a + b) }
                };
                let __idempotent_body = private::core::pin::pin!(
                    private::core::option::Option::Some(__idempotent_body)
                );
                let __idempotent_outcome = __idempotent_prepared
                    .run(__idempotent_body, private::Released, private::Whole)
                    .await;
                return __idempotent_outcome;
            }
        "#]],
    );
}
