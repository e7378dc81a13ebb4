//! Reads any bytes as a stored response, as they are and as contents under a sound digest: never
//! panics, and what is read is read again from what is written.

#![no_main]

use idempotent_runtime::http::StoredResponse;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};

fuzz_target!(|contents: &[u8]| {
    let format = [1];
    let digest = Sha256::new()
        .chain_update(format)
        .chain_update(contents)
        .finalize();
    let sealed = [&format, &digest[..8], contents].concat();
    for bytes in [contents, &sealed] {
        if let Ok(response) = StoredResponse::decode(bytes) {
            assert_eq!(
                StoredResponse::decode(&response.encode()),
                Ok(response.clone())
            );
            let replay = response.into_replay();
            assert_eq!(replay.headers()["idempotent-replayed"], "true");
        }
    }
});
