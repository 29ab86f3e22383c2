#include "stages/encode/hls_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view segment_ending = ".m4s";
constexpr std::size_t number_digits = 10;

u64 hash_of(std::span<const u8> bytes) noexcept {  // FNV-1a
    u64 h = 0xCBF29CE484222325;
    for (const u8 b : bytes) h = (h ^ b) * 0x100000001B3;
    return h;
}

/// The text between `before` and `after`, or to the end of the line if `after` is 0.
std::string part_of(const std::string& line, std::string_view before, char after) {
    const std::size_t at = line.find(before);
    if (at == std::string::npos) return "";
    const std::size_t from = at + before.size();
    return line.substr(from, after == 0 ? std::string::npos : line.find(after, from) - from);
}

}  // namespace

hls_folder::hls_folder(const std::string& playlist, std::string note, std::span<const u8> heading,
                       const rules& by)
    : playlist_(playlist), note_(std::move(note)), by_(by) {
    const fs::path path(playlist);
    folder_ = path.parent_path().empty() ? "." : path.parent_path().string();
    name_ = path.stem().string();
    lock_.reset(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_) fail("opening the folder of", playlist_, errno);
    const int failed = lock_exclusively(lock_.get());
    if (failed == EWOULDBLOCK)
        throw output_error(
            fmt::format("another process writes into the folder {}: choose another one", folder_));
    if (failed != 0) fail("locking the folder of", playlist_, failed);
    heading_ = fmt::format("{}_init_{:016x}.mp4", name_, hash_of(heading));
    if (const std::optional<std::string> noted = read_note(note_)) {
        if (noted->empty()) throw_damaged_note(note_, playlist_);
        continue_after_predecessor();
        // The segment of a predecessor with another heading ends here.
        if (current_ && *noted != heading_) {
            current_->heading = *noted;
            finish_segment(*last_ + 1);
        }
        write_heading(heading);
    } else {
        begin(heading);
    }
    write_note(note_, heading_);
}

void hls_folder::fail(const char* what, const std::string& path, int error_number) const {
    throw_output_error(path, error_number,
                       fmt::format("{} {}: {}", what, path,
                                   output_cause(error_number, "choose a folder that this user may write")));
}

std::string hls_folder::segment_name(u64 first) const {
    return fmt::format("{}_{:010}{}", name_, first, segment_ending);
}

std::optional<u64> hls_folder::number_of(const std::string& name) const {
    const std::size_t before = name_.size() + 1;
    if (!name.starts_with(name_ + "_") || !name.ends_with(segment_ending)) return {};
    if (name.size() < before + number_digits + segment_ending.size()) return {};
    u64 n = 0;
    const char* const last = name.data() + name.size() - segment_ending.size();
    const auto [end, failed] = std::from_chars(name.data() + before, last, n);
    return failed == std::errc() && end == last ? std::optional(n) : std::nullopt;
}

// The playlist is removed first, so that it never lists a segment that does not exist. Without a note, the
// next incarnation begins again.
void hls_folder::begin(std::span<const u8> heading) {
    if (::unlink(playlist_.c_str()) != 0 && errno != ENOENT) fail("removing", playlist_, errno);
    for (const fs::path& entry : entries_of(folder_)) {
        const std::string name = entry.filename().string();
        if (number_of(name) || (name.starts_with(name_ + "_init_") && name.ends_with(".mp4")))
            ::unlink(entry.c_str());
    }
    write_heading(heading);
}

void hls_folder::write_heading(std::span<const u8> heading) {
    const std::string path = path_of(heading_);
    std::error_code absent;
    if (fs::file_size(path, absent) == heading.size() && !absent) return;  // also if the disk is full
    if (const int failed = write_output_file(path, {std::as_bytes(heading)}); failed != 0)
        fail("writing", path, failed);
}

void hls_folder::read_playlist() {
    std::ifstream in(playlist_);
    std::string heading;
    f64 duration = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("#EXT-X-MEDIA-SEQUENCE:")) {
            removed_ = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
        } else if (line.starts_with("#EXT-X-MAP:")) {
            heading = part_of(line, "URI=\"", '"');
        } else if (line.starts_with("#EXTINF:")) {
            duration = std::strtod(line.c_str() + line.find(':') + 1, nullptr);
        } else if (const std::optional<u64> first = number_of(line)) {
            const u64 frames = static_cast<u64>(std::llround(duration * by_.fps));
            listed_.push_back({*first, *first + frames, heading});
        }
    }
}

void hls_folder::continue_after_predecessor() {
    read_playlist();
    if (!listed_.empty()) last_ = listed_.back().end - 1;
    std::optional<u64> unlisted;
    for (const fs::path& entry : entries_of(folder_)) {
        const std::optional<u64> n = number_of(entry.filename().string());
        if (n && (listed_.empty() || *n > listed_.back().first))
            unlisted = std::max(unlisted.value_or(0), *n);
    }
    if (!unlisted) return;
    open_segment(*unlisted, 0);
    const unit_contents found = read_units(file_.get(), 0);
    if (found.frames == 0) {
        ::unlink(path_of(segment_name(*unlisted)).c_str());
        return;
    }
    if (::ftruncate(file_.get(), static_cast<off_t>(found.bytes)) != 0)
        fail("cutting", path_of(segment_name(*unlisted)), errno);
    bytes_ = found.bytes;
    last_ = found.last;
    current_ = segment{*unlisted, 0, heading_};
}

void hls_folder::open_segment(u64 first, int flags) {
    const std::string path = path_of(segment_name(first));
    file_.reset(::open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0644));
    if (!file_) fail("opening", path, errno);
}

// A failure leaves the object as it was, so that append() can be called again.
void hls_folder::append(u64 frame_number, const encoded_frame& f) {
    const bool elsewhere =
        current_ && frame_number / by_.segment_frames != current_->first / by_.segment_frames;
    if (current_ && f.key && elsewhere && last_ && *last_ >= current_->first) finish_segment(frame_number);
    if (!current_) {
        open_segment(frame_number, O_CREAT | O_TRUNC);
        bytes_ = 0;
        current_ = segment{frame_number, 0, heading_};
    }
    if (!write_whole_at(file_.get(), f.bytes.data(), f.bytes.size(), bytes_))
        fail("writing", path_of(segment_name(current_->first)), errno);
    bytes_ += f.bytes.size();
    last_ = frame_number;
}

void hls_folder::finish_segment(u64 end) {
    std::vector<segment> listed = listed_;
    segment done = *current_;
    done.end = end;
    listed.push_back(done);
    u64 removed = removed_;
    std::vector<u64> old;
    while (by_.keep > 0 && listed.size() > by_.keep) {
        old.push_back(listed.front().first);
        listed.erase(listed.begin());
        ++removed;
    }
    write_playlist(listed, removed, false);
    listed_ = std::move(listed);
    removed_ = removed;
    current_.reset();
    for (const u64 first : old) ::unlink(path_of(segment_name(first)).c_str());
}

void hls_folder::close() {
    if (ended_) return;
    if (current_ && last_ && *last_ >= current_->first) finish_segment(*last_ + 1);
    write_playlist(listed_, removed_, true);
    ended_ = true;
}

void hls_folder::write_playlist(const std::vector<segment>& listed, u64 removed, bool ended) {
    f64 longest = static_cast<f64>(by_.segment_frames) / by_.fps;
    for (const segment& s : listed) longest = std::max(longest, static_cast<f64>(s.end - s.first) / by_.fps);
    std::string text = fmt::format(
        "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:{}\n#EXT-X-MEDIA-SEQUENCE:{}\n"
        "{}#EXT-X-INDEPENDENT-SEGMENTS\n",
        static_cast<u64>(std::ceil(longest)), removed, by_.keep == 0 ? "#EXT-X-PLAYLIST-TYPE:EVENT\n" : "");
    std::string heading;
    for (const segment& s : listed) {
        if (s.heading != heading) {
            if (!heading.empty()) text += "#EXT-X-DISCONTINUITY\n";
            text += fmt::format("#EXT-X-MAP:URI=\"{}\"\n", s.heading);
            heading = s.heading;
        }
        text += fmt::format("#EXTINF:{:.6f},\n{}\n", static_cast<f64>(s.end - s.first) / by_.fps,
                            segment_name(s.first));
    }
    if (ended) text += "#EXT-X-ENDLIST\n";
    if (const int failed = write_output_file(playlist_, {std::as_bytes(std::span(text))}); failed != 0)
        fail("writing", playlist_, failed);
}

}  // namespace carousel::stages
