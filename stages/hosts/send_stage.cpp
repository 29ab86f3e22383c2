#include "stages/hosts/send_stage.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "stages/compression/compression.hpp"
#include "stages/hosts/link_frame.hpp"

namespace carousel::stages {
namespace {

constexpr u32 frames_under_way = 4, most_under_way = 16;  ///< most_under_way is the maximum of in_flight
constexpr u64 patience_ns = 250 * ns_per_ms;  ///< if the wait lasts longer than this, it is reported as a
                                              ///< wait for the other host
constexpr u64 end_patience_ns = 4 * ns_per_s;

}  // namespace

description send_stage::configure(const configuration& with) {
    const input_description& in = require_one_input(with, "the ring that is sent to another host");
    end_.read(with, in.format);
    ring_ = in.stage;
    by_durable_ = with.settings->choice("release", "committed", {"committed", "durable"}) == "durable";
    packing_ = hosts::packing_from(with);
    direct_ = hosts::sends_directly(with, packing_);
    work_ = with.settings->flag("work", false);
    description d;
    // With `durable`, a frame is in flight until it has passed through all rings of the other host and the
    // sinks of that host have it.
    d.finish_threads = by_durable_ ? most_under_way : frames_under_way;
    d.forwards_frames = true;
    d.wants_tombstones = true;  // finish() is called for tombstones too, because the other host also records
                                // them
    return d;
}

void send_stage::prepare(environment& env) {
    end_.prepare(env);
    payload_.prepare(env, end_.bytes, direct_);
    packed_.resize(env.in_flight());
}

// All frames, including tombstone frames, are passed to the link in order, so that the link knows the oldest
// frame. The link is not created before the first frame, because a standby has no epoch yet and must leave
// the link to the active process.
bool send_stage::ready(u64 ring_sequence, u64) {
    if (!link_) {
        hosts::hello own_hello = hosts::hello_of(end_.format, end_.env->parameters());
        own_hello.run = end_.env->run_id();
        own_hello.pipeline = std::filesystem::path(end_.env->runtime_directory()).filename().string();
        own_hello.ring = ring_;
        own_hello.begins = end_.env->first_frame();
        own_hello.by_durable = by_durable_ ? static_cast<u8>(end_.env->in_flight()) : 0;
        if (work_) own_hello.kind = static_cast<u8>(hosts::link_kind::answers);
        own_hello.packed = static_cast<u8>(packing_);
        link_ = std::make_unique<hosts::sender_link>(end_.where, own_hello, end_.token,
                                                     u64{end_.env->epoch()} << 32U, end_.file("figures"),
                                                     payload_.gpu());
    } else if (ring_sequence <= last_) {
        return true;
    }
    last_ = ring_sequence;
    link_->begin(ring_sequence);
    return true;
}

void send_stage::process(frame& f) {
    if (!link_)
        throw config_error(
            "a link carries every frame of its ring: this stage can't have group = \"latest\"");
    payload_.enqueue(f);
}

// If compression would not make a frame smaller, the frame is sent uncompressed.
const std::byte* send_stage::pack(hosts::frame_message& m, const std::byte* data, u32 lane) {
    std::vector<std::byte>& to = packed_[lane];
    compress(hosts::name_of(packing_), {data, static_cast<std::size_t>(m.bytes)}, to);
    if (to.size() >= m.bytes) return data;
    m.packed = static_cast<u8>(packing_);
    m.packed_bytes = to.size();
    return to.data();
}

void send_stage::finish(frame& f) {
    hosts::frame_message m = hosts::message_of(f);
    const std::byte* data = nullptr;
    if (m.tombstone_reason.empty()) {
        data = payload_.describe(f, m);
        f.set_hash(m.hash, hosts::payload_hash_name);
        if (packing_ != hosts::packing::none) data = pack(m, data, f.lane());
    }
    link_->offer(m, data);
    while (!link_->wait_released(m.ring_sequence, patience_ns)) f.wait_for_link(link_->alive());
}

send_stage::~send_stage() {
    if (!link_) return;
    if (link_->end(next_, end_patience_ns)) return;
    // The other host's ring may have been lost after its last acknowledgement. All frames here are committed,
    // so this process cannot report the loss by an exit code. Instead, the coordinator detects that the
    // other host waits (coordinator_links.cpp). The coordinator also sends the end of the stream to a host
    // that has all frames.
    if (const std::string why = link_->failure(); !why.empty())
        log::error("{}", why);
    else
        log::warning(
            "all {} frames are on the other host, but that host was not notified of the end of the stream. "
            "If a separate run receives there, end that run by hand (Ctrl-C); a part of this run is notified "
            "by the coordinator",
            next_);
}

}  // namespace carousel::stages
