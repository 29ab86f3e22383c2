#include "ipc/death_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/json.hpp"
#include "core/json_text.hpp"
#include "ipc/attachment.hpp"
#include "ipc/pool.hpp"
#include "ipc/wait_check.hpp"

namespace carousel::ipc {
namespace {

using nlohmann::json;
constexpr std::size_t most_recorded = max_clients;  // all of them may have died without a holder
constexpr std::size_t most_watchers = 256;
constexpr u64 reply_ns = ns_per_s, retry_ns = 100 * ns_per_ms;

void add_blocks(space_block& s, u32 place, u32 epoch, std::vector<owned_block>& to) {
    pool_block& b = s.block_of<pool_block>(place);
    for (u32 k = 0; k < b.units && to.size() < most_blocks_listed; ++k) {
        const unit_word first = unit_word::of(load(b.unit()[k]));
        const bool owned = first.state == unit_state::claiming || first.state == unit_state::owned ||
                           first.state == unit_state::leaving;
        if (!owned || first.epoch != epoch) continue;
        u32 end = k + 1;
        while (end < b.units && unit_word::of(load(b.unit()[end])) == unit_word{k, 0, unit_state::body})
            ++end;
        to.push_back({s.place[place].name, b.offset + k * b.unit_bytes, (end - k) * b.unit_bytes});
        k = end - 1;
    }
}

}  // namespace

u64 client_death::count(const std::string& as) const {
    u64 sum = 0;
    for (const holding& h : holds) sum += h.as == as ? h.count : 0;
    return sum;
}

u64 client_death::block_bytes() const {
    u64 sum = 0;
    for (const holding& h : holds) sum += h.bytes;
    return sum;
}

client_death describe_death(space_block& s, i32 pid, u32 epoch) {
    client_death d{pid, epoch, {}, {}};
    std::map<u32, std::vector<holding>> of_epoch;
    for (u32 k = 0; k < max_primitives; ++k) {
        if (!is_ready(s, k)) continue;
        (void)gather(s, k, of_epoch);
        if (is_pool(s.place[k].shaped().what)) add_blocks(s, k, epoch, d.blocks);
    }
    d.holds = std::move(of_epoch[epoch]);
    return d;
}

// ---- the holder's part

bool death_log::is_watch_request(const json& request) {
    return request.is_object() && request.contains("watch");
}

void death_log::subscribe(shm::unique_fd socket, const json& request) {
    if (watchers_.size() >= most_watchers) {
        (void)shm::send_message(
            socket.get(),
            json{{"refused",
                  fmt::format("{} processes watch this space already: end some of them", most_watchers)}}
                .dump());
        return;
    }
    bool again = false;
    std::vector<u32> seen, before;
    read_member(request["watch"], "again", again);
    read_member(request["watch"], "seen", seen);
    if (!again)
        for (const record& r : recorded_) before.push_back(r.epoch);
    bool whole = shm::send_message(socket.get(), json{{"watching", true}, {"before", before}}.dump());
    for (const record& r : recorded_)
        if (again && std::find(seen.begin(), seen.end(), r.epoch) == seen.end())
            whole = whole && shm::send_message(socket.get(), r.message);
    if (whole) watchers_.push_back(std::move(socket));
}

void death_log::add(const client_death& d) {
    const std::string message = json{{"death", d}}.dump(-1, ' ', false, json::error_handler_t::replace);
    recorded_.push_back({d.epoch, message});
    if (recorded_.size() > most_recorded) recorded_.pop_front();
    watchers_.erase(
        std::remove_if(watchers_.begin(), watchers_.end(),
                       [&](const shm::unique_fd& w) { return !shm::send_message(w.get(), message); }),
        watchers_.end());
}

void death_log::drop_closed() {
    watchers_.erase(std::remove_if(watchers_.begin(), watchers_.end(),
                                   [](const shm::unique_fd& w) { return events_of(w.get(), POLLIN) != 0; }),
                    watchers_.end());
}

// ---- a watcher's part

death_watch::death_watch(const std::string& space) : space_(space) {
    if (!try_connect(false))
        throw no_holder(fmt::format(
            "watching the space \"{}\": no process holds it: start `carousel hold {}`", space, space));
}

bool death_watch::try_connect(bool again) {
    shm::unique_fd socket = shm::connect_to(place_of(space_).socket(), reply_ns);
    if (!socket) return false;
    shm::message m;
    const json reply = ask_holder(
        socket.get(), json{{"watch", {{"version", space_version}, {"again", again}, {"seen", seen_}}}}.dump(),
        m, reply_ns);
    if (reply.is_null()) return false;
    if (!reply.contains("watching"))
        throw shm_error(
            fmt::format("watching the space \"{}\": its holder refuses: {}", space_,
                        reply.value("refused", std::string("it is an older build: hold the space again"))));
    if (std::vector<u32> before; read_member(reply, "before", before))
        seen_.insert(seen_.end(), before.begin(), before.end());
    socket_.reset(std::move(socket));
    return true;
}

std::optional<client_death> death_watch::next(u64 timeout_ns) {
    const u64 now = now_ns(), deadline = timeout_ns > ~u64{0} - now ? ~u64{0} : now + timeout_ns;
    for (;;) {
        if (!socket_ && !try_connect(true))
            std::this_thread::sleep_for(std::chrono::nanoseconds(retry_ns / 5));
        const u64 then = now_ns(), left = deadline > then ? deadline - then : 0;
        shm::message m;
        const shm::receive_status got = socket_
                                            ? shm::receive_message(socket_.get(), m, std::min(left, retry_ns))
                                            : shm::receive_status::would_block;
        if (got == shm::receive_status::closed || got == shm::receive_status::failed) socket_.reset();
        if (got == shm::receive_status::ok) {
            client_death d;
            const json message = parse_json_or_discard(m.text, json_channel::message);
            if (message.is_object() && message.contains("death")) read_known_fields(message["death"], d);
            if (d.epoch == 0 || std::find(seen_.begin(), seen_.end(), d.epoch) != seen_.end()) continue;
            seen_.push_back(d.epoch);
            if (seen_.size() > 2 * most_recorded) seen_.pop_front();
            return d;
        }
        if (left == 0 || wait_is_ended()) return std::nullopt;
    }
}

}  // namespace carousel::ipc
