#include "ipc/attachment.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/resource_limit.hpp"
#include "ipc/introduction.hpp"
#include "ipc/wait_check.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::ipc {
namespace {

using nlohmann::json;
constexpr u64 patience_ns = ns_per_s, retry_ms = 20, heartbeat_interval_ns = 200 * ns_per_ms;

/// Returns the reason that a refusal states; "" if the reply is not a refusal.
std::string refusal_in(const json& reply) {
    std::string why = "the reason can't be read";
    if (!reply.is_object() || !reply.contains("refused")) return "";
    read_member(reply, "refused", why);
    return why;
}

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(retry_ms)); }

std::string missing(const std::string& name, const hold_place& p, f64 wait_s, const std::string& problem) {
    if (!problem.empty()) return fmt::format("opening the space \"{}\": {}", name, problem);
    const auto r = read_record(p);
    if (r && mappers_of(r->id) > 0)
        return fmt::format(
            "opening the space \"{}\": its holder (process {}) has ended, but {} processes still use the "
            "memory of the space: `carousel hold {}` takes it over (waited {} s)",
            name, r->pid, mappers_of(r->id), name, wait_s);
    return fmt::format(
        "opening the space \"{}\": no process holds it (nothing listens at {} after {} s): start `carousel "
        "hold {}`",
        name, p.socket(), wait_s, name);
}

}  // namespace

attachment::attachment(const std::string& name, f64 wait_s)
    : name_(name), place_(place_of(name)), wait_s_(std::max(0.0, wait_s)) {
    const u64 until = now_ns() + static_cast<u64>(std::min(wait_s_, 1e9) * 1e9);
    std::string problem;
    while (!try_attach(until, problem)) {
        if (now_ns() >= until || wait_is_ended()) throw no_holder(missing(name_, place_, wait_s_, problem));
        rest();
    }
    held_ = true;
    // the new thread blocks all signals, so that the program's own threads receive them
    end_.reset(shm::unique_fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
    if (!end_) throw out_of_resources(fmt::format("space \"{}\": eventfd: {}", name_, errno_text(errno)));
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        heartbeat_thread_ = std::thread([this] { run_heartbeat(); });
    } catch (const std::system_error& e) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw out_of_resources(fmt::format("space \"{}\": its thread could not be started: {}", name_,
                                           no_thread_text(e.code().value())));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

attachment::~attachment() {
    if (!is_here()) {  // this is a forked child, which has no heartbeat thread and no mapping; its parent is
                       // still attached
        heartbeat_thread_.detach();
        (void)memory_.release();
        return;
    }
    ends_ = true;
    (void)::eventfd_write(end_.get(), 1);
    heartbeat_thread_.join();
    if (leaves_orderly_) note_leaving(block().registry, entry_, epoch_);
    memory_.reset();
    lock_.reset();
    // The message is sent after the memory is unmapped, when this client can no longer change the memory.
    if (socket_ && leaves_orderly_) (void)shm::send_message(socket_.get(), json{{"leave", true}}.dump());
}

// If a later attempt may succeed, stores the failure in `problem` and returns false; permanent failures are
// thrown. The reply of a holder may be slow, because a holder may create the memory for its first client.
// This function waits for the reply instead of repeating the request, because each request occupies one entry
// of the registry until this process ends.
bool attachment::try_attach(u64 until_ns, std::string& problem) {
    shm::unique_fd socket = shm::connect_to(place_.socket(), patience_ns);
    if (!socket) return false;
    shm::message m;
    const u64 now = now_ns(), wait_ns = until_ns > now ? until_ns - now : 0;
    const json reply = ask_holder(socket.get(), json{{"attach", introduction()}}.dump(), m,
                                  std::max(patience_ns, wait_ns), {}, true);
    if (reply.is_null()) {
        problem = "its holder does not answer: check whether it is stopped";
        return false;
    }
    if (const std::string why = refusal_in(reply); !why.empty())
        throw shm_error(fmt::format("opening the space \"{}\": {}", name_, why));
    if (read_member(reply, "busy", problem)) return false;
    const json welcome = reply.value("welcome", json());
    if (m.fds.empty() || !read_member(welcome, "epoch", epoch_) || !read_member(welcome, "entry", entry_) ||
        entry_ >= max_clients)
        throw shm_error(fmt::format(
            "opening the space \"{}\": its holder's reply lacks the memory or the client's entry: rebuild "
            "the older of the two programs",
            name_));
    memory_ = std::make_unique<memory>(memory::map(std::move(m.fds[0]), name_));
    if (m.fds.size() > 1) gpu_fd_ = std::move(m.fds[1]);
    socket_.reset(std::move(socket));
    hold_lock();
    return true;
}

// Takes the lock of the folder in which this client has found its holder, because the next holder will use
// the same folder. Without the lock, processes of other pid namespaces can't detect that this process has the
// memory.
void attachment::hold_lock() { lock_.reset(shm::join_folder(place_.folder)); }

bool attachment::try_return() {
    shm::unique_fd socket = shm::connect_to(place_.socket(), patience_ns);
    if (!socket) return false;
    json identity = introduction();
    identity["epoch"] = epoch_;
    shm::message m;
    std::vector<int> fds{memory_->fd()};
    if (gpu_fd_) fds.push_back(gpu_fd_.get());
    const json reply = ask_holder(socket.get(), json{{"return", identity}}.dump(), m, patience_ns, fds);
    if (!reply.is_object() || !reply.contains("welcome")) {
        // This may be a new space with the same name. The memory of the old space exists as long as processes
        // have it.
        if (reply.is_object()) (void)events_of(end_.get(), POLLIN, now_ns() + 200 * ns_per_ms);
        return false;
    }
    socket_.reset(std::move(socket));
    return true;
}

void attachment::run_heartbeat() {
    word& sign = block().registry.entry[entry_].heartbeat_ns;
    u64 last = 0;
    while (!ends_) {
        if (const u64 now = now_ns(); now - last > heartbeat_interval_ns) {
            sign.store(now, std::memory_order_release);
            last = now;
        }
        {
            const std::lock_guard lock(mutex_);
            if (events_of(socket_.get(), POLLRDHUP) != 0) socket_.reset();
            if (!socket_) held_ = try_return();
        }
        (void)events_of(end_.get(), POLLIN, now_ns() + retry_ms * ns_per_ms);
    }
}

u32 attachment::place(const std::string& name, const shape& wanted) {
    check_shape(name, wanted);
    const json request{{"make",
                        {{"name", name},
                         {"kind", static_cast<u8>(wanted.what)},
                         {"count", wanted.count},
                         {"each", wanted.each},
                         {"more", wanted.more},
                         {"type", wanted.type}}}};
    const u64 until = now_ns() + static_cast<u64>(std::min(wait_s_, 1e9) * 1e9);
    for (;;) {
        if (const u32 k = find_place(block(), name); k != no_place) {  // needs no holder
            require_shape(block(), k, wanted);
            return k;
        }
        json reply;
        {
            const std::lock_guard lock(mutex_);
            shm::message m;
            reply = ask_holder(socket_.get(), request.dump(), m, patience_ns);
            if (reply.is_null())
                socket_.reset();  // so that a late reply is not mistaken for the reply to another request
        }
        if (const std::string why = refusal_in(reply); !why.empty()) throw config_error(why);
        if (reply.is_object() && reply.contains("made")) continue;
        if (now_ns() >= until || wait_is_ended())
            throw no_holder(
                fmt::format("\"{}\" does not exist yet, and the space \"{}\" has no holder to create it: "
                            "`carousel hold {}` takes it over",
                            name, name_, name_));
        rest();
    }
}

}  // namespace carousel::ipc
