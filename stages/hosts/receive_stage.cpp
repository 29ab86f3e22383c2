#include "stages/hosts/receive_stage.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

namespace carousel::stages {
namespace {

frame_format format_from(const configuration& with) {
    const std::string text = with.settings->text("format", "picture");
    if (text == "picture") return image_format(with.width, with.height);
    try {
        return frame_format::from_json(text);
    } catch (const error& e) {
        throw settings_error("format",
                             fmt::format("format = '{}': {}. Expected \"picture\" or the sending stage's "
                                         "format as JSON",
                                         text, e.what()));
    }
}

}  // namespace

description receive_stage::configure(const configuration& with) {
    require_no_inputs(with);
    where_ = hosts::link_settings::read(with);
    stage_ = with.stage;
    format_ = format_from(with);
    bytes_ = hosts::payload_bytes(format_);
    window_ = static_cast<u32>(with.settings->integer("window", 4, 1, 64));
    description d;
    d.outputs = {format_};
    d.ends = true;
    d.hands_on = true;
    return d;
}

void receive_stage::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error("the frames of a link come in order: give this stage one instance");
    env_ = &env;
    token_ = hosts::token_file::read(where_.token);
    for (u32 k = 0; k < window_; ++k) buffers_.push_back(env.context().allocate_host(bytes_));
    host_ = device::open(device::device_id{}, 1);
    hasher_ = host_->make_queue();
}

// With the first question and not before: what is committed here is known now, and a standby leaves the port
// to its holder.
void receive_stage::open(u64 next) {
    hosts::receiver_link::set_up s;
    s.where = where_;
    s.expected = hosts::hello_of(format_, env_->parameters());
    s.token = token_;
    s.run = env_->run_id();
    s.note_path = env_->run_directory() + "/link-" + stage_;
    s.next = expected_ = next;
    for (const auto& b : buffers_) s.buffers.push_back(b->host_data());
    s.wake = [env = env_] { env->wake(); };
    link_ = std::make_unique<hosts::receiver_link>(std::move(s));
}

bool receive_stage::is_sound(const hosts::receiver_link::arrived& a) {
    if (!a.message.void_reason.empty()) return true;
    u64 hash = 0;
    kernels::hash_plane(*hasher_, {.data = a.data, .row_bytes = bytes_, .out = &hash});
    hasher_->drain();
    return hash == a.message.hash;
}

// A number below may be a predecessor's still, which is not revoked to the last: then its turn is not over,
// and what is acknowledged must not reach beyond it.
bool receive_stage::ready(u64 sequence, u64 done_below) {
    if (!link_ && sequence != done_below) return false;
    if (!link_) open(done_below);
    if (sequence != expected_) {
        if (done_below < sequence) return false;
        link_->skip_to(sequence);
        expected_ = sequence;
        next_.reset();
    }
    if (next_) return true;
    if (const auto end = link_->end(); end && sequence >= *end) return true;
    auto a = link_->whole(sequence);
    if (!a) return false;
    if (!is_sound(*a)) {
        link_->damaged(sequence);
        return false;
    }
    next_ = std::move(a);
    return true;
}

void receive_stage::process(frame& f) {
    if (!next_ || next_->message.sequence != f.sequence()) {
        if (const auto end = link_->end(); end && f.sequence() >= *end) return f.end_stream();
        throw error(exit_code::stage_exception,
                    fmt::format("frame {} was begun, but frame {} is next", f.sequence(), expected_));
    }
    const hosts::frame_message& m = next_->message;
    const bool own = m.parameters.size() == f.parameter_bytes().size();
    f.stamp({m.time_s, m.parameter_number,
             own ? std::span<const std::byte>(m.parameters) : std::span<const std::byte>()});
    if (m.void_reason.empty()) {
        f.queue().copy(f.output().slot() + hosts::before_payload, next_->data, bytes_);
    } else {
        log::warning("frame {} was given up on the sending host ({}): it goes on void", f.sequence(),
                     m.void_reason);
        f.pass_void();
    }
    next_.reset();
    expected_ = f.sequence() + 1;
}

void receive_stage::finish(frame& f) { link_->free_buffer(f.sequence()); }
void receive_stage::committed(u64 sequence) { link_->committed(sequence + 1); }

}  // namespace carousel::stages
