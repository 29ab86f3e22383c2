#include "stages/recording/recorder.hpp"

#include <fmt/format.h>

#include "core/log.hpp"
#include "stages/compression/compression.hpp"
#include "stages/display/picture_file.hpp"

namespace carousel::stages {
namespace {

u64 slot_bytes(const frame_format& f) {
    frame_format copy = f;
    return copy.lay_out();
}

}  // namespace

description recorder::configure(const configuration& with) {
    stage_ = with.stage;
    if (with.inputs.empty())
        throw config_error(fmt::format(
            "stage {} has no rings to record: name the stages that write them in inputs", stage_));
    const std::string out = with.settings->text("out", "");
    if (!out.ends_with(".mcap"))
        throw settings_error("out", fmt::format("out = \"{}\": expected the name of an .mcap file", out));
    path_ = with.path(out);
    compression_ = with.settings->choice("compression", compressions().front(), compressions());
    const bool images = with.settings->flag("images", false);
    about_.jpeg_width = static_cast<u32>(with.settings->integer("image_width", 640, 16, 16384));
    if (!images) about_.jpeg_width = 0;
    if (const std::string_view why = why_not_written(picture_format::jpeg); images && !why.empty())
        throw settings_error("images", fmt::format("images = true: {}", why));
    about_.rings.clear();
    for (const input_description& i : with.inputs) about_.rings.push_back({i.stage, i.format});
    return {.wants_tombstones = true};  // set because finish() must log that tombstones are missing in the
                                        // file
}

// A standby must not wait for the lock, because the holder of its seat has the lock. So a standby opens the
// file with its first frame.
void recorder::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error("only one process can write a recording: give this stage one instance");
    about_.parameters = env.parameters();
    tape_ =
        std::make_unique<tape>(path_, compression_, about_, env.runtime_directory() + "/recording-" + stage_);
    if (env.epoch() != 0) tape_->open();
    lanes_.resize(env.in_flight());
    for (auto& lane : lanes_)
        for (const recorded_ring& r : about_.rings)
            lane.push_back(env.context().allocate_host(slot_bytes(r.format)));
}

void recorder::process(frame& f) {
    for (std::size_t k = 0; k < about_.rings.size(); ++k) {
        device::mapping& to = *lanes_[f.lane()][k];
        f.queue().copy(to.data(), f.input(k).slot(), to.bytes());
    }
}

void recorder::finish(frame& f) {
    if (!f.tombstone_reason().empty()) {
        if (tombstones_++ == 0)
            log::warning("frame {} has no payload and is not recorded: {}", f.frame_number(),
                         f.tombstone_reason());
        return;
    }
    if (!tape_->is_open()) tape_->open();
    if (tape_->has(f.frame_number()))
        return;  // a predecessor has written the frame, but died before it committed the frame
    std::vector<taped_frame> unit;
    for (std::size_t k = 0; k < about_.rings.size(); ++k) {
        frame_facts facts;
        facts.meta() = f.meta();
        facts.parameters.assign(f.parameter_bytes().begin(), f.parameter_bytes().end());
        facts.set(f.input_metadata(k).bytes(), f.input(k).used());
        unit.push_back({std::move(facts), lanes_[f.lane()][k]->host_data()});
    }
    tape_->append(unit);
}

recorder::~recorder() {
    if (tape_) tape_->finish();
}

}  // namespace carousel::stages
