//! Long lists in pieces that are shared: a change of one item makes few pieces anew, and whoever compares two such lists
//! passes over what they have in common.
//!
//! The items lie along the values of a variable. Where a piece ends depends on what is there alone, so equal lists are cut alike,
//! however they came to be.

use crate::diagram::Mix;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::Arc;

/// Lists of fewer items are one piece.
pub const LONG: usize = 2048;

/// One of so many values ends a piece.
const MEAN: u64 = 256;

/// Whether a piece ends at a value, in a list that is long.
pub fn is_end(last: u128) -> bool {
    // The upper bits: those of a product that all bits of the value take part in.
    (last as u64 ^ (last >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (1 << 32) / MEAN
}

/// Items for the values from `first` to `last`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece<T> {
    /// The least value.
    pub first: u128,
    /// The greatest value.
    pub last: u128,
    hash: u64,
    /// What is there, in order.
    pub items: Box<[T]>,
}

/// A list of items along all values of a variable.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    /// One piece if it is short.
    pieces: Shape<T>,
}

#[derive(Clone, Debug)]
enum Shape<T> {
    Short(Box<[T]>),
    Long(Box<[Arc<Piece<T>>]>),
}

impl<T> Default for Pieces<T> {
    fn default() -> Pieces<T> {
        Pieces::short(Vec::new())
    }
}

impl<T: PartialEq> PartialEq for Pieces<T> {
    fn eq(&self, other: &Pieces<T>) -> bool {
        match (&self.pieces, &other.pieces) {
            (Shape::Short(left), Shape::Short(right)) => left == right,
            (Shape::Long(left), Shape::Long(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
            }
            _ => false,
        }
    }
}

impl<T: Eq> Eq for Pieces<T> {}

impl<T: Hash> Hash for Pieces<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        match &self.pieces {
            Shape::Short(items) => items.hash(state),
            Shape::Long(pieces) => pieces.iter().for_each(|piece| state.write_u64(piece.hash)),
        }
    }
}

impl<T: Hash> Piece<T> {
    /// A piece of these items.
    pub fn new(first: u128, last: u128, items: Box<[T]>) -> Arc<Piece<T>> {
        let hash = Mix::default().hash_one((first, &items[..]));
        Arc::new(Piece { first, last, hash, items })
    }
}

impl<T> Pieces<T> {
    /// A list that is not cut.
    pub fn short(items: Vec<T>) -> Pieces<T> {
        Pieces { pieces: Shape::Short(items.into()) }
    }

    /// A list of these pieces, which follow each other.
    pub fn long(pieces: Vec<Arc<Piece<T>>>) -> Pieces<T> {
        Pieces { pieces: Shape::Long(pieces.into()) }
    }

    /// Its shared pieces; none of a short list.
    pub fn shared(&self) -> &[Arc<Piece<T>>] {
        match &self.pieces {
            Shape::Short(_) => &[],
            Shape::Long(pieces) => pieces,
        }
    }

    /// The items, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + '_ {
        self.iter_of(0..self.piece_count())
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        match &self.pieces {
            Shape::Short(items) => items.len(),
            Shape::Long(pieces) => pieces.iter().map(|piece| piece.items.len()).sum(),
        }
    }

    /// The items of the piece that holds a value.
    pub fn around(&self, value: u128) -> &[T] {
        match &self.pieces {
            Shape::Short(items) => items,
            Shape::Long(pieces) => {
                let at = pieces.partition_point(|piece| piece.last < value);
                pieces.get(at).map_or(&[], |piece| &piece.items)
            }
        }
    }

    /// The items of some pieces, in order.
    pub fn iter_of(&self, pieces: Range<usize>) -> impl Iterator<Item = &T> + '_ {
        match &self.pieces {
            Shape::Short(items) => Items::Short(if pieces.is_empty() { [].iter() } else { items.iter() }),
            Shape::Long(all) => Items::Long(all[pieces].iter().flat_map(|piece| piece.items.iter())),
        }
    }

    /// How many pieces there are: 1 of a short list.
    pub fn piece_count(&self) -> usize {
        match &self.pieces {
            Shape::Short(_) => 1,
            Shape::Long(pieces) => pieces.len(),
        }
    }

    /// The pieces in which two lists differ, as runs that hold the same values in both.
    pub fn differing<'a>(&'a self, other: &'a Pieces<T>) -> Vec<(Range<usize>, Range<usize>)> {
        let (Shape::Long(left), Shape::Long(right)) = (&self.pieces, &other.pieces) else {
            return vec![(0..self.piece_count(), 0..other.piece_count())];
        };
        let mut runs = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (left.get(i), right.get(j)) {
            let start = (i, j);
            let same = Arc::ptr_eq(a, b);
            (i, j) = (i + 1, j + 1);
            while i <= left.len() && j <= right.len() && left[i - 1].last != right[j - 1].last {
                if left[i - 1].last < right[j - 1].last {
                    i += 1;
                } else {
                    j += 1;
                }
            }
            if !same {
                runs.push((start.0..i.min(left.len()), start.1..j.min(right.len())));
            }
        }
        runs
    }
}

enum Items<A, B> {
    Short(A),
    Long(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Items<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Items::Short(items) => items.next(),
            Items::Long(items) => items.next(),
        }
    }
}
