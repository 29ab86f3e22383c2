#include "stages/recording/recorder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/clock.hpp"
#include "core/log.hpp"
#include "core/read_file.hpp"
#include "run/directory.hpp"
#include "stages/recording/frame_message.hpp"
#include "stages/compression/compression.hpp"

namespace carousel::stages {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
constexpr double lock_patience_s = 10;  ///< a predecessor with a GPU context takes a tenth of a second to end

i64 wall_offset() {
    timespec wall{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    return static_cast<i64>(wall.tv_sec) * 1'000'000'000 + wall.tv_nsec - static_cast<i64>(now_ns());
}

u64 slot_bytes(const frame_format& f) {
    frame_format copy = f;
    return copy.lay_out();
}

}  // namespace

description recorder::configure(const configuration& with) {
    stage_ = with.stage;
    if (with.inputs.empty())
        throw config_error(
            fmt::format("stage {} records rings: name the stages in front of them in its inputs", stage_));
    const std::string out = with.settings->text("out", "");
    if (!out.ends_with(".mcap"))
        throw settings_error("out", fmt::format("out = \"{}\": expected the name of an .mcap file", out));
    path_ = with.path(out);
    compression_ = with.settings->choice("compression", compressions().front(), compressions());
    about_.rings.clear();
    for (const input_description& i : with.inputs) about_.rings.push_back({i.stage, i.format});
    return {};
}

// A standby must not wait for the lock, which its holder has: it opens the file with its first frame.
void recorder::prepare(environment& env) {
    if (env.instance() > 0)
        throw config_error("a recording is written by one process: give this stage one instance");
    begin(env);
    if (env.epoch() != 0) open();
    lanes_.resize(env.in_flight());
    for (auto& lane : lanes_)
        for (const recorded_ring& r : about_.rings)
            lane.push_back(env.context().allocate_host(slot_bytes(r.format)));
    messages_.resize(about_.rings.size());
}

// The note comes first: a life that dies behind it finds its own file, or none.
void recorder::begin(environment& env) {
    note_ = env.run_directory() + "/recording-" + stage_;
    about_.parameters = env.parameters();
    if (const auto text = read_file(note_)) {
        const json j = json::parse(*text, nullptr, false);
        if (j.is_object() && j.contains("id") && j.contains("offset_ns")) {
            about_.id = j.at("id");
            about_.offset_ns = j.at("offset_ns");
            return;
        }
    }
    std::error_code failed;
    if (fs::exists(path_, failed))
        throw config_error(fmt::format("{} is there already: remove it, or record into another file", path_));
    fs::create_directories(fs::path(path_).parent_path(), failed);
    about_.offset_ns = wall_offset();
    about_.id = fmt::format("{:x}", static_cast<u64>(about_.offset_ns) + now_ns());
    run::write_whole_file(note_, json{{"id", about_.id}, {"offset_ns", about_.offset_ns}}.dump());
}

void recorder::open() {
    file_ = std::make_unique<mcap::writer>(path_, preamble_of(about_), compression_, lock_patience_s);
    const auto messages = mcap::read_messages(file_->last_records());
    any_ = !messages.empty();
    if (any_) last_ = take_frame(messages.front().data, about_.rings.front().format, nullptr).sequence;
    if (any_ || file_->cut() > 0)
        log::info("goes on with {}: {} frames are in it; {} bytes of a frame that was not whole are cut off",
                  path_, file_->units(), file_->cut());
}

void recorder::process(frame& f) {
    for (std::size_t k = 0; k < about_.rings.size(); ++k) {
        device::mapping& to = *lanes_[f.lane()][k];
        f.queue().copy(to.data(), f.input(k).slot(), to.bytes());
    }
}

void recorder::finish(frame& f) {
    if (!f.void_reason().empty()) {
        if (voids_++ == 0)
            log::warning("frame {} has no payload and is not recorded: {}", f.sequence(), f.void_reason());
        return;
    }
    if (!file_) open();
    if (any_ && f.sequence() <= last_)
        return;  // a predecessor has written it, and died before it could say so
    const u64 wall = static_cast<u64>(static_cast<i64>(f.born_ns()) + about_.offset_ns);
    std::vector<mcap::message> unit;
    for (std::size_t k = 0; k < about_.rings.size(); ++k) {
        const recorded_ring& r = about_.rings[k];
        messages_[k].clear();
        frame_facts facts{f.sequence(),         f.born_ns(),         f.time_s(),
                          f.parameter_number(), f.parameter_bytes(), f.capture_ns()};
        const std::span<const std::byte> metadata = f.input_metadata(k).bytes();
        facts.metadata.assign(metadata.begin(), metadata.end());
        if (const shm::used_extents* used = f.input(k).used(); used != nullptr) facts.used = *used;
        put_frame(messages_[k], r.format, r.stage, facts, wall, lanes_[f.lane()][k]->host_data());
        unit.push_back({static_cast<u16>(k + 1), static_cast<u32>(f.sequence()), wall, messages_[k]});
    }
    file_->append(unit);
    any_ = true;
    last_ = f.sequence();
}

recorder::~recorder() {
    if (!file_) return;
    try {
        file_->finish();
        log::info("{}: {} frames, {} MiB", path_, file_->units(), file_->bytes() >> 20U);
    } catch (const error& e) {
        log::warning("{} has no index: {}. Its {} frames are whole, and `carousel-replay` plays them", path_,
                     e.what(), file_->units());
    }
}

}  // namespace carousel::stages
