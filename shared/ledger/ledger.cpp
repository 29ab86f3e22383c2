#include "ledger/ledger.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ledger/ledger_fold.hpp"

namespace carousel::telemetry {
namespace {

static_assert(std::endian::native == std::endian::little,
              "a ledger is written in the byte order of memory, which must be little-endian");

constexpr u64 records_at_once = 4096;
constexpr u64 recorded_bytes = offsetof(ledger_record, committer);  ///< the part written by record(); the
                                                                    ///< mark follows it

[[noreturn]] void fail(std::string_view what, const std::string& path, int error_number) {
    throw_output_error(
        path, error_number,
        fmt::format(
            "can't {} the ledger {}: {}", what, path,
            no_room_text(error_number,
                         "check that the runtime directory exists and that this user can write to it")));
}

/// Reads until `bytes` have been read or the file ends; returns the number of bytes read.
std::size_t read_at(int fd, void* to, std::size_t bytes, u64 offset, const std::string& path) {
    const ssize_t n = read_whole_at(fd, to, bytes, offset);
    if (n < 0) {
        fail("read", path, errno);
    }
    return static_cast<std::size_t>(n);
}

u32 flags_of(const frame_hash& hash, bool is_tombstone) noexcept {
    return is_tombstone ? ledger_tombstone : hash.value ? ledger_tag(hash.name) : ledger_no_hash;
}

bool present(const ledger_record& r, u64 ring_sequence) noexcept {
    return r.sequence_plus_1 == ring_sequence + 1;
}

/// The reserved fields are written as zeros. In a file with records of 48 bytes, the layout of version 0.1.0,
/// the bytes at this place belong to other fields, some of which are never zero.
bool is_of_this_layout(const ledger_record& r) noexcept {
    return std::all_of(std::begin(r.reserved), std::end(r.reserved), [](u32 word) { return word == 0; });
}

bool stands_in(const std::string& lines, std::string_view name) {
    return ("\n" + lines).find(fmt::format("\n{}\n", name)) != std::string::npos;
}

/// The names of a ledger's hash tags; a tag without a line in the file of names is shown as a number.
std::vector<std::string> names_of(const std::vector<u32>& tags, const std::string& ledger) {
    std::vector<std::string> out;
    out.reserve(tags.size());
    for (const u32 tag : tags) out.push_back(fmt::format("unknown ({:08x})", tag));
    std::istringstream lines(read_file(ledger_names_path(ledger)).value_or(""));
    for (std::string name; std::getline(lines, name);)
        for (std::size_t k = 0; k < tags.size(); ++k)
            if (ledger_tag(name) == tags[k]) out[k] = name;
    return out;
}

constexpr const char *suspended_mark = "-", *every_mark = "every";

bool read_number(const std::string& text, u64& out) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
    return failed == std::errc{} && end == text.data() + text.size();
}

[[noreturn]] void refuse_claims(const std::string& path, const std::string& line) {
    throw output_error(
        fmt::format("{}: \"{}\" is not a range of frames, so it is unknown for which frames this sink "
                    "counts; end the run and start it again (--fresh)",
                    path, line));
}

}  // namespace

std::string ledger_path(const std::string& runtime_directory, const std::string& stage) {
    return fmt::format("{}/ledger-{}.bin", runtime_directory, stage);
}

std::string ledger_names_path(const std::string& ledger) { return ledger + ".names"; }

u32 ledger_tag(std::string_view name) noexcept {
    const u32 tag =
        static_cast<u32>(XXH3_64bits(name.data(), name.size())) & ~(ledger_tombstone | ledger_no_hash);
    return tag != 0 ? tag : 4;
}

u64 hash_bytes(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

ledger_writer::ledger_writer(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) {
        fail("open", path_, errno);
    }
}

ledger_writer::~ledger_writer() { ::close(fd_); }

ledger_record ledger_writer::read(u64 ring_sequence) const {
    ledger_record r;
    const std::size_t n = read_at(fd_, &r, sizeof r, ring_sequence * sizeof r, path_);
    return n >= recorded_bytes && present(r, ring_sequence) ? r : ledger_record{};
}

void ledger_writer::write(const void* bytes, u64 count, u64 offset) const {
    if (!write_whole_at(fd_, bytes, count, offset)) {
        fail("write", path_, errno);
    }
}

void ledger_writer::name_hashes(std::string_view name) {
    if (name.empty() || name.size() > 100 || name.find('\n') != std::string_view::npos)
        throw config_error(
            fmt::format("\"{}\" is not a name for a hash; expected one line of 1 to 100 bytes", name));
    const std::string path = ledger_names_path(path_);
    if (!stands_in(read_file(path).value_or(""), name)) {
        const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (fd < 0) fail("name the hashes of", path_, errno);
        const std::string line = fmt::format("{}\n", name);
        const bool written = write_whole(fd, line.data(), line.size());
        const int why = errno;
        ::close(fd);
        if (!written) fail("name the hashes of", path_, why);
    }
    named_ = name;
}

void ledger_writer::record(u64 ring_sequence, const frame_hash& hash, bool is_tombstone, u32 committer) {
    if (!is_tombstone && hash.value && (named_ != hash.name || named_.empty())) name_hashes(hash.name);
    ledger_record r;
    r.sequence_plus_1 = ring_sequence + 1;
    r.recorded_hash = is_tombstone ? 0 : hash.value.value_or(0);
    r.recorded_flags = flags_of(hash, is_tombstone);
    r.writer = committer;
    write(&r, recorded_bytes, ring_sequence * sizeof r);
}

void ledger_writer::write_mark(u64 ring_sequence, ledger_record r) const {
    write(reinterpret_cast<const std::byte*>(&r) + recorded_bytes, sizeof r - recorded_bytes,
          ring_sequence * sizeof r + recorded_bytes);
}

void ledger_writer::mark_committed(u64 ring_sequence, const frame_hash& hash, bool is_tombstone,
                                   u32 committer) {
    ledger_record r = read(ring_sequence);
    if (r.sequence_plus_1 == 0) {
        throw output_error(
            fmt::format("the ledger {} has no record of frame {}, which is being committed: check whether "
                        "the file was replaced",
                        path_, ring_sequence));
    }
    // true if the supervisor has already marked this commit
    const bool already_marked = r.committer == committer && (r.commits & ledger_marked_by_supervisor) != 0;
    r.commits = commits_of(r) + (already_marked ? 0 : 1);
    r.committer = committer;
    r.hash = is_tombstone ? 0 : hash.value.value_or(0);
    r.flags = flags_of(hash, is_tombstone);
    write_mark(ring_sequence, r);
}

bool ledger_writer::mark_committed_by_supervisor(u64 ring_sequence, u32 committer) {
    ledger_record r = read(ring_sequence);
    if (r.sequence_plus_1 == 0) {
        return false;
    }
    // if the two are equal, this supervisor or an earlier one has already marked this commit
    if (r.committer != committer) {
        const bool its_own = r.writer == committer;
        r.commits = (commits_of(r) + 1) | ledger_marked_by_supervisor;
        r.committer = committer;
        r.hash = its_own ? r.recorded_hash : 0;
        r.flags = its_own ? r.recorded_flags : ledger_no_hash;
        write_mark(ring_sequence, r);
    }
    return true;
}

std::optional<ledger_reader> ledger_reader::open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == ENOENT) {
            return std::nullopt;
        }
        fail("open", path, errno);
    }
    return ledger_reader(path, fd);
}

ledger_reader::~ledger_reader() {
    if (fd_ >= 0) {
        ::close(fd_);
    }
}

ledger_reader::ledger_reader(ledger_reader&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

std::vector<ledger_record> ledger_reader::read(u64 first, u64 count) const {
    std::vector<ledger_record> records(count);
    const std::size_t bytes =
        read_at(fd_, records.data(), count * sizeof(ledger_record), first * sizeof(ledger_record), path_);
    // the last record may lack its mark
    const u64 whole = (bytes + sizeof(ledger_record) - recorded_bytes) / sizeof(ledger_record);
    for (u64 i = 0; i < count; ++i) {
        if (i < whole && !is_of_this_layout(records[i])) {
            throw output_error(fmt::format(
                "the records of the ledger {} do not have {} bytes: the file is damaged, or an earlier "
                "version of Carousel wrote it (0.1.0: 48 bytes), and only that version can read it",
                path_, sizeof(ledger_record)));
        }
        if (i >= whole || !present(records[i], first + i)) {
            records[i] = ledger_record{};
        }
    }
    return records;
}

u64 ledger_reader::size() const {
    struct stat s {};
    if (fstat(fd_, &s) != 0) {
        fail("read", path_, errno);
    }
    return (static_cast<u64>(s.st_size) + sizeof(ledger_record) - 1) / sizeof(ledger_record);
}

u64 ledger_reader::first_undelivered(u64 from) const {
    const frame_claims claims = frame_claims::load(path_);
    for (u64 at = std::max(from, folded_end(path_));;) {
        // A range of frames that bypassed the sink is not read, because it may have millions of frames.
        at = claims.first_from(at);
        if (at == no_frame) return no_frame;
        for (const ledger_record& r : read(at, records_at_once)) {
            if (!is_marked(r) && claims.includes(at)) return at;
            ++at;
        }
    }
}

ledger_summary ledger_reader::summarize(u64 end) const {
    for (;;) {
        ledger_account account = ledger_account::load(folded_path(path_));
        const u64 first = account.end();
        const frame_claims claims = frame_claims::load(path_);
        for (u64 at = first; at < end; at += records_at_once) {
            for (const ledger_record& r : read(at, std::min(records_at_once, end - at))) {
                account.add(r, claims.includes(account.end()));
            }
        }
        if (folded_end(path_) == first) {  // no fold has happened since the account was read
            ledger_summary sum = account.summary();
            sum.folded = first;
            refuse_nameless(sum, path_);
            sum.hash_names = names_of(sum.hash_tags, path_);
            return sum;
        }
    }
}

std::string claims_path(const std::string& ledger) { return ledger + ".unclaimed"; }

frame_claims frame_claims::load(const std::string& ledger) {
    frame_claims claims;
    const std::optional<std::string> text = read_file(claims_path(ledger));
    if (!text && errno != ENOENT)
        throw output_error(fmt::format("can't read {}: {}", claims_path(ledger), errno_text(errno)));
    std::istringstream lines(text.value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string first, end;
        words >> first >> end;
        if (first == every_mark && claims.unclaimed_.empty() && read_number(end, claims.every_) &&
            claims.every_ > 0)
            continue;
        range r{0, no_frame};
        const u64 before = claims.unclaimed_.empty() ? 0 : claims.unclaimed_.back().end;
        if (!read_number(first, r.first) || (end != suspended_mark && !read_number(end, r.end)) ||
            r.first < before || r.end < r.first)
            refuse_claims(claims_path(ledger), line);
        claims.unclaimed_.push_back(r);
    }
    return claims;
}

void frame_claims::save(const std::string& ledger) const {
    const std::string path = claims_path(ledger), aside = path + ".tmp";
    if (unclaimed_.empty() && every_ == 1 && (std::remove(path.c_str()) == 0 || errno == ENOENT)) return;
    std::ofstream out(aside, std::ios::trunc);
    if (every_ != 1) out << every_mark << ' ' << every_ << '\n';
    for (const range& r : unclaimed_)
        out << r.first << ' ' << (r.end == no_frame ? suspended_mark : std::to_string(r.end)) << '\n';
    out.close();
    if (!out || std::rename(aside.c_str(), path.c_str()) != 0)
        throw output_error(
            fmt::format("can't write {}: {}", path, no_room_text(errno, "check the write permission")));
}

u64 frame_claims::first_from(u64 frame) const noexcept {
    frame = taken_below(frame) * every_;
    for (const range& r : unclaimed_) {
        if (frame < r.first || frame >= r.end) continue;
        if (r.end == no_frame) return no_frame;
        frame = taken_below(r.end) * every_;
    }
    return frame;
}

bool frame_claims::suspended() const noexcept {
    return !unclaimed_.empty() && unclaimed_.back().end == no_frame;
}

u64 frame_claims::unclaimed_below(u64 end) const noexcept {
    u64 claimed = taken_below(end);
    for (const range& r : unclaimed_)
        claimed -= taken_below(std::min(r.end, end)) - taken_below(std::min(r.first, end));
    return end - claimed;
}

void frame_claims::suspend(u64 first) {
    if (suspended()) return;
    if (!unclaimed_.empty() && first <= unclaimed_.back().end)
        unclaimed_.back().end = no_frame;
    else
        unclaimed_.push_back({first, no_frame});
}

void frame_claims::resume(u64 first) {
    if (suspended()) unclaimed_.back().end = std::max(first, unclaimed_.back().first);
}

void frame_claims::produced_again_from(u64 first) {
    for (range& r : unclaimed_) {
        r.first = std::min(r.first, first);
        if (r.end != no_frame) r.end = std::min(r.end, first);
    }
    std::erase_if(unclaimed_, [](const range& r) { return r.first == r.end; });
}

// The ledgers are read one after the other. A suspended claim may be resumed after the ledger of its sink was
// read, possibly at a frame that another sink had not delivered when the ledger of that other sink was read.
// Therefore the ledgers of suspended claims are read once more after all others.
undelivered_frame find_undelivered(const std::string& runtime_directory,
                                   const std::vector<counted_sink>& sinks, u64 from) {
    for (;;) {
        undelivered_frame lowest;
        std::vector<std::string> suspended;
        for (const counted_sink& s : sinks) {
            const std::string path = ledger_path(runtime_directory, s.name);
            const auto ledger = ledger_reader::open(path);
            const u64 frame = ledger ? ledger->first_undelivered(from)
                                     : frame_claims::load(path).first_from(std::max(from, s.without_ledger));
            if (frame == no_frame) suspended.push_back(path);
            if (frame < lowest.frame) lowest = {frame, s.name};
        }
        if (std::all_of(suspended.begin(), suspended.end(),
                        [](const std::string& path) { return frame_claims::load(path).suspended(); }))
            return lowest;
    }
}

}  // namespace carousel::telemetry
