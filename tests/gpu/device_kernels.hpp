#pragma once
// Failures of a stage that only a device can cause. Streams are device::queue::native_stream().

#include "core/types.hpp"
#include "device/backend.hpp"

namespace carousel::test {

enum class device_fault : u8 { illegal, trap, misaligned, endless };

/// *out = *in * 3 + 1, or sequence * 1000 where there is no input.
void enqueue_number(void* stream, u64* out, const u64* in, u64 frame_number);
/// The same in a launch that can be part of a graph, with N blocks, one of which causes the fault.
void launch_number(device::queue& q, u64* out, const u64* in, u64 frame_number, u32 blocks);
/// N words, each a hash of the word before it and of *in (or of sequence * 1000), and one of them into *out,
/// with the number of words that differ from it added. Can be part of a graph.
void launch_remember(device::queue& q, u64* after, const u64* before, u64* out, const u64* in,
                     u64 frame_number, u64 words);
/// `value` into N elements.
void enqueue_words(void* stream, u64* out, u64 value, u64 elements);
/// One word, by any thread and outside of any queue; it is written when this returns.
void write_word(u64* at, u64 value);
/// Each element of `in`, and its square.
void enqueue_squares(void* stream, u64* number, u64* square, const u64* in, u64 elements);
/// The first elements of two lists, and how many others differ from theirs.
struct pair_seen {
    u64 number, square, others;
};
void enqueue_compare(void* stream, pair_seen* seen, const u64* number, const u64* square, u64 elements);
/// Keeps the stream busy for this time.
void enqueue_hold(void* stream, u64 ns);
/// `word`: 16 bytes of device memory that are not shared.
void enqueue_fault(void* stream, device_fault what, u64* word);
/// Requests 64 TiB of device memory; returns the error of CUDA.
const char* take_too_much_memory();

}  // namespace carousel::test
