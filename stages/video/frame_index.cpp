#include "stages/video/frame_index.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/log.hpp"
#include "core/output_file.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace carousel::stages::video {
namespace {

constexpr u64 magic = 0x3230'7864'6976'7263;  // "crvidx02"
constexpr u64 no_total = ~u64{0};
constexpr std::size_t records_per_read = 4096;

struct header_record {
    u64 magic = 0, identity = 0, total = no_total, irregular = 0;
    u64 check = 0;
};
struct entry_record {
    i64 pts = 0, dts = 0;
    u64 hash = 0;
    u32 flags = 0;  // 1: key, 2: missing
    u32 check = 0;
};
static_assert(sizeof(header_record) == 40 && sizeof(entry_record) == 32);
constexpr u64 first_entry_at = 64;
constexpr u32 key_flag = 1, missing_flag = 2;

u64 check_of(const header_record& h) noexcept { return XXH3_64bits(&h, offsetof(header_record, check)); }
/// The identity is part of it: a process that was stopped, and continues after a successor has emptied the
/// index of another file, writes no valid record.
u32 check_of(const entry_record& e, u64 number, u64 identity) noexcept {
    const u64 seed = XXH3_64bits_withSeed(&number, sizeof number, identity);
    return static_cast<u32>(XXH3_64bits_withSeed(&e, offsetof(entry_record, check), seed));
}

entry_record record_of(const index_entry& e, u64 number, u64 identity) noexcept {
    entry_record r{e.pts, e.dts, e.hash, (e.key ? key_flag : 0U) | (e.missing ? missing_flag : 0U), 0};
    r.check = check_of(r, number, identity);
    return r;
}

}  // namespace

frame_index::frame_index(const std::string& path, u64 identity) : path_(path), identity_(identity) {
    file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!file_)
        throw_output_error(path, errno,
                           fmt::format("opening the index {}: {}", path, output_cause(errno, "check it")));
    read_all();
}

void frame_index::read_all() {
    header_record h;
    const bool sound = read_whole_at(file_.get(), &h, sizeof h, 0) == ssize_t{sizeof h} && h.magic == magic &&
                       h.check == check_of(h) && h.identity == identity_;
    if (!sound) {
        if (::ftruncate(file_.get(), 0) != 0)
            throw output_error(fmt::format("emptying the index {}: {}", path_, errno_text(errno)));
        return write_header();
    }
    irregular_ = h.irregular != 0;
    std::vector<entry_record> part(records_per_read);
    for (;;) {
        const ssize_t got = read_whole_at(file_.get(), part.data(), part.size() * sizeof(entry_record),
                                          first_entry_at + entries_.size() * sizeof(entry_record));
        const std::size_t count = got > 0 ? static_cast<std::size_t>(got) / sizeof(entry_record) : 0;
        for (std::size_t k = 0; k < count; ++k) {
            const entry_record& r = part[k];
            if (r.check != check_of(r, entries_.size(), identity_)) return;
            if ((r.flags & key_flag) != 0) keys_.push_back(entries_.size());
            entries_.push_back(
                {r.pts, r.dts, r.hash, (r.flags & key_flag) != 0, (r.flags & missing_flag) != 0});
            if (h.total == entries_.size()) {
                total_ = h.total;
                return;
            }
        }
        if (count < part.size()) return;
    }
}

void frame_index::write_header() {
    header_record h{magic, identity_, total_.value_or(no_total), irregular_ ? 1U : 0U, 0};
    h.check = check_of(h);
    report(write_whole_at(file_.get(), &h, sizeof h, 0));
}

void frame_index::report(bool written) {
    if (written || std::exchange(reported_, true)) return;
    log::warning("writing the index {}: {}; after a crash, more of the video is decoded again", path_,
                 errno_text(errno));
}

void frame_index::append(const index_entry& e) {
    const entry_record r = record_of(e, size(), identity_);
    report(write_whole_at(file_.get(), &r, sizeof r, first_entry_at + size() * sizeof r));
    if (e.key) keys_.push_back(size());
    entries_.push_back(e);
}

void frame_index::complete() {
    if (total_ == size()) return;
    total_ = size();
    write_header();
}

void frame_index::set_irregular() {
    if (irregular_) return;
    irregular_ = true;
    write_header();
}

std::optional<u64> frame_index::at_time(i64 pts) const noexcept {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), pts,
                                     [](const index_entry& e, i64 t) { return e.pts < t; });
    if (at == entries_.end() || at->pts != pts) return std::nullopt;
    return static_cast<u64>(at - entries_.begin());
}

// The last picture before `frame` is compared with the index, so `exact` must be below `frame`.
std::vector<frame_index::start> frame_index::starts_for(u64 frame) const {
    std::vector<start> out;
    if (irregular_) return out;
    const auto end = std::lower_bound(keys_.begin(), keys_.end(), frame);
    const auto below = static_cast<std::size_t>(end - keys_.begin());
    for (const std::size_t back : {std::size_t{2}, std::size_t{4}, std::size_t{16}})
        if (below >= back && keys_[below - back] > 0)
            out.push_back({keys_[below - back], keys_[below - back + 1]});
    return out;
}

void frame_index::keep_as(const std::string& path) const noexcept try {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    std::filesystem::copy_file(path_, temporary, std::filesystem::copy_options::overwrite_existing, ignored);
    if (!ignored) std::filesystem::rename(temporary, path, ignored);
    if (ignored) std::filesystem::remove(temporary, ignored);
} catch (const std::exception&) {  // no memory for a path
}

}  // namespace carousel::stages::video
