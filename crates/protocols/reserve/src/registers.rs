//! Arrays of registers as switches have them: one entry of each can be read and written once per frame.
//!
//! PL2, App. D.1.1: "read/modify/write … once during the processing of packets". A [`Touch`] stands for that one access.
//! It is made only by [`PipelinePass::begin`] and taken by value, so a second access to the same array during one pass
//! does not compile:
//!
//! ```
//! # use reserve::registers::{OutputPorts, PipelinePass, RegisterArray};
//! let mut array = RegisterArray::<u32, OutputPorts>::new(4, 0);
//! let pass = PipelinePass::begin();
//! array.touch(pass.output, 1, |entry| *entry += 1);
//! ```
//!
//! ```compile_fail
//! # use reserve::registers::{OutputPorts, PipelinePass, RegisterArray};
//! let mut array = RegisterArray::<u32, OutputPorts>::new(4, 0);
//! let pass = PipelinePass::begin();
//! array.touch(pass.output, 1, |entry| *entry += 1);
//! array.touch(pass.output, 1, |entry| *entry += 1); // moved
//! ```
//!
//! Nor does one array take the access of another:
//!
//! ```compile_fail
//! # use reserve::registers::{OutputPorts, PipelinePass, RegisterArray};
//! let mut array = RegisterArray::<u32, OutputPorts>::new(4, 0);
//! let pass = PipelinePass::begin();
//! array.touch(pass.input, 1, |entry| *entry += 1);
//! ```

use std::marker::PhantomData;

/// The array of input ports.
#[derive(Clone, Debug)]
pub struct InputPorts;
/// The array of output ports.
#[derive(Clone, Debug)]
pub struct OutputPorts;
/// The array of open bursts, by context.
#[derive(Clone, Debug)]
pub struct OpenBursts;
/// The array of starts of slots, by context.
#[derive(Clone, Debug)]
pub struct SlotStarts;
/// The array of contexts of which a frame was cut.
#[derive(Clone, Debug)]
pub struct CutContexts;
/// The array of what output ports have left for frames that nobody reserved.
#[derive(Clone, Debug)]
pub struct SharedPorts;

/// One access to the array `A`.
#[derive(Debug)]
pub struct Touch<A>(PhantomData<A>);

/// A frame passes the switch: one access to each array.
#[derive(Debug)]
#[allow(missing_docs, reason = "one field for each array, of its name")]
pub struct PipelinePass {
    pub input: Touch<InputPorts>,
    pub output: Touch<OutputPorts>,
    pub bursts: Touch<OpenBursts>,
    pub starts: Touch<SlotStarts>,
    pub cuts: Touch<CutContexts>,
    pub shared: Touch<SharedPorts>,
}

impl PipelinePass {
    /// The next frame passes. One call for each frame, never two.
    #[inline]
    pub fn begin() -> Self {
        Self {
            input: Touch(PhantomData),
            output: Touch(PhantomData),
            bursts: Touch(PhantomData),
            starts: Touch(PhantomData),
            cuts: Touch(PhantomData),
            shared: Touch(PhantomData),
        }
    }
}

/// Registers of one kind.
#[derive(Clone, Debug)]
pub struct RegisterArray<T, A> {
    entries: Vec<T>,
    array: PhantomData<A>,
}

impl<T: Clone, A> RegisterArray<T, A> {
    /// All entries are `initial`.
    pub fn new(entries: usize, initial: T) -> Self {
        Self { entries: vec![initial; entries], array: PhantomData }
    }

    /// Reads and writes one entry.
    #[inline]
    pub fn touch<R>(&mut self, _once: Touch<A>, index: usize, access: impl FnOnce(&mut T) -> R) -> R {
        access(&mut self.entries[index])
    }

    /// Reads an entry as the control plane does, outside of any frame's pass.
    pub fn read(&self, index: usize) -> &T {
        &self.entries[index]
    }

    /// Gives write access to an entry as the control plane has it, outside of any frame's pass.
    pub fn write(&mut self, index: usize) -> &mut T {
        &mut self.entries[index]
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pass_reads_and_writes_one_entry_of_each_array() {
        let mut input = RegisterArray::<u32, InputPorts>::new(4, 7);
        let mut output = RegisterArray::<u32, OutputPorts>::new(4, 0);
        let pass = PipelinePass::begin();
        let before = input.touch(pass.input, 2, |entry| std::mem::replace(entry, 8));
        output.touch(pass.output, 3, |entry| *entry += before);
        assert_eq!((before, *input.read(2), *output.read(3), *output.read(2)), (7, 8, 7, 0));
    }
}
