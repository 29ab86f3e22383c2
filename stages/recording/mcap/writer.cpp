#include "stages/recording/mcap/writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/resource_limit.hpp"
#include "stages/compression/compression.hpp"

namespace carousel::stages::mcap {
namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int why) {
    throw_output_error(path, why, fmt::format("{} the recording {}: {}", doing, path, no_room_text(why, "")));
}

}  // namespace

writer::writer(std::string path, const preamble& front, std::string compression, double wait_s)
    : path_(std::move(path)), compression_(std::move(compression)), front_(front) {
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd_) fail(path_, "opening", errno);
    take_lock(wait_s);
    continue_file(encode(front));
}

void writer::take_lock(double wait_s) {
    const u64 until = now_ns() + static_cast<u64>(wait_s * 1e9);
    while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) fail(path_, "locking", errno);
        if (now_ns() >= until)
            throw output_error(
                fmt::format("another process holds the recording {}: name another file", path_));
        ::usleep(2'000);
    }
}

// The preamble is written by one write of a few hundred bytes, so a file that is shorter than the preamble
// contains no units.
void writer::continue_file(const buffer& front) {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) fail(path_, "inspecting", errno);
    const u64 size = static_cast<u64>(info.st_size);
    if (size < front.size()) {
        if (::ftruncate(fd_.get(), 0) != 0) fail(path_, "emptying", errno);
        const buffer* const parts[] = {&front};
        write_all(parts);
        return;
    }
    buffer there(front.size());
    if (read_whole_at(fd_.get(), there.data(), there.size(), 0) != static_cast<ssize_t>(there.size()) ||
        there != front)
        throw output_error(
            fmt::format("{} is no longer the recording that was started there: name another file", path_));
    contents c = scan(fd_.get());
    while (!c.chunks.empty() && (!c.chunks.back().whole || !c.chunks.back().damage.empty()))
        c.chunks.pop_back();
    for (chunk_entry& unit : c.chunks)
        if (unit.damage.empty())
            chunks_.push_back(std::move(unit));
        else
            damage_.push_back(std::move(unit.damage));
    end_ = chunks_.empty() ? front.size() : chunks_.back().end();
    cut_ = size - end_;
    if (cut_ != 0 && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) fail(path_, "cutting", errno);
}

const buffer& writer::last_records(u16 channel) {
    records_.clear();
    for (std::size_t k = chunks_.size(); k-- > 0;) {
        if (!chunks_[k].has(channel)) continue;
        try {
            read_chunk(fd_.get(), chunks_[k], compressed_, records_);
            break;
        } catch (const format_error&) {
            records_.clear();
            if (k + 1 < chunks_.size()) continue;
            cut_ += end_ - chunks_.back().start;
            end_ = chunks_.back().start;
            chunks_.pop_back();
            if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) fail(path_, "cutting", errno);
        }
    }
    return records_;
}

void writer::append(std::span<const message> messages) {
    chunk_entry c;
    c.start = end_;
    c.first_ns = std::numeric_limits<u64>::max();
    c.compression = compression_ == "none" ? "" : compression_;
    records_.clear();
    indexes_.clear();
    auto next = messages.begin();
    for (const channel& of : front_.channels) {
        if (next == messages.end() || next->channel != of.id) {
            put_empty_message_index(indexes_, of.id);
            continue;
        }
        const message& m = *next++;
        c.channels |= bit_of(of.id);
        c.first_ns = std::min(c.first_ns, m.log_ns);
        c.last_ns = std::max(c.last_ns, m.log_ns);
        put_message_index(indexes_, m.channel, m.log_ns, records_.size());
        put_message_head(records_, m);
        records_.insert(records_.end(), m.data.begin(), m.data.end());
    }
    const buffer* body = &records_;
    if (!c.compression.empty()) {
        compress(compression_, records_, compressed_);
        body = &compressed_;
    }
    c.uncompressed = records_.size();
    c.compressed = body->size();
    c.index_length = indexes_.size();
    head_.clear();
    put_chunk_head(head_, c, crc_of(records_));
    c.length = head_.size() + body->size();
    const buffer* const parts[] = {&head_, body, &indexes_};
    write_all(parts);
    chunks_.push_back(std::move(c));
}

// The unit is written in one call: if the process is killed during the call, a part of the unit may remain at
// the end of the file.
void writer::write_all(std::span<const buffer* const> parts) {
    iovec pieces[3];
    u64 bytes = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        pieces[k] = {const_cast<std::byte*>(parts[k]->data()), parts[k]->size()};
        bytes += parts[k]->size();
    }
    u64 done = 0;
    for (std::size_t first = 0; done < bytes;) {
        const ssize_t n = ::pwritev(fd_.get(), pieces + first, static_cast<int>(parts.size() - first),
                                    static_cast<off_t>(end_ + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            const int why = n == 0 ? ENOSPC : errno;
            // If the file cannot be cut here, the next incarnation removes the incomplete unit.
            if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) fail(path_, "cutting", errno);
            fail(path_, "writing", why);
        }
        done += static_cast<u64>(n);
        for (auto left = static_cast<std::size_t>(n); left > 0;) {
            const std::size_t take = std::min(left, pieces[first].iov_len);
            pieces[first].iov_base = static_cast<std::byte*>(pieces[first].iov_base) + take;
            pieces[first].iov_len -= take;
            left -= take;
            if (pieces[first].iov_len == 0) ++first;
        }
    }
    end_ += bytes;
}

// Writes the records of the summary in contiguous groups, in the order in which the summary offsets at the
// end of the file list the groups.
void writer::summary(buffer& to) const {
    struct group {
        opcode code;
        u64 start, length;
    };
    std::vector<group> groups;
    const auto add = [&](opcode code, auto&& content) {
        const u64 before = to.size();
        content();
        if (to.size() > before) groups.push_back({code, end_ + before, to.size() - before});
    };
    put_record(to, opcode::data_end, [](byte_writer& w) { w.number(u32{0}); });
    const u64 start = to.size();
    add(opcode::schema, [&] {
        for (const schema& s : front_.schemas) put(to, s);
    });
    add(opcode::channel, [&] {
        for (const channel& c : front_.channels) put(to, c);
    });
    add(opcode::statistics, [&] {
        put_record(to, opcode::statistics, [&](byte_writer& w) {
            u64 first = chunks_.empty() ? 0 : chunks_.front().first_ns, last = 0;
            for (const chunk_entry& c : chunks_)
                first = std::min(first, c.first_ns), last = std::max(last, c.last_ns);
            u64 messages = 0;
            std::vector<u64> of(front_.channels.size());
            for (const chunk_entry& c : chunks_)
                for (std::size_t k = 0; k < of.size(); ++k)
                    if (c.has(front_.channels[k].id)) ++of[k], ++messages;
            w.number(messages);
            w.number(static_cast<u16>(front_.schemas.size()));
            w.number(static_cast<u32>(front_.channels.size()));
            w.number(u32{0});
            w.number(u32{1});
            w.number(static_cast<u32>(chunks_.size()));
            w.number(first);
            w.number(last);
            w.number(static_cast<u32>(front_.channels.size() * (sizeof(u16) + sizeof(u64))));
            for (std::size_t k = 0; k < of.size(); ++k) w.number(front_.channels[k].id), w.number(of[k]);
        });
    });
    add(opcode::chunk_index, [&] {
        for (const chunk_entry& c : chunks_) put(to, c, front_.channels);
    });
    add(opcode::metadata_index, [&] {
        buffer header, about;
        put_record(header, opcode::header, [&](byte_writer& w) { w.text(""), w.text(front_.library); });
        put_record(about, opcode::metadata,
                   [&](byte_writer& w) { w.text(front_.about.name), w.map(front_.about.values); });
        put_record(to, opcode::metadata_index, [&](byte_writer& w) {
            w.number(u64{sizeof magic + header.size()}), w.number(u64{about.size()}),
                w.text(front_.about.name);
        });
    });
    const u64 offsets = to.size();
    for (const group& g : groups)
        put_record(to, opcode::summary_offset, [&](byte_writer& w) {
            w.number(static_cast<u8>(g.code)), w.number(g.start), w.number(g.length);
        });
    byte_writer w(to);
    w.number(static_cast<u8>(opcode::footer));
    w.number(u64{20});
    w.number(end_ + start);
    w.number(end_ + offsets);
    w.number(crc_of(std::span(to).subspan(static_cast<std::size_t>(start))));
    w.raw(std::as_bytes(std::span(magic)));
}

void writer::finish() {
    buffer end;
    summary(end);
    const u64 units_end = end_;
    const buffer* const parts[] = {&end};
    write_all(parts);
    end_ = units_end;
}

}  // namespace carousel::stages::mcap
