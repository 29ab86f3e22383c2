#include "ipc/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "ipc/step.hpp"

namespace carousel::ipc {
namespace {

bool epoch_in_use(const registry_block& r, u32 epoch) {
    return std::any_of(std::begin(r.entry), std::end(r.entry), [epoch](const registry_entry& e) {
        const entry_word w = entry_word::of(load(e.identity));
        return w.state != entry_state::free && w.epoch == epoch;
    });
}

// Epochs wrap after 16 million clients. An epoch that is still in use is skipped, because words with this
// epoch may exist.
u32 draw_epoch(registry_block& r) {
    for (;;) {
        const u64 last = load(r.last_epoch);
        const u32 next = last + 1 > epoch_mask ? 1 : static_cast<u32>(last + 1);
        if (cas(r.last_epoch, last, next) && !epoch_in_use(r, next)) return next;
    }
}

void change(registry_block& r, u32 entry, entry_state from, entry_state to) {
    const u64 before = load(r.entry[entry].identity);
    entry_word w = entry_word::of(before);
    if (w.state != from) return;
    w.state = to;
    (void)cas(r.entry[entry].identity, before, w.pack());
}

constexpr u64 no_pid_namespace = ~u64{0};

// The start time counts from the boot of the machine, so it is the same in all pid namespaces; 0: unknown.
bool is_same_process(const client_id& c, const shm::process_id& process, u64 pid_namespace) {
    if (c.pid_namespace == pid_namespace) return c.process == process;
    return c.process.start_time == process.start_time || c.process.start_time == 0 || process.start_time == 0;
}

// A holder that finds the entry after a crash between two of these steps does not check the pid in its own
// namespace, because the pid is valid in none.
void replace_process(registry_block& r, client_id& c, const shm::process_id& process, u64 pid_namespace) {
    registry_entry& e = r.entry[c.entry];
    const u64 before = load(e.identity);
    entry_word w = entry_word::of(before);
    w.count = static_cast<u64>(process.pid);
    e.pid_namespace.store(no_pid_namespace, std::memory_order_release);
    (void)cas(e.identity, before, w.pack());
    e.start_time.store(process.start_time, std::memory_order_release);
    e.pid_namespace.store(pid_namespace, std::memory_order_release);
    c.process = process, c.pid_namespace = pid_namespace;
}

}  // namespace

client_id attach(registry_block& r, const shm::process_id& process, u64 pid_namespace) {
    for (u32 k = 0; k < max_clients; ++k) {
        registry_entry& e = r.entry[k];
        const u64 before = load(e.identity);
        if (entry_word::of(before).state != entry_state::free) continue;
        const u32 epoch = draw_epoch(r);
        at(step::epoch_drawn);
        e.start_time.store(process.start_time, std::memory_order_release);
        e.heartbeat_ns.store(now_ns(), std::memory_order_release);
        e.attached_ns.store(now_ns(), std::memory_order_release);
        e.left.store(0, std::memory_order_release);
        e.pid_namespace.store(pid_namespace, std::memory_order_release);
        const entry_word made{static_cast<u64>(process.pid), epoch, entry_state::attached};
        if (!cas(e.identity, before, made.pack())) continue;
        at(step::entry_attached);
        return {k, epoch, process, entry_state::attached, pid_namespace};
    }
    return {};
}

client_id attach_again(registry_block& r, u32 epoch, const shm::process_id& process, u64 pid_namespace) {
    client_id c = find_client(r, epoch);
    if (!c || !is_same_process(c, process, pid_namespace) || c.state == entry_state::fenced) return {};
    if (c.pid_namespace != pid_namespace) replace_process(r, c, process, pid_namespace);
    change(r, c.entry, entry_state::dead, entry_state::attached);
    c.state = entry_state::attached;
    return c;
}

void mark_dead(registry_block& r, u32 entry) {
    change(r, entry, entry_state::attached, entry_state::dead);
    at(step::entry_dead);
}

void mark_fenced(registry_block& r, u32 entry) {
    change(r, entry, entry_state::attached, entry_state::fenced);
    change(r, entry, entry_state::dead, entry_state::fenced);
    at(step::entry_fenced);
}

void free_entry(registry_block& r, u32 entry) {
    const u64 before = load(r.entry[entry].identity);
    if (entry_word::of(before).state == entry_state::fenced) (void)cas(r.entry[entry].identity, before, 0);
    at(step::entry_freed);
}

client_id client_at(const registry_block& r, u32 entry) {
    const registry_entry& e = r.entry[entry];
    const u64 before = load(e.identity);
    const entry_word w = entry_word::of(before);
    if (w.state == entry_state::free) return {};
    const u64 start = load(e.start_time), pid_namespace = load(e.pid_namespace);
    if (load(e.identity) != before)
        return {};  // the entry's owner has changed meanwhile, so the two values don't belong together
    return {entry, w.epoch, {static_cast<i32>(w.count), start}, w.state, pid_namespace};
}

void note_leaving(registry_block& r, u32 entry, u32 epoch) {
    r.entry[entry].left.store(epoch, std::memory_order_release);
}

bool has_left(const registry_block& r, u32 entry, u32 epoch) { return load(r.entry[entry].left) == epoch; }

client_id find_client(const registry_block& r, u32 epoch) {
    for (u32 k = 0; k < max_clients && epoch != 0; ++k)
        if (const client_id c = client_at(r, k); c && c.epoch == epoch) return c;
    return {};
}

std::string client_text(const registry_block& r, u32 epoch) {
    const client_id c = find_client(r, epoch);
    if (!c) return "a process that has ended";
    return fmt::format("process {}{}", c.process.pid,
                       c.state == entry_state::attached ? "" : ", which has died");
}

std::string clients_text(const registry_block& r, std::vector<u32> epochs) {
    std::sort(epochs.begin(), epochs.end());
    std::string out;
    for (auto first = epochs.begin(); first != epochs.end();) {
        const auto last = std::upper_bound(first, epochs.end(), *first);
        out += (out.empty() ? "" : ", ") + client_text(r, *first);
        if (last - first > 1) out += fmt::format(" ({})", last - first);
        first = last;
    }
    return out;
}

}  // namespace carousel::ipc
