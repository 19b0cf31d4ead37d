//! What two sequences have in common: the algorithm of Myers (An O(ND) difference algorithm and its variations, 1986) in
//! its linear-space form, with a bound on the work for sequences that have little in common.

/// A stretch of an alignment. Stretches follow each other: each begins where the ones before ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch {
    /// So many elements are the same on both sides.
    Same(usize),
    /// So many elements only the left side has.
    Left(usize),
    /// So many elements only the right side has.
    Right(usize),
}

/// Differences looked for between two points before the best way so far is taken. Alignments with fewer differences are
/// the shortest possible; others may be a little longer.
pub(super) const MOST_DIFFERENCES: usize = 1_024;

/// Aligns two sequences. Takes memory for their lengths, and time for their lengths times `most`, whatever is in them.
pub(super) fn diff(left: &[u32], right: &[u32], most: usize) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut buffers = Buffers::default();
    // What is still to be aligned, the next on top. A stack of its own: recursion could be deep.
    let mut pending = vec![Pending::Align(left, right)];
    while let Some(next) = pending.pop() {
        let (left, right) = match next {
            Pending::Align(left, right) => (left, right),
            Pending::Same(count) => {
                add(&mut stretches, Stretch::Same(count));
                continue;
            }
        };
        let ahead = left.iter().zip(right).take_while(|(a, b)| a == b).count();
        add(&mut stretches, Stretch::Same(ahead));
        let (left, right) = (&left[ahead..], &right[ahead..]);
        let behind = left.iter().rev().zip(right.iter().rev()).take_while(|(a, b)| a == b).count();
        let (left, right) = (&left[..left.len() - behind], &right[..right.len() - behind]);
        pending.push(Pending::Same(behind));
        if left.is_empty() || right.is_empty() {
            add(&mut stretches, Stretch::Left(left.len()));
            add(&mut stretches, Stretch::Right(right.len()));
            continue;
        }
        let (x, y) = buffers.middle(left, right, most.max(1));
        pending.push(Pending::Align(&left[x..], &right[y..]));
        pending.push(Pending::Align(&left[..x], &right[..y]));
    }
    stretches
}

enum Pending<'a> {
    Align(&'a [u32], &'a [u32]),
    Same(usize),
}

/// Appends a stretch; neighbours of one kind are one.
fn add(stretches: &mut Vec<Stretch>, stretch: Stretch) {
    match (stretches.last_mut(), stretch) {
        (_, Stretch::Same(0) | Stretch::Left(0) | Stretch::Right(0)) => {}
        (Some(Stretch::Same(last)), Stretch::Same(count))
        | (Some(Stretch::Left(last)), Stretch::Left(count))
        | (Some(Stretch::Right(last)), Stretch::Right(count)) => *last += count,
        _ => stretches.push(stretch),
    }
}

/// How far ways reach on each diagonal: forwards from the beginning, backwards from the end. Diagonal k, x - y = k, is at
/// `k + offset`. -1: no way yet.
#[derive(Default)]
struct Buffers {
    forward: Vec<isize>,
    backward: Vec<isize>,
}

impl Buffers {
    /// A point that a shortest alignment passes through, neither the beginning nor the end. Both sequences are not
    /// empty and differ in their first and their last elements. If there is none with twice `most` differences, the point
    /// that is farthest from the beginning.
    fn middle(&mut self, left: &[u32], right: &[u32], most: usize) -> (usize, usize) {
        let (width, height) = (left.len() as isize, right.len() as isize);
        let delta = width - height;
        let rounds = (left.len() + right.len()).div_ceil(2).min(most) as isize;
        let offset = rounds + 1;
        let size = 2 * offset as usize + 1;
        for reach in [&mut self.forward, &mut self.backward] {
            reach.clear();
            reach.resize(size, -1);
        }
        let at = |diagonal: isize| (diagonal + offset) as usize;
        let known = |diagonal: isize| diagonal.abs() <= offset;
        for round in 0..=rounds {
            for diagonal in (-round..=round).step_by(2) {
                let Some(mut x) = step(&self.forward, at(diagonal), diagonal, round, width, height) else {
                    self.forward[at(diagonal)] = -1;
                    continue;
                };
                while x < width && x - diagonal < height && left[x as usize] == right[(x - diagonal) as usize] {
                    x += 1;
                }
                self.forward[at(diagonal)] = x;
                let other = delta - diagonal;
                if delta % 2 != 0 && known(other) && other.abs() < round {
                    let back = self.backward[at(other)];
                    if back >= 0 && x + back >= width {
                        return (x as usize, (x - diagonal) as usize);
                    }
                }
            }
            for diagonal in (-round..=round).step_by(2) {
                let Some(mut x) = step(&self.backward, at(diagonal), diagonal, round, width, height) else {
                    self.backward[at(diagonal)] = -1;
                    continue;
                };
                while x < width
                    && x - diagonal < height
                    && left[(width - 1 - x) as usize] == right[(height - 1 - (x - diagonal)) as usize]
                {
                    x += 1;
                }
                self.backward[at(diagonal)] = x;
                let other = delta - diagonal;
                if delta % 2 == 0 && known(other) && other.abs() <= round {
                    let ahead = self.forward[at(other)];
                    if ahead >= 0 && x + ahead >= width {
                        return ((width - x) as usize, (height - (x - diagonal)) as usize);
                    }
                }
            }
        }
        let reached = (-rounds..=rounds).step_by(2).map(|diagonal| (self.forward[at(diagonal)], diagonal));
        let best = reached.filter(|(x, _)| *x >= 0).max_by_key(|(x, diagonal)| 2 * x - diagonal);
        // Each round goes one step on, unless the edge is reached, and then the other side has met it.
        best.map_or((left.len(), 0), |(x, diagonal)| (x as usize, (x - diagonal) as usize))
    }
}

/// Where one more difference leads on a diagonal: down from the one above, or to the right from the one below, whichever
/// is farther; `None` if both lead outside.
fn step(reach: &[isize], at: usize, diagonal: isize, round: isize, width: isize, height: isize) -> Option<isize> {
    if round == 0 {
        return Some(0);
    }
    let down = reach.get(at + 1).copied().filter(|x| *x >= 0 && x - diagonal <= height);
    let right = at.checked_sub(1).and_then(|at| reach.get(at)).copied().filter(|x| *x >= 0 && *x < width);
    down.max(right.map(|x| x + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Length of the longest common subsequence, by the textbook's table.
    fn longest(left: &[u32], right: &[u32]) -> usize {
        let mut table = vec![vec![0; right.len() + 1]; left.len() + 1];
        for (i, a) in left.iter().enumerate() {
            for (j, b) in right.iter().enumerate() {
                table[i + 1][j + 1] = if a == b { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[left.len()][right.len()]
    }

    /// Walks an alignment: what is the same must be so, and all elements come once. How many are the same.
    fn check(left: &[u32], right: &[u32], stretches: &[Stretch]) -> usize {
        let (mut x, mut y, mut same) = (0, 0, 0);
        for stretch in stretches {
            match *stretch {
                Stretch::Same(count) => {
                    assert_eq!(left[x..x + count], right[y..y + count]);
                    (x, y, same) = (x + count, y + count, same + count);
                }
                Stretch::Left(count) => x += count,
                Stretch::Right(count) => y += count,
            }
        }
        assert_eq!((x, y), (left.len(), right.len()));
        same
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn as_much_is_the_same_as_can_be(
            left in prop::collection::vec(0_u32..4, 0..40),
            right in prop::collection::vec(0_u32..4, 0..40),
        ) {
            let stretches = diff(&left, &right, MOST_DIFFERENCES);
            prop_assert_eq!(check(&left, &right, &stretches), longest(&left, &right));
        }

        #[test]
        fn a_bound_on_the_work_still_gives_an_alignment(
            left in prop::collection::vec(0_u32..6, 0..60),
            right in prop::collection::vec(0_u32..6, 0..60),
            most in 1_usize..5,
        ) {
            check(&left, &right, &diff(&left, &right, most));
        }
    }

    #[test]
    fn long_sequences_take_bounded_work() {
        let number = |index: u32, salt: u32| (index ^ salt).wrapping_mul(0x9e37_79b9) >> 29;
        let left: Vec<u32> = (0..100_000).map(|index| number(index, 1)).collect();
        let right: Vec<u32> = (0..100_000).map(|index| number(index, 0x5555)).collect();
        assert!(check(&left, &right, &diff(&left, &right, 64)) > 0);
        let mut nearly = left.clone();
        nearly.remove(50_000);
        nearly.insert(70_000, 99);
        assert_eq!(check(&left, &nearly, &diff(&left, &nearly, MOST_DIFFERENCES)), 99_999);
    }
}
