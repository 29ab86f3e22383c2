#include "backtrace/symboliser.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace carousel::backtrace {
namespace {

// DWARF's numbers, of <dwarf.h>
constexpr int tag_subprogram = 0x2e, tag_inlined_subroutine = 0x1d;
constexpr unsigned attribute_linkage_name = 0x6e, attribute_call_file = 0x58, attribute_call_line = 0x59;
constexpr std::size_t longest_name = 160;  // names of templates can have thousands of characters

std::string demangled(const char* name) {
    int failed = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(name, nullptr, nullptr, &failed), &std::free);
    std::string out = failed == 0 && text ? text.get() : name;
    if (out.size() > longest_name) out = out.substr(0, longest_name) + "...";
    return out;
}

}  // namespace

symboliser::symboliser(const run::fault_record& r, const libdw* library) : record_(&r), library_(library) {
    if (library_ == nullptr) return;
    static const Dwfl_Callbacks callbacks{nullptr, library_->dwfl_standard_find_debuginfo, nullptr, nullptr};
    session_ = library_->dwfl_begin(&callbacks);
    if (session_ == nullptr) return;
    library_->dwfl_report_begin(session_);
    for (const run::fault_module* m = r.module; m != r.module + r.modules; ++m) {
        const int fd = ::open(m->path, O_RDONLY | O_CLOEXEC);
        Dwfl_Module* found =
            fd < 0 ? nullptr : library_->dwfl_report_elf(session_, m->path, m->path, fd, m->bias, true);
        if (fd >= 0 && found == nullptr) ::close(fd);
        const unsigned char* id = nullptr;
        u64 where = 0;
        if (found != nullptr && m->build_id_bytes != 0) {
            const int bytes = library_->dwfl_module_build_id(found, &id, &where);
            if (bytes != static_cast<int>(m->build_id_bytes) ||
                std::memcmp(id, m->build_id, m->build_id_bytes) != 0)
                found = nullptr;
        }
        modules_[m] = found;
    }
    library_->dwfl_report_end(session_, nullptr, nullptr);
}

symboliser::~symboliser() {
    if (session_ != nullptr) library_->dwfl_end(session_);
}

const run::fault_module* symboliser::module_of(u32 k) const noexcept {
    const u64 at = instruction(k);
    const auto* const end = record_->module + record_->modules;
    const auto* const found =
        std::find_if(record_->module, end, [&](const auto& m) { return at >= m.from && at < m.until; });
    return found == end ? nullptr : found;
}

u64 symboliser::address_in_file(u32 k) const noexcept {
    const run::fault_module* const m = module_of(k);
    return m == nullptr ? record_->frame[k] : instruction(k) - m->bias;
}

bool symboliser::is_stale(const run::fault_module& m) const noexcept {
    const auto found = modules_.find(&m);
    // the kernel's vdso has no file
    return session_ != nullptr && std::strchr(m.path, '/') != nullptr && found != modules_.end() &&
           found->second == nullptr;
}

std::vector<place> symboliser::places_of(u32 k) const {
    const run::fault_module* const m = module_of(k);
    const auto found = modules_.find(m);
    if (m == nullptr || found == modules_.end() || found->second == nullptr) return {};
    const u64 address = instruction(k);
    std::vector<place> all = scopes_of(found->second, address);
    if (!all.empty()) return all;
    u64 offset = 0, bias = 0;
    Elf64_Sym symbol{};
    const char* const name =
        library_->dwfl_module_addrinfo(found->second, address, &offset, &symbol, nullptr, nullptr, &bias);
    if (name == nullptr) return {};
    return {{fmt::format("{}+{:#x}", demangled(name), offset), "", false}};
}

// The innermost function is first. Its line is that of the address; the line of each other one is where it
// calls the inlined function before it.
std::vector<place> symboliser::scopes_of(Dwfl_Module* module, u64 address) const {
    u64 bias = 0;
    Dwarf_Die* const unit = library_->dwfl_module_addrdie(module, address, &bias);
    if (unit == nullptr) return {};
    Dwarf_Die* innermost = nullptr;
    if (library_->dwarf_getscopes(unit, address - bias, &innermost) <= 0) return {};
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> first(innermost, &std::free);
    Dwarf_Die* chain = nullptr;
    const int count = library_->dwarf_getscopes_die(innermost, &chain);
    if (count <= 0) return {};
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> scopes(chain, &std::free);

    std::string source;
    int line = 0;
    if (Dwfl_Line* const at = library_->dwfl_module_getsrc(module, address); at != nullptr)
        if (const char* const file = library_->dwfl_lineinfo(at, nullptr, &line, nullptr, nullptr, nullptr);
            file != nullptr)
            source = fmt::format("{}:{}", file, line);
    std::vector<place> all;
    for (int k = 0; k < count; ++k) {
        const int tag = library_->dwarf_tag(&chain[k]);
        if (tag != tag_inlined_subroutine && tag != tag_subprogram) continue;
        // the library's wrappers of a call are of no interest
        const bool is_wrapper = tag == tag_inlined_subroutine && source.starts_with("/usr/include/c++/");
        if (!is_wrapper) all.push_back({function_name(chain[k]), source, tag == tag_inlined_subroutine});
        if (tag == tag_subprogram) break;
        source = call_site(*unit, chain[k]);
    }
    return all;
}

std::string symboliser::function_name(Dwarf_Die& die) const {
    Dwarf_Attribute a{};
    if (library_->dwarf_attr_integrate(&die, attribute_linkage_name, &a) != nullptr)
        if (const char* const name = library_->dwarf_formstring(&a); name != nullptr) return demangled(name);
    const char* const name = library_->dwarf_diename(&die);
    return name == nullptr ? "" : name;
}

std::string symboliser::call_site(Dwarf_Die& unit, Dwarf_Die& die) const {
    const auto number = [&](unsigned name) -> u64 {
        Dwarf_Attribute a{};
        u64 value = 0;
        const bool has = library_->dwarf_attr_integrate(&die, name, &a) != nullptr;
        return has && library_->dwarf_formudata(&a, &value) == 0 ? value : 0;
    };
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    const u64 file = number(attribute_call_file);
    if (library_->dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count) return "";
    const char* const name = library_->dwarf_filesrc(files, file, nullptr, nullptr);
    return name == nullptr ? "" : fmt::format("{}:{}", name, number(attribute_call_line));
}

}  // namespace carousel::backtrace
