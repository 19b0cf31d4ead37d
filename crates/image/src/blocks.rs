//! Blocks: operations that stand once in an image and run in many rows and preparations.

use crate::types::{Block, Image, Operation};
use std::collections::BTreeMap;
use std::slice;

impl Image {
    /// These operations in the order in which they run: those of a block in the place of what runs it.
    pub fn written_out<'a>(&'a self, operations: &'a [Operation]) -> impl Iterator<Item = &'a Operation> {
        operations.iter().flat_map(|operation| match operation {
            Operation::Run { block } => self.block(*block),
            other => slice::from_ref(other),
        })
    }

    /// How many operations run, blocks written out.
    pub fn written_out_length(&self, operations: &[Operation]) -> usize {
        let length = |operation: &Operation| match operation {
            Operation::Run { block } => self.block(*block).len(),
            _ => 1,
        };
        operations.iter().map(length).sum()
    }

    /// The operations of all rows, then those of all preparations.
    pub fn operation_lists(&self) -> impl Iterator<Item = &Vec<Operation>> {
        let rows = self.rows.iter().map(|row| &row.operations);
        rows.chain(self.preparations.iter().map(|preparation| &preparation.operations))
    }

    /// How many operations stand in the document: those of rows, preparations and blocks.
    pub fn operation_count(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| block.operations.len());
        self.operation_lists().map(Vec::len).chain(blocks).sum()
    }

    /// Makes blocks of the operations that several rows or preparations have, where fewer operations stand in the document then. What
    /// the image does stays the same.
    pub fn share_operations(&mut self) {
        let mut uses: BTreeMap<&[Operation], usize> = BTreeMap::new();
        for operations in self.operation_lists() {
            *uses.entry(operations).or_default() += 1;
        }
        let is_shared = |operations: &[Operation]| {
            let (length, uses) = (operations.len(), uses[operations]);
            let nested = operations.iter().any(|operation| matches!(operation, Operation::Run { .. }));
            length * uses > length + uses && !nested
        };
        let mut numbers: BTreeMap<&[Operation], u16> = BTreeMap::new();
        let mut blocks = self.blocks.clone();
        let mut runs = Vec::new();
        for operations in self.operation_lists() {
            runs.push(is_shared(operations).then(|| {
                *numbers.entry(operations).or_insert_with(|| {
                    blocks.push(Block { operations: operations.clone() });
                    (blocks.len() - 1) as u16
                })
            }));
        }
        self.blocks = blocks;
        let rows = self.rows.iter_mut().map(|row| &mut row.operations);
        let lists = rows.chain(self.preparations.iter_mut().map(|preparation| &mut preparation.operations));
        for (operations, run) in lists.zip(runs) {
            if let Some(block) = run {
                *operations = vec![Operation::Run { block }];
            }
        }
    }

    /// The operations of a block; none if there is no such block.
    fn block(&self, number: u16) -> &[Operation] {
        self.blocks.get(usize::from(number)).map_or(&[], |block| &block.operations)
    }
}
