//! The hash of a map by ids.

use std::hash::{BuildHasher, Hasher};

/// Hashes ids, which are SHA-256 already, in one multiplication a half. The seed keeps a client
/// that chooses keys from choosing them so that they meet in one bucket.
#[derive(Clone, Debug)]
pub(super) struct IdHasher {
    seed: [u64; 2],
}

impl Default for IdHasher {
    fn default() -> Self {
        Self {
            seed: rand::random(),
        }
    }
}

impl BuildHasher for IdHasher {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded {
            seed: self.seed,
            hash: 0,
        }
    }
}

#[derive(Debug)]
pub(super) struct Folded {
    seed: [u64; 2],
    hash: u64,
}

impl Hasher for Folded {
    fn write(&mut self, id: &[u8]) {
        for half in id.chunks(16) {
            let mut words = [0; 16];
            words[..half.len()].copy_from_slice(half);
            let words = u128::from_le_bytes(words);
            let product = u128::from(words as u64 ^ self.seed[0])
                * u128::from((words >> 64) as u64 ^ self.seed[1]);
            self.hash = self.hash.rotate_left(5) ^ (product as u64) ^ ((product >> 64) as u64);
        }
    }

    /// The length that goes before the bytes is the same for every id.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.hash
    }
}
