#include "stages/video/decoder_note.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <new>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::stages::video {

// Only this process writes the record, and `step` last: a successor, which starts after this process has
// ended or was revoked, finds the other values of that step.
struct decoder_note::record {
    std::atomic<u32> step;
    u32 catching_up;
    packet_id packet;
    u64 frame;
    u32 deaths;  ///< of processes in a row at the step `packet`, before this one
};

namespace {

/// A slow disk costs a frame, too: only a place that has cost several frames is the end of the video.
constexpr int frames_before_end = 3;

std::string name_of(const std::string& stem, u32 epoch) { return fmt::format("{}-{}.note", stem, epoch); }

/// Returns the number in "STEM-12.note"; empty for another name.
std::optional<u32> epoch_of(const std::string& path, const std::string& stem) {
    const std::string begin = stem + "-", end = ".note";
    if (!path.starts_with(begin) || !path.ends_with(end)) return std::nullopt;
    const char *first = path.data() + begin.size(), *last = path.data() + path.size() - end.size();
    u32 number = 0;
    const auto [at, failed] = std::from_chars(first, last, number);
    if (failed != std::errc() || at != last) return std::nullopt;
    return number;
}

}  // namespace

u64 recorded_content(const std::string& path, u64 content) {
    const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    const shm::unique_fd made(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    const bool written = made && write_whole(made.get(), &content, sizeof content) &&
                         (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const int failed = errno;
    ::unlink(temporary.c_str());
    u64 recorded = 0;
    const shm::unique_fd first(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (first && read_whole_at(first.get(), &recorded, sizeof recorded, 0) == ssize_t{sizeof recorded})
        return recorded;
    const int cause = written ? errno : failed;
    throw_output_error(path, cause, fmt::format("writing {}: {}", path, output_cause(cause, "check it")));
}

decoder_note::decoder_note(std::string stem, u32 epoch) : stem_(std::move(stem)) {
    read_skipped();
    read_predecessor(epoch);
    const std::string path = name_of(stem_, epoch);
    const shm::unique_fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    void* at = MAP_FAILED;
    // Reserved, so that a full disk is an error here and not a fault at a store.
    if (fd && reserve_whole(fd.get(), 0, sizeof(record)) == 0)
        at = ::mmap(nullptr, sizeof(record), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED)
        throw_output_error(path, errno,
                           fmt::format("opening the note {}: {}", path, output_cause(errno, "check it")));
    own_ = new (at) record{};
}

decoder_note::~decoder_note() { ::munmap(own_, sizeof(record)); }

void decoder_note::read_predecessor(u32 epoch) {
    std::optional<u32> newest;
    for (const std::filesystem::path& path : entries_of(std::filesystem::path(stem_).parent_path())) {
        const std::optional<u32> each = epoch_of(path.string(), stem_);
        if (each && *each < epoch && (!newest || *each > *newest)) newest = each;
    }
    if (!newest) return;
    const shm::unique_fd fd(::open(name_of(stem_, *newest).c_str(), O_RDONLY | O_CLOEXEC));
    record r{};
    if (!fd || read_whole_at(fd.get(), &r, sizeof r, 0) != ssize_t{sizeof r}) return;
    const u32 step = r.step.load(std::memory_order_relaxed);
    if (step != static_cast<u32>(decoder_step::read) && step != static_cast<u32>(decoder_step::decode))
        return;
    suspicion_ =
        suspect{static_cast<decoder_step>(step), r.packet, r.frame, r.catching_up != 0, r.deaths + 1};
}

void decoder_note::begin(decoder_step step, const packet_id& packet, u64 frame, bool catching_up) noexcept {
    const bool again = suspicion_ && suspicion_->step == step && suspicion_->packet == packet;
    own_->packet = packet;
    own_->frame = frame;
    own_->catching_up = catching_up ? 1 : 0;
    own_->deaths = again ? suspicion_->deaths : 0;
    own_->step.store(static_cast<u32>(step), std::memory_order_release);
}

void decoder_note::end() noexcept {
    const auto step = static_cast<decoder_step>(own_->step.load(std::memory_order_relaxed));
    own_->step.store(static_cast<u32>(decoder_step::none), std::memory_order_release);
    if (suspicion_ && suspicion_->step == step && suspicion_->packet == own_->packet) suspicion_.reset();
}

void decoder_note::skip_suspect() {
    const suspect s = suspicion_.value();
    const std::string path = stem_ + ".skipped";
    const shm::unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    const std::string line =
        fmt::format("{} {} {} {}\n", static_cast<u32>(s.step), s.packet.dts, s.packet.pos, s.packet.bytes);
    if (!fd || !write_whole(fd.get(), line.data(), line.size()))
        throw_output_error(path, errno, fmt::format("writing {}: {}", path, output_cause(errno, "check it")));
    skipped_.push_back(s);
    suspicion_.reset();
}

void decoder_note::read_skipped() {
    std::ifstream in(stem_ + ".skipped");
    u32 step = 0;
    suspect s;
    while (in >> step >> s.packet.dts >> s.packet.pos >> s.packet.bytes) {
        s.step = static_cast<decoder_step>(step);
        skipped_.push_back(s);
    }
}

bool decoder_note::is_skipped(const packet_id& packet) const noexcept {
    return std::any_of(skipped_.begin(), skipped_.end(), [&](const suspect& s) {
        return s.step == decoder_step::decode && s.packet == packet;
    });
}

bool decoder_note::is_end(const packet_id& packet) const noexcept {
    const auto failures = std::count_if(skipped_.begin(), skipped_.end(), [&](const suspect& s) {
        return s.step == decoder_step::read && s.packet == packet;
    });
    return failures >= frames_before_end;
}

}  // namespace carousel::stages::video
