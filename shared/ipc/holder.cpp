#include "ipc/holder.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "ipc/introduction.hpp"
#include "ipc/space_view.hpp"
#include "ipc/step.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::ipc {
namespace {

using nlohmann::json;
constexpr u64 rest_ns = 200 * ns_per_ms, poll_ns = ns_per_s, lock_patience_ns = 200 * ns_per_ms;

// The text may quote arbitrary bytes of the request, so invalid UTF-8 is replaced.
std::string refusal(const std::string& why) {
    return json{{"refused", why}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

[[noreturn]] void refuse_already_held(const std::string& name, const hold_place& p) {
    const auto r = read_record(p);
    throw config_error(fmt::format("the space \"{}\" is already held{}: use it, or choose another name", name,
                                   r ? fmt::format(" by process {}", r->pid) : ""));
}

}  // namespace

holder::holder(const std::string& name, u64 bytes, memory_when when, gpu_helper* helper, u64 gpu_bytes)
    : name_(name),
      place_(place_of(name)),
      bytes_(bytes == 0 ? u64{64} << 20U : bytes),
      when_(when),
      gpu_(helper) {
    acquire_lock();
    events_.reset(::epoll_create1(EPOLL_CLOEXEC));
    if (!events_)
        throw shm_error(fmt::format("holding the space \"{}\": epoll_create1: {}", name, errno_text(errno)));
    const std::optional<hold_record> left = read_record(place_);
    std::error_code ignored;
    // removes the socket that a dead holder may have left: no other holder is alive, because this process has
    // the lock
    std::filesystem::remove(place_.socket(), ignored);
    listener_ = shm::listen_at(place_.socket());
    watch(listener_);
    const bool resumes = left && (mappers_of(left->id) > 0 || shm::has_joined(place_.folder));
    if (resumes) wanted_id_ = left->id;
    if (when == memory_when::on_demand) {
        write_record(place_, {::getpid(), resumes ? left->id : no_memory});
        return;
    }
    if (resumes) {
        take_over(*left);
    } else {
        try {
            gpu_memory gpu = gpu_bytes == 0 || helper == nullptr ? gpu_memory{} : helper->make(gpu_bytes);
            memory_ = memory::make(name, bytes_, gpu);
            gpu_fd_ = std::move(gpu.fd);
        } catch (const error&) {  // the memory could not be created, so the folder of the space is removed
            std::filesystem::remove_all(place_.folder, ignored);
            throw;
        }
    }
    if (adopted_ && bytes != 0 && memory_->block().bytes != (bytes + 4095) / 4096 * 4096)
        throw config_error(fmt::format(
            "the space \"{}\" to take over has {} bytes, but --size is {}: remove --size, or end its clients",
            name_, memory_->block().bytes, bytes));
    if (adopted_ && gpu_bytes != 0 && memory_->block().gpu_bytes == 0)
        throw config_error(fmt::format(
            "the space \"{}\" to take over has no GPU memory: remove --device, or end its clients", name_));
    begin();
}

holder::~holder() {
    try {
        // so that a client that has just left is not a reason to keep the space
        remove_disconnected();
    } catch (const std::exception&) {  // if this fails, the folder remains for the next holder
    }
    std::error_code ignored;
    std::filesystem::remove(place_.socket(), ignored);
    const bool abandoned = clients() == 0 && (memory_ || wanted_id_.empty());
    if (abandoned) std::filesystem::remove_all(place_.folder, ignored);
}

void holder::acquire_lock() {
    for (const u64 until = now_ns() + lock_patience_ns;;) {
        make_place_folder(place_);
        lock_ = shm::lead_folder(place_.folder);
        if (lock_) return;
        // another holder removed the folder when that holder exited
        if (errno == ENOENT || errno == ESTALE) continue;
        if (errno != EWOULDBLOCK)
            throw shm_error(
                fmt::format("opening {}: {}", shm::folder_lock(place_.folder), errno_text(errno)));
        // Retries for a moment, because a process that removes a dead space holds the lock briefly.
        if (now_ns() >= until) refuse_already_held(name_, place_);
        ::usleep(5'000);
    }
}

void holder::watch(const shm::unique_fd& fd) const {
    epoll_event e{};
    e.events = EPOLLIN;
    // Closing the descriptor removes it from epoll again, because there is no other reference to the open
    // file.
    (void)::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &e);
}

void holder::take_over(const hold_record& left) {
    for (const u64 until = now_ns() + adoption_patience_ns; !memory_ && now_ns() < until;) run_once(50);
    if (!memory_)
        throw shm_error(fmt::format(
            "can't take over the space \"{}\" yet: {} have its memory mapped, but none has sent it within "
            "{} s. Continue these processes if they are stopped, or end them",
            name_,
            mappers_of(left.id) > 0 ? fmt::format("{} processes", mappers_of(left.id))
                                    : "processes in another pid namespace",
            adoption_patience_ns / ns_per_s));
}

// Called when this holder has received the memory: writes the record and checks each client.
void holder::begin() {
    write_record(place_, {::getpid(), memory_->block().id});
    const u64 incarnations = load(memory_->block().holder);
    (void)cas(memory_->block().holder, incarnations, incarnations + 1);
    find_again();
}

// Checks that each entry of the registry has a live process; an entry without a live process is repaired now.
// A pid of another pid namespace means nothing here: such a client may be alive, so its entry stays until it
// reconnects.
void holder::find_again() {
    registry_block& r = memory_->block().registry;
    const u64 here = own_pid_namespace();
    for (u32 k = 0; k < max_clients; ++k) {
        const client_id c = client_at(r, k);
        const bool known =
            std::any_of(clients_.begin(), clients_.end(), [&](const client& x) { return x.entry == k; });
        if (!c || known) continue;
        const bool is_elsewhere = c.pid_namespace != 0 && c.pid_namespace != here;
        errno = 0;
        shm::unique_fd pidfd(is_elsewhere ? -1 : shm::open_pidfd(c.process));
        const bool has_ended = !pidfd && errno == ESRCH;  // not if a seccomp filter refuses the call
        // A client that has left uses nothing any more; its exit can't be observed from another namespace.
        const bool is_gone = is_elsewhere && has_left(r, k, c.epoch);
        if (has_ended || is_gone || c.state == entry_state::fenced) {
            bury(k, c.epoch, !has_left(r, k, c.epoch), c.process.pid);
            continue;
        }
        if (pidfd)
            watch(pidfd);
        else
            mark_dead(r, k);  // it has no connection, and may run
        clients_.push_back({k, c.epoch, std::move(pidfd), {}});
    }
}

u32 holder::clients() const { return static_cast<u32>(clients_.size()); }

void holder::run_once(int timeout_ms) {
    accept_again();
    repair_gpu();
    epoll_event any{};
    if (::epoll_wait(events_.get(), &any, 1, timeout_ms) <= 0) return;
    // Each connection is polled again here, because the lists change during the loop, and a live client must
    // never be mistaken for a dead one.
    remove_disconnected();
    std::vector<pending_connection> polled = std::move(pending_connections_);
    pending_connections_.clear();
    for (pending_connection& g : polled)
        if (events_of(g.socket.get(), POLLIN) == 0 || handle_first_message(g))
            pending_connections_.push_back(std::move(g));
    accept();
    repair_gpu();
}

void holder::remove_disconnected() {
    deaths_.drop_closed();
    for (client& c : clients_) check_client(c);
    clients_.erase(
        std::remove_if(clients_.begin(), clients_.end(), [](const client& c) { return c.entry == no_entry; }),
        clients_.end());
}

void holder::check_client(client& c) {
    space_block& s = memory_->block();
    bool left = false;
    pollfd now[] = {{c.pidfd.get(), POLLIN, 0}, {c.socket.get(), POLLIN, 0}};
    if (poll_until(now, 2, 0) <= 0) return;
    const bool connected = static_cast<bool>(c.socket);
    while (c.socket && now[1].revents != 0) {
        shm::message m;
        const shm::receive_status got = shm::receive_message(c.socket.get(), m);
        if (got == shm::receive_status::would_block) break;
        if (got == shm::receive_status::ok && m.text == json{{"leave", true}}.dump()) left = true;
        if (got == shm::receive_status::ok && !left) {
            if (!shm::send_message(c.socket.get(), make(m.text))) c.socket.reset();
            continue;
        }
        c.socket.reset();
    }
    if (connected && !c.socket) mark_dead(s.registry, c.entry);
    if (!left && now[0].revents == 0) return;
    const bool died = !left && !has_left(s.registry, c.entry, c.epoch);
    bury(c.entry, c.epoch, died, client_at(s.registry, c.entry).process.pid);
    c.entry = no_entry;
}

// Called after the client's fence. The entry becomes free when all objects of that client are repaired,
// including those on the GPU.
void holder::bury(u32 entry, u32 epoch, bool died, i32 pid) {
    space_block& s = memory_->block();
    const client_death death = died ? describe_death(s, pid, epoch) : client_death{};
    mark_fenced(s.registry, entry);
    repair_all(s, epoch);
    if (died) deaths_.add(death);
    if (has_gpu_words(s))
        gpu_.add(entry, epoch);
    else
        free_entry(s.registry, entry);
}

void holder::repair_gpu() {
    if (!memory_) return;
    if (gpu_fd_)
        for (const client& c : clients_) close_overdue(memory_->block().gates[c.entry], now_ns());
    for (const u32 entry : gpu_.advance(*memory_, gpu_fd_.get()))
        free_entry(memory_->block().registry, entry);
    for (const shm::unique_fd* fd : gpu_.fresh()) watch(*fd);
}

void holder::accept() {
    for (;;) {
        shm::unique_fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!fd && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
            // accept4() fails, for example, if this process has no free descriptor. Clients wait meanwhile.
            // The listener is not watched for some time, so that it does not wake this loop repeatedly.
            (void)::epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr);
            accept_again_ns_ = now_ns() + rest_ns;
        }
        if (!fd) return;
        if (shm::peer_of(fd.get()).uid != ::geteuid()) {
            (void)shm::send_message(
                fd.get(), refusal(fmt::format("the space \"{}\" belongs to user {}: run as the same user",
                                              name_, ::geteuid())));
            continue;
        }
        if (pending_connections_.size() >= 2 * max_clients) {
            (void)shm::send_message(
                fd.get(),
                json{{"busy", fmt::format("{} connections to its holder have not sent a request yet: end the "
                                          "programs that have them",
                                          pending_connections_.size())}}
                    .dump());
            continue;
        }
        watch(fd);
        pending_connections_.push_back({std::move(fd)});
    }
}

void holder::accept_again() {
    if (accept_again_ns_ == 0 || now_ns() < accept_again_ns_) return;
    accept_again_ns_ = 0;
    watch(listener_);
}

// Returns true if the connection is still pending.
bool holder::handle_first_message(pending_connection& g) {
    shm::message m;
    const shm::receive_status got = shm::receive_message(g.socket.get(), m);
    if (got == shm::receive_status::would_block) return true;
    if (got != shm::receive_status::ok) return false;
    const json request = parse_json_or_discard(m.text, json_channel::message);
    if (is_inspect_request(request)) {
        (void)shm::send_message(g.socket.get(), inspect());
        return false;
    }
    if (death_log::is_watch_request(request)) {
        deaths_.subscribe(std::move(g.socket), request);
        return false;
    }
    const bool is_return = request.is_object() && request.contains("return");
    const json hello = request.is_object() ? request.value(is_return ? "return" : "attach", json()) : json();
    const auto refuse = [&](const std::string& why) {
        (void)shm::send_message(g.socket.get(), refusal(why));
        return false;
    };
    if (!hello.is_object() || !hello.contains("version") || !hello["version"].is_number_unsigned())
        return refuse("a client must identify itself first: use the functions of <carousel/ipc.hpp>");
    if (hello["version"] != space_version)
        return refuse(fmt::format(
            "the holder of \"{}\" has layout version {}, but this program has another one: rebuild the "
            "older of the two",
            name_, space_version));
    introduced peer;
    try {
        peer = identify(g.socket.get(), hello);
    } catch (const config_error& e) {
        return refuse(e.what());
    }
    if (is_return) {
        if (const std::string why = receive_memory(m); !why.empty()) return refuse(why);
        u32 epoch = 0;
        const client_id c =
            memory_ && read_member(hello, "epoch", epoch)
                ? attach_again(memory_->block().registry, epoch, peer.process, peer.pid_namespace)
                : client_id{};
        if (!c) return refuse("the client's earlier connection is unknown here: open the space again");
        welcome(g, c, std::move(peer.pidfd), false);
        return false;
    }
    if (const std::string why = make_memory(); !why.empty()) return refuse(why);
    // This holder has not yet received the memory of its dead predecessor, so the client has to retry.
    if (!memory_) return false;
    const client_id c = attach(memory_->block().registry, peer.process, peer.pid_namespace);
    if (!c)
        return refuse(fmt::format("\"{}\" already has {} clients, which is the limit", name_, max_clients));
    welcome(g, c, std::move(peer.pidfd), true);
    return false;
}

// Returns "", or the reason why the received memory is refused.
std::string holder::receive_memory(shm::message& m) {
    if (memory_ || m.fds.empty()) return "";
    try {
        memory received = memory::map(std::move(m.fds[0]), name_);
        if (wanted_id_ != received.block().id)
            return "the memory belongs to another space of that name: open the space again";
        if (received.block().gpu_bytes > 0 && m.fds.size() < 2)
            return "the GPU memory of the space was not sent: rebuild the older of the two programs";
        if (m.fds.size() > 1) gpu_fd_ = std::move(m.fds[1]);
        memory_ = std::move(received);
        adopted_ = true;
        if (when_ == memory_when::on_demand) begin();
        return "";
    } catch (const error& e) {
        return e.what();
    }
}

// Called for the first client of a space whose memory is created on demand. Returns "", or the reason why the
// memory can't be created.
std::string holder::make_memory() {
    if (memory_ || when_ == memory_when::at_once) return "";
    if (const u64 now = now_ns(); !wanted_id_.empty() && now >= next_poll_ns_) {
        next_poll_ns_ = now + poll_ns;
        if (mappers_of(wanted_id_) == 0 && !shm::has_joined(place_.folder)) wanted_id_.clear();
    }
    if (!wanted_id_.empty()) return "";
    try {
        memory_ = memory::make(name_, bytes_);
        begin();
        return "";
    } catch (const error& e) {
        return e.what();
    }
}

void holder::welcome(pending_connection& g, const client_id& c, shm::unique_fd pidfd, bool with_memory) {
    const json reply{{"welcome", {{"epoch", c.epoch}, {"entry", c.entry}}}};
    std::vector<int> fds;
    if (with_memory) fds.push_back(memory_->fd());
    if (with_memory && gpu_fd_) fds.push_back(gpu_fd_.get());
    watch(pidfd);  // the socket is already watched, since the connection was accepted
    clients_.erase(
        std::remove_if(clients_.begin(), clients_.end(), [&](const client& x) { return x.entry == c.entry; }),
        clients_.end());
    clients_.push_back({c.entry, c.epoch, std::move(pidfd), std::move(g.socket)});
    // If the client does not receive this message, the client closes its socket, and the client's entry is
    // freed when its process ends.
    (void)shm::send_message(clients_.back().socket.get(), reply.dump(), fds);
}

std::string holder::make(const std::string& text) const {
    try {
        const json request = parse_json(text, json_channel::message).at("make");
        shape s{static_cast<kind>(request.at("kind").get<u8>()), request.at("count").get<u64>(),
                request.at("each").get<u64>(), request.at("more").get<u64>(), request.value("type", u64{0})};
        return json{{"made", make_place(memory_->block(), request.at("name").get<std::string>(), s)}}.dump();
    } catch (const json::exception& e) {
        return refusal(
            fmt::format("\"{}\" is an unknown request for a holder: {}", text.substr(0, 80), e.what()));
    } catch (const error& e) {
        return refusal(e.what());
    }
}

std::string holder::inspect() const {
    space_view v = memory_ ? view_of(memory_->block()) : space_view{};
    v.name = name_, v.holder = ::getpid(), v.of_run = when_ == memory_when::on_demand;
    return text_of(v);
}

}  // namespace carousel::ipc
