#include "telemetry/ledger.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/disk_full.hpp"

namespace carousel::telemetry {
namespace {

static_assert(std::endian::native == std::endian::little, "ledgers are little-endian files, written as they lie in memory");

constexpr u64 records_at_once = 4096;

[[noreturn]] void fail(std::string_view what, const std::string& path, int error_number) {
    const char* hint = error_number == ENOSPC || error_number == EDQUOT
                           ? "make room on that disk"
                           : "check that the run's directory exists and may be written by this user";
    throw_output_error(path, error_number, fmt::format("can't {} the ledger {}: {}; {}", what, path, errno_text(error_number), hint));
}

/// Reads until `bytes` are there or the file ends; returns the bytes read.
std::size_t read_at(int fd, void* to, std::size_t bytes, u64 offset, const std::string& path) {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            fail("read", path, errno);
        }
        done += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    return done;
}

bool present(const ledger_record& r, u64 sequence) noexcept { return r.sequence_plus_1 == sequence + 1; }

}  // namespace

std::string ledger_path(const std::string& run_directory, const std::string& stage) {
    return fmt::format("{}/ledger-{}.bin", run_directory, stage);
}

u64 hash_bytes(std::span<const std::byte> bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

ledger_writer::ledger_writer(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) {
        fail("open", path_, errno);
    }
}

ledger_writer::~ledger_writer() { ::close(fd_); }

ledger_record ledger_writer::read(u64 sequence) const {
    ledger_record r;
    const std::size_t n = read_at(fd_, &r, sizeof r, sequence * sizeof r, path_);
    return n == sizeof r && present(r, sequence) ? r : ledger_record{};
}

void ledger_writer::write(u64 sequence, const ledger_record& r) const {
    ssize_t n = 0;
    do {
        n = pwrite(fd_, &r, sizeof r, static_cast<off_t>(sequence * sizeof r));
    } while (n < 0 && errno == EINTR);
    if (n != static_cast<ssize_t>(sizeof r)) {
        fail("write", path_, n < 0 ? errno : ENOSPC);  // a short write of 32 bytes happens at the end of the disk only
    }
}

void ledger_writer::record(u64 sequence, u64 hash, bool is_void, u64 epoch) {
    const ledger_record before = read(sequence);
    ledger_record r;
    r.sequence_plus_1 = sequence + 1;
    r.hash = is_void ? 0 : hash;
    r.flags = (is_void ? ledger_void : 0) | (before.flags & ledger_committed);
    r.times = before.times;
    r.epoch = epoch;
    write(sequence, r);
}

void ledger_writer::mark_committed(u64 sequence) {
    ledger_record r = read(sequence);
    if (r.sequence_plus_1 == 0) {
        throw output_error(fmt::format("the ledger {} has no record of frame {}, which is being committed; was the file replaced?", path_, sequence));
    }
    if ((r.flags & ledger_committed) != 0) {
        ++r.times;
    }
    r.flags |= ledger_committed;
    write(sequence, r);
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

ledger_reader::ledger_reader(ledger_reader&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

std::vector<ledger_record> ledger_reader::read(u64 first, u64 count) const {
    std::vector<ledger_record> records(count);
    const std::size_t bytes = read_at(fd_, records.data(), count * sizeof(ledger_record), first * sizeof(ledger_record), path_);
    const u64 whole = bytes / sizeof(ledger_record);
    for (u64 i = 0; i < count; ++i) {
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
    return static_cast<u64>(s.st_size) / sizeof(ledger_record);
}

u64 ledger_reader::first_undelivered(u64 from) const {
    for (u64 at = from;; at += records_at_once) {
        const auto records = read(at, records_at_once);
        for (u64 i = 0; i < records_at_once; ++i)
            if ((records[i].flags & ledger_committed) == 0) return at + i;
    }
}

ledger_summary ledger_reader::summarize(u64 first, u64 end) const {
    ledger_summary sum;
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (u64 at = first; at < end; at += records_at_once) {
        const auto records = read(at, std::min(records_at_once, end - at));
        std::vector<u64> hashes;
        hashes.reserve(records.size());
        for (const ledger_record& r : records) {
            const bool there = r.sequence_plus_1 != 0;
            sum.records += there ? 1 : 0;
            sum.lost += there ? 0 : 1;
            sum.repeated += r.times;
            sum.voids += (r.flags & ledger_void) != 0 ? 1 : 0;
            sum.unmarked += there && (r.flags & ledger_committed) == 0 ? 1 : 0;
            hashes.push_back(r.hash);
        }
        XXH3_64bits_update(&state, hashes.data(), hashes.size() * sizeof(u64));
    }
    sum.image_hash = XXH3_64bits_digest(&state);
    return sum;
}

}  // namespace carousel::telemetry
