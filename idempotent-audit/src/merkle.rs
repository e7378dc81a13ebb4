//! The hashes of a trail: leaves, trees and seals.
//!
//! A leaf and a node are those of RFC 9162, section 2.1: the first byte of a leaf is 0x00 and that
//! of a node 0x01. The first byte of a seal is 0x02.

use sha2::{Digest, Sha256};

/// A SHA-256.
pub(crate) type Hash = [u8; 32];

const LEAF: u8 = 0;
const NODE: u8 = 1;
const SEAL: u8 = 2;

pub(crate) fn sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

fn marked(mark: u8, parts: &[&[u8]]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([mark]);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

pub(crate) fn leaf(bytes: &[u8]) -> Hash {
    marked(LEAF, &[bytes])
}

pub(crate) fn seal(bytes: &[u8]) -> Hash {
    marked(SEAL, &[bytes])
}

/// The root of a tree whose leaves come one after another. It holds one hash for each level.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Whole trees, each with fewer leaves than the one before it: their number, and their root.
    whole: Vec<(u64, Hash)>,
}

impl Tree {
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.whole.push((1, leaf));
        while let [.., (left, one), (right, other)] = &self.whole[..]
            && left == right
        {
            let node = (left + right, marked(NODE, &[one, other]));
            self.whole.truncate(self.whole.len() - 2);
            self.whole.push(node);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// The root: that of no leaves is the hash of nothing.
    pub(crate) fn root(&self) -> Hash {
        let mut roots = self.whole.iter().rev().map(|(_, root)| *root);
        let Some(last) = roots.next() else {
            return sha256(b"");
        };
        roots.fold(last, |right, left| marked(NODE, &[&left, &right]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As RFC 9162 defines it: over the largest power of two below the number of leaves.
    fn defined(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => sha256(b""),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                marked(NODE, &[&defined(left), &defined(right)])
            }
        }
    }

    #[test]
    fn a_root_is_that_of_the_rfc() {
        let mut tree = Tree::default();
        let mut leaves = Vec::new();
        for number in 0..=70_u8 {
            assert_eq!(tree.root(), defined(&leaves), "{number} leaves");
            tree.push(leaf(&[number]));
            leaves.push(leaf(&[number]));
        }
    }

    /// The roots of the test vectors of Certificate Transparency, with the same leaves.
    #[test]
    fn known_roots_come_out() {
        let hex = |hash: Hash| {
            hash.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let mut tree = Tree::default();
        assert_eq!(
            hex(tree.root()),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        tree.push(leaf(b""));
        assert_eq!(
            hex(tree.root()),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
        );
        tree.push(leaf(&[0]));
        assert_eq!(
            hex(tree.root()),
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
        );
    }
}
