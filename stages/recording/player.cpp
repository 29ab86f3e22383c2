#include "stages/recording/player.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/log.hpp"
#include "core/user_input.hpp"
#include "parameters/parameter_union.hpp"
#include "picture/rgba.hpp"
#include "shm/block_guard.hpp"

namespace carousel::stages {
namespace {

constexpr u64 before_payload = ring::plane_alignment;

}  // namespace

description player::configure(const configuration& with) {
    require_no_inputs(with);
    const std::string file = with.settings->text("file", "");
    if (file.empty())
        throw settings_error("file", "no recording is named; expected e.g. file = \"run.mcap\"");
    path_ = with.path(file);
    const std::string wanted = with.settings->text("ring", "");
    first_ = static_cast<u64>(with.settings->integer("first", 0, 0, i64{1} << 40));
    count_ = static_cast<u64>(with.settings->integer("count", 0, 0, i64{1} << 40));
    loop_ = with.settings->flag("loop", false);
    pace_ = recorded_pace(with.settings->number("rate", 0.0, 0.0, 1000.0));
    about_ = describe_recording(path_);
    std::vector<std::string> names;
    for (const recorded_ring& r : about_.rings) names.push_back(r.stage);
    const auto at = wanted.empty() ? names.begin() : std::find(names.begin(), names.end(), wanted);
    if (at == names.end() || (wanted.empty() && names.size() > 1))
        throw settings_error("ring", fmt::format("ring = \"{}\": {} has the rings {}{}", wanted, path_,
                                                 fmt::join(names, ", "), did_you_mean_clause(wanted, names)));
    ring_ = static_cast<std::size_t>(at - names.begin());
    description d;
    d.outputs = {output_format(with.settings->choice("pixel_format", "", {"", "rgba8"}) == "rgba8")};
    d.parameters = about_.parameters;
    d.ends = !loop_;
    return d;
}

frame_format player::output_format(bool as_rgba8) {
    const recorded_ring& r = about_.rings[ring_];
    converted_.reset();
    if (!as_rgba8) return r.format;
    converted_ = ring::image_in(r.format);
    if (!converted_)
        throw settings_error(
            "pixel_format",
            fmt::format("pixel_format = \"rgba8\": the frames of \"{}\" in {} have {}, which is no "
                        "picture",
                        r.stage, path_, r.format.describe()));
    if (converted_->pixels == ring::pixel_format::rgba8) converted_.reset();
    return image_format(static_cast<u32>(r.format.planes.front().shape[1]),
                        static_cast<u32>(r.format.planes.front().shape[0]));
}

void player::prepare(environment& env) {
    frames_ = ring_reader(path_, about_, ring_);
    const u64 whole = frames_.size();
    if (first_ >= whole)
        throw config_error(
            fmt::format("{} has {} frames, so first = {} is beyond its end", path_, whole, first_));
    if (count_ > whole - first_)
        throw config_error(
            fmt::format("{} has {} frames, so count = {} is too high for a start at position {}", path_,
                        whole, count_, first_));
    played_ = count_ == 0 ? whole - first_ : count_;
    frame_format format = about_.rings[ring_].format;
    u64 bytes = format.lay_out();
    if (converted_) {
        recorded_.resize(bytes);
        format = image_format(converted_->width, converted_->height);
        bytes = format.lay_out();
    }
    for (u32 lane = 0; lane < env.in_flight(); ++lane) lanes_.push_back(env.context().allocate_host(bytes));
}

// The recorded fields as they were, and those that only stages of this pipeline have as they are now.
std::span<const std::byte> player::parameters_of(const frame& f, const frame_facts& recorded) {
    if (recorded.parameters.size() != about_.parameters.bytes)
        return recorded.parameters;  // stamp() refuses it
    parameters_.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
    parameters_.resize(std::max(parameters_.size(), recorded.parameters.size()));
    ring::copy_fields(about_.parameters, recorded.parameters, parameters_);
    return parameters_;
}

// If a frame of a recording cannot be read and the stage throws, only this frame is lost. A picture of
// another program's file that has another size or encoding than the first one is abandoned without a death of
// this process.
void player::process(frame& f) {
    if (!loop_ && f.frame_number() >= played_) return f.end_stream();
    device::mapping& lane = *lanes_[f.lane()];
    frame_facts facts;
    try {
        facts = frames_.read(first_ + f.frame_number() % played_,
                             converted_ ? recorded_.data() : lane.host_data());
    } catch (const error& e) {
        if (!about_.is_external) throw;
        log::warning("{}", e.what());
        return f.pass_tombstone();
    }
    if (converted_) {
        to_rgba8(*converted_, recorded_.data(), lane.host_data() + before_payload);
        facts.used = {};
    }
    pace_.wait_for(facts.born_ns);
    f.stamp({facts.time_s, facts.parameter_number, parameters_of(f, facts), facts.capture_ns});
    f.metadata().assign(facts.metadata);
    if (facts.used.planes != 0 && f.output().used() != nullptr) {
        const shm::block_open open;
        *f.output().used() = facts.used;
    }
    // The slot's status word, which belongs to the runner, precedes the payload.
    const u64 bytes = lane.bytes() - before_payload;
    f.queue().copy(f.output().slot() + before_payload, lane.data() + before_payload, bytes);
}

}  // namespace carousel::stages
