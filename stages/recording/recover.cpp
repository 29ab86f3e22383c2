#include "stages/recording/recover.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/errors.hpp"
#include "stages/compression/compression.hpp"
#include "stages/recording/mcap/any_file.hpp"
#include "stages/recording/mcap/writer.hpp"
#include "stages/recording/recording.hpp"

namespace carousel::stages {
namespace {

constexpr double own_lock_patience_s = 1;

/// The compression of the new file: that of the old one, if this program can write it.
std::string compression_like(const std::vector<mcap::chunk_entry>& chunks) {
    const auto at =
        std::find_if(chunks.begin(), chunks.end(), [](const auto& c) { return c.damage.empty(); });
    const std::string was = at == chunks.end() || at->compression.empty() ? "none" : at->compression;
    const std::vector<std::string>& there = compressions();
    return std::find(there.begin(), there.end(), was) != there.end() ? was : "none";
}

std::string recover_recording(int fd, const mcap::contents& c, const std::string& from,
                              const std::string& to) {
    (void)recording_from(c.front, from);
    mcap::writer out(to, c.front, compression_like(c.chunks), own_lock_patience_s);
    mcap::buffer compressed, records;
    u64 whole = 0, cut = 0;
    std::vector<std::string> lost;
    for (const mcap::chunk_entry& unit : c.chunks) try {
            mcap::read_chunk(fd, unit, compressed, records);
            const std::vector<mcap::message> messages = mcap::read_messages(records);
            if (messages.empty()) continue;
            out.append(messages);
            ++(unit.is_cut ? cut : whole);
        } catch (const mcap::format_error& e) {
            lost.emplace_back(e.what());
        }
    out.finish();
    std::string text = fmt::format("{}: {} complete frames", to, whole);
    if (cut != 0) text += ", and the complete messages of a frame that the end of the file cuts";
    if (c.ended) text += "; the file was complete";
    if (!c.ended && c.data_end == 0)
        text += fmt::format("; {} bytes after the last complete frame were left out",
                            mcap::size_of(fd) - (cut != 0 ? c.chunks.back().start : c.end()));
    for (const std::string& each : lost) text += fmt::format("\nlost: {}", each);
    return text;
}

std::string recover_external(int fd, const std::string& from, const std::string& to) {
    const mcap::any_contents c = mcap::scan_any(fd);
    if (c.channels.empty())
        throw config_error(fmt::format("{} has no channels, so there is nothing to recover", from));
    if (c.channels.size() > mcap::most_channels)
        throw config_error(fmt::format("{} has {} channels; at most {} are possible", from, c.channels.size(),
                                       mcap::most_channels));
    mcap::preamble front{c.library, {}, c.schemas, c.channels};
    std::vector<u16> number_of(std::size_t{65536});
    for (std::size_t k = 0; k < front.channels.size(); ++k) {
        number_of[front.channels[k].id] = static_cast<u16>(k + 1);
        front.channels[k].id = static_cast<u16>(k + 1);
    }
    mcap::writer out(to, front, compression_like(c.chunks), own_lock_patience_s);
    mcap::message_reader reader(fd, c);
    u64 copied = 0, unreadable = 0;
    std::vector<mcap::message> group;
    std::vector<mcap::buffer> data(front.channels.size());
    const auto write = [&] {
        if (!group.empty()) out.append(group);
        copied += group.size();
        group.clear();
    };
    for (const mcap::message_place& at : c.messages) try {
            const u16 number = number_of[at.channel];
            if (number == 0) throw mcap::format_error("a message of an unknown channel");
            const std::span<const std::byte> bytes = reader.read(at);
            if (!group.empty() && group.back().channel >= number) write();
            mcap::buffer& kept = data[number - 1U];
            kept.assign(bytes.begin(), bytes.end());
            group.push_back({number, at.sequence, at.log_ns, kept});
        } catch (const mcap::format_error&) {
            ++unreadable;
        }
    write();
    out.finish();
    std::string text = fmt::format("{}: {} messages of {} channels", to, copied, c.channels.size());
    if (c.text.empty()) return text + "; the file was complete";
    if (c.cut_at != 0)
        text += fmt::format("; bytes from {} to {} are not complete records", c.cut_at, mcap::size_of(fd));
    if (c.lost_chunks + unreadable != 0)
        text += fmt::format("; {} chunks and {} messages are damaged", c.lost_chunks, unreadable);
    return text + fmt::format("\nlost: {}", c.text);
}

}  // namespace

std::string recover(const std::string& from, const std::string& to) try {
    const shm::unique_fd fd(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw config_error(fmt::format("{}: {}", from, errno_text(errno)));
    if (::flock(fd.get(), LOCK_SH | LOCK_NB) != 0)
        throw config_error(fmt::format("{} is being recorded: recover it after that run has ended", from));
    if (std::filesystem::exists(to))
        throw config_error(fmt::format("{} already exists: name another file", to));
    const mcap::preamble front = mcap::read_front(fd.get()).front;
    if (is_external(front)) return recover_external(fd.get(), from, to);
    return recover_recording(fd.get(), mcap::scan(fd.get()), from, to);
} catch (const mcap::format_error& e) {
    throw config_error(fmt::format("{} can't be recovered: {}", from, e.what()));
}

}  // namespace carousel::stages
