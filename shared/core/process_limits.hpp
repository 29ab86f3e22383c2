#pragma once
// Set-up of a Carousel program that turns violations of the environment's limits into errors with a message
// instead of signals.

namespace carousel {

/// Bytes of stack for each thread, independent of the limit.
inline constexpr unsigned long wanted_stack = 2UL << 20U;
/// With fewer bytes of stack the main thread of a program ends with SIGSEGV.
inline constexpr unsigned long least_stack = 512UL << 10U;

/// Ignores SIGXFSZ, so that a write beyond `ulimit -f` fails with EFBIG, and raises the stack limit (`ulimit
/// -s`) to wanted_stack, or to the hard limit, for this process and its children. Called once, before any
/// thread starts. Throws out_of_resources if less than least_stack remains.
void prepare_process_limits();

}  // namespace carousel
