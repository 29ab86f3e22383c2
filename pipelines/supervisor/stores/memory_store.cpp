#include "supervisor/stores/memory_store.hpp"

#include <fmt/format.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "control/memory_message.hpp"
#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "device/cpu/memfd.hpp"
#include "shm/process_id.hpp"
#include "supervisor/stores/status_reader.hpp"

namespace carousel::supervisor {

using device::memory_kind;
using nlohmann::json;

namespace {

constexpr u64 killed_within_ns = 5 * ns_per_s;

/// Waits for a process that is about to end; kills it after `patience_ns`.
void end_within(int pidfd, u64 patience_ns) noexcept {
    if (events_of(pidfd, POLLIN, now_ns() + patience_ns) == 0) shm::signal_pidfd(pidfd, SIGKILL);
    (void)events_of(pidfd, POLLIN, now_ns() + killed_within_ns);
}

void copy_bytes(int from, int to, u64 bytes, const std::string& name) {
    off_t at = 0;
    while (static_cast<u64>(at) < bytes) {
        const ssize_t n = ::sendfile(to, from, &at, bytes - static_cast<u64>(at));
        if (n > 0 || (n < 0 && errno == EINTR)) continue;
        throw shm_error(fmt::format("copying the memory of {} ({} bytes) at byte {}: {}", name, bytes, at,
                                    n == 0 ? "it is shorter" : errno_text(errno)));
    }
}

}  // namespace

memory_store::~memory_store() { release_owner(); }

void memory_store::release_owner() noexcept {
    if (!owner_.pidfd) return;
    owner_socket_.reset();  // closing the socket makes the owner read EOF, after which it exits
    end_within(owner_.pidfd.get(), 2 * ns_per_s);
    (void)reap(owner_.pidfd.get());
    owner_ = {};
}

void memory_store::make_here(block& b) {
    const device::memory_handle h = device::create_memfd("carousel " + b.item.name, b.item.bytes);
    b.fds.clear();
    b.fds.emplace_back(h.fd);
    b.bytes = h.bytes;
}

std::size_t memory_store::fds_of(const memory_item& m) noexcept {
    if (m.choice.kind == memory_kind::ipc) return 0;
    return m.choice.kind == memory_kind::vmm ? std::max<std::size_t>(1, m.guard.pieces) : 1;
}

void memory_store::make(const std::vector<memory_item>& items, const std::string& folder, u64 timeout_ns) {
    blocks_.clear();
    blocks_.resize(items.size());
    std::vector<block*> on_device;
    for (std::size_t k = 0; k < items.size(); ++k) {
        block& b = blocks_[k];
        b.item = items[k];
        if (items[k].choice.kind != memory_kind::memfd) {
            on_device.push_back(&b);
            continue;
        }
        make_here(b);
    }
    if (!on_device.empty()) make_on_device(on_device, folder, timeout_ns);
}

void memory_store::remake(const std::string& folder) {
    release_owner();
    std::vector<block*> wanted;
    for (block& b : blocks_) {
        if (is_there(b) && b.item.choice.kind != memory_kind::ipc) continue;
        if (b.item.choice.kind == memory_kind::memfd) {
            make_here(b);
        } else {
            wanted.push_back(&b);
        }
    }
    if (!wanted.empty()) make_on_device(wanted, folder, 60 * ns_per_s);
}

std::vector<bool> memory_store::replan(const std::vector<memory_item>& items, const std::vector<bool>& keep) {
    release_owner();
    std::vector<block> old = std::move(blocks_);
    expect(items);
    std::vector<bool> lost;
    for (block& b : blocks_) {
        const memory_item& to = b.item;
        const auto same = std::find_if(old.begin(), old.end(), [&](const block& o) {
            return o.item.asset == to.asset && o.item.index == to.index && o.item.bytes == to.bytes &&
                   o.item.choice == to.choice && o.item.guard.pieces == to.guard.pieces &&
                   o.item.guard.canary_bytes == to.guard.canary_bytes;
        });
        const bool kept = !to.asset && same != old.end() && to.index < keep.size() && keep[to.index] &&
                          to.choice.kind != memory_kind::ipc && is_there(*same);
        if (kept) {
            const memory_item item = to;
            b = std::move(*same);
            b.item = item;
        }
        if (to.asset) continue;
        lost.resize(std::max<std::size_t>(lost.size(), b.item.index + 1), true);
        lost[b.item.index] = !kept;
    }
    return lost;
}

void memory_store::replace_ring(u32 link) {
    for (block& b : blocks_) {
        if (b.item.asset || b.item.index != link || !is_there(b)) continue;
        block fresh{b.item, {}, 0, "", ""};
        if (b.item.choice.kind == memory_kind::memfd) {
            make_here(fresh);
            copy_bytes(b.fds.front().get(), fresh.fds.front().get(), b.bytes, b.item.name);
        }
        b = std::move(fresh);
    }
}

void memory_store::make_on_device(const std::vector<block*>& wanted, const std::string& folder,
                                  u64 timeout_ns) {
    std::vector<run::alloc_request> requested;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
        const memory_item& i = wanted[k]->item;
        requested.push_back({k, i.choice.kind, i.bytes, i.choice.device, i.guard.pieces});
    }
    auto [ours, theirs] = shm::socket_pair();
    spawn_request r;
    r.argv = {folder + "/carousel-alloc", "--fd", "3", "--requests", run::to_text(requested)};
    if (!run_location_.directory.empty())
        r.argv.insert(r.argv.end(), {"--directory", run_location_.directory, "--run-id", run_location_.run_id,
                                     "--grace", fmt::format("{}", run_location_.grace_s)});
    r.extra_fd = theirs.get();
    spawned maker = spawn_when_possible(r);
    theirs.reset();
    const auto fail = [&](const std::string& why) {
        shm::signal_pidfd(maker.pidfd.get(), SIGKILL);
        (void)events_of(maker.pidfd.get(), POLLIN, now_ns() + killed_within_ns);
        (void)reap(maker.pidfd.get());
        throw device_error(why);
    };
    const u64 until = now_ns() + timeout_ns;
    bool owner = false;
    for (std::size_t k = 0; k < wanted.size(); ++k) {
        block& b = *wanted[k];
        const std::string what = fmt::format("allocating the memory of {} ({:.1f} MiB)", b.item.name,
                                             static_cast<f64>(b.item.bytes) / 1048576.0);
        shm::message m;
        const u64 now = now_ns();
        if (shm::receive_message(ours.get(), m, until > now ? until - now : 1) != shm::receive_status::ok)
            fail(what + ": carousel-alloc did not answer (see its message above)");
        const std::optional<run::alloc_answer> answer = run::read_alloc_answer(m.text);
        if (!answer) fail(what + ": unknown answer of carousel-alloc: check that it is from this build");
        if (answer->error) fail(fmt::format("{}: {}", what, *answer->error));
        b.bytes = answer->bytes;
        b.uuid = answer->uuid;
        b.ipc = answer->ipc;
        b.fds = std::move(m.fds);
        owner = owner || b.item.choice.kind == memory_kind::ipc;
        if (!is_there(b))
            fail(what + ": incomplete answer of carousel-alloc: check that it is from this build");
    }
    shm::send_message(ours.get(), R"({"ok":true})");
    if (owner) {
        owner_ = std::move(maker);
        owner_socket_ = std::move(ours);
        return;
    }
    ours.reset();
    // the maker is not needed any more, because the fds keep the memory alive
    end_within(maker.pidfd.get(), 10 * ns_per_s);
    (void)reap(maker.pidfd.get());
}

std::vector<device::status_word> memory_store::read_status_words(u32 link, u32 slots, u64 slot_bytes,
                                                                 status_reader* gpu) const {
    for (const block& b : blocks_) {
        if (b.item.asset || b.item.index != link || !is_there(b)) continue;
        if (b.item.choice.kind == memory_kind::vmm && gpu != nullptr) {
            std::vector<int> fds;
            const json memory = describe(b, fds);
            return gpu->read(memory, fds, slots, slot_bytes);
        }
        if (b.item.choice.kind != memory_kind::memfd) continue;
        device::memory_handle h;
        h.kind = memory_kind::memfd;
        h.bytes = b.bytes;
        h.fd = b.fds.front().get();
        h.pieces = b.item.guard.pieces;
        const device::memfd_mapping mapped(h, device::access::read);
        if (!h.holds(slots, slot_bytes)) continue;
        std::vector<device::status_word> words(slots);
        for (u32 k = 0; k < slots; ++k) std::memcpy(&words[k], mapped.slot(k, slot_bytes), sizeof words[k]);
        return words;
    }
    return {};
}

bool memory_store::has_gpu_ring() const noexcept {
    return std::any_of(blocks_.begin(), blocks_.end(), [](const block& b) {
        return !b.item.asset && b.item.choice.kind == memory_kind::vmm && is_there(b);
    });
}

void memory_store::enter(shm::control_block& c) const {
    for (const block& b : blocks_) {
        const u32 kind = static_cast<u32>(b.item.choice.kind);
        if (b.item.asset) {
            c.asset[b.item.index].memory = kind;
            run::read_hex(b.ipc, c.asset[b.item.index].ipc_handle);
        } else {
            shm::link_block& l = c.link[b.item.index];
            l.memory = kind;
            l.memory_ready = 1;
            run::read_hex(b.ipc, l.ipc_handle);
        }
    }
}

json memory_store::describe(const block& b, std::vector<int>& fds) {
    const int at = b.fds.empty() ? -1 : static_cast<int>(fds.size());
    for (const shm::unique_fd& fd : b.fds) fds.push_back(fd.get());
    json j = run::memory_message(b.item.choice.kind, b.bytes, b.uuid, b.ipc, at, b.item.guard.pieces);
    if (b.item.guard.canaries()) {
        j["canary_bytes"] = b.item.guard.canary_bytes;
        if (b.item.guard.others_write) j["others_write"] = true;
        if (b.item.guard.readers_write) j["readers_write"] = true;
    }
    return j;
}

json memory_store::describe(bool asset, u32 index, std::vector<int>& fds) const {
    for (const block& b : blocks_)
        if (b.item.asset == asset && b.item.index == index) return describe(b, fds);
    throw shm_error(fmt::format("there is no memory for {} {}", asset ? "asset" : "link", index));
}

json memory_store::describe_all(std::vector<int>& fds) const {
    json all = json::array();
    for (const block& b : blocks_) {
        json j = describe(b, fds);
        j["asset"] = b.item.asset;
        j["index"] = b.item.index;
        all.push_back(std::move(j));
    }
    return all;
}

// ---- takeover

void memory_store::expect(const std::vector<memory_item>& items) {
    blocks_.clear();
    for (const memory_item& i : items) blocks_.emplace_back().item = i;
}

bool memory_store::is_there(const block& b) noexcept {
    return b.bytes >= b.item.bytes && b.fds.size() == fds_of(b.item) &&
           (b.item.choice.kind != memory_kind::ipc || !b.ipc.empty());
}

bool memory_store::complete() const noexcept { return std::all_of(blocks_.begin(), blocks_.end(), is_there); }

bool memory_store::has_ipc() const noexcept {
    return std::any_of(blocks_.begin(), blocks_.end(),
                       [](const block& b) { return b.item.choice.kind == memory_kind::ipc; });
}

void memory_store::adopt_owner(spawned owner, shm::unique_fd socket) noexcept {
    owner_ = std::move(owner);
    owner_socket_ = std::move(socket);
}

void memory_store::restore(const json& list, std::vector<shm::unique_fd>& fds) {
    for (const json& j : list) {
        for (block& b : blocks_) {
            if (is_there(b) || j.value("asset", false) != b.item.asset ||
                j.value("index", shm::none) != b.item.index)
                continue;
            const int at = j.value("fd", -1);
            const std::size_t wanted = fds_of(b.item);
            if (j.value("kind", "") != device::name_of(b.item.choice.kind) ||
                j.value("bytes", u64{0}) < b.item.bytes || j.value("pieces", 0U) != b.item.guard.pieces)
                continue;
            b.bytes = j.value("bytes", u64{0});
            b.uuid = j.value("uuid", "");
            b.ipc = j.value("ipc", "");
            b.fds.clear();
            for (std::size_t n = 0; at >= 0 && n < wanted && static_cast<std::size_t>(at) + n < fds.size();
                 ++n)
                b.fds.push_back(std::move(fds[static_cast<std::size_t>(at) + n]));
        }
    }
}

}  // namespace carousel::supervisor
