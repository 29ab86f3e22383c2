#include "stages/hosts/receive_stage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "run/checkpoint.hpp"
#include "shm/block_guard.hpp"
#include "stages/compression/compression.hpp"
#include "stages/hosts/link_frame.hpp"

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
    end_.read(with, format_from(with));
    window_ = static_cast<u32>(with.settings->integer("window", 4, 1, 64));
    sync_ = with.settings->flag("sync", false);
    work_ = with.settings->flag("work", false);
    successors_ = with.settings->flag("successors", false);
    description d;
    d.outputs = {end_.format};
    d.ends = true;
    d.forwards_frames = true;
    return d;
}

void receive_stage::prepare(environment& env) {
    end_.prepare(env);
    for (u32 k = 0; k < window_; ++k) buffers_.push_back(env.context().allocate_host(end_.bytes));
    host_ = device::open(device::device_id{}, 1);
    hasher_ = host_->make_queue();
}

// The link is opened at the first call of ready() and not earlier, because before that call this process does
// not know which frames are committed here, and because a standby must leave the port to the active process.
void receive_stage::open(u64 next) {
    hosts::receiver_link::set_up s;
    s.where = end_.where;
    s.expected = hosts::hello_of(end_.format, end_.env->parameters());
    s.expected.by_durable = static_cast<u8>(std::min<u64>(end_.checkpoint_every(), run::most_every_of_link));
    if (work_) s.expected.kind = static_cast<u8>(hosts::link_kind::work);
    s.token = end_.token;
    s.run = end_.env->run_id();
    s.note_path = end_.file("link");
    s.figures_path = end_.file("figures");
    s.next = expected_ = next;
    s.unpacks = hosts::built_in_packings();
    s.accepts_successors = successors_;
    // Both may begin after frames that this sender keeps, because it has not heard yet that they are durable.
    s.has_other_links = end_.is_one_of_several_receivers() || end_.begins_at_checkpoint(next);
    for (const auto& b : buffers_) s.buffers.push_back(b->host_data());
    s.wake = [env = end_.env] { env->wake(); };
    link_ = std::make_unique<hosts::receiver_link>(std::move(s));
    durable_ = std::make_unique<hosts::durable_watch>(hosts::durable_watch::set_up{
        [this] { return link_->wants_durable(); }, [this] { return end_.env->delivered_below(); },
        [this](u64 below) { link_->durable(below); }, sync_});
}

bool receive_stage::unpack(hosts::receiver_link::arrived& a) {
    if (unpacked_.empty())
        for (u32 k = 0; k < window_; ++k) unpacked_.push_back(end_.env->context().allocate_host(end_.bytes));
    std::byte* const to = unpacked_[a.message.ring_sequence % window_]->host_data();
    try {
        decompress(hosts::name_of(static_cast<hosts::packing>(a.message.packed)),
                   {a.data, static_cast<std::size_t>(a.message.packed_bytes)},
                   {to, static_cast<std::size_t>(end_.bytes)});
    } catch (const compression_error& e) {
        log::warning("frame {}: {}", a.message.ring_sequence, e.what());
        return false;
    }
    a.data = to;
    return true;
}

bool receive_stage::is_sound(hosts::receiver_link::arrived& a) {
    if (!a.message.tombstone_reason.empty()) return true;
    if (a.message.packed != 0 && !unpack(a)) return false;
    u64 hash = 0;
    kernels::hash_plane(*hasher_, {.data = a.data, .row_bytes = end_.bytes, .out = &hash});
    hasher_->drain();
    return hash == a.message.hash;
}

// A lower frame may still belong to a predecessor that is not completely revoked. In that case this frame
// must wait, and no acknowledgement may include the lower frame.
bool receive_stage::ready(u64 ring_sequence, u64 done_below) {
    if (!link_ && ring_sequence != done_below) return false;
    if (!link_) open(done_below);
    if (ring_sequence != expected_) {
        if (done_below < ring_sequence) return false;
        link_->skip_to(ring_sequence);
        expected_ = ring_sequence;
        next_.reset();
    }
    if (next_) return true;
    if (const auto end = link_->end(); end && ring_sequence >= *end) return true;
    auto a = link_->whole(ring_sequence);
    if (!a) return false;
    if (!is_sound(*a)) {
        link_->damaged(ring_sequence);
        return false;
    }
    next_ = std::move(a);
    return true;
}

// Converts times of the other host's clock to this host's clock, as precisely as the relation of the clocks
// is known. As long as the relation is unknown, such times are not set.
frame_stamp receive_stage::stamp_of(const hosts::frame_message& m, bool own_parameters) const {
    frame_stamp s{.time_s = m.time_s,
                  .parameter_number = m.parameter_number,
                  .capture_ns = m.capture_ns,
                  .frame_number = m.frame_number};
    if (own_parameters) s.parameters = m.parameters;
    const u64 now = now_ns();
    const auto clock = link_->clock(now);
    if (clock && m.born_ns != 0) s.born_ns = std::min(clock->here_from(m.born_ns), now);
    if (!clock || m.clock != static_cast<u8>(shm::capture_clock::live)) return s;
    s.capture_ns = std::min(clock->here_from(m.capture_ns), now);
    s.captured_here = true;
    return s;
}

void receive_stage::process(frame& f) {
    if (!next_ || next_->message.ring_sequence != f.ring_sequence()) {
        if (const auto end = link_->end(); end && f.ring_sequence() >= *end) return f.end_stream();
        throw error(exit_code::stage_exception,
                    fmt::format("frame {} was started, although frame {} is the next one", f.ring_sequence(),
                                expected_));
    }
    const hosts::frame_message& m = next_->message;
    f.stamp(stamp_of(m, m.parameters.size() == f.parameter_bytes().size()));
    f.metadata().assign(m.metadata);
    if (m.tombstone_reason.empty()) {
        if (shm::used_extents* const used = f.output().used()) {
            const shm::block_open open;  // makes the frame header, which has the used extents, writable
            *used = hosts::extents_of(m.used);
        }
        f.queue().copy(f.output().slot() + hosts::before_payload, next_->data, end_.bytes);
    } else {
        log::warning("frame {} was given up on the sending host ({}) and continues as a tombstone",
                     f.frame_number(), m.tombstone_reason);
        f.pass_tombstone();
    }
    next_.reset();
    expected_ = f.ring_sequence() + 1;
}

void receive_stage::finish(frame& f) { link_->free_buffer(f.ring_sequence()); }
void receive_stage::committed(u64 ring_sequence) { link_->committed(ring_sequence + 1); }

}  // namespace carousel::stages
