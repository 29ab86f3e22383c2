#include "run/fault_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>

#include "core/io.hpp"

namespace carousel::run {
namespace {

constexpr u64 null_bytes = 64 * 1024;      // what Linux never maps (mmap_min_addr)
constexpr u64 overflow_bytes = 64 * 1024;  // a function with larger local variables may skip the guard pages

/// A line of /proc/PID/maps.
struct region {
    std::string permissions, what;
};

region region_of(std::string_view line) {
    region r;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos) return r;
    r.permissions = line.substr(space + 1, 4);
    // address, permissions, offset, device, inode: five fields before the name
    std::size_t at = 0;
    for (int field = 0; field < 5 && at != std::string_view::npos; ++field) {
        at = line.find(' ', at);
        if (at != std::string_view::npos) at = line.find_first_not_of(' ', at);
    }
    r.what = at == std::string_view::npos ? "anonymous memory" : std::string(line.substr(at));
    return r;
}

bool is_near_stack(const fault_record& r) noexcept {
    return r.stack != 0 && (r.address < r.stack ? r.stack - r.address : r.address - r.stack) < overflow_bytes;
}

std::string access_text(const fault_record& r) {
    switch (r.access) {
        case fault_access::write:
            return fmt::format("a write to {:#x}", r.address);
        case fault_access::execute:
            return fmt::format("a jump to {:#x}", r.address);
        case fault_access::read:
        case fault_access::unknown:
            break;
    }
    return fmt::format("a read of {:#x}", r.address);
}

std::string address_text(const fault_record& r) {
    if (r.code == SI_KERNEL && r.address == 0)
        return fmt::format("an access to an address that the processor does not have (pc {:#x})", r.pc);
    const region at = region_of(r.region);
    const bool is_mapped = r.region[0] != '\0';
    if (r.signal == SIGBUS)
        return fmt::format("{} ({})", access_text(r),
                           is_mapped ? "beyond the end of the file of " + at.what : "no memory there");
    if (r.address < null_bytes) return access_text(r) + " (null pointer)";
    if (is_near_stack(r) && (!is_mapped || at.permissions.starts_with("---")))
        return fmt::format("a stack overflow: {} (the guard of the stack)", access_text(r));
    if (!is_mapped) return access_text(r) + (r.region_known != 0 ? " (not mapped)" : "");
    const char* const how = at.permissions.starts_with("---") ? "no access permitted"
                            : r.access == fault_access::write && at.permissions.find('w') == std::string::npos
                                ? "read-only"
                            : r.access == fault_access::execute ? "not executable"
                                                                : "protected";
    return fmt::format("{} ({}: {})", access_text(r), how, at.what);
}

std::string arithmetic_text(int code) {
    switch (code) {
        case FPE_INTDIV:
            return "an integer division by zero";
        case FPE_INTOVF:
            return "an integer overflow";
        case FPE_FLTDIV:
            return "a floating-point division by zero";
        default:
            return "an arithmetic error";
    }
}

}  // namespace

std::string fault_record_path(const std::string& folder, u32 entry) {
    return fmt::format("{}/fault-{}", folder, entry);
}

std::optional<fault_record> fault_record_from(const std::string& bytes) {
    fault_record r;
    if (bytes.size() < sizeof r) return std::nullopt;
    std::memcpy(&r, bytes.data(), sizeof r);
    if (r.begun != fault_record::version) return std::nullopt;
    r.frames = std::min(r.frames, fault_record::max_frames);
    r.modules = std::min(r.modules, fault_record::max_modules);
    r.region[sizeof r.region - 1] = '\0';
    r.thread_name[sizeof r.thread_name - 1] = '\0';
    r.program[sizeof r.program - 1] = '\0';
    for (fault_module& m : r.module) {
        m.path[sizeof m.path - 1] = '\0';
        m.build_id_bytes = std::min<u32>(m.build_id_bytes, sizeof m.build_id);
    }
    return r;
}

std::optional<fault_record> read_fault_record(const std::string& folder, u32 entry, i32 pid) {
    const auto bytes = read_file(fault_record_path(folder, entry), 2 * sizeof(fault_record));
    if (!bytes) return std::nullopt;
    auto r = fault_record_from(*bytes);
    if (r && r->pid != pid) r.reset();
    return r;
}

std::string fault_text(const fault_record& r) {
    if (r.sender != 0) return fmt::format("sent by process {}", r.sender);
    if (r.code <= 0) return "";  // raise(), abort()
    switch (r.signal) {
        case SIGSEGV:
        case SIGBUS:
            return address_text(r);
        case SIGFPE:
            return arithmetic_text(r.code);
        case SIGILL:
            return fmt::format("an instruction that the processor does not have, at {:#x}", r.pc);
        default:
            return "";
    }
}

}  // namespace carousel::run
