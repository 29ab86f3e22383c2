#pragma once
// What a program of Carousel sets at its begin so that a limit of its environment is an error with a reason,
// and not a signal.

namespace carousel {

/// Bytes of stack that each thread gets, whatever the limit is.
inline constexpr unsigned long wanted_stack = 2UL << 20U;
/// Fewer bytes of stack end the main thread of a program with SIGSEGV.
inline constexpr unsigned long least_stack = 512UL << 10U;

/// Ignores SIGXFSZ, so that a write beyond `ulimit -f` fails with EFBIG, and raises the limit of the stack
/// (`ulimit -s`) to wanted_stack, or to the hard limit, for this process and those that it starts. Called
/// once, before any thread starts. Throws out_of_resources where that leaves less than least_stack.
void prepare_process_limits();

}  // namespace carousel
