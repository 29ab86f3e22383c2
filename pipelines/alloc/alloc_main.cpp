// carousel-alloc: makes the GPU memory that the supervisor holds, so that the supervisor itself never calls
// CUDA.
//
//   carousel-alloc --fd N [--requests JSON] [--directory DIR --run-id ID --grace S]
//
//   carousel-alloc --repair --fd N
//   carousel-alloc --status --fd N
//
// With --status it reads the status words of rings (status_words.hpp), with --repair it repairs the words of
// a space in GPU memory for `carousel hold` (repair.hpp); both allocate nothing. Without --requests the
// requests are read from stdin.
//
// N is one end of a SOCK_SEQPACKET pair; control/memory_message.hpp defines its messages. Blocks of kind vmm
// are kept alive by their fds, so this process exits with 0 when the other end has acknowledged them (by any
// message). Blocks of kind ipc are kept alive by this process. It therefore sleeps until its socket reads
// EOF, which means that its supervisor has died. After that this process tries for S seconds to connect to
// the next supervisor of run ID at DIR/control.sock. This process identifies itself there as the owner of the
// memory, and stays if the supervisor accepts it (control/stage_message.hpp). Exit codes: 0, 2 (usage), 3
// (device), 74 (the other end closed the socket before it had received everything).

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "control/memory_message.hpp"
#include "control/stage_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "pipelines/alloc/repair.hpp"
#include "pipelines/alloc/status_words.hpp"
#include "run/directory.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_id.hpp"
#if defined(CAROUSEL_WITH_CUDA)
#include "device/cuda/memory.hpp"
#endif

namespace {

using namespace carousel;

constexpr u64 send_patience_ns =
    10 * ns_per_s;  ///< long enough, although the supervisor reads its replies one after another
constexpr std::string_view usage =
    "usage: carousel-alloc --fd N [--requests JSON]   (a helper of `carousel run`)";

struct arguments {
    int fd = -1;
    std::string requests, directory, run_id;
    double grace_s = 0;
    bool repairs = false, reads_status = false;
};

std::string read_stdin() {
    std::string text;
    char block[4096];
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw config_error("reading the requests from stdin: " + errno_text(errno));
        if (got == 0) return text;
        text.append(block, static_cast<std::size_t>(got));
    }
}

arguments parse(int argc, char** argv) {
    arguments a;
    bool given = false;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (name == "--repair") {
            a.repairs = true;
            continue;
        }
        if (name == "--status") {
            a.reads_status = true;
            continue;
        }
        if (i + 1 >= argc)
            throw config_error(fmt::format("'{}' needs a value, or is unknown; {}", name, usage));
        const std::string_view value = argv[++i];
        if (name == "--fd") {
            const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), a.fd);
            if (status != std::errc() || end != value.data() + value.size() || a.fd < 0) {
                throw config_error(fmt::format("--fd {}: not a file descriptor; {}", value, usage));
            }
        } else if (name == "--requests") {
            a.requests = value;
            given = true;
        } else if (name == "--directory") {
            a.directory = value;
        } else if (name == "--run-id") {
            a.run_id = value;
        } else if (name == "--grace") {
            a.grace_s = std::strtod(argv[i], nullptr);
        } else {
            throw config_error(fmt::format("unknown option '{}'; {}", name, usage));
        }
    }
    if (a.fd < 0) throw config_error(std::string(usage));
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(a.fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
        throw config_error(fmt::format("--fd {} is not a SOCK_SEQPACKET socket; {}", a.fd, usage));
    }
    ::fcntl(a.fd, F_SETFD, FD_CLOEXEC);
    if (!given && !a.repairs && !a.reads_status) a.requests = read_stdin();
    return a;
}

#if defined(CAROUSEL_WITH_CUDA)
using maker = device::cuda::memory_maker;
#else
/// Replaces the memory maker in a build without CUDA: refuses with the reason.
class maker {
public:
    explicit maker(const device::device_id& id) { (void)device::open(id); }
    device::memory_handle make_vmm(u64) { return {}; }
    device::memory_handle make_ipc(u64) { return {}; }
};
#endif

/// Makes one block and sends its handle. Returns true if this process has to stay as the block's owner.
bool serve(const run::alloc_request& request, std::map<std::string, std::unique_ptr<maker>>& makers,
           int socket) {
    auto& m = makers[request.on.uuid.empty() ? fmt::format("#{}", request.on.ordinal) : request.on.uuid];
    if (!m) m = std::make_unique<maker>(request.on);
    const bool owner = request.kind == device::memory_kind::ipc;
    device::memory_handle made;
    std::vector<shm::unique_fd> kept;
    if (owner) made = m->make_ipc(request.bytes);
    const u32 parts = owner ? 0 : std::max(1U, request.pieces);
    for (u32 k = 0; k < parts; ++k) {
        const u64 before = made.bytes;
        made = m->make_vmm(request.bytes / parts);
        made.bytes += before;
        kept.emplace_back(made.fd);
    }
    std::vector<int> fds;
    for (const shm::unique_fd& fd : kept) fds.push_back(fd.get());
    const bool sent =
        shm::send_message(socket, run::to_text(run::answer_for(request, made)), fds, send_patience_ns);
    if (!sent) throw shm_error("sending GPU memory over the supervisor's socket: " + errno_text(errno));
    return owner;
}

/// Sleeps until the other end sends a message or closes. Returns true for a message.
bool wait_for_peer(int socket) {
    shm::message ignored;
    for (;;) {
        switch (shm::receive_message(socket, ignored, 3600 * ns_per_s)) {
            case shm::receive_status::ok:
                return true;
            case shm::receive_status::would_block:
                continue;
            default:
                return false;
        }
    }
}

/// Connects to the run's next supervisor. Empty if no supervisor appeared within the grace time, or if the
/// new supervisor does not need this process.
shm::unique_fd find_successor(const arguments& a) {
    const u64 until = now_ns() + static_cast<u64>(a.grace_s * 1e9),
              start_time = shm::this_process().start_time;
    while (!a.directory.empty() && now_ns() < until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        shm::unique_fd s = shm::connect_to(run::control_socket(a.directory), 50 * ns_per_ms);
        if (!s || !shm::send_message(s.get(), write_message(run::owner_message{a.run_id, start_time}).dump()))
            continue;
        shm::message answer;
        shm::receive_status got = shm::receive_status::would_block;
        while (got == shm::receive_status::would_block)
            got = shm::receive_message(s.get(), answer, 3600 * ns_per_s);  // the supervisor may be stopped,
                                                                           // so the wait is repeated after a
                                                                           // timeout
        if (got != shm::receive_status::ok) continue;                      // this supervisor has died, too
        if (!run::read_welcome(answer.text).welcome) return {};
        return s;
    }
    return {};
}

int serve_all(const arguments& a) {
    bool owner = false;
    std::map<std::string, std::unique_ptr<maker>> makers;
    run::alloc_answer refusal;  // always has the id of the current request
    try {
        for (const run::alloc_request& request : run::read_alloc_requests(a.requests)) {
            refusal.id = request.id;
            owner = serve(request, makers, a.fd) || owner;
        }
    } catch (const error& e) {
        refusal.error = e.what();
        (void)shm::send_message(a.fd, run::to_text(refusal));
        throw;
    }
    const bool acknowledged = wait_for_peer(a.fd);
    if (!acknowledged && !owner)
        throw shm_error("the supervisor ended before it acknowledged the GPU memory");
    if (!acknowledged || !owner) return exit_code::ok;
    while (wait_for_peer(a.fd)) {
    }
    for (shm::unique_fd s = find_successor(a); s; s = find_successor(a)) {
        log::info("another supervisor has taken over the run");
        while (wait_for_peer(s.get())) {
        }
    }
    return exit_code::ok;
}

}  // namespace

int main(int argc, char** argv) {
    ::signal(SIGPIPE, SIG_IGN);
    // Ctrl-C reaches the whole process group; the supervisor decides when the memory is released
    ::signal(SIGINT, SIG_IGN);
    try {
        prepare_process_limits();
        const arguments a = parse(argc, argv);
        if (a.reads_status) return alloc::answer_status_requests(a.fd);
        return a.repairs ? alloc::repair(a.fd) : serve_all(a);
    } catch (const error& e) {
        log::error("carousel-alloc: {}", e.what());
        return e.code();
    } catch (const std::exception& e) {
        log::error("carousel-alloc: {}", e.what());
        return exit_code::no_device;
    }
}
