#include "ledger/ledger_fold.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "ledger/ledger.hpp"

namespace carousel::telemetry {
namespace {

constexpr u64 magic = 0x3544'4c4f'4657'4c43;  // "CLWFOLD5", as bytes
constexpr u64 listed_tombstones = 1000, listed_tags = 4;
constexpr u64 most_steps = 64;  ///< per call

// If g++ 12 knows that the input has 8 bytes, it warns about the library's branches for longer inputs, at the
// top of every build's output.
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noipa]]
#endif
void add_bytes(XXH3_state_t& state, const void* bytes, std::size_t count) {
    XXH3_64bits_update(&state, bytes, count);
}

[[noreturn]] void refuse(std::string_view what, const std::string& path, int error_number) {
    throw output_error(fmt::format("can't {} {}: {}", what, path, no_room_text(error_number, "")));
}

/// Closes the file in the destructor.
struct descriptor {
    descriptor(const std::string& path, int flags) : fd(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
    ~descriptor() {
        if (fd >= 0) {
            ::close(fd);
        }
    }
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    int fd;
};

void write_all(int fd, const void* bytes, u64 count, u64 offset, const std::string& path) {
    if (!write_whole_at(fd, bytes, count, offset)) {
        refuse("write", path, errno);
    }
}

/// `<ledger>.folded`, in its memory layout. Only the build that wrote the file reads it, because the hash
/// state depends on that build's version of the library.
struct file_layout {
    u64 what = magic;
    u32 library = XXH_VERSION_NUMBER, state_bytes = sizeof(XXH3_state_t);
    u64 first = 0, end = 0, repeated = 0, tombstones = 0, marked_by_supervisor = 0, without_hash = 0,
        passed = 0, listed = 0;
    u64 tombstone_sequences[listed_tombstones] = {};
    u32 tags = 0, hash_tags[listed_tags] = {}, unused = 0;
    alignas(64) unsigned char state[sizeof(XXH3_state_t)] = {};
    u64 check = 0;  ///< XXH3_64bits of all preceding bytes
};
static_assert(std::is_trivially_copyable_v<file_layout>);
/// Two tags are enough to detect different kinds of hashes; a few more are kept so that their names can be
/// reported.
void note_tag(std::vector<u32>& tags, u32 tag) {
    if (!tags.empty() && tags.back() == tag) return;
    if (tags.size() < listed_tags && std::find(tags.begin(), tags.end(), tag) == tags.end())
        tags.push_back(tag);
}
u64 check_of(const file_layout& f) { return XXH3_64bits(&f, offsetof(file_layout, check)); }

}  // namespace

struct ledger_account::hash_state {
    XXH3_state_t of;
    hash_state() {
        // The state is cleared, because all of its bytes are written to the file, and XXH3_64bits_reset()
        // leaves some of them unset.
        std::memset(&of, 0, sizeof of);
        XXH3_64bits_reset(&of);
    }
};

ledger_account::ledger_account() : hash_(std::make_unique<hash_state>()) {}
ledger_account::~ledger_account() = default;
ledger_account::ledger_account(ledger_account&&) noexcept = default;
ledger_account& ledger_account::operator=(ledger_account&&) noexcept = default;

void ledger_account::add(const ledger_record& r, bool claimed) {
    // A record without a mark is not a delivery. A frame without a mark or a claim has bypassed the sink.
    const bool marked = is_marked(r), there = r.sequence_plus_1 != 0 && (marked || claimed),
               is_tombstone = there && ((marked ? r.flags : r.recorded_flags) & ledger_tombstone) != 0;
    sum_.records += there ? 1 : 0;
    sum_.lost += marked || !claimed ? 0 : 1;
    sum_.passed += marked || claimed ? 0 : 1;
    sum_.unmarked += there && !marked ? 1 : 0;
    sum_.repeated += marked && commits_of(r) > 1 ? commits_of(r) - 1 : 0;
    sum_.marked_by_supervisor += marked && (r.commits & ledger_marked_by_supervisor) != 0 ? 1 : 0;
    sum_.without_hash += there && ((marked ? r.flags : r.recorded_flags) & ledger_no_hash) != 0 ? 1 : 0;
    sum_.tombstones += is_tombstone ? 1 : 0;
    if (is_tombstone) {
        if (sum_.tombstone_sequences.size() == listed_tombstones) {
            sum_.tombstone_sequences.erase(sum_.tombstone_sequences.begin());
        }
        sum_.tombstone_sequences.push_back(end_);
    }
    if (marked && (r.flags & (ledger_tombstone | ledger_no_hash)) == 0)
        note_tag(sum_.hash_tags, tag_of(r.flags));
    const u64 hash = marked ? r.hash : 0;
    add_bytes(hash_->of, &hash, sizeof hash);
    ++end_;
}

ledger_summary ledger_account::summary() const {
    ledger_summary sum = sum_;
    sum.image_hash = XXH3_64bits_digest(&hash_->of);
    return sum;
}

ledger_account ledger_account::beginning_at(u64 first) {
    ledger_account a;
    a.first_ = a.end_ = first;
    return a;
}

ledger_account ledger_account::load(const std::string& path) {
    ledger_account a;
    const std::optional<std::string> bytes = read_file(path);
    if (!bytes) {
        return a;
    }
    file_layout f;
    if (bytes->size() == sizeof f) {
        std::memcpy(&f, bytes->data(), sizeof f);
    }
    if (bytes->size() != sizeof f || f.what != magic || f.check != check_of(f) ||
        f.library != XXH_VERSION_NUMBER || f.first > f.end || f.passed > f.end - f.first ||
        f.listed > listed_tombstones || f.tags > listed_tags) {
        throw output_error(fmt::format(
            "{} is not a ledger account of this build of Carousel: the delivered frames can't be read",
            path));
    }
    a.first_ = f.first;
    a.end_ = f.end;
    a.sum_.records = f.end - f.first - f.passed;
    a.sum_.passed = f.passed;
    a.sum_.repeated = f.repeated;
    a.sum_.tombstones = f.tombstones;
    a.sum_.marked_by_supervisor = f.marked_by_supervisor;
    a.sum_.without_hash = f.without_hash;
    a.sum_.tombstone_sequences.assign(f.tombstone_sequences, f.tombstone_sequences + f.listed);
    a.sum_.hash_tags.assign(f.hash_tags, f.hash_tags + f.tags);
    // this pointer is valid in this process; the pointer in the file is not
    const unsigned char* const secret = a.hash_->of.extSecret;
    std::memcpy(&a.hash_->of, f.state, sizeof f.state);
    a.hash_->of.extSecret = secret;
    return a;
}

void ledger_account::save(const std::string& path) const {
    CAROUSEL_ASSERT(sum_.lost == 0);
    file_layout f;
    f.first = first_;
    f.end = end_;
    f.repeated = sum_.repeated;
    f.tombstones = sum_.tombstones;
    f.marked_by_supervisor = sum_.marked_by_supervisor;
    f.without_hash = sum_.without_hash;
    f.passed = sum_.passed;
    f.listed = sum_.tombstone_sequences.size();
    std::copy(sum_.tombstone_sequences.begin(), sum_.tombstone_sequences.end(), f.tombstone_sequences);
    f.tags = static_cast<u32>(sum_.hash_tags.size());
    std::copy(sum_.hash_tags.begin(), sum_.hash_tags.end(), f.hash_tags);
    std::memcpy(f.state, &hash_->of, sizeof f.state);
    f.check = check_of(f);
    const std::string aside = path + ".tmp";
    {
        const descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC);
        if (file.fd < 0) {
            refuse("write", aside, errno);
        }
        write_all(file.fd, &f, sizeof f, 0, aside);
    }
    crash_here(crash_point::account_written);
    if (std::rename(aside.c_str(), path.c_str()) != 0) {
        refuse("write", path, errno);
    }
}

std::string folded_path(const std::string& ledger) { return ledger + ".folded"; }
u64 folded_end(const std::string& ledger) { return ledger_account::load(folded_path(ledger)).end(); }

void refuse_nameless(const ledger_summary& sum, const std::string& ledger) {
    if (std::find(sum.hash_tags.begin(), sum.hash_tags.end(), 0U) != sum.hash_tags.end())
        throw output_error(
            fmt::format("the ledger {} has hashes without a name from an older build of Carousel, and they "
                        "can't be compared: end that run with its own build, or start a new run (--fresh)",
                        ledger));
}

void begin_ledger(const std::string& ledger, u64 first) {
    ledger_account::beginning_at(first).save(folded_path(ledger));
    const ledger_writer made(ledger);
}

u64 fold_ledger(const std::string& ledger, u64 below) {
    ledger_account account = ledger_account::load(folded_path(ledger));
    const u64 before = account.end();
    const auto reader = ledger_reader::open(ledger);
    below -= below % fold_step;
    below = std::min(below, before - before % fold_step + most_steps * fold_step);
    const frame_claims claims = frame_claims::load(ledger);
    while (reader && account.end() < below) {
        const auto records = reader->read(account.end(), fold_step);
        u64 frame = account.end();
        const auto settled = [&](const ledger_record& r) {
            const bool claimed = claims.includes(frame++);
            return is_marked(r) || !claimed;
        };
        if (!std::all_of(records.begin(), records.end(), settled)) {
            break;
        }
        for (const ledger_record& r : records) {
            account.add(r, claims.includes(account.end()));
        }
    }
    if (account.end() == before) {
        return before;
    }
    refuse_nameless(account.summary(), ledger);
    account.save(folded_path(ledger));
    crash_here(crash_point::account_saved);
    const descriptor file(ledger, O_RDWR);
    // Not every file system supports holes; without them the file keeps its size.
    [[maybe_unused]] const int ignored =
        file.fd < 0 ? -1
                    : ::fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                                  static_cast<off_t>(account.end() * sizeof(ledger_record)));
    return account.end();
}

namespace {

/// Copies the records from `first` on. Returns false if there is no ledger. During the copy only the two
/// ledgers are open, and none of their other files, so that a process at its descriptor limit can still copy
/// its ledgers.
bool copy_records(const std::string& from, const std::string& to, u64 first) {
    const auto reader = ledger_reader::open(from);
    if (!reader) {
        return false;
    }
    const descriptor file(to, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.fd < 0) {
        refuse("write", to, errno);
    }
    for (u64 at = first, size = reader->size(); at < size; at += fold_step) {
        const auto records = reader->read(at, std::min(fold_step, size - at));
        write_all(file.fd, records.data(), records.size() * sizeof(ledger_record), at * sizeof(ledger_record),
                  to);
    }
    return true;
}

}  // namespace

void copy_ledger(const std::string& from, const std::string& to) {
    const ledger_account account = ledger_account::load(folded_path(from));
    if (!copy_records(from, to, account.end())) {
        return;
    }
    ::unlink(ledger_names_path(to).c_str());
    if (const std::optional<std::string> names = read_file(ledger_names_path(from))) {
        const descriptor names_file(ledger_names_path(to), O_WRONLY | O_CREAT | O_TRUNC);
        if (names_file.fd < 0) {
            refuse("write", ledger_names_path(to), errno);
        }
        write_all(names_file.fd, names->data(), names->size(), 0, ledger_names_path(to));
    }
    frame_claims::load(from).save(to);
    ::unlink(folded_path(to).c_str());
    if (account.end() > 0) {
        account.save(folded_path(to));
    }
}

}  // namespace carousel::telemetry
