#include "stages/runner/fault_recorder.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "run/fault_record.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::stages {
namespace {

std::atomic<run::fault_record*> record{nullptr};  // lock-free: read in a signal handler
std::atomic<bool> is_open{false};                 // tests run several stages as threads of one process
pid_t owner = 0;                                  // a forked child must not overwrite its parent's record

// ---- the phases, in the order of their value to a reader, because each may fault

enum phase : int { stack_phase, module_phase, region_phase, end_phase };
std::atomic<int> next_phase{stack_phase};

struct walk {
    run::fault_record* to;
    bool has_reached_fault = false;  ///< the frames before are those of the signal handler
};

_Unwind_Reason_Code store_frame(_Unwind_Context* context, void* of) noexcept {
    walk& w = *static_cast<walk*>(of);
    run::fault_record& r = *w.to;
    const u64 pc = _Unwind_GetIP(context);
    if (!w.has_reached_fault) {
        w.has_reached_fault = pc == r.pc;  // frame 0, which is stored already
        return _URC_NO_REASON;
    }
    if (pc == 0 || r.frames >= run::fault_record::max_frames) return _URC_END_OF_STACK;
    r.frame[r.frames] = pc;
    std::atomic_signal_fence(std::memory_order_release);
    ++r.frames;
    return _URC_NO_REASON;
}

bool is_code(u64 address) noexcept {
    dl_find_object found{};
    return _dl_find_object(reinterpret_cast<void*>(address), &found) == 0;
}

void store_stack(run::fault_record& r) noexcept {
    r.frame[0] = r.pc;
    r.frames = 1;
    if (is_code(r.pc)) {
        walk w{&r};
        _Unwind_Backtrace(store_frame, &w);
        return;
    }
    // A call through a wrong pointer: the unwinder knows nothing about such a pc, but the caller's address is
    // at the top of the stack.
    u64 caller = 0;
    std::memcpy(&caller, reinterpret_cast<const void*>(r.stack), sizeof caller);
    if (!is_code(caller)) return;
    r.frame[1] = caller;
    r.frames = 2;
}

void copy_text(char* to, std::size_t bytes, const char* from) noexcept {
    std::size_t k = 0;
    for (; k + 1 < bytes && from[k] != '\0'; ++k) to[k] = from[k];
    to[k] = '\0';
}

/// Copies the build id from the notes of a module that is mapped at `base`.
void copy_build_id(run::fault_module& m, u64 base) noexcept {
    const auto* const elf = reinterpret_cast<const ElfW(Ehdr)*>(base);
    if (std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0) return;
    const auto* const headers = reinterpret_cast<const ElfW(Phdr)*>(base + elf->e_phoff);
    for (u32 k = 0; k < elf->e_phnum; ++k) {
        if (headers[k].p_type != PT_NOTE) continue;
        u64 at = m.bias + headers[k].p_vaddr;
        const u64 end = at + headers[k].p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
            const u64 name = at + sizeof(ElfW(Nhdr)), text = name + (note->n_namesz + 3U) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                std::memcmp(reinterpret_cast<const void*>(name), "GNU", 4) == 0) {
                m.build_id_bytes = std::min<u32>(note->n_descsz, sizeof m.build_id);
                std::memcpy(m.build_id, reinterpret_cast<const void*>(text), m.build_id_bytes);
                return;
            }
            at = text + (note->n_descsz + 3U) / 4 * 4;
        }
    }
}

void store_modules(run::fault_record& r) noexcept {
    for (u32 f = 0; f < r.frames && r.modules < run::fault_record::max_modules; ++f) {
        dl_find_object found{};
        // a return address may be the first one after its function, so the call's own address is used
        if (_dl_find_object(reinterpret_cast<void*>(r.frame[f] - (f == 0 ? 0 : 1)), &found) != 0) continue;
        const auto from = reinterpret_cast<u64>(found.dlfo_map_start);
        const auto* const known =
            std::find_if(r.module, r.module + r.modules, [&](const auto& m) { return m.from == from; });
        if (known != r.module + r.modules) continue;
        run::fault_module& m = r.module[r.modules];
        m.from = from;
        m.until = reinterpret_cast<u64>(found.dlfo_map_end);
        m.bias = found.dlfo_link_map->l_addr;
        const char* const name = found.dlfo_link_map->l_name;
        copy_text(m.path, sizeof m.path, name == nullptr || *name == '\0' ? r.program : name);
        m.build_id_bytes = 0;
        std::atomic_signal_fence(std::memory_order_release);
        ++r.modules;
        copy_build_id(m, from);
    }
}

u64 hexadecimal(const char*& at) noexcept {
    u64 value = 0;
    for (;; ++at) {
        if (*at >= '0' && *at <= '9')
            value = value * 16 + static_cast<u64>(*at - '0');
        else if (*at >= 'a' && *at <= 'f')
            value = value * 16 + static_cast<u64>(*at - 'a' + 10);
        else
            return value;
    }
}

/// Stores the line of /proc/self/maps that contains the address.
void store_region(run::fault_record& r) noexcept {
    if ((r.signal != SIGSEGV && r.signal != SIGBUS) || r.code <= 0) return;
    const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    static char bytes[4096], line[sizeof r.region];  // not on the signal's stack, which is small
    std::size_t length = 0;
    bool found = false, whole = false;
    for (;;) {
        const ssize_t got = ::read(fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR) continue;
        whole = got == 0;
        if (got <= 0) break;
        for (ssize_t k = 0; k < got && !found; ++k) {
            if (bytes[k] != '\n') {
                if (length + 1 < sizeof line) line[length++] = bytes[k];
                continue;
            }
            line[length] = '\0';
            length = 0;
            const char* at = line;
            const u64 from = hexadecimal(at);
            if (*at++ != '-') continue;
            found = r.address >= from && r.address < hexadecimal(at);
        }
        if (found) break;
    }
    ::close(fd);
    if (found) copy_text(r.region, sizeof r.region, line);
    r.region_known = found || whole ? 1 : 0;
}

void run_phases(run::fault_record& r) noexcept {
    for (;;) {
        // incremented before the phase, so that a fault in it continues with the next one
        switch (next_phase.fetch_add(1, std::memory_order_relaxed)) {
            case stack_phase:
                store_stack(r);
                break;
            case module_phase:
                store_modules(r);
                break;
            case region_phase:
                store_region(r);
                break;
            default:
                std::atomic_signal_fence(std::memory_order_release);
                r.complete = run::fault_record::version;
                return;
        }
    }
}

void store_registers(run::fault_record& r, const void* of) noexcept {
#ifdef __x86_64__
    constexpr greg_t page_fault = 14, by_write = 2, by_fetch = 16;
    const auto& context = *static_cast<const ucontext_t*>(of);
    const auto& registers = context.uc_mcontext.gregs;
    r.pc = static_cast<u64>(registers[REG_RIP]);
    r.stack = static_cast<u64>(registers[REG_RSP]);
    if (registers[REG_TRAPNO] != page_fault) return;
    r.access = (registers[REG_ERR] & by_write) != 0   ? run::fault_access::write
               : (registers[REG_ERR] & by_fetch) != 0 ? run::fault_access::execute
                                                      : run::fault_access::read;
#else
    (void)r;
    (void)of;
#endif
}

}  // namespace

void open_fault_record(const std::string& runtime_directory, u32 entry) {
    if (is_open.exchange(true)) return;
    const std::string path = run::fault_record_path(runtime_directory, entry);
    const shm::unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    const int failed = fd ? reserve_whole(fd.get(), 0, sizeof(run::fault_record)) : errno;
    void* const mapped = failed != 0 ? MAP_FAILED
                                     : ::mmap(nullptr, sizeof(run::fault_record), PROT_READ | PROT_WRITE,
                                              MAP_SHARED | MAP_POPULATE, fd.get(), 0);
    if (mapped == MAP_FAILED) {
        log::warning("{}: {}; if this process dies by a signal, the log will have no backtrace", path,
                     errno_text(failed != 0 ? failed : errno));
        return;
    }
    owner = ::getpid();
    auto& r = *new (mapped) run::fault_record;
    // resolves and loads what the handler calls
    r.pc = reinterpret_cast<u64>(&open_fault_record);
    walk w{&r, true};
    _Unwind_Backtrace(store_frame, &w);
    (void)is_code(r.pc);
    r = {};
    const ssize_t got = ::readlink("/proc/self/exe", r.program, sizeof r.program - 1);
    r.program[std::max<ssize_t>(got, 0)] = '\0';
    record.store(&r, std::memory_order_release);
}

// The record stays mapped, because another thread may be in the handler.
void close_fault_record() noexcept {
    record.store(nullptr, std::memory_order_release);
    is_open.store(false, std::memory_order_release);
}

void record_fault(int signal, const siginfo_t* from, const void* context) noexcept {
    run::fault_record* const r = record.load(std::memory_order_acquire);
    if (r == nullptr || ::getpid() != owner) return;
    if (r->begun != run::fault_record::version) {
        r->pid = owner;
        r->thread = static_cast<i32>(::syscall(SYS_gettid));
        r->signal = signal;
        if (from != nullptr) {
            r->code = from->si_code;
            r->address = reinterpret_cast<u64>(from->si_addr);
            if (from->si_code <= 0) {
                r->address = 0;
                r->sender = from->si_pid != owner ? from->si_pid : 0;
            }
        }
        if (context != nullptr) store_registers(*r, context);
        ::prctl(PR_GET_NAME, r->thread_name);
        std::atomic_signal_fence(std::memory_order_release);
        r->begun = run::fault_record::version;
    }
    run_phases(*r);
}

}  // namespace carousel::stages
