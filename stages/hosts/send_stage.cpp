#include "stages/hosts/send_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/clock.hpp"
#include "core/log.hpp"

namespace carousel::stages {
namespace {

constexpr u32 frames_under_way = 4;
constexpr u64 patience_ns = 250 * ns_per_ms;  ///< a longer wait is told as one for the other host
constexpr u64 end_patience_ns = 4 * ns_per_s;
constexpr std::size_t longest_reason = 1000;
constexpr std::string_view hash_name = "carousel.blocks4k.v1 of a payload";

}  // namespace

description send_stage::configure(const configuration& with) {
    const input_description& in = require_one_input(with, "the ring that goes to another host");
    where_ = hosts::link_settings::read(with);
    stage_ = with.stage;
    ring_ = in.stage;
    format_ = in.format;
    bytes_ = hosts::payload_bytes(format_);
    description d;
    d.finish_threads = frames_under_way;
    d.hands_on = true;
    return d;
}

void send_stage::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error("the frames of a link go out in order: give this stage one instance");
    env_ = &env;
    token_ = hosts::token_file::read(where_.token);
    hashes_ = env.context().allocate_host(u64{env.in_flight()} * sizeof(u64));
    if (const u64 bytes = kernels::hash_scratch_bytes(env.context().kind()); bytes > 0)
        scratch_ = env.context().allocate(bytes);
    if (env.context().kind() == device_kind::cpu) return;
    for (u32 lane = 0; lane < env.in_flight(); ++lane) lanes_.push_back(env.context().allocate_host(bytes_));
}

// In order, void frames too: so the link knows the oldest frame that there is. The link is made with the
// first one and not before: a standby has no epoch yet, and must leave the link to its holder.
bool send_stage::ready(u64 sequence, u64) {
    if (!link_) {
        hosts::hello who = hosts::hello_of(format_, env_->parameters());
        who.run = env_->run_id();
        who.pipeline = std::filesystem::path(env_->run_directory()).filename().string();
        who.ring = ring_;
        link_ = std::make_unique<hosts::sender_link>(where_, who, token_, u64{env_->epoch()} << 32U);
    } else if (sequence <= last_) {
        return true;
    }
    last_ = sequence;
    link_->begin(sequence);
    return true;
}

void send_stage::process(frame& f) {
    if (!link_) throw config_error("a link carries every frame of its ring: it can't read it as latest");
    const std::byte* payload = f.input().slot() + hosts::before_payload;
    kernels::hash_args args{.data = payload, .row_bytes = bytes_};
    if (scratch_) args.scratch = scratch_->data(), args.scratch_bytes = scratch_->bytes();
    args.out = reinterpret_cast<u64*>(hashes_->data()) + f.lane();
    kernels::hash_plane(f.queue(), args);
    if (!lanes_.empty()) f.queue().copy(lanes_[f.lane()]->data(), payload, bytes_);
}

void send_stage::finish(frame& f) {
    hosts::frame_message m;
    m.sequence = f.sequence();
    m.time_s = f.time_s();
    m.born_ns = f.born_ns();
    m.parameter_number = f.parameter_number();
    m.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    m.void_reason = f.void_reason().substr(0, longest_reason);
    const std::byte* data = nullptr;
    if (m.void_reason.empty()) {
        m.bytes = bytes_;
        m.hash = reinterpret_cast<const u64*>(hashes_->host_data())[f.lane()];
        data = lanes_.empty() ? f.input().slot() + hosts::before_payload : lanes_[f.lane()]->host_data();
        f.set_hash(m.hash, hash_name);
    }
    link_->offer(m, data);
    while (!link_->wait_released(m.sequence, patience_ns)) f.wait_for_link(link_->alive());
}

send_stage::~send_stage() {
    if (!link_) return;
    if (!link_->end(next_, end_patience_ns))
        log::warning(
            "all {} frames are on the other host, but it has not been told that the stream ends there: end "
            "that run by hand (Ctrl-C)",
            next_);
}

}  // namespace carousel::stages
