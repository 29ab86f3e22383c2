#include "stages/display/display.hpp"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "stages/display/picture_file.hpp"

namespace carousel::stages {

description display::configure(const configuration& with) {
    name_ = with.stage;
    size_ = require_image(with);
    const std::string out = with.settings->text("out", "frame_%05d.png");
    relative_ = std::filesystem::path(out).is_relative();
    pictures_.reset();
    film_name_.clear();
    film_fps_ = with.settings->number("film_fps", 30.0, 0.01, 1000.0);
    const std::optional<std::string> film = out.ends_with(".mp4") ? literal_text(out) : std::nullopt;
    if (film) {
        if (const std::string why = why_no_films(); !why.empty()) {
            throw settings_error(
                "out", fmt::format("out = \"{}\": {}, or write pictures, e.g. frame_%05d.png", out, why));
        }
        film_name_ = *film;
    } else if (!out.empty() && out != "none") {
        pictures_.emplace("out", out);
    }
    keep_ = static_cast<u64>(with.settings->integer("keep", 0, 0, i64{1} << 40));
    delay_ms_ = with.settings->integer("delay_ms", 0, 0, 3'600'000);
    const i64 threads = with.settings->integer("finish_threads", 0, 0, 1024);
    description d;
    d.same_work = !wants_pictures();
    d.bit_equal = true;
    d.wants_tombstones = keep_ > 0;  // a tombstone frame also counts as one of the newest frames
    if (pictures_ && delay_ms_ == 0) d.finish_threads = static_cast<u32>(threads);
    return d;
}

void display::prepare(environment& env) {
    if (wants_pictures() && relative_) folder_ = env.output_directory();
    if (pictures_) {
        prepare_folder(pictures_->parent(folder_));
        if (keep_ > 0)
            kept_ = std::make_unique<kept_pictures>(*pictures_, folder_,
                                                    env.runtime_directory() + "/pictures-" + name_, keep_);
    }
    if (!film_name_.empty()) {
        if (env.instance() > 0) {
            throw config_error("only one process can write a film: give this display one instance");
        }
        const std::filesystem::path path = std::filesystem::path(folder_) / film_name_;
        prepare_folder(path.parent_path());
        film_ = std::make_unique<encoded_output>(
            encode_settings{
                .url = path.string(), .fps = film_fps_, .width = size_.width, .height = size_.height},
            env.runtime_directory() + "/film-" + name_);
    }
    hasher_ = std::make_unique<plane_hasher>(env);
    lanes_.clear();
    // A film needs a copy of the picture: the film is written after the last ownership check, and by that
    // time the slot may contain another frame.
    in_place_ = env.context().kind() == device::device_kind::cpu && !film_;
    for (u32 lane = 0; wants_pictures() && !in_place_ && lane < env.in_flight(); ++lane) {
        lanes_.push_back(env.context().allocate_host(size_.bytes()));
    }
}

void display::process(frame& f) {
    hasher_->enqueue(f, "color");
    if (wants_pictures() && !in_place_)
        f.queue().copy(lanes_[f.lane()]->data(), f.input().bytes("color").data(), size_.bytes());
}

void display::finish(frame& f) {
    if (delay_ms_ > 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms_));
    }
    if (!f.tombstone_reason().empty()) {
        if (kept_) kept_->passed(f.frame_number());
        return;
    }
    hasher_->set_hash(f);
    if (!wants_pictures()) return;
    const std::span<const std::byte> picture(
        in_place_ ? f.input().bytes("color").data() : lanes_[f.lane()]->host_data(), size_.bytes());
    if (pictures_) {
        const encoded_picture file =
            encode_picture(pictures_->format(), picture, size_.width, size_.height,
                           [&](u32 parts, const std::function<void(u32)>& body) { f.in_parts(parts, body); });
        write_picture_file(
            pictures_->of(f.frame_number(), folder_), file.head, [&] { return f.is_owned(); },
            file.pixels_follow ? picture : std::span<const std::byte>());
        if (kept_) kept_->wrote(f.frame_number());
    }
    if (film_ && f.is_owned()) {
        film_->write(f.frame_number(), {{picture.data()}});
    }
}

}  // namespace carousel::stages
