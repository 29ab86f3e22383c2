#include "stages/hosts/receiver_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/clock.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "core/log.hpp"
#include "core/running_time.hpp"
#include "device/cpu/pool.hpp"
#include "shm/runtime_folder.hpp"

namespace carousel::hosts {
namespace {
using nlohmann::json;
constexpr u64 port_patience_ns = ns_per_s;  ///< a killed predecessor keeps the port until it has exited
constexpr u64 leave_patience_ns = 300 * ns_per_ms;
/// Limit for the size of a sender's hello, which contains names and a format; the format may differ from the
/// expected one.
u64 longest_hello(const hello& expected) { return std::max<u64>(4096, encode(expected).size() + 1024); }
}  // namespace

link_note link_note::read(const std::string& path, const std::string& run) {
    link_note out{run, "", std::nullopt};
    const json j = read_json_file(path);
    if (std::string of; !read_member(j, "run", of) || of != run) return out;
    read_member(j, "sender", out.sender);
    if (u64 end = 0; read_member(j, "end", end)) out.end = end;
    return out;
}

void link_note::write(const std::string& path) const {
    json j{{"run", run}, {"sender", sender}};
    if (end) j["end"] = *end;
    shm::write_whole_file(path, j.dump());
}

receiver_link::receiver_link(set_up s)
    : set_(std::move(s)),
      note_(set_.note_path.empty() ? link_note{set_.run, "", std::nullopt}
                                   : link_note::read(set_.note_path, set_.run)),
      figures_(set_.figures_path, set_.run),
      side_(make_side()),
      thread_([this] { run(); }) {}

receiving_side receiver_link::make_side() const {
    receiving_side side(set_.expected, set_.token, set_.run, note_.sender, set_.next,
                        static_cast<u32>(set_.buffers.size()));
    for (const packing how : set_.unpacks) side.unpacks(how);
    if (set_.has_other_links) side.expect_other_links();
    if (set_.accepts_successors) side.accepts_successors();
    return side;
}

receiver_link::~receiver_link() {
    stop_.store(true, std::memory_order_release);
    {
        const std::lock_guard lock(mutex_);
        if (transport_ != nullptr) transport_->wake();
    }
    thread_.join();
}

std::optional<receiver_link::arrived> receiver_link::whole(u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) throw config_error(broken_);
    const frame_message* m = side_.whole(ring_sequence);
    if (m == nullptr) return std::nullopt;
    return arrived{*m, set_.buffers[ring_sequence % set_.buffers.size()]};
}

std::optional<receiver_link::arrived> receiver_link::oldest_whole() {
    const std::lock_guard lock(mutex_);
    if (!broken_.empty()) throw config_error(broken_);
    const frame_message* m = side_.oldest_whole();
    if (m == nullptr) return std::nullopt;
    return arrived{*m, set_.buffers[m->ring_sequence % set_.buffers.size()], side_.sender()};
}

void receiver_link::taken(const arrived& a) {
    const std::lock_guard lock(mutex_);
    const u64 ring_sequence = a.message.ring_sequence;
    if (!side_.up() || side_.sender() != a.run || side_.whole(ring_sequence) == nullptr) return;
    side_.free_buffer(ring_sequence);
    side_.committed(ring_sequence + 1);
    if (transport_ != nullptr) transport_->wake();
}

void receiver_link::damaged(u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    side_.damaged(ring_sequence, now_ns());
    if (transport_ != nullptr) transport_->wake();
}

void receiver_link::free_buffer(u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    side_.free_buffer(ring_sequence);
}

void receiver_link::committed(u64 below) {
    const std::lock_guard lock(mutex_);
    side_.committed(below);
    if (transport_ != nullptr) transport_->wake();
}

void receiver_link::durable(u64 below) {
    const std::lock_guard lock(mutex_);
    side_.durable(below);
    if (transport_ != nullptr) transport_->wake();
}

bool receiver_link::wants_durable() {
    const std::lock_guard lock(mutex_);
    return side_.wants_durable();
}

void receiver_link::skip_to(u64 ring_sequence) {
    const std::lock_guard lock(mutex_);
    side_.skip_to(ring_sequence);
    if (transport_ != nullptr) transport_->wake();
}

std::optional<clock_relation> receiver_link::clock(u64 now) {
    const std::lock_guard lock(mutex_);
    return side_.clock(now);
}

std::optional<u64> receiver_link::end() {
    const std::lock_guard lock(mutex_);
    return note_.end;
}

// Another process of this run that has just died may keep the port for a moment. If another program has the
// port, this is reported once, and the stage waits; the other stages of this host and of the sending host
// continue with the frames that they have.
bool receiver_link::listen(transport& t) {
    const u64 until = now_ns() + port_patience_ns;
    for (bool logged = false; !stop_.load(std::memory_order_acquire);) {
        if (t.listen(set_.where.port)) return true;
        if (!logged && now_ns() > until) {
            logged = true;
            log::error(
                "port {} of {} is in use by another program (`ss -ltnp` names it): end that program, or use "
                "another port for this link in both pipeline files; retrying",
                set_.where.port, set_.where.address);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(logged ? 200 : 20));
    }
    return false;
}

void receiver_link::run() {
    device::cpu::name_this_thread("link");
    try {
        transport t(*this, {.address = set_.where.address,
                            .transports = set_.where.transports,
                            .first_port = static_cast<u16>(set_.where.port + 1),
                            .first_message_bytes = longest_hello(set_.expected),
                            .message_bytes = longest_message,
                            .allowance = usual_allowance});
        if (!listen(t)) return;
        log::info("listening on {} port {} ({}, {})", set_.where.address, set_.where.port, ucx_version(),
                  set_.where.transports);
        {
            const std::lock_guard lock(mutex_);
            transport_ = &t;
        }
        running_time running(longest_sleep_ns + dead_after_ns / 4);
        while (!stop_.load(std::memory_order_acquire)) {
            t.progress_all();
            actions todo;
            u64 due = 0;
            u32 proven = 0;
            {
                const std::lock_guard lock(mutex_);
                keep();
                const u64 woken = now_ns();
                side_.exclude(running.consume_gap(woken), woken);
                todo = side_.step(now_ns());
                proven = side_.proven();
                due = side_.next_due();
                if (side_.up()) figures_.sent_durably(side_.wants_durable());
                figures_.update(side_.up(), side_.clock(now_ns()), now_ns());
                if (const std::string log_line = side_.log_line(); !log_line.empty())
                    log::info("{}", log_line);
                if (const std::string log_line = side_.warning(); !log_line.empty())
                    log::warning("{}", log_line);
            }
            t.trust(proven);  // called before the WELCOME is sent, because the first frame can arrive
                              // immediately after it
            carry_out(t, todo);
            const u64 now = now_ns();
            if (todo.empty()) t.wait(std::min(due > now ? due - now : 0, longest_sleep_ns));
        }
        leave(t);
    } catch (const error& e) {
        const std::lock_guard lock(mutex_);
        transport_ = nullptr;
        broken_ = e.what();
    }
    set_.wake();
}

// Called under the lock. The state that a successor needs must be on disk before this process confirms it to
// the sender.
void receiver_link::keep() {
    const bool ends = side_.end() && side_.end() != note_.end;
    if (!ends && !side_.sender_must_be_kept()) return;
    note_.sender = side_.sender();
    note_.end = side_.end();
    if (!set_.note_path.empty()) note_.write(set_.note_path);
    side_.sender_is_kept();
    if (!side_.end()) return;
    side_.end_is_kept();
    set_.wake();
}

// Notifies the sender of the end of the run, and waits for a moment so that the message can arrive.
void receiver_link::leave(transport& t) {
    {
        const std::lock_guard lock(mutex_);
        transport_ = nullptr;
        figures_.update(side_.up(), side_.clock(now_ns()), now_ns(), true);
        side_.leave("the receiving run has ended");
    }
    const u64 until = now_ns() + leave_patience_ns;
    while (now_ns() < until) {
        t.progress_all();
        actions todo;
        {
            const std::lock_guard lock(mutex_);
            todo = side_.step(now_ns());
            if (!side_.up() && todo.empty()) return;
        }
        carry_out(t, todo);
        t.wait(ns_per_ms);
    }
}

void receiver_link::carry_out(transport& t, const actions& todo) {
    for (const action& a : todo) {
        if (a.kind == action::what::send)
            t.send(a.connection, a.bytes);
        else if (a.kind == action::what::close)
            t.close(a.connection);
    }
}

void receiver_link::accepted(u32 connection) {
    const std::lock_guard lock(mutex_);
    side_.accepted(connection, now_ns());
}

void receiver_link::closed(u32 connection, const std::string&) {
    const std::lock_guard lock(mutex_);
    side_.closed(connection);
}

void receiver_link::broke_limits(u32, const std::string& why) {
    const std::lock_guard lock(mutex_);
    side_.limit_exceeded(why, now_ns());
}

void receiver_link::message_received(u32 connection, std::span<const std::byte> bytes) {
    const auto m = decode(bytes);
    const std::lock_guard lock(mutex_);
    side_.received(connection, m ? *m : message(bye{"the message does not belong to this link"}), now_ns());
}

std::byte* receiver_link::frame_begins(u32 connection, std::span<const std::byte> header, u64 bytes,
                                       u64& ticket) {
    const auto m = decode(header);
    const auto* f = m ? std::get_if<frame_message>(&*m) : nullptr;
    const std::lock_guard lock(mutex_);
    if (f == nullptr || f->packed_bytes != bytes) {
        side_.frame_is_damaged(connection);
        return nullptr;
    }
    const auto buffer = side_.frame_begins(connection, *f, now_ns());
    if (!buffer) return nullptr;
    ticket = *buffer;
    figures_.crossed(f->bytes, bytes);
    return set_.buffers[*buffer];
}

void receiver_link::frame_received(u64 ticket, bool whole) {
    {
        const std::lock_guard lock(mutex_);
        side_.frame_ends(static_cast<u32>(ticket), whole, now_ns());
    }
    set_.wake();
}

}  // namespace carousel::hosts
