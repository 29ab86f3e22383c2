#pragma once
// What a stage's process records about the fatal signal that ends it: the address, the stack, and the modules
// that the stack is in. The record is a file in the runtime directory, FOLDER/fault-ENTRY, which the process
// maps before it begins to work. Its signal handler stores words there; the file outlives the process. The
// supervisor reads the record after the death and starts carousel-backtrace, which finds the names.
//
// Writer: the process on whose entry the file is, in its signal handler. Readers: after that process has
// ended. A process that dies while it writes leaves a record without `complete`; its frames up to `frames`
// are valid, because the count is stored after each frame. An entry's next process truncates the file, and a
// reader compares the pid, so a record is never attributed to another process.

#include <optional>
#include <string>
#include <type_traits>

#include "core/types.hpp"

namespace carousel::run {

/// The longest time that a carousel-backtrace may take.
inline constexpr u32 backtrace_limit_s = 10;

enum class fault_access : u32 { unknown, read, write, execute };

/// A program or library that is part of the stack.
struct fault_module {
    u64 from = 0, until = 0;  ///< the addresses that it is mapped to
    u64 bias = 0;             ///< an address in the process minus the address in the file
    u32 build_id_bytes = 0;   ///< 0: the file has no build id
    u8 build_id[32] = {};
    char path[256] = {};  ///< ends with 0
};

struct fault_record {
    static constexpr u64 version = 0x0001'5350'4154'4c55ULL;
    static constexpr u32 max_frames = 64, max_modules = 24;

    u64 begun = 0;     ///< `version` as soon as the other words are valid
    u64 complete = 0;  ///< `version` when nothing more is stored
    i32 pid = 0, thread = 0;
    i32 signal = 0, code = 0;  ///< si_signo, si_code
    i32 sender = 0;            ///< the process that sent the signal; 0: this process, or the kernel
    fault_access access = fault_access::unknown;
    u64 address = 0, pc = 0, stack = 0;  ///< si_addr, and the registers
    char thread_name[16] = {};
    char program[256] = {};  ///< path of the process's program
    /// The first is the pc; the others are the addresses to which the functions would return.
    u64 frame[max_frames] = {};
    u32 frames = 0;
    u32 modules = 0;
    fault_module module[max_modules];
    /// The line of /proc/self/maps that contains `address`; empty if there is none.
    char region[256] = {};
    u32 region_known = 0;  ///< 1: /proc/self/maps was read, so an empty `region` means "not mapped"
};
static_assert(std::is_trivially_copyable_v<fault_record>);

/// The file of the process on entry `entry`.
[[nodiscard]] std::string fault_record_path(const std::string& folder, u32 entry);
/// Returns the record that process `pid` has left; nothing if it has left none. Texts end with 0, and counts
/// are within their limits, whatever the file contains.
[[nodiscard]] std::optional<fault_record> read_fault_record(const std::string& folder, u32 entry, i32 pid);
/// Makes a record from bytes that another process has passed on; checked in the same way.
[[nodiscard]] std::optional<fault_record> fault_record_from(const std::string& bytes);

/// "a write to 0x10 (null pointer)", "an integer division by zero"; "" if there is no more than the signal.
[[nodiscard]] std::string fault_text(const fault_record& r);

}  // namespace carousel::run
